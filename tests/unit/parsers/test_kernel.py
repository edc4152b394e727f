"""kernel.log: every stamp form, every line shape, whose line it is, storms, boots, and logs that are none."""

import mmap
import time
from datetime import datetime

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import kernel, kernel_lines
from tests.harness import sample

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid=1234, name=python, GPU has fallen off the bus."


def parse(text):
    return kernel.parse({"kernel.log": text.encode() if isinstance(text, str) else text})


def fixture(name):
    return kernel.parse({"kernel.log": sample(f"kernel/{name}")})


def events(facts):
    return {name: facts["counts"][name] for name in facts["counts"] if facts["counts"][name]}


@pytest.mark.parametrize(
    ("head", "form", "stamp", "uptime"),
    [
        ("[  123.456789] ", "dmesg", 123.456789, 123.456789),
        ("[  123.456789] [ T1946] ", "dmesg", 123.456789, 123.456789),
        ("[  123.456789][    C0] ", "dmesg", 123.456789, 123.456789),
        ("<3>[  123.456789] ", "dmesg", 123.456789, 123.456789),
        ("kern  :err   : [  123.456789] ", "dmesg", 123.456789, 123.456789),
        ("[  123.456789] host kernel: ", "dmesg", 123.456789, 123.456789),
        ("[Sat Nov 21 09:18:29 2026] ", "dmesg-T", "2026-11-21T09:18:29", None),
        ("kern  :warn  : [Sat Nov 21 09:18:29 2026] ", "dmesg-T", "2026-11-21T09:18:29", None),
        ("2026-11-21T09:18:29,123456+00:00 ", "dmesg-iso", "2026-11-21T09:18:29.123456+00:00", None),
        ("2026-11-21T09:18:29.123456+00:00 host kernel: ", "rfc3339", "2026-11-21T09:18:29.123456+00:00", None),
        ("2026-11-21T09:18:29Z host kernel: [ 7.5] ", "rfc3339", "2026-11-21T09:18:29+00:00", 7.5),
        ("2026-11-21T09:18:29+0000 host kernel: ", "short-iso", "2026-11-21T09:18:29+00:00", None),
        ("2026-11-21T09:18:29-0530 ip-10-0-0-1 kernel: ", "short-iso", "2026-11-21T09:18:29-05:30", None),
        ("Sat 2026-11-21 09:18:29 UTC host kernel: ", "rfc3339", "2026-11-21T09:18:29+00:00", None),
        ("3,1234,123456789,-;", "kmsg", 123.456789, 123.456789),
        ("kernel: [ 7.5] ", "dmesg", 7.5, 7.5),
        ("", "none", None, None),
    ],
)
def test_stamp_forms(head, form, stamp, uptime):
    facts = parse(f"{head}{XID_79}\n")
    (event,) = facts["xids"]
    assert (facts["stamp_format"], event["time"], event.get("uptime_s")) == (form, stamp, uptime)
    assert (facts["first_time"], facts["last_time"]) == (stamp, stamp)
    assert (event["code"], event["pci"], event["pid"], event["process"]) == (79, "0000:53:00", 1234, "python")
    assert event["text"] == XID_79


@pytest.fixture
def today(monkeypatch):
    class Fixed(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2027, 2, 1)

    monkeypatch.setattr(kernel_lines, "datetime", Fixed)


@pytest.mark.usefixtures("today")
def test_syslog_gets_the_latest_year_that_is_not_in_the_future():
    facts = parse(f"Nov 21 09:18:29 host kernel: [ 7.5] {XID_79}\nFeb  1 00:00:01 host kernel: {XID_79}\n")
    assert [event["time"] for event in facts["xids"]] == ["2026-11-21T09:18:29", "2027-02-01T00:00:01"]
    assert facts["stamp_format"] == "syslog"
    assert facts["year_assumed"] is True


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (XID_79, {"code": 79, "pci": "0000:53:00", "pid": 1234}),
        ("NVRM: Xid (PCI:0000:53:00 GPU-I:05 GPU-CI:00): 31, pid='<unknown>', name=<unknown>, Ch 8", {"code": 31, "pid": None, "process": None, "gpu_instance": "05", "compute_instance": "00"}),
        ("NVRM: Xid (0000:53:00): 13, 0003 00000000", {"code": 13, "pci": "0000:53:00"}),
        ("NVRM: Xid (PCI:0000:AB:00): 62, 1", {"code": 62, "pci": "0000:ab:00"}),
        ("NVRM: XID (PCI:0000:53:00): 48, DBE", {"code": 48}),
        ("NVRM: Xid (PCI:0018:01:00.0): 119", {"code": 119, "pci": "0018:01:00.0"}),
        ("NVRM: Xid (PCI:0000:53:00): 94, pid=1, name=x, Contained: SM (0x1). RST: No, D-RST: Yes", {"reset_flag": "No", "drain_reset_flag": "Yes"}),
        ("NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", {"recovery_action": "OS Reboot", "recovery_value": 2}),
        ("NVRM: Xid (PCI:0000:1a:00): 74, NVLink: fatal error detected on link 2(0x0, 0x10000, 0x0)", {"link": 2, "registers": ["0x0", "0x10000", "0x0"]}),
        ("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000001 0x0)", {"unit": "NETIR_LINK_EVT", "fatal": True, "xc": 0, "injected": False, "link": 9, "intr_info": 0x025525C6, "error_status": 1}),
        ("NVRM: Xid (PCI:0000:00:1e): 149, NETIR_LINK_EVT Nonfatal XC 1 i 2 Link -1 [0x0000000a]", {"fatal": False, "xc": 1, "injected": True, "link": -1, "intr_info": 10}),
        ("NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02", {"unit": "RLW_REMAP", "link": 2}),
    ],
)  # fmt: skip
def test_xid_shapes(line, wanted):
    (event,) = parse(f"[   1.5] {line}\n")["xids"]
    assert {name: event[name] for name in wanted} == wanted


