"""xid: every code of the catalogue, NVLink5 and 154 by their text, repeats, boots, resets, the site's policy."""

import pytest

from flightline_node.know.catalog import nvlink5
from flightline_node.know.catalog import xid as catalogue
from flightline_node.model import ParseError, Remedy, Status
from flightline_node.read.parsers import kernel
from tests.harness import judge_facts, only, sample, status

NODE_LEVEL = {
    **dict.fromkeys((46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 48, 74), Remedy.RESET_GPU),
    **dict.fromkeys((167, 169, 171, 172, 173, 175), Remedy.RESET_GPU),
    54: Remedy.REPLACE, 79: Remedy.REBOOT, 151: Remedy.REBOOT, 168: Remedy.REBOOT,
    78: Remedy.UPDATE_SOFTWARE, 142: Remedy.CONTACT_SUPPORT,
}  # fmt: skip
APPLICATION = [
    8, 11, 13, 25, 31, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89,
    *range(96, 106), *range(126, 136), 139,
]  # fmt: skip
IGNORED = [14, 37, 38, 43, 44, 45, 66, 67, 106, 107, 108, 137, 141, 152, 153, 160, 161, 162, 163, 174, 176]
WATCHED = [32, 63, 92, 93, 94, 121, 157, 159, 164, 165, 166, 170]
SMI = {
    "driver_version": "580.95.05",
    "gpus": [{"index": 3, "uuid": "GPU-3", "serial": "165", "name": "NVIDIA H100", "pci_bus_id": "00000000:53:00.0"}],
}


def log(*lines, stamp="[{:12.6f}] "):
    return kernel.parse(
        {"kernel.log": "".join(stamp.format(60.0 * n) + line + "\n" for n, line in enumerate(lines, 1)).encode()}
    )


def xid(code, text="x", pci="0000:53:00"):
    return f"NVRM: Xid (PCI:{pci}): {code}, {text}"


def judge(*lines, smi=None, **rest):
    facts = {"kernel": lines[0] if isinstance(lines[0], dict) else log(*lines)}
    return judge_facts("xid", {**facts, **({"nvidia_smi": smi} if smi else {})}, **rest)


@pytest.mark.parametrize(("code", "remedy"), NODE_LEVEL.items())
def test_node_level_codes_fail(code, remedy):
    finding = only(judge(xid(code)), Status.FAIL)
    assert finding.remedy is remedy
    assert finding.device["pci"] == "0000:53:00"
    assert f"Xid {code}" in finding.message


@pytest.mark.parametrize("code", APPLICATION + IGNORED)
def test_application_and_ignore_codes_never_block(code):
    assert status(judge(xid(code))) is Status.INFO


@pytest.mark.parametrize("code", WATCHED)
def test_codes_to_watch_warn(code):
    assert status(judge(xid(code))) is Status.WARN


@pytest.mark.parametrize("code", [1, 56, 61, 81, 125, 777])
def test_unused_and_unknown_codes_warn(code):
    assert only(judge(xid(code)), Status.WARN).remedy is Remedy.INVESTIGATE


def test_the_lists_above_are_the_whole_catalogue():
    table = catalogue.table()
    unused = {code for code, entry in table.items() if entry.bucket == "UNUSED"}
    listed = {*NODE_LEVEL, *APPLICATION, *IGNORED, *WATCHED, 154, *range(144, 151)}
    assert listed | unused == set(table) == set(range(1, 177))
    assert not listed & unused


def test_63_and_94_send_to_the_row_remap():
    for code in (63, 94):
        assert "remap" in only(judge(xid(code)), Status.WARN).message


