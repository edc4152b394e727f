"""sxid: the word in the line, the tables where there is none, detail lines, boots."""

import pytest

from flightline_node.know.catalog import sxid as catalogue
from flightline_node.model import Remedy
from flightline_node.read.parsers import kernel
from tests.harness import only, sample, status

from .table import FAIL, INFO, PASS, UNKNOWN, WARN, judging, row, table


def judge(*lines, **rest):
    text = "".join(f"[{60.0 * n:12.6f}] {line}\n" for n, line in enumerate(lines, 1))
    return judging("sxid", {"kernel": kernel.parse({"kernel.log": text.encode()})}, **rest)


def sxid(code, rest):
    return f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {code:05d}, {rest}"


LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)"


test_sxid = table(
    *(each
        for text in [
            ": Failed to initialize device : -5", ": Failed to request memory regions : -16",
            ":Failed during device post init : -19", ": Interrupts disabled to avoid a storm",
        ]
        for each in (
        row("a switch that did not start", judge(LOADED, "nvidia-nvswitch2" + text), FAIL,
            device={"name": "nvidia-nvswitch2"}, remedy=Remedy.REBOOT),
        row("a switch that did not start", judge("nvidia-nvswitch2" + text, LOADED), WARN),
    )),
    row("a fabric manager of another version",
        judge("nvidia-nvswitch: Version mismatch, kernel version 580.95.05 user version 580.82.07"), WARN,
        remedy=Remedy.UPDATE_SOFTWARE),
    row("what a healthy switch says",
        judge(*["nvidia-nvswitch0: open (major=510)", "nvidia-nvswitch0: using MSI",
        "xhci: Failed to initialize device"]), PASS),
    *(row("word before table", judge(sxid(code, rest)), wanted, remedy=remedy,
        device={"name": "nvidia-nvswitch3", "pci": "0000:c1:00.0"}, says=f"SXid {code}")
        for code, rest, wanted, remedy in [
            (24007, "Fatal, Link 30 sourcetrack timeout error", FAIL, Remedy.RESET_GPU),
            (23001, "Fatal, Link 30 ingress buffer overflow", FAIL, Remedy.REBOOT),
            (11002, "Fatal, Link 30 the table calls it harmless", FAIL, Remedy.RESET_GPU),
            (99999, "Fatal, Link 30 not in the table", FAIL, Remedy.RESET_GPU),
            (20001, "Non-fatal, Link 32 TX Replay Error", INFO, Remedy.NONE),
            (24007, "Non-fatal, Link 30 the table calls it fatal", WARN, Remedy.INVESTIGATE),
            (20012, "Non-fatal, Link 30 CRC counter", WARN, Remedy.INVESTIGATE),
            (99999, "Nonfatal, Link 30 not in the table", WARN, Remedy.INVESTIGATE),
            (24007, "Link 30 no word", FAIL, Remedy.RESET_GPU),
            (11007, "Link 30 no word, fatal by one table only", FAIL, Remedy.RESET_GPU),
            (20001, "Link 30 no word", INFO, Remedy.NONE),
            (99999, "Link 30 no word", WARN, Remedy.INVESTIGATE),
            (10003, "Host unhandled interrupt, no word", FAIL, Remedy.RESET_GPU),
            (10003, "Non-fatal, Host unhandled interrupt", WARN, Remedy.INVESTIGATE),
        ]),
    *(row("wrong partitions keep a job from starting, and end none", judge(sxid(code, "Non-fatal, Link 30 x")), wanted,
        remedy=remedy, reason=reason)
        for code, wanted, remedy, reason in [
            (11004, FAIL, Remedy.FIX_CONFIG, "stands.11004"),
            (24007, WARN, Remedy.INVESTIGATE, "sxid.24007"),
        ]),
    row("none passes and unread blocks", judge("eth0: link becomes ready"), PASS),
    row("none passes and unread blocks", judge("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal"), UNKNOWN),
    row("an earlier boot does not count",
        judge("Linux version 6.8.0-1015-aws (buildd)", sxid(24007, "Fatal, Link 1 x"),
        "Linux version 6.8.0-1015-aws (buildd)"), PASS),
    # the lines are a minute apart
    row("a storm keeps its number", judge(*[sxid(24007, "Fatal, Link 30 x")] * 1000), FAIL, measured=1000),
    row("a storm keeps its number",
        judge(*[sxid(24007, "Fatal, Link 30 x")] * 1000, thresholds={"sxid.window_hours": 1}), FAIL, measured=61),
    *(each for lines in [[sxid(24007, "Fatal, Link 30 x"), *["eth0: link becomes ready"] * 61]] for each in (
        row("the window is off until a site sets one", judge(*lines), FAIL),
        row("the window is off until a site sets one", judge(*lines, thresholds={"sxid.window_hours": 1}), PASS),
    )),
)  # fmt: skip


def test_fixture_counts_each_event_once():
    facts = kernel.parse({"kernel.log": sample("kernel/nvswitch-a100-syslog.log")})
    findings = judging("sxid", {"kernel": facts}, "p4d.24xlarge")
    fatal = only(findings, FAIL)
    assert (fatal.measured, fatal.device["name"], "link 30" in fatal.message) == (1, "nvidia-nvswitch0", True)
    assert [finding.measured for finding in findings] == [1, 1]


def test_catalogue_is_whole():
    codes = [int(word.split(":")[0]) for word in catalogue.TABLE.split() if ":" in word]
    assert len(codes) == len(set(codes)) == 400
    fatal = [one for one in map(catalogue.lookup, codes) if one.listed in catalogue.FATAL_LISTS]
    assert len(fatal) == 62
    assert catalogue.lookup(1) is None


@pytest.mark.parametrize(
    ("code", "rest", "words"),
    [
        (24007, "Fatal, Link 30 x", "Fatal by its own word"),
        (24007, "Link 30 x", "fatal by NVIDIA's tables"),
        (99999, "Non-fatal, Link 30 x", "not fatal, not in NVIDIA's tables"),
        (99999, "Link 30 x", "no word in the line, not in NVIDIA's tables"),
    ],
)
def test_the_message_says_what_decided(code, rest, words):
    assert judge(sxid(code, rest))[0].message.endswith(f"; {words}")


def test_a_line_behind_an_unreadable_head_is_never_a_pass():
    line = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 3 x"
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert status(judging("sxid", {"kernel": facts})) is UNKNOWN