def test_a_cut_xid_line_is_kept_as_unread():
    facts = parse("[   1.5] NVRM: Xid (PCI:0000:5")
    assert facts["xids"] == []
    assert facts["unread_xids"][0]["text"] == "NVRM: Xid (PCI:0000:5"
    assert parse("[ 1.5] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal\n")["counts"]["unread_sxids"] == 1


def test_colours_and_line_ends_do_not_hide_an_xid():
    facts = parse("\x1b[32m[  123.456789] \x1b[0m\x1b[33mNVRM: \x1b[0mXid (PCI:0000:53:00): 79, x\x1b[0m\r\n")
    assert [(event["code"], event["time"]) for event in facts["xids"]] == [(79, 123.456789)]


@pytest.mark.parametrize(
    "line",
    [
        f"Nov 21 09:18:29 host python[123]: saw {XID_79}",
        f"Nov 21 09:18:29 host python[123]: {XID_79}",
        f"2026-11-21T09:18:29+0000 host myapp: {XID_79}",
        f"<30>1 2026-11-21T09:18:29Z host app 1 - - {XID_79}",
        f"[   41.0] train.py[1]: {XID_79}",
        f"user  :info  : [   41.0] {XID_79}",
        f"12,1234,123456789,-;{XID_79}",
        f'[   40.0] audit: type=1400 name="{XID_79}"',
        f"Nov 21 09:18:29 python[123]: {XID_79}",
        f"2026-11-21T09:18:30.1+00:00 i-0abc Nov 21 09:18:29 ip-10-0-0-1 python[12]: {XID_79}",
    ],
)
def test_what_other_programs_quote_does_not_count(line):
    assert not events(parse(f"[    1.0] ok\n{line}\n"))


def test_fallen_off_the_bus_with_and_without_an_xid():
    facts = fixture("fallen-h100-dmesg-T.log")
    assert [(event["pci"], event.get("xid")) for event in facts["fallen_off_bus"]] == [
        ("0000:53:00", 79),
        ("0000:53:00.0", None),
        ("0000:64:00.0", None),
    ]
    assert facts["counts"]["fallen_off_bus"] == 3
    assert facts["gpu_uuids"] == {"0000:53:00": "GPU-01234567-89ab-cdef-0123-456789abcdef"}


@pytest.mark.parametrize(
    "rest",
    [
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
        "NVRM: installed in this system is not supported by open\n    NVRM: nvidia.ko because it does not include",
        "NVRM: installed in this system is not supported by the\n    NVRM: NVIDIA 550.163.01 driver release.",
    ],
)
def test_an_unsupported_gpu_is_named_by_the_line_before(rest):
    text = f"[ 5.6] NVRM: The NVIDIA GPU 0000:62:00.0 (PCI ID: 10de:3182)\n    {rest}\n"
    (event,) = parse(text)["nvidia_driver"]
    assert (event["kind"], event["pci"]) == ("unsupported", "0000:62:00.0")
    assert not events(parse("[ 5.6] NVRM: GPU0 x: the request is not supported by the GPU\n"))


@pytest.mark.parametrize(
    "line",
    [
        f"Nov 21 09:18:29 ip-10-0-0-1 kernel: message repeated 3 times: [ {XID_79}]",
        f"Nov 21 09:18:29 ip-10-0-0-1 kernel: message repeated 3 times: [ [  123.456789] {XID_79}]",
        f"2026-11-21T09:18:29.123456+00:00 ip-10-0-0-1 kernel: message repeated 12 times: [ {XID_79}]",
    ],
)
def test_a_message_that_rsyslog_folded(line):
    (event,) = parse(f"{line}\n")["xids"]
    assert (event["code"], event["text"]) == (79, XID_79)
    assert not events(parse("[ 1.0] ok\n" + line.replace("kernel:", "exporter[812]:") + "\n"))


def test_a_healthy_log_in_colours_is_a_log():
    text = "\x1b[32m[    1.123456] \x1b[0m\x1b[33mnvidia-nvswitch0: \x1b[0mopen (major=510)\n"
    assert not events(parse(text))


def test_fallen_off_the_bus_in_one_indented_message():
    head = "2026-11-21T09:18:29+0000 host kernel: NVRM: The NVIDIA GPU 0000:b3:00.0\n"
    rest = "    NVRM: (PCI ID: 10de:26b5) installed in this system has\n    NVRM: fallen off the bus and is not responding to commands.\n"
    assert [event["pci"] for event in parse(head + rest)["fallen_off_bus"]] == ["0000:b3:00.0"]


def test_sxid_detail_lines_belong_to_their_event():
    facts = fixture("nvswitch-a100-syslog.log")
    seen = [(e["code"], e["fatal"], e["pci"], e["switch"], e["link"]) for e in facts["sxids"]]
    assert seen == [(12028, False, "0000:c1:00.0", 3, 32), (24007, True, "0000:c4:00.0", 0, 30)]
    assert [event["code"] for event in facts["xids"]] == [74]


def test_sxid_detail_line_alone_is_an_event_without_a_word():
    facts = parse("[ 1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Severity 1 Engine instance 32\n")
    assert [(event["code"], event["fatal"]) for event in facts["sxids"]] == [(12028, None)]


