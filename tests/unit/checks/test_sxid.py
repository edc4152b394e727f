"""sxid: the word in the line, the tables where there is none, detail lines, boots."""

import pytest

from flightline_node.know.catalog import sxid as catalogue
from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import kernel
from tests.harness import judge_facts, only, sample, status


def judge(*lines, **rest):
    text = "".join(f"[{60.0 * n:12.6f}] {line}\n" for n, line in enumerate(lines, 1))
    return judge_facts("sxid", {"kernel": kernel.parse({"kernel.log": text.encode()})}, **rest)


def sxid(code, rest):
    return f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {code:05d}, {rest}"


LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)"


@pytest.mark.parametrize(
    "text",
    [
        ": Failed to initialize device : -5",
        ": Failed to request memory regions : -16",
        ":Failed during device post init : -19",
        ": Interrupts disabled to avoid a storm",
    ],
)
def test_a_switch_that_did_not_start(text):
    finding = only(judge(LOADED, "nvidia-nvswitch2" + text), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"name": "nvidia-nvswitch2"}, Remedy.REBOOT)
    assert status(judge("nvidia-nvswitch2" + text, LOADED)) is Status.WARN


def test_a_fabric_manager_of_another_version():
    line = "nvidia-nvswitch: Version mismatch, kernel version 580.95.05 user version 580.82.07"
    assert only(judge(line), Status.WARN).remedy is Remedy.UPDATE_SOFTWARE


def test_what_a_healthy_switch_says():
    lines = ["nvidia-nvswitch0: open (major=510)", "nvidia-nvswitch0: using MSI", "xhci: Failed to initialize device"]
    assert status(judge(*lines)) is Status.PASS


@pytest.mark.parametrize(
    ("code", "rest", "wanted", "remedy"),
    [
        (24007, "Fatal, Link 30 sourcetrack timeout error", Status.FAIL, Remedy.RESET_GPU),
        (23001, "Fatal, Link 30 ingress buffer overflow", Status.FAIL, Remedy.REBOOT),
        (11002, "Fatal, Link 30 the table calls it harmless", Status.FAIL, Remedy.RESET_GPU),
        (99999, "Fatal, Link 30 not in the table", Status.FAIL, Remedy.RESET_GPU),
        (20001, "Non-fatal, Link 32 TX Replay Error", Status.INFO, Remedy.NONE),
        (24007, "Non-fatal, Link 30 the table calls it fatal", Status.WARN, Remedy.INVESTIGATE),
        (20012, "Non-fatal, Link 30 CRC counter", Status.WARN, Remedy.INVESTIGATE),
        (99999, "Nonfatal, Link 30 not in the table", Status.WARN, Remedy.INVESTIGATE),
        (24007, "Link 30 no word", Status.FAIL, Remedy.RESET_GPU),
        (11007, "Link 30 no word, fatal by one table only", Status.FAIL, Remedy.RESET_GPU),
        (20001, "Link 30 no word", Status.INFO, Remedy.NONE),
        (99999, "Link 30 no word", Status.WARN, Remedy.INVESTIGATE),
    ],
)
def test_word_before_table(code, rest, wanted, remedy):
    finding = only(judge(sxid(code, rest)), wanted)
    assert finding.remedy is remedy
    assert finding.device == {"name": "nvidia-nvswitch3", "pci": "0000:c1:00.0"}
    assert f"SXid {code}" in finding.message


def test_fixture_counts_each_event_once():
    facts = kernel.parse({"kernel.log": sample("kernel/nvswitch-a100-syslog.log")})
    findings = judge_facts("sxid", {"kernel": facts}, "p4d.24xlarge")
    fatal = only(findings, Status.FAIL)
    assert (fatal.measured, fatal.device["name"], "link 30" in fatal.message) == (1, "nvidia-nvswitch0", True)
    assert [finding.measured for finding in findings] == [1, 1]


def test_none_passes_and_unread_blocks():
    assert status(judge("eth0: link becomes ready")) is Status.PASS
    assert status(judge("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal")) is Status.UNKNOWN


def test_an_earlier_boot_does_not_count():
    boot = "Linux version 6.8.0-1015-aws (buildd)"
    assert status(judge(boot, sxid(24007, "Fatal, Link 1 x"), boot)) is Status.PASS


def test_catalogue_is_whole():
    lines = catalogue.TABLE.splitlines()
    assert len(lines) == len({line.split("|")[0] for line in lines}) == 400
    fatal = [
        entry
        for entry in (catalogue.lookup(int(line.split("|")[0])) for line in lines)
        if entry.listed in catalogue.FATAL_LISTS
    ]
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


def test_a_storm_keeps_its_number():
    fatal = sxid(24007, "Fatal, Link 30 x")
    assert only(judge(*[fatal] * 1000), Status.FAIL).measured == 1000
    window = {"sxid.window_hours": 1}  # the lines are a minute apart
    assert only(judge(*[fatal] * 1000, thresholds=window), Status.FAIL).measured == 61


def test_the_window_is_off_until_a_site_sets_one():
    lines = [sxid(24007, "Fatal, Link 30 x"), *["eth0: link becomes ready"] * 61]
    assert status(judge(*lines)) is Status.FAIL
    assert status(judge(*lines, thresholds={"sxid.window_hours": 1})) is Status.PASS


def test_a_line_behind_an_unreadable_head_is_never_a_pass():
    line = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 3 x"
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert status(judge_facts("sxid", {"kernel": facts})) is Status.UNKNOWN
