"""xid: every code of the catalogue, NVLink5 and 154 by their text, repeats, boots, resets, the site's policy."""

import pytest

from flightline_node.know.catalog import nvlink5
from flightline_node.know.catalog import xid as catalogue
from flightline_node.model import ParseError, Remedy
from flightline_node.read.parsers import kernel
from tests.harness import only, sample, status

from .table import FAIL, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

NODE_LEVEL = {
    **dict.fromkeys((46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 48, 74), Remedy.RESET_GPU),
    **dict.fromkeys((167, 169, 171, 172, 173, 175, 63, 94), Remedy.RESET_GPU),
    **dict.fromkeys((26, 33, 57, 58, 59, 61, 90, 122, 123, 124, 125), Remedy.RESET_GPU), 18: Remedy.REBOOT,
    54: Remedy.REPLACE, 79: Remedy.REBOOT, 151: Remedy.REBOOT, 168: Remedy.REBOOT,
    78: Remedy.UPDATE_SOFTWARE, 142: Remedy.CONTACT_SUPPORT,
}  # fmt: skip
APPLICATION = [
    8, 11, 13, 25, 31, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89,
    *range(96, 106), *range(126, 136), 139,
]  # fmt: skip
IGNORED = [14, 37, 38, 43, 44, 45, 66, 67, 106, 107, 108, 137, 141, 152, 153, 162, 163, 174, 176]
WATCHED = [32, 92, 93, 121, 157, 159, 160, 161, 164, 165, 166, 170]
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


def remap(waits):
    return {"gpus": [{"pci_bus_id": "00000000:53:00.0", "remap": {"pending": waits}, "retired_pages": "N/A"}]}


def judge(*lines, smi=None, **rest):
    facts = {"kernel": lines[0] if isinstance(lines[0], dict) else log(*lines)}
    return judging("xid", {**facts, **({"nvidia_smi": smi} if smi else {})}, **rest)


NETIR_RESET = "NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x004505c6 0x00000000)"
NETIR_NONFATAL = NETIR_RESET.replace("Fatal", "Nonfatal")
REMAP_EVAL = "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004 0x00000001)"
ASKS_RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
ASKS_NOTHING = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


def crash(pid, pci="0000:53:00"):
    return xid(13, f"pid={pid}, name=python, Graphics SM Warp Exception", pci)


LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"
RELOCATED = "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000082 0x00000100)"
"""The bits mean nothing up to driver 570 and are laid out otherwise later (test_nvlink5_layouts)."""


def clean_up(code, pci="0000:53:00"):
    return xid(45, f"pid=811, name=python3, Ch 00000003 caused by previous Xid {code}", pci)


WALL = kernel.parse(
    {"kernel.log": f"2026-01-01T00:00:00+0000 h kernel: {xid(79)}\n2026-01-02T00:00:00+0000 h kernel: x\n".encode()}
)
QUIET = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"