def test_a_healthy_boot_has_no_events():
    facts = fixture("healthy-p5-dmesg.log")
    assert events(facts) == {"driver_loads": 2, "io_error": 1, "boots": 1, "lustre": 1}
    assert facts["lustre"][0]["kind"] == "mounted"
    assert facts["driver_version"] == "580.95.05"


def test_host_events():
    facts = fixture("host-trouble-rfc3339.log")
    assert events(facts) == {
        "oom": 2, "soft_lockup": 1, "hung_task": 1, "nvme_timeout": 1, "nvme_down": 1, "io_error": 2, "fs_error": 1,
        "readonly_remount": 1, "mce": 2, "edac": 2, "aer": 3, "nvidia_driver": 3, "lustre": 2, "network_reset": 1,
    }  # fmt: skip
    assert [(event["process"], event["cgroup"]) for event in facts["oom"]] == [
        ("python", True),
        ("pt_data_worker", False),
    ]
    assert [event["uncorrected"] for event in facts["mce"]] == [False, True]
    assert [(event["kind"], event["number"]) for event in facts["edac"]] == [("CE", 3), ("UE", 1)]
    assert [(event["severity"], event["pci"]) for event in facts["aer"]] == [
        ("fatal", "0000:53:00.0"), ("fatal", "0000:53:00.0"), ("corrected", "0000:60:01.0"),
    ]  # fmt: skip
    assert [event["kind"] for event in facts["nvidia_driver"]] == ["init_failed", "init_failed", "api_mismatch"]
    assert [event["kind"] for event in facts["lustre"]] == ["evicted", "lost"]
    assert facts["soft_lockup"][0]["cpu"] == 17


def test_boot_markers_and_uptime_tell_boots_apart():
    facts = fixture("two-boots-journal.log")
    assert [(event["code"], event["boot"] == facts["last_boot"]) for event in facts["xids"]] == [
        (79, False),
        (43, True),
    ]
    facts = parse(
        f"Nov 20 09:00:00 host kernel: [90000.5] {XID_79}\nNov 21 09:00:00 host kernel: [   60.5] NVRM: Xid (PCI:0000:53:00): 43, x\n"
    )
    assert [event["boot"] for event in facts["xids"]] == [0, 1]


def test_the_last_boots_death_is_not_this_boots_error():
    bert = "BERT: Error records from previous boot:"
    facts = parse(
        f"[ 1.0] {bert}\n[ 1.0] [Hardware Error]: event severity: fatal\n[ 9.0] {{1}}[Hardware Error]: event severity: corrected\n"
    )
    assert [(e["uncorrected"], e.get("previous_boot")) for e in facts["mce"]] == [(True, True), (False, None)]


def test_a_storm_is_thinned_but_hides_nothing():
    lines = [f"[{i:12.6f}] NVRM: Xid (PCI:0000:53:00): 31, pid={i}, name=python, Ch 8\n" for i in range(5000)]
    lines.insert(2500, f"[{2500:12.6f}] NVRM: Xid (PCI:0000:64:00): 79, GPU has fallen off the bus.\n")
    facts = parse("".join(lines))
    assert facts["counts"]["xids"] == 5001
    assert len(facts["xids"]) == 2 * kernel.KEPT + 1
    assert [event["code"] for event in facts["xids"]].count(79) == 1
    assert facts["storms"] == [
        {"list": "xids", "boot": 0, "count": 5000, "kept": 2 * kernel.KEPT, "code": 31, "pci": "0000:53:00"}
    ]
    assert (facts["xids"][0]["pid"], facts["xids"][-1]["pid"]) == (0, 4999)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no entries"),
        (b"  \n\n", "no entries"),
        (b"-- No entries --\n", "no entries"),
        (b"-- Logs begin at Sat 2026-11-21 --\n-- No entries --\n", "no entries"),
        (b"dmesg: read kernel buffer failed: Operation not permitted\n", "not permitted"),
        (b"No journal files were opened due to insufficient permissions.\n", "No journal files"),
        (b"bash: journalctl: command not found\n", "command not found"),
        (b"Hint: You are currently not seeing messages from other users and the system.\n", "not seeing"),
        (bytes(range(256)) * 64, "binary"),
        (b"\x00" * 5000, "no entries"),
    ],
)
def test_what_was_not_read_is_an_error(data, words):
    with pytest.raises(ParseError, match=words):
        parse(data)


def test_other_text_has_empty_lists():
    facts = parse("nvidia: module license 'NVIDIA' taints kernel.\nnothing of note\n")
    assert not events(facts)
    assert facts["first_time"] is None


@pytest.mark.parametrize(
    "text", ["nothing of note\n", "Error: cannot open the journal\n", "<html>404</html>\n", "{}\n"]
)
def test_text_without_a_kernel_line_is_no_evidence(text):
    with pytest.raises(ParseError, match="no line of it is a kernel message"):
        parse(text)


def test_a_code_cut_off_at_the_very_end_is_unread():
    facts = parse("[ 1.0] NVRM: Xid (PCI:0000:53:00): 7")
    assert (facts["counts"]["xids"], facts["counts"]["unread_xids"]) == (0, 1)
    assert parse("[ 1.0] NVRM: Xid (PCI:0000:53:00): 79\n")["xids"][0]["code"] == 79
    assert parse("[ 1.0] NVRM: Xid (PCI:0000:53:00): 79, x")["xids"][0]["code"] == 79


def test_a_driver_that_found_no_gpu():
    for text in (
        "No NVIDIA GPU found.",
        "No NVIDIA devices probed.",
        "None of the NVIDIA graphics adapters were initialized!",
    ):
        assert parse(f"[ 1.0] NVRM: {text}\n")["nvidia_driver"][0]["kind"] == "probe_failed"


