"""The order of a kernel log decides nothing silently: newest first, parts out of order, and two machines in one file.

Logs written by hand after journalctl, syslog and dmesg.
"""

from datetime import datetime, timedelta

import pytest

from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.read import bundle
from flightline_node.settings import build
from tests.harness import NOW

XID = "NVRM: Xid (PCI:0000:53:00): 79, pid=4242, name=python3, GPU has fallen off the bus."
START = datetime(2026, 11, 20, 8)


def journal(minute, text, host="gpu-01", uptime=None):
    clock = (START + timedelta(minutes=minute)).isoformat()
    return f"{clock}+0000 {host} kernel: {f'[{uptime:12.6f}] ' if uptime is not None else ''}{text}"


def syslog(minute, text, host="gpu-01"):
    return f"{START + timedelta(minutes=minute):%b %d %H:%M:%S} {host} kernel: {text}"


def ctime(minute, text):
    return f"[{START + timedelta(minutes=minute):%a %b %d %H:%M:%S %Y}] {text}"


def dmesg(minute, text):
    return f"[{minute * 60:12.6f}] {text}"


def boot(line, at, **rest):
    """A boot of some lines: the kernel's first words, and chatter a minute apart."""
    words = ["Linux version 6.8.0-1015-aws (buildd@lcy02) #16-Ubuntu SMP", "ena 0000:00:05.0: ENA device version: 0.10"]
    words += [f"audit: type=1400 audit({number}): apparmor" for number in range(8)]
    return [line(at + place, text, **rest) for place, text in enumerate(words)]


def said(tmp_path, lines, check="xid"):
    (tmp_path / "kernel.log").write_text("\n".join(lines) + "\n")
    settings = build(select=[check])
    found = judge(bundle.load(tmp_path), resolve("p5.48xlarge"), settings, NOW, required=True)
    return {str(one.status) for one in found.findings}, " ".join(one.message for one in found.findings)


@pytest.mark.parametrize("line", [journal, syslog, ctime, dmesg])
def test_a_log_that_is_newest_first_is_read_from_its_beginning(tmp_path, line):
    lines = [*boot(line, 0), line(30, XID), line(31, "nvidia-nvswitch0: open (major=510)")]
    assert said(tmp_path, lines)[0] == {"FAIL"}
    assert said(tmp_path, lines[::-1])[0] == {"FAIL"}


@pytest.mark.parametrize("line", [journal, syslog, ctime])
def test_a_log_newest_first_tells_an_earlier_boot_s_fault_from_this_one_s(tmp_path, line):
    lines = [*boot(line, 0), line(30, XID), *boot(line, 60)]
    assert said(tmp_path, lines)[0] == said(tmp_path, lines[::-1])[0] == {"INFO", "PASS"}


@pytest.mark.parametrize("line", [journal, syslog, ctime])
def test_parts_in_the_shell_s_order_are_put_in_the_order_of_their_stamps(tmp_path, line):
    """cat kern.log kern.log.1: the rotated part, older, comes second and has a boot of its own."""
    newer = [*boot(line, 60), line(90, XID), line(91, "audit: backlog limit")]
    older = [*boot(line, 0), line(30, "audit: rate limit")]
    assert said(tmp_path, [*newer, *older])[0] == {"FAIL"}
    rebooted = [*boot(line, 0), line(30, XID), line(31, "audit: backlog limit")]
    assert said(tmp_path, [*boot(line, 60), *rebooted])[0] == {"INFO", "PASS"}


@pytest.mark.parametrize("line", [journal, syslog])
@pytest.mark.parametrize("order", [("gpu-01", "gpu-02"), ("gpu-02", "gpu-01")])
def test_another_machine_s_boot_ends_no_fault(tmp_path, line, order):
    logs = {
        "gpu-01": [*boot(line, 0, host="gpu-01"), line(30, XID, host="gpu-01")],
        "gpu-02": boot(line, 60, host="gpu-02"),
    }
    assert said(tmp_path, [*logs[order[0]], *logs[order[1]]])[0] == {"FAIL"}


@pytest.mark.parametrize("line", [journal, syslog])
def test_two_machines_in_one_log_are_named_and_no_pass(tmp_path, line):
    lines = [*boot(line, 0, host="gpu-01"), *boot(line, 60, host="gpu-02")]
    statuses, message = said(tmp_path, lines, "kernel_errors")
    assert statuses == {"UNKNOWN"} and "gpu-01, gpu-02" in message


@pytest.mark.parametrize("line", [journal, syslog])
def test_a_machine_that_gets_its_name_while_it_boots_is_one(tmp_path, line):
    """The first lines of a boot are localhost's: cloud-init names the machine later."""
    first = [*boot(line, 0, host="localhost"), line(12, "audit: a", host="gpu-01"), line(30, XID, host="gpu-01")]
    second = [*boot(line, 60, host="localhost"), line(72, "audit: b", host="gpu-01")]
    assert said(tmp_path, [*first, *second])[0] == {"INFO", "PASS"}
    assert said(tmp_path, [*first, *second], "kernel_errors")[0] == {"PASS"}


def test_boots_without_a_wall_clock_follow_one_another(tmp_path):
    """A serial console has the uptime alone: what falls back is another boot."""
    lines = [*boot(dmesg, 0), dmesg(30, XID), *boot(dmesg, 0)]
    assert said(tmp_path, lines)[0] == {"INFO", "PASS"}