@pytest.mark.parametrize(
    ("action", "wanted", "remedy"),
    [
        ("0x0 (None)", Status.INFO, Remedy.NONE),
        ("0x1 (GPU Reset Required)", Status.FAIL, Remedy.RESET_GPU),
        ("0x1 (PF FLR)", Status.FAIL, Remedy.RESET_GPU),
        ("0x2 (Node Reboot Required)", Status.FAIL, Remedy.REBOOT),
        ("0x2 (OS Reboot)", Status.FAIL, Remedy.REBOOT),
        ("0x3 (Drain P2P)", Status.FAIL, Remedy.RESET_GPU),
        ("0x4 (Drain and Reset)", Status.FAIL, Remedy.RESET_GPU),
        ("0x5 (Recover IMEX Domain)", Status.FAIL, Remedy.FIX_CONFIG),
        ("0x2 (words not seen yet)", Status.FAIL, Remedy.REBOOT),
        ("0x9 (words not seen yet)", Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_154_says_what_it_wants(action, wanted, remedy):
    finding = only(judge(xid(154, f"GPU recovery action changed from 0x1 (x) to {action}")), wanted)
    assert finding.remedy is remedy


NETIR_RESET = "NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x004505c6 0x00000000)"
REMAP_EVAL = "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004 0x00000001)"
ASKS_RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
ASKS_NOTHING = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


@pytest.mark.parametrize(
    ("lines", "driver", "wanted"),
    [
        ([xid(149, NETIR_RESET)], "570.172.08", Status.FAIL),
        ([xid(144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001)")], "580.95.05", Status.INFO),
        ([xid(144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002)")], "580.95.05", Status.FAIL),
        ([xid(144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000003)")], "580.95.05", Status.FAIL),
        ([xid(144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000021 0x00000001)")], "570.172.08", Status.INFO),
        ([xid(145, REMAP_EVAL)], "580.95.05", Status.INFO),
        ([xid(145, REMAP_EVAL), xid(154, ASKS_RESET)], "580.95.05", Status.FAIL),
        ([xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x00000006 0x00000001)")], "580.95.05", Status.INFO),
        ([xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x00000086 0x00000001)")], "580.95.05", Status.FAIL),
        ([xid(146, "NEW_UNIT Fatal XC0 i0 Link 03 (0x0000007f 0x00000001)")], "580.95.05", Status.FAIL),
        ([xid(146, "NEW_UNIT Nonfatal XC0 i0 Link 03 (0x0000007f 0x00000001)")], "580.95.05", Status.WARN),
        ([xid(150, "words")], "580.95.05", Status.WARN),
    ],
)
def test_nvlink5(lines, driver, wanted):
    assert status(judge(*lines, smi={"driver_version": driver, "gpus": []})) is wanted


def test_nvlink5_layouts():
    assert nvlink5.decode(145, "RLW_REMAP", 0x82, 0x40, 570) == "RESET_GPU"
    assert nvlink5.decode(145, "RLW_REMAP", 0x04, 0x40, 575) == "RESET_GPU"
    assert nvlink5.decode(145, "RLW_REMAP", 0x82, 0x40, 575) is None
    assert nvlink5.decode(145, "RLW_REMAP", 0x82, 0x40, None) == "RESET_GPU"
    assert nvlink5.decode(149, "NETIR_MFDE_EVENT", 0x14, 3, 580) == "IGNORE"
    assert nvlink5.decode(145, "RLW_REMAP", None, None, 580) is None


def test_nvlink5_fixture_takes_the_driver_version_from_the_log():
    facts = kernel.parse({"kernel.log": sample("kernel/nvlink5-b200-short-iso.log")})
    found = {(f.device["pci"], f.status) for f in judge(facts, instance_type="p6-b200.48xlarge")}
    assert found == {("0000:a4:00", Status.INFO), ("0000:b9:00", Status.FAIL)}


def test_the_gpu_is_named_by_nvidia_smi_or_by_the_drivers_log():
    assert only(judge(xid(79), smi=SMI), Status.FAIL).device == {
        "index": 3, "uuid": "GPU-3", "serial": "165", "name": "NVIDIA H100", "pci": "00000000:53:00.0",
    }  # fmt: skip
    uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert only(judge(f"NVRM: GPU at PCI:0000:53:00: {uuid}", xid(79)), Status.FAIL).device["uuid"] == uuid


def test_one_finding_per_code_and_gpu_with_count_and_times():
    finding = only(judge(*[xid(74)] * 7, xid(79, pci="0000:64:00"))[:1], Status.FAIL)
    assert finding.measured == 7
    assert "7 lines from 60 s after boot to 420 s after boot" in finding.message
    assert finding.evidence[0] == xid(74)
    assert len(judge(xid(74), xid(79, pci="0000:64:00"))) == 2


def test_a_storm_keeps_its_number():
    facts = log(*[xid(74)] * 1000, stamp="[1.0] ")
    assert only(judge(facts), Status.FAIL).measured == 1000


def test_no_xid_passes():
    facts = kernel.parse({"kernel.log": sample("kernel/healthy-p5-dmesg.log")})
    assert only(judge(facts), Status.PASS)


def test_unreadable_cut_or_missing_never_passes():
    assert status(judge("NVRM: Xid (PCI:0000:5")) is Status.UNKNOWN
    with pytest.raises(ParseError):
        kernel.parse({"kernel.log": b"-- No entries --\n"})


def test_not_for_types_without_nvidia_gpus():
    assert status(judge(xid(79), instance_type="trn1.32xlarge")) is Status.SKIP


def test_only_the_last_boot_counts():
    facts = kernel.parse({"kernel.log": sample("kernel/two-boots-journal.log")})
    findings = judge(facts)
    assert status(findings) is Status.INFO
    assert any("earlier boots" in finding.message for finding in findings)


def test_a_recovery_said_by_the_driver_takes_the_block_away():
    assert status(judge(xid(95), xid(154, ASKS_RESET), xid(154, ASKS_NOTHING))) is Status.WARN
    assert status(judge(xid(95), xid(154, ASKS_NOTHING), xid(95))) is Status.FAIL
    assert status(judge(xid(95), xid(154, ASKS_NOTHING, pci="0000:64:00"))) is Status.FAIL
    assert status(judge(xid(79), xid(154, ASKS_NOTHING))) is Status.FAIL


def crash(pid, pci="0000:53:00"):
    return xid(13, f"pid={pid}, name=python, Graphics SM Warp Exception", pci)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([crash(1), crash(2), crash(3)], Status.WARN),
        ([crash(1), crash(2)], Status.INFO),
        ([crash(1)] * 50, Status.INFO),
        ([crash(1), crash(2), crash(3), crash(4, "0000:64:00")], Status.INFO),
    ],
)
def test_application_errors_that_stay_on_one_gpu_warn(lines, wanted):
    assert status(judge(*lines)) is wanted
    assert status(judge(*lines, thresholds={"xid.repeat_count": 1000})) is Status.INFO
    assert status(judge(*lines, instance_type="g5.xlarge")) is Status.INFO


def test_window_is_measured_from_the_logs_end():
    lines = [xid(79), *["NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"] * 200]
    assert status(judge(*lines)) is Status.FAIL
    assert status(judge(*lines, thresholds={"xid.window_hours": 4})) is Status.FAIL
    assert status(judge(*lines, thresholds={"xid.window_hours": 3})) is Status.PASS
    wall = kernel.parse(
        {"kernel.log": f"2026-01-01T00:00:00+0000 h kernel: {xid(79)}\n2026-01-02T00:00:00+0000 h kernel: x\n".encode()}
    )
    assert status(judge(wall, thresholds={"xid.window_hours": 23})) is Status.PASS
    assert status(judge(wall, thresholds={"xid.window_hours": 24})) is Status.FAIL


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({79: "info"}, Status.INFO),
        ({"79": "warn"}, Status.WARN),
        ({79: "ignore"}, Status.PASS),
        ({79: {"status": "fail", "remedy": "replace", "reason": "spares are cheap"}}, Status.FAIL),
        ({80: "info"}, Status.FAIL),
    ],
)
def test_site_policy(policy, wanted):
    assert status(judge(xid(79), options={"xid_policy": policy})) is wanted


def test_site_policy_shows_in_the_finding():
    policy = {13: {"status": "fail", "remedy": "REPLACE", "reason": "no crash is allowed"}}
    finding = only(judge(xid(13), options={"xid_policy": policy}), Status.FAIL)
    assert finding.remedy is Remedy.REPLACE
    assert "site policy makes it FAIL (was INFO): no crash is allowed" in finding.message


@pytest.mark.parametrize(
    "policy",
    [
        ["79"],
        "79",
        {79: "maybe"},
        {"x": "info"},
        {79: {"remedy": "REBOOT"}},
        {79: {"status": "fail", "remedy": "PRAY"}},
    ],
)
def test_a_policy_that_cannot_be_read_is_unknown_and_named(policy):
    findings = judge(xid(13), options={"xid_policy": policy})
    assert "xid_policy" in only(findings, Status.UNKNOWN).message


LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"


def test_a_driver_loaded_anew_has_reset_the_gpu():
    finding = only(judge(LOADED, xid(95), LOADED), Status.WARN)
    assert "loaded anew" in finding.message
    assert status(judge(LOADED, xid(95))) is Status.FAIL
    assert status(judge(LOADED, xid(95), LOADED, xid(95))) is Status.FAIL
    assert status(judge(LOADED, xid(79), LOADED)) is Status.FAIL


RELOCATED = "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000082 0x00000040)"
"""The bits mean a reset up to driver 570 and are laid out otherwise later (test_nvlink5_layouts)."""


@pytest.mark.parametrize(("version", "wanted"), [("570.172.08", Status.FAIL), ("575.51.03", Status.WARN)])
def test_the_layout_follows_the_driver_by_nvidia_smi_or_by_the_log(version, wanted):
    assert status(judge(xid(145, RELOCATED), smi={"driver_version": version, "gpus": []})) is wanted
    loaded = f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build"
    assert status(judge(loaded, xid(145, RELOCATED))) is wanted


def test_what_is_no_matter_of_an_application_may_repeat():
    lines = [xid(154, f"{ASKS_NOTHING} pid={number}") for number in range(5)]
    assert status(judge(*lines)) is Status.INFO


@pytest.mark.parametrize(("count", "shown"), [(3, [0, 1, 2]), (4, [0, 1, 2, 3]), (5, [0, 1, 3, 4])])
def test_the_first_and_last_lines_are_the_evidence(count, shown):
    lines = [xid(74, f"line {number}") for number in range(count)]
    assert list(only(judge(*lines), Status.FAIL).evidence) == [lines[number] for number in shown]


def test_a_window_is_named_in_the_pass():
    quiet = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"
    assert only(judge(quiet), Status.PASS).message == "no Xid since the last boot"
    windowed = only(judge(quiet, thresholds={"xid.window_hours": 3}), Status.PASS)
    assert windowed.message == "no Xid since the last boot, in the log's last 3 hours"


def test_of_earlier_boots_only_what_took_a_gpu_out_is_mentioned():
    boot = "Linux version 6.8.0-1015-aws (buildd)"
    assert [finding.status for finding in judge(boot, xid(79), boot)] == [Status.INFO, Status.PASS]
    assert [finding.status for finding in judge(boot, xid(13), xid(777), boot)] == [Status.PASS]


def test_a_line_behind_an_unreadable_head_is_never_a_pass():
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(79)}\n".encode()})
    assert status(judge_facts("xid", {"kernel": facts})) is Status.UNKNOWN
    assert status(judge_facts("gpu_lost", {"kernel": facts})) is Status.UNKNOWN
    assert status(judge_facts("xid", {"kernel": facts}, options={"xid_policy": {79: "ignore"}})) is Status.PASS
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(13)}\n".encode()})
    assert status(judge_facts("xid", {"kernel": facts})) is Status.PASS
    assert status(judge_facts("gpu_lost", {"kernel": facts})) is Status.PASS
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(63)}\n".encode()})
    assert status(judge_facts("xid", {"kernel": facts})) is Status.WARN


def clean_up(code, pci="0000:53:00"):
    return xid(45, f"pid=811, name=python3, Ch 00000003 caused by previous Xid {code}", pci)


@pytest.mark.parametrize(
    ("cause", "wanted", "remedy"),
    [
        (48, Status.FAIL, Remedy.RESET_GPU),
        (79, Status.FAIL, Remedy.REBOOT),
        (145, Status.UNKNOWN, Remedy.INVESTIGATE),
        (149, Status.UNKNOWN, Remedy.INVESTIGATE),
        (63, Status.WARN, Remedy.INVESTIGATE),
        (13, Status.INFO, Remedy.NONE),
    ],
)
def test_a_clean_up_tells_of_an_xid_whose_line_is_gone(cause, wanted, remedy):
    finding = only(judge(clean_up(cause)), wanted)
    assert finding.remedy is remedy
    assert (f"the Xid {cause} that caused it is no longer in the log" in finding.message) == (wanted is not Status.INFO)


def test_a_clean_up_says_nothing_new_of_an_xid_that_is_in_the_log():
    findings = judge(xid(48), clean_up(48))
    assert [(f.status, "no longer" in f.message) for f in findings] == [(Status.FAIL, False), (Status.INFO, False)]
    assert status(judge(xid(48, pci="0000:64:00"), clean_up(48))) is Status.FAIL
    assert "no longer" in judge(xid(48, pci="0000:64:00"), clean_up(48))[1].message


def test_the_sites_policy_holds_for_an_xid_known_by_its_clean_up():
    assert status(judge(clean_up(48), options={"xid_policy": {48: "info"}})) is Status.INFO
    assert status(judge(clean_up(145), options={"xid_policy": {145: "fail"}})) is Status.FAIL