def test_zero_bytes_of_a_power_loss_do_not_hide_the_rest():
    facts = parse(b"Nov 21 09:00:00 host kernel: [ 5.0] ok\n" + b"\x00" * 4000 + f"\n[ 1.0] {XID_79}\n".encode())
    assert facts["counts"]["xids"] == 1


def test_a_mapped_file_reads_like_bytes(tmp_path):
    data = b"[    1.000000] eth0: link becomes ready\n" * 1_000_000 + f"[    2.0] {XID_79}\n".encode()
    path = tmp_path / "kernel.log"
    path.write_bytes(data)
    with open(path, "rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert kernel.parse({"kernel.log": mapped}) == parse(data)
    assert parse(data)["counts"]["xids"] == 1


def test_one_endless_line_is_read_quickly():
    started = time.process_time()
    facts = parse(b"[    1.0] x" + b"NVRM: Xid (PCI:0000:53:00): 79, " * 100_000)
    assert facts["counts"]["xids"] == 1
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "head",
    [
        "Okt 06 17:59:27 host kernel: ",
        "Mär 06 17:59:27 host kernel: ",
        "[Mi Okt  6 17:59:27 2025] ",
        "[mer. 6 oct. 17:59:27 2025] ",
    ],
)
def test_stamps_in_another_language_do_not_hide_an_xid(head):
    facts = parse(f"{head}{XID_79}\n")
    assert [(event["code"], event["time"]) for event in facts["xids"]] == [(79, None)]
    assert not events(parse(f"[ 1.0] ok\nOkt 06 17:59:27 host python[1]: {XID_79}\n"))


@pytest.mark.parametrize(
    "line",
    [
        f"[...] {XID_79}",
        f"1234:[   12.345678] {XID_79}",
        f"/var/log/messages:Nov 21 09:18:29 ip-10-0-0-1 kernel: {XID_79}",
        f"kern.log:77:Nov 21 09:18:29 ip-10-0-0-1 kernel: {XID_79}",
        f"1795252709.123456 ip-10-0-0-1 kernel: {XID_79}",
        "NVRM: Xid (PCI:0000:53:00) : 79, GPU has fallen off the bus.",
    ],
)
def test_heads_that_grep_reports_and_short_unix_put_before_a_line(line):
    (event,) = parse(line + "\n")["xids"]
    assert event["code"] == 79


def test_short_unix_is_a_wall_clock():
    assert parse(f"1795252709.123456 h kernel: {XID_79}\n")["xids"][0]["time"] == "2026-11-21T09:18:29+00:00"


def test_a_gpu_that_does_not_wake_up():
    line = "nvidia 0000:9b:00.0: Unable to change power state from D3cold to D0, device inaccessible"
    (event,) = parse(f"[ 1.5] {line}\n")["nvidia_driver"]
    assert (event["kind"], event["pci"]) == ("gpu_is_lost", "0000:9b:00.0")


@pytest.mark.parametrize("code", [31, 74, 94, 145, 154])
def test_a_long_run_of_letters_in_an_xid_line_costs_no_more_than_its_length(code):
    # A fuzzed case: the NVLink unit's pattern was tried from every letter of the run.
    line = f"[ 1.0] NVRM: Xid (PCI:0000:a4:00): {code}, pid=812, n{'A' * 1900}\n".encode()
    started = time.process_time()
    assert len(parse(line * 50)["xids"]) == 50
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("line", "time"),
    [
        # dmesg -H (reltime), -td and -Td of util-linux 2.39; made lines.
        (f"[Nov21 09:18] {XID_79}", None),
        (f"[Nov 1 09:18] {XID_79}", None),
        (f"[  +0.000003] {XID_79}", None),
        (f"[+12345.000003] {XID_79}", None),
        (f"[<    0.000003>] {XID_79}", None),
        (f"[Sat Nov 21 09:18:29 2026 <    0.000003>] {XID_79}", "2026-11-21T09:18:29"),
        # journalctl -o short-full in the node's own zone
        (f"Sat 2026-11-21 09:18:29 CEST ip-10-0-0-1 kernel: {XID_79}", "2026-11-21T09:18:29"),
        (f"Sat 2026-11-21 09:18:29 +03 ip-10-0-0-1 kernel: {XID_79}", "2026-11-21T09:18:29+03:00"),
        (f"2026-11-21 09:18:29 HOST kernel: {XID_79}", "2026-11-21T09:18:29"),
        # a syslog daemon that prints facility and level
        (f"Nov 21 09:18:29 ip-10-0-0-1 kern.warn kernel: [   12.5] {XID_79}", "2026-11-21T09:18:29"),
        # pdsh, clush
        (f"ip-10-0-0-1: [  123.456789] {XID_79}", 123.456789),
        (f"ip-10-0-0-1.ec2.internal: [Sat Nov 21 09:18:29 2026] {XID_79}", "2026-11-21T09:18:29"),
        (f"node7: 2026-11-21T09:18:29+0000 node7 kernel: {XID_79}", "2026-11-21T09:18:29+00:00"),
        # journalctl --no-hostname, -o short-delta, printk's newest caller
        (f"Nov 21 09:18:29 kernel: {XID_79}", "2026-11-21T09:18:29"),
        (f"2026-11-21T09:18:29+0000 kernel: {XID_79}", "2026-11-21T09:18:29+00:00"),
        (f"[   12.345678                ] ip-10-0-0-1 kernel: {XID_79}", 12.345678),
        (f"[   12.345678] [T4711@C3] {XID_79}", 12.345678),
        # talosctl dmesg
        (f"10.0.0.7: kern: warning: [2026-11-21T09:18:29.123456Z]: {XID_79}", "2026-11-21T09:18:29.123456+00:00"),
        (f"kern:    info: [2026-11-21T09:18:29.123456Z]: {XID_79}", "2026-11-21T09:18:29.123456+00:00"),
        # taken in by CloudWatch or a container's log
        (f"2026-11-21T09:18:30.000Z Nov 21 09:18:29 ip-10-0-0-1 kernel: [   12.3] {XID_79}", "2026-11-21T09:18:29"),
        (f"2026-11-21T09:18:30.1+00:00 i-0abc Nov 21 09:18:29 ip-10-0-0-1 kernel: {XID_79}", "2026-11-21T09:18:29"),
        (f"2026-11-21T09:18:30.123456789Z stdout F [   12.345678] {XID_79}", 12.345678),
    ],
)
@pytest.mark.usefixtures("today")
def test_further_heads(line, time):
    assert [(event["code"], event["time"]) for event in parse(f"{line}\n")["xids"]] == [(79, time)]
    assert parse(f"{line}\n".replace("NVRM: Xid", "eth0: Xid"))["counts"]["xids"] == 0


