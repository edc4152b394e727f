"""unread_lines: an error that no rule knows is never a go; what healthy machines print is none. Lines written by hand."""

import gzip

import pytest
from click.testing import CliRunner

from flightline.commands.judge import command
from flightline_node.judge.checks import kernel_errors, unread_lines, xid
from flightline_node.know.catalog.harmless import is_harmless
from flightline_node.model import Status
from flightline_node.read.parsers import kernel, kernel_lines, kernel_shape
from flightline_node.watch.intake import Intake
from flightline_node.watch.verdicts import KERNEL
from tests.harness import judge_facts, only, sample, samples

STRANGE = "flux_capacitor 0000:53:00.0: core 3 failed to lock"
QUIET = "eth0: renamed from veth1a2b"


def parse(*lines, head="[{:12.6f}] "):
    return kernel.parse(
        {"kernel.log": "".join(head.format(9.0 * n) + f"{line}\n" for n, line in enumerate(lines, 1)).encode()}
    )


def judge(*lines, **rest):
    return judge_facts("unread_lines", {"kernel": parse(*lines, **rest)})


def test_lines_that_differ_in_numbers_alone_are_one_sort_counted_and_quoted():
    found = only(judge(QUIET, STRANGE, STRANGE.replace("3 f", "5 f"), QUIET, "widget: bus is dead"), Status.UNKNOWN)
    assert found.measured == 3 and found.reason == "not_understood" and STRANGE in found.message
    assert found.evidence == (
        f"2 times, first at 18 s after boot: {STRANGE}",
        "once, first at 45 s after boot: widget: bus is dead",
    )


@pytest.mark.parametrize(
    "line",
    [
        "BTRFS error (device dm-2): failed to read chunk root",
        "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]",
        "DMAR: [DMA Write NO_PASID] Request device [53:00.0] fault addr 0xf000 [fault reason 0x05] PTE Write access is not set",
        "NVRM: GPU0 memmgrScrubInit_GH100: Failed to start the memory scrubber",
        "mlx5_core 0000:05:00.0: mlx5_fw_tracer_read: fatal tracer state",
    ],
)
def test_a_part_of_training_that_speaks_of_its_own_failure_fails(line):
    found = only(judge(QUIET, STRANGE, line, head="[Thu Nov 26 09:00:{:02.0f} 2026] "), Status.FAIL)
    assert found.reason == "part_failed" and line in found.message and line in found.evidence[0]


def test_while_it_boots_a_kernel_may_miss_the_parts_of_a_pc():
    line = "frobnicator: probe of the embedded controller failed"
    assert only(judge(line), Status.PASS) and only(judge(QUIET, QUIET, QUIET, line), Status.UNKNOWN)
    assert only(judge(f"frobnicator 0000:53:00.0: {line}"), Status.UNKNOWN)
    assert only(judge("EDAC frobnicator: driver failed"), Status.UNKNOWN)
    assert only(judge(line, head="<3>[{:12.6f}] "), Status.UNKNOWN)


def test_a_pass_says_what_became_of_the_lines():
    found = only(judge("Linux version 6.8.0", "tsc: Fast TSC calibration failed", QUIET), Status.PASS)
    assert found.message == "3 lines: 1 of known kinds, 1 that healthy machines print; the rest speaks of no failure"


@pytest.mark.parametrize(
    "head",
    [
        "<3>[{:12.6f}] ",
        "kern  :err   : [{:12.6f}] ",
        "3,77,{:.0f}000000,-;",
        "Nov 21 09:00:01 gpu-7 kern.err kernel: [{:.6f}] ",
    ],
)
def test_a_priority_of_err_is_an_error_in_any_words(head):
    assert only(judge("coherent_link: lane 4 went away", head=head), Status.UNKNOWN)
    assert only(judge("coherent_link: lane 4 went away"), Status.PASS)
    assert only(
        judge("coherent_link: lane 4 went away", head=head.replace("3", "6", 1).replace("err", "info")), Status.PASS
    )


def test_the_priority_of_a_journal_entry_counts():
    entry = '{{"_TRANSPORT":"kernel","PRIORITY":"{}","MESSAGE":"coherent_link: lane 4 went away","__REALTIME_TIMESTAMP":"1795252709000000"}}\n'
    for number, wanted in ((3, Status.UNKNOWN), (6, Status.PASS)):
        facts = kernel.parse({"kernel.log": entry.format(number).encode()})
        assert only(judge_facts("unread_lines", {"kernel": facts}), wanted)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU at 0000:53:00 cannot be reached", "nvme nvme1: namespace 1 missing", "efa 0000:4f:00.0: unexpected event 9",
        "mlx5_core 0000:05:00.0: steering table overflow", "LNet: peer refused the hello",
    ],
)  # fmt: skip
def test_a_weak_word_counts_where_a_part_of_training_is_named(line):
    assert only(judge(line), Status.UNKNOWN)
    assert only(judge("toaster: " + line.split(": ", 1)[-1]), Status.PASS)