test_xid = table(
    *(row("node level codes fail", judge(xid(code)), FAIL, remedy=remedy, of={"pci": "0000:53:00"}, says=f"Xid {code}")
        for code, remedy in NODE_LEVEL.items()),
    *(row("application and ignore codes never block", judge(xid(code)), INFO) for code in APPLICATION + IGNORED),
    *(row("codes to watch warn", judge(xid(code)), WARN) for code in WATCHED),
    *(row("unused codes warn", judge(xid(code)), WARN, remedy=Remedy.INVESTIGATE) for code in [1, 56, 81]),
    *(row("a code that nobody explains is no pass", judge(xid(code)), UNKNOWN, remedy=Remedy.INVESTIGATE)
        for code in [87, 777]),
    *(row("a row that waits for no reset any more warns", judge(xid(code), smi=remap(waits)), wanted, says="row")
        for code in (63, 94) for waits, wanted in ((False, WARN), (True, FAIL), (None, FAIL))),
    row("rows that are remapped again and again", judge(*[xid(63)] * 5, smi=remap(False)), FAIL, remedy=Remedy.REPLACE),
    *(row("154 says what it wants", judge(xid(154, f"GPU recovery action changed from 0x1 (x) to {action}")), wanted,
        remedy=remedy)
        for action, wanted, remedy in [
            ("0x0 (None)", INFO, Remedy.NONE),
            ("0x1 (GPU Reset Required)", FAIL, Remedy.RESET_GPU),
            ("0x1 (PF FLR)", FAIL, Remedy.RESET_GPU),
            ("0x2 (Node Reboot Required)", FAIL, Remedy.REBOOT),
            ("0x2 (OS Reboot)", FAIL, Remedy.REBOOT),
            ("0x3 (Drain P2P)", FAIL, Remedy.RESET_GPU),
            ("0x4 (Drain and Reset)", FAIL, Remedy.RESET_GPU),
            ("0x5 (Recover IMEX Domain)", FAIL, Remedy.FIX_CONFIG),
            ("0x2 (words not seen yet)", FAIL, Remedy.REBOOT),
            ("0x9 (words not seen yet)", UNKNOWN, Remedy.INVESTIGATE),
        ]),
    *(row("nvlink5", judge(*lines, smi={"driver_version": driver, "gpus": []}), wanted)
        for lines, driver, wanted in [
            ([xid(149, NETIR_RESET)], "570.172.08", FAIL),
            ([xid(144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001)")], "580.95.05", INFO),
            ([xid(144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002)")], "580.95.05", FAIL),
            ([xid(144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000003)")], "580.95.05", FAIL),
            ([xid(144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000021 0x00000001)")], "570.172.08", INFO),
            ([xid(145, REMAP_EVAL)], "580.95.05", INFO),
            ([xid(145, REMAP_EVAL), xid(154, ASKS_RESET)], "580.95.05", FAIL),
            ([xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x00000006 0x00000001)")], "580.95.05", INFO),
            ([xid(145, "RLW_RXPIPE Fatal XC0 i0 Link 03 (0x00000086 0x00000001)")], "580.95.05", FAIL),
            ([xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x00000086 0x00000001)")], "580.95.05", WARN),
            ([xid(149, NETIR_NONFATAL)], "570.172.08", WARN),
            ([xid(149, NETIR_NONFATAL), xid(154, ASKS_RESET)], "570.172.08", FAIL),
            ([xid(146, "NEW_UNIT Fatal XC0 i0 Link 03 (0x0000007f 0x00000001)")], "580.95.05", FAIL),
            ([xid(146, "NEW_UNIT Nonfatal XC0 i0 Link 03 (0x0000007f 0x00000001)")], "580.95.05", WARN),
            ([xid(150, "words")], "580.95.05", WARN),
        ]),
    *(each for uuid in ["GPU-01234567-89ab-cdef-0123-456789abcdef"] for each in (
        row("the GPU is named by nvidia-smi or by the driver's log", judge(xid(79), smi=SMI), FAIL,
            device={"index": 3, "uuid": "GPU-3", "serial": "165", "name": "NVIDIA H100", "pci": "00000000:53:00.0"}),
        row("the GPU is named by nvidia-smi or by the driver's log",
            judge(f"NVRM: GPU at PCI:0000:53:00: {uuid}", xid(79)), FAIL, of={"uuid": uuid}),
    )),
    row("a storm keeps its number", judge(log(*[xid(74)] * 1000, stamp="[1.0] ")), FAIL, measured=1000),
    row("no Xid passes", judge(kernel.parse({"kernel.log": sample("kernel/healthy-p5-dmesg.log")})), PASS, count=1),
    row("not for types without nvidia GPUs", judge(xid(79), instance_type="trn1.32xlarge"), SKIP),
    row("a recovery said by the driver takes the block away",
        judge(xid(95), xid(154, ASKS_RESET), xid(154, ASKS_NOTHING)), WARN),
    row("a recovery said by the driver takes the block away",
        [judge(xid(95), xid(154, ASKS_NOTHING), xid(95)), judge(xid(95), xid(154, ASKS_NOTHING, pci="0000:64:00")),
        judge(xid(79), xid(154, ASKS_NOTHING))], FAIL),
    *(each
        for lines, wanted in [
            ([crash(1), crash(2), crash(3)], WARN),
            ([crash(1), crash(2)], INFO),
            ([crash(1)] * 50, INFO),
            ([crash(1), crash(2), crash(3), crash(4, "0000:64:00")], INFO),
        ]
        for each in (
        row("application errors that stay on one GPU warn", judge(*lines), wanted),
        row("application errors that stay on one GPU warn",
            [judge(*lines, thresholds={"xid.repeat_count": 1000}), judge(*lines, instance_type="g5.xlarge")], INFO),
    )),
    *(each
        for lines in [
            [xid(79), *["NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"] * 200],
        ]
        for each in (
        row("window is measured from the logs end", [judge(*lines), judge(*lines, thresholds={"xid.window_hours": 4})],
            FAIL),
        row("window is measured from the logs end",
            [judge(*lines, thresholds={"xid.window_hours": 3}), judge(WALL, thresholds={"xid.window_hours": 23})],
            PASS),
        row("window is measured from the logs end", judge(WALL, thresholds={"xid.window_hours": 24}), FAIL),
    )),
    *(row("site policy", judge(xid(79), options={"xid_policy": policy}), wanted)
        for policy, wanted in [
            ({79: "info"}, INFO),
            ({"79": "warn"}, WARN),
            ({79: "ignore"}, PASS),
            ({79: {"status": "fail", "remedy": "replace", "reason": "spares are cheap"}}, FAIL),
            ({80: "info"}, FAIL),
        ]),
    row("site policy shows in the finding",
        judge(xid(13), options={"xid_policy": {13: {"status": "fail", "remedy": "REPLACE",
        "reason": "no crash is allowed"}}}), FAIL, remedy=Remedy.REPLACE,
        says="site policy makes it FAIL (was INFO): no crash is allowed"),
    *(row("a policy that cannot be read is unknown and named", judge(xid(13), options={"xid_policy": policy}), UNKNOWN,
        says="xid_policy")
        for policy in [
            ["79"], "79", {79: "maybe"}, {"x": "info"}, {79: {"remedy": "REBOOT"}},
            {79: {"status": "fail", "remedy": "PRAY"}},
        ]),
    row("a driver loaded anew has reset the GPU", judge(LOADED, xid(95), LOADED), WARN, says="loaded anew"),
    row("a driver loaded anew has reset the GPU",
        [judge(LOADED, xid(95)), judge(LOADED, xid(95), LOADED, xid(95)), judge(LOADED, xid(79), LOADED)], FAIL),
    *(row("the layout follows the driver by nvidia-smi or by the log",
        [judge(xid(145, RELOCATED), smi={"driver_version": version, "gpus": []}),
        judge(f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build",
        xid(145, RELOCATED))], wanted)
        for version, wanted in [("570.172.08", INFO), ("575.51.03", WARN)]),
    row("what is no matter of an application may repeat",
        judge(*[xid(154, f"{ASKS_NOTHING} pid={number}") for number in range(5)]), INFO),
    row("a window is named in the pass", judge(QUIET), PASS, message="no Xid since the last boot"),
    row("a window is named in the pass", judge(QUIET, thresholds={"xid.window_hours": 3}), PASS,
        message="no Xid since the last boot, in the log's last 3 hours"),
    row("of earlier boots only what took a GPU out is mentioned",
        judge("Linux version 6.8.0-1015-aws (buildd)", xid(79), "Linux version 6.8.0-1015-aws (buildd)"), INFO,
        statuses=(INFO, PASS)),
    row("of earlier boots only what took a GPU out is mentioned",
        judge("Linux version 6.8.0-1015-aws (buildd)", xid(13), xid(777), "Linux version 6.8.0-1015-aws (buildd)"),
        PASS, statuses=(PASS,)),
    row("the site's policy holds for an Xid known by its clean up",
        judge(clean_up(48), options={"xid_policy": {48: "info"}}), INFO),
    row("the site's policy holds for an Xid known by its clean up",
        judge(clean_up(145), options={"xid_policy": {145: "fail"}}), FAIL),
)  # fmt: skip


def test_the_lists_above_are_the_whole_catalogue():
    table = catalogue.table()
    unused = {code for code, entry in table.items() if entry.bucket == "UNUSED" and entry.status != FAIL}
    listed = {*NODE_LEVEL, *APPLICATION, *IGNORED, *WATCHED, 154, *range(144, 151)}
    assert listed | unused == set(table) == set(range(1, 177))
    assert not listed & unused


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
    assert found == {("0000:a4:00", INFO), ("0000:b9:00", FAIL)}


def test_one_finding_per_code_and_gpu_with_count_and_times():
    finding = only(judge(*[xid(74)] * 7, xid(79, pci="0000:64:00"))[:1], FAIL)
    assert finding.measured == 7
    assert "7 lines from 60 s after boot to 420 s after boot" in finding.message
    assert finding.evidence[0] == xid(74)
    assert len(judge(xid(74), xid(79, pci="0000:64:00"))) == 2


def test_unreadable_cut_or_missing_never_passes():
    assert status(judge("NVRM: Xid (PCI:0000:5")) is UNKNOWN
    with pytest.raises(ParseError):
        kernel.parse({"kernel.log": b"-- No entries --\n"})


def test_only_the_last_boot_counts():
    facts = kernel.parse({"kernel.log": sample("kernel/two-boots-journal.log")})
    findings = judge(facts)
    assert status(findings) is INFO
    assert any("earlier boots" in finding.message for finding in findings)


@pytest.mark.parametrize(("count", "shown"), [(3, [0, 1, 2]), (4, [0, 1, 2, 3]), (5, [0, 1, 3, 4])])
def test_the_first_and_last_lines_are_the_evidence(count, shown):
    lines = [xid(74, f"line {number}") for number in range(count)]
    assert list(only(judge(*lines), FAIL).evidence) == [lines[number] for number in shown]


def test_a_line_behind_an_unreadable_head_is_never_a_pass():
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(79)}\n".encode()})
    assert status(judging("xid", {"kernel": facts})) is UNKNOWN
    assert status(judging("gpu_lost", {"kernel": facts})) is UNKNOWN
    assert status(judging("xid", {"kernel": facts}, options={"xid_policy": {79: "ignore"}})) is PASS
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(13)}\n".encode()})
    assert status(judging("xid", {"kernel": facts})) is PASS
    assert status(judging("gpu_lost", {"kernel": facts})) is PASS
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] gpu-watch: saw {xid(92)}\n".encode()})
    assert status(judging("xid", {"kernel": facts})) is WARN


@pytest.mark.parametrize(
    ("cause", "wanted", "remedy"),
    [
        (48, FAIL, Remedy.RESET_GPU),
        (79, FAIL, Remedy.REBOOT),
        (145, UNKNOWN, Remedy.INVESTIGATE),
        (149, UNKNOWN, Remedy.INVESTIGATE),
        (63, FAIL, Remedy.RESET_GPU),
        (92, WARN, Remedy.INVESTIGATE),
        (13, INFO, Remedy.NONE),
    ],
)
def test_a_clean_up_tells_of_an_xid_whose_line_is_gone(cause, wanted, remedy):
    finding = only(judge(clean_up(cause)), wanted)
    assert finding.remedy is remedy
    assert (f"the Xid {cause} that caused it is no longer in the log" in finding.message) == (wanted is not INFO)


def test_a_clean_up_says_nothing_new_of_an_xid_that_is_in_the_log():
    findings = judge(xid(48), clean_up(48))
    assert [(f.status, "no longer" in f.message) for f in findings] == [(FAIL, False), (INFO, False)]
    assert status(judge(xid(48, pci="0000:64:00"), clean_up(48))) is FAIL
    assert "no longer" in judge(xid(48, pci="0000:64:00"), clean_up(48))[1].message