def test_a_head_of_no_known_form_does_not_lose_what_the_kernel_said():
    for head in ("2026/11/21 09.18 node7 kernel[0]: ", "node7 kernel: [x] "):
        facts = parse(f"[ 1.0] ok\n{head}{XID_79}\n{head}nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, x\n")
        assert (facts["counts"]["xids"], facts["counts"]["sxids"]) == (1, 1)
    for line in ("NVRM: Xid 79, GPU has fallen off the bus", "NVRM: GPU0 Xid: 79"):
        assert parse(f"[ 1.0] {line}\n")["counts"]["unread_xids"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[33mnvidia-nvswitch0: \x1b[0m\x1b[31mSXid (PCI:0000:c1:00.0): 24007, Fatal, Link 3 x\x1b[0m",
        "nvidia-nvswitch0: \x1b[01;31m\x1b[KSXid\x1b[m\x1b[K (PCI:0000:c1:00.0): 24007, Fatal, Link 3 x",
    ],
)
def test_colours_do_not_hide_an_sxid(line):
    assert [event["code"] for event in parse(f"[ 1.0] {line}\n")["sxids"]] == [24007]
    assert parse("[ 1.0] \x1b[01;31m\x1b[KNVRM\x1b[m\x1b[K: Xid (PCI:0000:53:00): 79, x\n")["counts"]["xids"] == 1
    down = "\x1b[33mnvme nvme1: \x1b[0mcontroller is down; will reset: CSTS=0xffffffff"
    assert parse(f"[ 1.0] {down}\n")["counts"]["nvme_down"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "Sat 2026-11-21 09:18:29.000000 UTC [s=0a1b;i=1;b=2c;m=1;t=2;x=3]\n    MESSAGE=NVRM: Xid\n",
        "__CURSOR=s=0a1b;i=1\n__REALTIME_TIMESTAMP=1\nMESSAGE=NVRM: Xid\n",
    ],
)
def test_a_journal_in_fields_is_not_read_as_an_empty_one(text):
    with pytest.raises(ParseError, match="a log in fields"):
        parse(text)


def test_records_of_dev_kmsg_without_an_event_are_a_log():
    assert not events(parse("6,3969,206764319,-;nvidia-nvswitch3: open (major=510)\n"))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        # The wording of early R570 drivers: small letters, no XC and i, words without 0x.
        ("144, SAW fatal 0 0 Link 1 (00000021, 00000002, 00000000)", {"fatal": True, "link": 1, "intr_info": 0x21, "error_status": 2}),
        # cut off before the bracket closes
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 17 (0x04084507 0x00000004 0x0000", {"fatal": False, "intr_info": 0x04084507, "error_status": 4}),
        ("149, something Fatal in a shape not known", {"fatal": True}),
        ("149, something Non-fatal in a shape not known", {"fatal": False}),
    ],
)  # fmt: skip
def test_nvlink5_in_other_words(line, wanted):
    (event,) = parse(f"[ 1.0] NVRM: Xid (PCI:0000:b9:00): {line}\n")["xids"]
    assert {name: event.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("line", "name", "wanted"),
    [
        # Linux 4.x and RHEL 7 name the user; 6.13 names the CPU that saw the lockup; 6.19 says what the task waits for.
        ("Out of memory: Killed process 812, UID 1000, (python) total-vm:1kB", "oom", {"pid": 812, "process": "python"}),
        ("watchdog: CPU4: Watchdog detected hard LOCKUP on cpu 5", "hard_lockup", {}),
        ("INFO: task kworker/u8:2:77 blocked in I/O wait for more than 122 seconds.", "hung_task", {"pid": 77, "seconds": 122}),
        # die() of x86, old and new, and of arm64
        ("invalid opcode: 0000 [#1] SMP NOPTI", "kernel_bug", {"kind": "oops"}),
        ("general protection fault, probably for non-canonical address 0x1: 0000 [#1] PREEMPT SMP", "kernel_bug", {"kind": "oops"}),
        ("Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#2] SMP", "kernel_bug", {"kind": "oops"}),
        ("Internal error: Oops: 0000000096000004 [#1] SMP", "kernel_bug", {"kind": "oops"}),
        ("Internal error: Oops - BUG: 00000000f2000800 [#1] SMP", "kernel_bug", {"kind": "oops"}),
        ("Kernel panic - not syncing: Fatal exception", "kernel_bug", {"kind": "Kernel panic"}),
        ("nvme nvme1: Disabling device after reset failure: -19", "nvme_down", {"device": "nvme1"}),
        ("nvme 0000:00:1f.0: I/O 30 QID 0 timeout, disable controller", "nvme_down", {"device": "0000:00:1f.0"}),
        ("timeout error, dev nvme1n1, sector 8 op 0x0:(READ) flags 0x0", "io_error", {"device": "nvme1n1"}),
        ("critical target error, dev nvme1n1, sector 8 op 0x1:(WRITE) flags 0x0", "io_error", {"device": "nvme1n1"}),
        ("XFS (nvme1n1): Metadata corruption detected at xfs_inode_buf_verify+0x170/0x1a0 [xfs], xfs_inode block 0x7a0", "fs_error", {"volume": "nvme1n1"}),
        ("XFS (dm-0): Metadata CRC error detected at xfs_agi_read_verify+0xd2/0x110 [xfs], xfs_agi block 0x2", "fs_error", {"volume": "dm-0"}),
        ("XFS (md0): Corruption detected. Unmount and run xfs_repair", "fs_error", {"volume": "md0"}),
        ("XFS (md0): log mount/recovery failed: error -117", "fs_error", {"volume": "md0"}),
        # ext4 and its journal
        ("Aborting journal on device dm-0-8.", "fs_error", {"device": "dm-0"}),
        ("JBD2: I/O error when updating journal superblock for nvme2n1p1-8.", "fs_error", {"device": "nvme2n1p1"}),
        ("EXT4-fs (md0): This should not happen!! Data will be lost", "fs_error", {"device": "md0"}),
        # Linux 6.9 and later, and what a device without a bus prints
        ("ena 0000:00:05.0 ens5: NETDEV WATCHDOG: CPU: 9: transmit queue 3 timed out 5120 ms", "network_reset", {"device": "ens5"}),
        ("bond0: NETDEV WATCHDOG: CPU: 9: transmit queue 3 timed out 5120 ms", "network_reset", {"device": "bond0"}),
        ("NETDEV WATCHDOG: ens5 (ena): transmit queue 3 timed out", "network_reset", {"device": "ens5"}),
        ("md/raid0:md0: Disk failure on nvme3n1 detected, failing array.", "raid_failure", {"array": "md0", "device": "nvme3n1"}),
        ("md/raid1:md127: Disk failure on nvme3n1, disabling device.", "raid_failure", {"device": "nvme3n1"}),
        ("Memory failure: 0x80067800: recovery action for huge page: Ignored", "mce", {"uncorrected": True}),
        ("Memory failure: 0x1850: Sending SIGBUS to python:812 due to hardware memory corruption", "mce", {"uncorrected": True}),
        ("[Hardware Error]: System Fatal error.", "mce", {"uncorrected": True}),
        ("[Hardware Error]: Deferred error, no action required.", "mce", {"uncorrected": True}),
        ("[Hardware Error]: CPU:4 (19:11:1) MC5_STATUS[-|UE|MiscV|AddrV|PCC|-]: 0xbea0000000000108", "mce", {"uncorrected": True}),
        ("[Hardware Error]: CPU:4 (19:11:1) MC17_STATUS[Over|CE|MiscV|-|-]: 0xdc2040000400011b", "mce", {"uncorrected": None}),
        ("EDAC MC0: 0 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "edac", {"kind": "CE", "number": 1}),
        ("nvidia 0000:9b:00.0: can't change power state from D3cold to D0 (config space inaccessible)", "nvidia_driver", {"kind": "gpu_is_lost", "pci": "0000:9b:00.0"}),
        ("NVRM: GPU0 _intrServiceStallCommonCheckBegin: Failed GPU reg read : 0xffffffff. Check whether GPU is present on the bus", "nvidia_driver", {"kind": "gpu_is_lost"}),
        ("NVRM: installed in this system is not supported by open", "nvidia_driver", {"kind": "unsupported"}),
        ("NVRM: installed in this system is not supported by the NVIDIA 590.48.01 driver release.", "nvidia_driver", {"kind": "unsupported"}),
        ("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!", "nvidia_driver", {"kind": "nvlink_discovery"}),
        ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!", "nvidia_driver", {"kind": "nvlink_discovery"}),
        ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", "nvidia_driver", {"kind": "rc_watchdog"}),
        ("NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC timeout detected! GPU marked for reset @ x.c:1", "nvidia_driver", {"kind": "reset_required"}),
        ("NVRM: GPU0 rpcRmApiFree_GSP: GspRmFree failed: hClient=0xc1d00001; status=0x0000000f", "nvidia_driver", {"kind": "gpu_is_lost"}),
        ("NVRM: _kgspProcess: GSP-CRASHCAT Report", "nvidia_driver", {"kind": "gsp_dead"}),
        ("ena 0000:00:05.0 ens5: The number of lost tx completions is above the threshold (130 > 128). Reset the device", "network_reset", {"driver": "ena", "pci": "0000:00:05.0"}),
        ("ena 0000:00:05.0 ens5: Lost TX completions are above the threshold (130 > 128). Completion transmission timeout: 5000.", "network_reset", {"driver": "ena"}),
        ("infiniband rdmap79s0: The device didn't send any completion for admin cmd CREATE_QP(1) status 0", "efa_admin", {"device": "rdmap79s0"}),
        ("efa 0000:4f:00.0 rdmap79s0: The device sent a completion but the driver didn't receive any MSI-X interrupt for admin cmd CREATE_AH(5)", "efa_admin", {"pci": "0000:4f:00.0"}),
        ("infiniband rdmap79s0: Wait for completion (polling) timeout", "efa_admin", {"device": "rdmap79s0", "kind": "admin"}),
        ("infiniband rdmap79s0: Admin queue is closed", "efa_admin", {"device": "rdmap79s0", "kind": "admin"}),
        ("efa 0000:4f:00.0: Reset indication didn't turn off", "efa_admin", {"pci": "0000:4f:00.0", "kind": "admin"}),
        ("efa 0000:4f:00.0 (null): Device isn't ready, abort com init", "efa_admin", {"pci": "0000:4f:00.0", "kind": "admin"}),
        ("efa: probe of 0000:4f:00.0 failed with error -62", "efa_admin", {"pci": "0000:4f:00.0", "kind": "probe_failed"}),
        ("efa 0000:4f:00.0: probe with driver efa failed with error -28", "efa_admin", {"pci": "0000:4f:00.0", "kind": "probe_failed"}),
        ("ena 0000:00:05.0 ens5: Reset attempt failed. Can not reset the device", "network_failed", {"pci": "0000:00:05.0"}),
        ("nvidia: probe of 0000:75:00.0 failed with error -1", "nvidia_driver", {"pci": "0000:75:00.0", "kind": "probe_failed"}),
        ("nvidia 0000:75:00.0: probe with driver nvidia failed with error -1", "nvidia_driver", {"pci": "0000:75:00.0", "kind": "probe_failed"}),
        ("NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out", "nvidia_driver", {"kind": "gsp_dead"}),
        ("NVRM: GPU0 _kgspClassifyGspTimeout: =============== GSP-RM unresponsive ==================", "nvidia_driver", {"kind": "gsp_dead"}),
        ("infiniband rdmap79s0: Failed to process command CREATE_QP (opcode 6) comp_status 1 err -22", "efa_refused", {"device": "rdmap79s0", "command": "CREATE_QP"}),
        ("ena 0000:00:05.0: Device reset completed successfully, Driver info: Linux version 2.13.0g", "network_reset", {"kind": "done", "pci": "0000:00:05.0"}),
        ("ena 0000:00:05.0: Device reset completed, status: 0, Driver info: x", "network_reset", {"kind": "done"}),
        ("ena 0000:00:05.0 ens5: [1/2] Lost TX completions are above threshold (130 > 128), completion timeout: 5000 (msec), 7 msecs since interrupt, 7 msecs since napi, qid: 3", "network_reset", {"kind": "cause"}),
        ("ena 0000:00:05.0: Restore attempt failed.", "network_failed", {"pci": "0000:00:05.0"}),
        ("mlx5_core 0000:05:00.0: poll_health:813:(pid 0): device's health compromised - reached miss count", "mlx5", {"kind": "dead", "pci": "0000:05:00.0"}),
        ("mlx5_core 0000:05:00.0: print_health_info:431:(pid 0): synd 0x8: unrecoverable hardware error", "mlx5", {"kind": "dead"}),
        ("mlx5_core 0000:05:00.0: synd 0x8: unrecoverable hardware error", "mlx5", {"kind": "dead"}),
        ("mlx5_core 0000:05:00.0: synd 0x10: High temperature", "mlx5", {"kind": "hot"}),
        ("mlx5_core 0000:05:00.0 enp5s0np0: TX timeout detected", "mlx5", {"kind": "tx_timeout"}),
        ("mlx5_core 0000:05:00.0: wait_func:1180:(pid 12): MANAGE_PAGES(0x108) timeout. Will cause a leak of a command resource", "mlx5", {"kind": "command"}),
        ("mlx5_core 0000:05:00.0: mlx5_health_try_recover:338:(pid 7): health recovery succeeded", "mlx5", {"kind": "recovered"}),
        ("EXT4-fs warning (device nvme1n1): ext4_end_bio:343: I/O error 10 writing to inode 12 starting block 34560)", "io_error", {"device": "nvme1n1"}),
        ("python3: attempt to access beyond end of device", "beyond_end", {}),
        ("attempt to access beyond end of device", "beyond_end", {}),
        ("attempt to access beyond end of device\n[ 1.0] nvme1n1: rw=2049, sector=39, nr_sectors = 8 limit=39", "beyond_end", {"device": "nvme1n1"}),
        ("attempt to access beyond end of device\n[ 1.0] loop3: rw=0, want=39, limit=38", "beyond_end", {"device": "loop3"}),
        ("VFS: file-max limit 9223372 reached", "file_max", {}),
        ("python3[4242]: segfault at 8 ip 00007f1200001000 sp 00007ffc00001000 error 4 in libnccl.so.2.27.3[7f1200000000+4000000]", "library_crash", {"process": "python3", "library": "libnccl"}),
        ("traps: python3[4242] general protection fault ip:7f1200001000 sp:7ffc00001000 error:0 in libcuda.so.580.95.05[7f1200000000+400000]", "library_crash", {"library": "libcuda"}),
        ("WARNING: CPU: 3 PID: 4242 at drivers/infiniband/hw/efa/efa_verbs.c:1612 efa_destroy_cq+0x61/0x80 [efa]", "kernel_warning", {}),
        ("WARNING: drivers/infiniband/hw/efa/efa_verbs.c:1612 at efa_destroy_cq+0x61/0x80 [efa], CPU#3: python/4242", "kernel_warning", {}),
        ("Out of memory: Kill process 812 (python) score 900 or sacrifice child", "oom", {"pid": 812, "process": "python", "cgroup": False}),
        ("Memory cgroup out of memory: Kill process 812 (python) score 900 or sacrifice child", "oom", {"cgroup": True}),
        ("pcieport 0000:50:01.0: pciehp: Slot(12): Link Down", "pcie_slot", {"slot": "12", "kind": "Link Down"}),
        ("pcieport 0000:50:01.0: pciehp: Slot(12-1): Card not present", "pcie_slot", {"slot": "12-1"}),
        ("efa: disagrees about version of symbol ib_register_device", "efa_admin", {"kind": "not_loaded"}),
        ("efa: Unknown symbol ib_umem_find_best_pgsz (err -22)", "efa_admin", {"kind": "not_loaded"}),
        ("Loading of unsigned module is rejected", "module_refused", {}),
        ("Loading of module with unavailable key is rejected", "module_refused", {}),
        ("Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7", "module_refused", {}),
        ("LustreError: 11-0: fsx-OST0000-osc-ffff8: operation ost_read to node 10.0.0.4@tcp failed: rc = -107", "lustre", {"kind": "refused"}),
        ("LustreError: fsx-OST0000-osc-ffff8: operation ost_write to node 10.0.0.4@efa failed: rc = -110", "lustre", {"kind": "refused"}),
        ("LNetError: 1234:0:(socklnd_cb.c:2312:ksocknal_find_timed_out_conn()) A connection with 12345-10.0.0.4@tcp (10.0.0.4:988) timed out; the network or node may be down.", "lustre", {"kind": "lnet"}),
        ("LNet: 812:0:(lib-msg.c:811:lnet_health_check()) 10.0.0.7@efa: Timed out tx: 5 seconds", "lustre", {"kind": "lnet"}),
        ("Lustre: 812:0:(client.c:2309:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: [sent 1]", "lustre", {"kind": "slow"}),
        ("LustreError: 132-0: fsx-OST0000-osc-ffff8: BAD READ CHECKSUM: from 10.0.0.4@tcp inode [0x2:0x3:0x0]", "lustre", {"kind": "corrupt"}),
        ("nvidia: version magic '6.8.0-1029-aws SMP ' should be '6.8.0-1031-aws SMP '", "nvidia_driver", {"kind": "not_loaded"}),
        ("nvidia: disagrees about version of symbol module_layout", "nvidia_driver", {"kind": "not_loaded"}),
        ("nvidia: Unknown symbol drm_gem_object_free (err -2)", "nvidia_driver", {"kind": "not_loaded"}),
        ("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:75:00.0)", "nvidia_driver", {"pci": "0000:75:00.0", "kind": "bar_invalid"}),
        # Downstream port containment: trigger reason 2 is ERR_FATAL; the source is a requester id
        ("pcieport 0000:30:03.0: DPC: containment event, status:0x0005 source:0x3400", "aer", {"severity": "fatal", "pci": "0000:34:00.0"}),
        ("pcieport 0015:00:00.0: DPC: containment event, status:0x200d, ERR_FATAL received from 0015:01:00.0", "aer", {"severity": "fatal", "pci": "0015:01:00.0"}),
        ("pcieport 0000:00:01.4: DPC: containment event, status:0x1f01 source:0x0000", "aer", {"severity": "nonfatal", "pci": "0000:00:01.4"}),
    ],
)  # fmt: skip
def test_wordings_of_other_kernels_and_drivers(line, name, wanted):
    """Written by hand after the sources of Linux 4.14 to 6.19, ena, efa and the open GPU kernel modules."""
    (event,) = parse(f"[ 1.0] {line}\n")[name]
    assert {part: event.get(part) for part in wanted} == wanted


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: rpcRmApiControl_GSP: GspRmControl failed: hClient=0xc1d00001; hObject=0x5c000002; status=0x00000056",
        "NVRM: GPU0 rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1d00001; status=0x0000001a",
        "NVRM: GPU4 GSP RPC buffer contains function 103 (GSP_RM_ALLOC) and data 0x0 0x0.",
        "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:123",
        "NVRM: kbifInitLtr_GB202: LTR is disabled in the hierarchy",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR something else",
        "ena 0000:00:05.0 ens5: Local page cache is disabled for less than 16 channels",
        "infiniband rdmap79s0: Failed to modify QP state",
        "infiniband mlx5_0: Wait for completion (polling) timeout",
        "mlx5_core 0000:05:00.0: Port module event: module 0, Cable plugged",
        "efa: module verification failed: signature and/or required key missing - tainting kernel",
        "vfio-pci 0000:75:00.0: probe with driver vfio-pci failed with error -22",
        "NVRM: BAR1 is at 0x48000000000 (PCI:0000:75:00.0)",
        "python3[4242]: segfault at 8 ip 00007f12 sp 00007ffc error 4 in train.so[7f12+400]",
        "Lustre: fsx-OST0000-osc-ffff8: Connection to x is fine",
        "XFS (nvme1n1): Unmounting Filesystem 5e6f7a01-0000-4000-8000-000000000001",
    ],
)
def test_harmless_lines_of_other_kernels_and_drivers(line):
    assert not events(parse(f"[ 1.0] {line}\n"))


def test_an_error_of_this_boot_after_the_last_boots_report():
    facts = parse(
        "[ 1.0] BERT: Error records from previous boot:\n[ 1.0] [Hardware Error]: event severity: fatal\n"
        "[ 90.0] mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: bd80000000100134\n"
        "[ 91.0] [Hardware Error]: System Fatal error.\n"
    )
    assert [event.get("previous_boot") for event in facts["mce"]] == [True, None, None]