@pytest.mark.parametrize(
    "line", ["slurmd[812]: error: node failed", "systemd[1]: Failed to start x", "ERROR trainer failed at step 3"]
)
def test_another_program_s_words_are_not_the_kernel_s(line):
    assert only(judge(QUIET, line), Status.PASS)


def test_the_window_is_off_until_a_site_sets_one():
    facts = {"kernel": parse(STRANGE, *[QUIET] * 401)}  # 9 s apart: an hour and more
    assert only(judge_facts("unread_lines", facts), Status.UNKNOWN)
    assert only(judge_facts("unread_lines", facts, thresholds={"unread_lines.window_hours": 1}), Status.PASS)


def test_a_line_that_a_rule_knows_is_not_told_twice():
    assert only(judge("NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus: error", QUIET), Status.PASS)


def test_lines_of_an_earlier_boot_are_listed_and_do_not_count():
    facts = parse("Linux version 6.8.0", STRANGE, "Linux version 6.8.0", QUIET)
    assert only(judge_facts("unread_lines", {"kernel": facts}), Status.PASS)
    assert [(one["boot"], facts["last_boot"]) for one in facts["unread"]] == [(1, 2)]


def test_a_storm_is_counted_and_kept_small():
    lines = [f"widget{n} ({chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}): failed" for n in range(3000)]
    facts = parse(QUIET, QUIET, QUIET, *lines)
    assert sum(one["count"] for one in facts["unread"]) == 3000
    assert len(facts["unread"]) <= kernel_shape.MOST_SHAPES + 1


def test_of_a_very_large_log_the_chief_words_are_looked_for_everywhere(monkeypatch):
    monkeypatch.setattr(kernel_shape, "WHOLE_BYTES", 400)
    facts = parse(STRANGE, "nvme nvme1: namespace 1 missing", *[QUIET] * 20, "nvme nvme2: namespace 1 missing")
    assert [one["text"] for one in facts["unread"]] == [STRANGE, "nvme nvme2: namespace 1 missing"]
    assert facts["ledger"]["lines"] == pytest.approx(23, abs=2)


def test_words_find_whatever_has_a_shape():
    """The fast search must stop at every line that the patterns take."""
    for path in samples("kernel/*.log"):
        for line in sample(path).decode("utf-8", "replace").splitlines():
            if kernel_shape.has_shape(line):
                assert any(word in line.encode() for word in kernel_shape.WORDS), line


def test_healthy_boots_are_quiet_and_a_fault_among_their_lines_is_not():
    boots = samples("kernel/boot-*.log")
    assert len(boots) >= 12
    for path in boots:
        log = sample(path)
        assert only(judge_facts("unread_lines", {"kernel": kernel.parse({"kernel.log": log})}), Status.PASS), path
        last = log.decode().splitlines()[-1]
        head = last.removesuffix(kernel_lines.read(last).message)
        strange = (head + STRANGE).encode()
        assert only(
            judge_facts("unread_lines", {"kernel": kernel.parse({"kernel.log": log + strange + b"\n"})}), Status.UNKNOWN
        ), path


@pytest.mark.parametrize(
    "line",
    [
        "pci 0000:53:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]", "NVRM: GPU0 x: failed, status=0x00000062",
        "nvidia 0000:53:00.0: Direct firmware load for nvidia/gsp failed with error -2", "EXT4-fs (nvme0n1p1): failed to write", "cored: x failed",
    ],
)  # fmt: skip
def test_the_table_of_harmless_lines_does_not_reach_too_far(line):
    assert not is_harmless(line)


def test_the_watcher_drains_for_no_line_that_nobody_knows():
    assert unread_lines.CHECK.id not in KERNEL and {kernel_errors.CHECK.id, xid.CHECK.id} <= set(KERNEL)
    intake = Intake()
    assert intake.take(f"3,1,9000000,-;{STRANGE}\n".encode()) == 0 and "unread" not in intake.facts()


def test_judge_lists_what_it_did_not_understand(tmp_path):
    text = f"[ 1.0] Linux version 6.8.0\n[ 2.0] {STRANGE}\n[ 3.0] {STRANGE}\n"
    (tmp_path / "kernel.log.gz").write_bytes(gzip.compress(text.encode()))
    done = CliRunner().invoke(command, [str(tmp_path), "--instance-type", "p5.48xlarge", "--unread"])
    assert done.exit_code == 1
    listed = done.output.split("not understood")[-1]
    assert listed.split()[:3] == ["2", "kernel,", "this"] and "core 3 failed to lock" in " ".join(listed.split())
