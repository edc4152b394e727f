"""kernel.log: every stamp form, every line shape, whose line it is, storms, boots, and logs that are none."""

import contextlib
import mmap
import random
import time

import pytest

from flightline_node.model import ParseError
from flightline_node.parsers import kernel, kernel_lines
from tests.harness import FIXTURES

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid=1234, name=python, GPU has fallen off the bus."


def parse(text):
    return kernel.parse({"kernel.log": text.encode() if isinstance(text, str) else text})


def fixture(name):
    return kernel.parse({"kernel.log": (FIXTURES / "kernel" / name).read_bytes()})


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


def test_syslog_gets_the_latest_year_that_is_not_in_the_future(monkeypatch):
    class Fixed(kernel_lines.datetime):
        @classmethod
        def now(cls):
            return cls(2027, 2, 1)

    monkeypatch.setattr(kernel_lines, "datetime", Fixed)
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
        f"I think that {XID_79}",
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
    assert events(facts) == {"driver_loads": 1, "io_error": 1, "boots": 1}
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
    assert facts["xids"] == []
    assert time.process_time() - started < 2


@pytest.mark.parametrize("path", sorted((FIXTURES / "kernel").glob("*.log")), ids=lambda path: path.stem)
def test_damage_never_raises_anything_but_parse_error(path):
    data, dice = path.read_bytes(), random.Random(7)
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 40)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        with contextlib.suppress(ParseError):
            parse(bytes(broken[: dice.randrange(len(broken))]))


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
    assert time.process_time() - started < 0.5
