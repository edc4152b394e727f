"""fabric_manager: running, failed, restarting, not installed, in a driver container, types without it."""

from functools import partial

from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, INFO, INVESTIGATE, PASS, SKIP, UNKNOWN, WARN, judging, row, table

UNIT = "nvidia-fabricmanager.service"


def unit(**state):
    return {"services": {"units": {UNIT: state}}}


def by_log(configured, **said):
    return {"fabric_log": {"logs": {"fabricmanager.log": {"configured": configured, **said}}}}


REGISTERED = {"nvidia_smi": {"gpus": [{"fabric_state": "Completed"}]}}
RUNNING = unit(load="loaded", active="active", sub="running")
WITHOUT = {**RUNNING, "modules": {"names": {"nvidia": {}}}}
judge = partial(judging, "fabric_manager")

test_fabric_manager = table(
    *(row("fixtures", judge({"services": read("services", f"systemctl/{file}")}), wanted)
        for file, wanted in [
            ("p5.json", "PASS"), ("p5-fabricmanager-failed.json", "FAIL"), ("table.txt", "FAIL"), ("show.txt", "FAIL"),
        ]),
    *(row("everything but running fails", judge(unit(**state)), FAIL)
        for state in [
            {"load": "loaded", "active": "inactive", "sub": "dead"},
            {"load": "loaded", "active": "active", "sub": "exited"},
            {"load": "masked", "active": "inactive", "sub": "dead"},
            {"load": "not-found", "active": "inactive", "sub": "dead"},
            {"load": "loaded", "active": "activating", "sub": "start"},
        ]),
    row("failed unit is evidence", judge(unit(load="loaded", active="failed", sub="failed")), FAIL,
        measured="failed/failed", expected="active/running", remedy=FIX_CONFIG, shows=UNIT),
    *(each for none in [{"services": {"units": {"sshd.service": {"active": "active"}}}}] for each in (
        row("no unit", [judge(none),
            judge({**none, "nvidia_smi": {"gpus": [{"fabric_state": "Completed"}, {"fabric_state": "In Progress"}]}})],
            FAIL),
        row("no unit", judge({**none, "nvidia_smi": {"gpus": [{"fabric_state": "Completed"}] * 8}}), INFO),
    )),
    *(row("types without it", judge(unit(active="failed"), kind), SKIP)
        for kind in ["g5.48xlarge", "p5.4xlarge", "p6e-gb200.36xlarge", "none"]),
    row("Blackwell needs it", judge(unit(active="failed"), "p6-b200.48xlarge"), FAIL),
    row("unknown", judge(unit(load="loaded")), UNKNOWN),
    row("nvlsm needs ib umad on p6", judge(WITHOUT, "p6-b200.48xlarge"), WARN, says="ib_umad"),
    row("nvlsm needs ib umad on p6",
        [judge(WITHOUT), judge({**RUNNING, "modules": {"names": {"ib_umad": {}}}}, "p6-b200.48xlarge"),
        judge({**WITHOUT, "nvidia_smi": {"gpus": [{"fabric_state": "Completed"}]}}, "p6-b200.48xlarge")], PASS),
    *(row("still starting is not failing again and again", judge(unit(load="loaded", active="activating", sub=sub)),
        FAIL, remedy=remedy)
        for sub, remedy in [("start", INVESTIGATE), ("auto-restart", FIX_CONFIG)]),
    *(row("a daemon that runs and logged errors",
        judge({**unit(load="loaded", active="active", sub="running"),
        "fabric_log": {"logs": {"fabricmanager.log": {"errors": [error], "configured": configured}}},
        "nvidia_smi": {"gpus": [{"fabric_state": registered}] * 8}}), wanted, says="0000:05:00.0",
        evidence=(f"fabricmanager.log: {error}",))
        for configured, registered, wanted in [
            (False, "In Progress", FAIL), (False, "Completed", WARN), (True, "In Progress", WARN),
        ]
        for error in ["failed to configure the NVSwitch at 0000:05:00.0"]),
    *(row("by its log alone", judge({**by_log(configured, **said), **more}), wanted, reason=reason)
        for configured, said, more, wanted, reason in [
            (False, {"errors": ["x"]}, {}, UNKNOWN, "not_said"), (False, {"errors": ["x"]}, REGISTERED, WARN, "logged"),
            (False, {"refused": ["x"]}, {}, FAIL, "not_configured"), (True, {"errors": ["x"]}, {}, WARN, "logged"),
            (True, {}, {}, PASS, ""), (False, {}, {}, SKIP, "not_collected"),
            (False, {"fatal": ["x"]}, REGISTERED, FAIL, "switch_fatal"),
        ]),
    row("by its log alone", judge({**by_log(True), "services": BROKEN}), UNKNOWN, statuses=(UNKNOWN, PASS)),
)  # fmt: skip
