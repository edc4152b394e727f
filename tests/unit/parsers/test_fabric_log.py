"""The logs of the Fabric Manager and NVLSM: errors since the last start, and whether the switches were set up."""

import pytest

from flightline_node.model import ParseError, Remedy, Status
from flightline_node.read.parsers import fabric_log
from tests.harness import judge_facts, only, status

STARTED = (
    "[Nov 21 2026 09:00:01] [INFO] [tid 7] Fabric Manager version 580.95.05 is running with the following options\n"
)
DONE = (
    "[Nov 21 2026 09:00:09] [INFO] [tid 7] Successfully configured all the available NVSwitches to route GPU traffic\n"
)
BROKEN = "[Nov 21 2026 09:00:08] [ERROR] [tid 7] failed to find the GPU handle 123 in the multicast team\n"
LSM = "# nvlsm.log\nNov 21 09:00:01 123456 [7F00] 0x01 -> osm_trap_rcv: ERR 3809: no route to the switch\n"
BRIDGE = "[Nov 21 2026 09:00:02] [INFO] [tid 7] CX Bridge device mlx5_0 is not usable for NVLink subnet management\n"
UNIT = {"units": {"nvidia-fabricmanager.service": {"load": "loaded", "active": "active", "sub": "running"}}}


def parse(text):
    return fabric_log.parse({"fabric-log.txt": text.encode()})


def judge(text, state="In Progress", unit=UNIT):
    smi = {"gpus": [{"index": 0, "fabric_state": state}]}
    facts = {"services": unit, "fabric_log": parse(text), "nvidia_smi": smi}
    return judge_facts("fabric_manager", facts, "p6-b200.48xlarge")


def test_errors_since_the_last_start():
    log = parse("# fabricmanager.log\n" + STARTED + BROKEN + STARTED + DONE + "# end\n")["logs"]["fabricmanager.log"]
    assert log == {"configured": True, "errors": [], "version": "580.95.05"}
    log = parse("# fabricmanager.log\n" + STARTED + BROKEN + BROKEN)["logs"]["fabricmanager.log"]
    assert (log["configured"], len(log["errors"])) == (False, 1)


def test_each_log_has_its_own():
    logs = parse("# fabricmanager.log\n" + STARTED + DONE + BRIDGE + LSM + "# end\n")["logs"]
    assert logs["nvlsm.log"]["errors"] == ["ERR 3809: no route to the switch"]
    assert "not usable" in logs["fabricmanager.log"]["errors"][0]
    assert parse("# end\n") == {"logs": {}}


def test_what_is_no_such_log_is_refused():
    for text in ("", "hello\n"):
        with pytest.raises(ParseError):
            parse(text)


@pytest.mark.parametrize(
    ("text", "state", "wanted"),
    [
        (STARTED + DONE, "In Progress", Status.PASS),
        (STARTED + BROKEN, "In Progress", Status.FAIL),
        (STARTED + BROKEN, "Completed", Status.WARN),
        (STARTED + DONE + BROKEN, "Completed", Status.WARN),
        (STARTED + DONE + LSM, "Completed", Status.WARN),
        ("# end\n", "Completed", Status.PASS),
    ],
)
def test_a_daemon_that_runs_and_did_not_do_its_work(text, state, wanted):
    assert status(judge(text, state)) is wanted


def test_why_it_died_is_in_the_message():
    dead = {"units": {"nvidia-fabricmanager.service": {"load": "loaded", "active": "failed", "sub": "failed"}}}
    finding = only(judge(STARTED + BROKEN, unit=dead), Status.FAIL)
    assert "multicast team" in finding.message
    assert finding.remedy is Remedy.FIX_CONFIG
