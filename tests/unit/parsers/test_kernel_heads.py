"""What stands before a kernel message: heads of collectors, launchers and languages, and the words of other programs."""

import json
import time

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import kernel, kernel_heads
from tests.harness import sample

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid=1234, name=python, GPU has fallen off the bus."
EXT4 = "EXT4-fs error (device nvme1n1): ext4_find_entry:1612: inode #2: comm ls: reading directory lblock 0"
LOCKUP = "watchdog: BUG: soft lockup - CPU#17 stuck for 26s! [python:4242]"

HEADS = [
    "[Sun Mar 29 19:20:37] ",
    "[2026-03-29 19:20:37] ",
    "[2026-03-29T19:20:37Z] ",
    "[123] ",
    "2026-03-29T19:20:37.123456Z\thost kernel: ",
    "Mar 29 07:20:37 PM host kernel: ",
    "Mar 29 07:20:37 PM kernel: ",
    "2026 Mar 29 19:20:37 host kernel: ",
    '{job="k"} ',
    '{job="k", host="gpu-07"} [  123.456] ',
    '2026-03-29T19:20:37Z {job="k"} Mar 29 19:20:37 host kernel: ',
    "klogd: ",
    "Mar 29 19:20:37 host klogd: ",
    "3月 29 19:20:37 host kernel: ",
    "[日 3月 29 19:20:37 2026] ",
    "[일  3월 29 19:20:37 2026] ",
    "2026年 3月29日 日曜日 午後 07:20:37 JST host kernel: ",
    "(head, rank=0, pid=1234) [1,0]<stdout>: ",
    "(RayWorker pid=12, ip=10.0.0.1) [  123.456789] ",
    "[1,0]<stdout>:[  123.456789] ",
    "app-1  | [  123.456789] ",
    "[pod/watcher/dmesg] [  123.456789] ",
    "gpu-07 [  123.456789] [   T1946] ",
    "23.456789] ",
    "2026-03-29 19:20:37 [kernel] ",
    "29/Mar/2026:19:20:37 +0000 host kernel: ",
    "1774811000.123 kernel: ",
    "03-29 19:20:37.123  kernel: ",
    "^[[32m[  123.456789] ^[[0m",
    "<3>NVRM prints\r\n<3>",
    "2026-03-29T19:20:37.123456789Z stdout F [  123.456789] ",
    "     12\t[  123.456789] ",
    "> [  123.456789] ",
    "* ",
    "123.456789: ",
    "<3>1 2026-03-29T19:20:37Z host kernel - - - ",
    "20260329T192037Z host kernel: ",
    "Sun Mar 29 19:20:37.123 2026 host kernel: ",
    "2026-03-29 19:20:37.123 +0900 host kernel: [  123.456789] ",
    "[29.03.2026 19:20:37] ",
    "pod-7d9c dmesg [  123.456789] ",
    "[gpu-watch] [  123.456789] ",
    "gpu-07 | kernel: ",
    "[kern.err] [123.456789] ",
    "\ufeff[  123.456789] ",
]


def parse(text):
    return kernel.parse({"kernel.log": text.encode()})


@pytest.mark.parametrize("head", HEADS)
def test_a_message_is_found_whatever_stands_before_it(head):
    facts = parse(f"{head}{XID_79}\n{head}{EXT4}\n{head}{LOCKUP}\r\n")
    assert [event["code"] for event in facts["xids"]] == [79]
    assert [event["device"] for event in facts["fs_error"]] == ["nvme1n1"]
    assert facts["counts"]["soft_lockup"] == 1
    assert facts["unsplit"] == []


@pytest.mark.parametrize(
    "head",
    [
        "I think that ",
        "gpu-07 ",
        "gpu-07: ",
        "ernel: ",
        '"2026-03-29","kernel","',
        "2026-03-29 19:20:37,123 ERROR ",
        "[2026-03-29 19:20:37,123] [INFO] ",
        "2026-11-21T09:18:30.123Z stdout F ",
        "[   41.0] gpu-watch: saw ",
        "[gpu-watch] ",
        "[2026-03-29 19:20:37] [gpu-watch] ",
        '[0] kmsg.0: [[1774812037.123, {}], {"priority"=>3, "msg"=>"',
        'time="2026-03-29T19:20:37Z" level=err msg="',
    ],
)
def test_a_message_that_cannot_be_told_from_quoted_words_is_kept_apart(head):
    facts = parse(f"[ 1.0] ok\n{head}{XID_79}\n{head}Linux version 6.8.0\n")
    assert facts["xids"] == []
    assert [(event["list"], event["code"]) for event in facts["unsplit"]] == [("xids", 79)]


@pytest.mark.parametrize(
    "line",
    [
        f"Nov 21 09:18:29 host sudo:   ubuntu : TTY=pts/0 ; COMMAND=/usr/bin/grep '{XID_79}'",
        f"Nov 21 09:18:29 host sshd[99]: kernel: {XID_79}",
        f"Nov 21 09:18:29 host train: 2026-11-21 09:18:29,123 WARNING {XID_79}",
        f"2026-11-21T09:18:29+00:00 host node-problem-detector[7]: Message:{XID_79}",
        f"[   41.0] systemd[1]: watch.service: {XID_79}",
        f"<14>train: {XID_79}",
        f"daemon:err: [   41.0] {XID_79}",
    ],
)
def test_another_programs_words_are_left_alone(line):
    facts = parse(f"[ 1.0] ok\n{line}\n")
    assert {name: count for name, count in facts["counts"].items() if count} == {}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff", "nvme_down"),
        ("infiniband rdmap79s0: Admin queue is closed", "efa_admin"),
        ("nvidia 0000:53:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x", "aer"),
        ("NVRM: Xid (PCI:0000:53:00): 79, x", "xids"),
        ("Out of memory: Killed process 812 (python) total-vm:1kB", "oom"),
    ],
)
def test_a_stamp_without_host_and_program(line, name):
    for head in ("Mar 29 19:20:37 ", "2026-03-29T19:20:37Z ", "2026-03-29 19:20:37 UTC ", "[Sun Mar 29 19:20:37] "):
        facts = parse(f"[ 1.0] ok\n{head}{line}\n")
        assert facts["counts"][name] + sum(event["list"] == name for event in facts["unsplit"]) == 1


@pytest.mark.parametrize(
    "before",
    ["usb 1-1: new high-speed USB device", "nvidia-nvlink: Nvlink Core is being initialized ", "NVRM: GPU at PCI: "],
)
def test_text_that_ran_together_before_an_xid_does_not_hide_it(before):
    for head in ("[   41.000000] ", "Nov 21 09:18:29 host kernel: "):
        assert [event["code"] for event in parse(f"{head}{before}{XID_79}\n")["xids"]] == [79]


def test_half_a_day_and_a_missing_year_are_read(monkeypatch):
    facts = parse(f"Mar 29 07:20:37 PM host kernel: {XID_79}\nMar 29 12:20:37 AM host kernel: {XID_79}\n")
    assert [event["time"][10:] for event in facts["xids"]] == ["T00:20:37", "T19:20:37"], "newest first"
    assert parse(f"2026 Mar 29 19:20:37 h kernel: {XID_79}\n")["xids"][0]["time"] == "2026-03-29T19:20:37"
    facts = parse(f"[Sun Mar 29 19:20:37] {XID_79}\n")
    assert (facts["xids"][0]["time"][4:], facts["year_assumed"]) == ("-03-29T19:20:37", True)


JOURNAL = {
    "MESSAGE": XID_79,
    "_TRANSPORT": "kernel",
    "SYSLOG_IDENTIFIER": "kernel",
    "__REALTIME_TIMESTAMP": "1774812037000000",
    "_SOURCE_MONOTONIC_TIMESTAMP": "123456789",
    "_BOOT_ID": "0" * 32,
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(JOURNAL) + "\n",
        "\x1e" + json.dumps(JOURNAL) + "\n",
        "data: " + json.dumps(JOURNAL) + "\n\n",
        json.dumps(JOURNAL, indent=8) + "\n",
        json.dumps([JOURNAL]) + "\n",
        json.dumps({**JOURNAL, "MESSAGE": list(XID_79.encode())}) + "\n",
    ],
)
def test_the_journal_in_json(text):
    (event,) = parse(text)["xids"]
    assert (event["code"], event["uptime_s"], event["time"]) == (79, 123.456789, "2026-03-29T19:20:37.000000+00:00")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"dmesg": [{"pri": 6, "time": 0.0, "msg": "Linux version 6.8"}, {"pri": 3, "time": 123.5, "msg": XID_79}]}, indent=3),
        json.dumps({"log": f"[  123.500000] {XID_79}\n", "stream": "stdout", "time": "2026-03-29T19:20:37Z"}),
        json.dumps({"events": [{"timestamp": 1, "message": f"[  123.500000] {XID_79}"}]}),
        json.dumps({"data": {"result": [{"stream": {"job": "k"}, "values": [["1", f"[  123.500000] {XID_79}"]]}]}}),
    ],
)  # fmt: skip
def test_other_json(text):
    (event,) = parse(text + "\n")["xids"]
    assert (event["code"], event["uptime_s"]) == (79, 123.5)


def test_json_of_other_programs_and_of_two_boots():
    other = json.dumps({**JOURNAL, "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "train"})
    quiet = json.dumps({**JOURNAL, "MESSAGE": "ok"})
    assert parse(f"{quiet}\n{other}\n")["xids"] == []
    facts = parse(json.dumps(JOURNAL) + "\n" + json.dumps({**JOURNAL, "_BOOT_ID": "1" * 32}) + "\n")
    assert [event["boot"] == facts["last_boot"] for event in facts["xids"]] == [False, True]
    facts = parse(f'{quiet}\n{{"MESSAGE": "{XID_79}\n')  # cut off
    assert facts["unsplit"]
    with pytest.raises(ParseError):
        parse(other + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "Nov 21 09:18:29 host sshd[1]: session opened\nNov 21 09:18:30 host CRON[2]: (root) CMD (true)\n",
        "[2026-03-29 19:20:37] INFO step 1 loss 3.2\n[2026-03-29 19:20:38] INFO step 2 loss 3.1\n",
        "[Sun Nov 21 09:18:29.123456 2026] [core:notice] [pid 7] AH00094: Command line: 'apache2'\n",
        "[    12.345] (II) NVIDIA(0): Creating default Display subsection\n",
        "2026-03-29T19:20:37Z node-7 kubelet[812]: Syncing pod\n",
    ],
)
def test_a_log_of_other_programs_is_no_evidence(text):
    with pytest.raises(ParseError, match="no line of it is a kernel message"):
        parse(text)


@pytest.mark.parametrize("head", HEADS)
def test_a_healthy_log_behind_any_head_is_a_log(head):
    facts = parse(f"{head}nvidia-nvlink: Nvlink Core is being initialized, major device number 510\n")
    assert {name: count for name, count in facts["counts"].items() if count} == {"driver_loads": 1}


def test_a_nodes_name_before_a_clock_is_no_program():
    facts = parse(f"[    1.0] ok\ngpu-07: 19:20:37 {XID_79}\n")
    assert [event["code"] for event in facts["xids"]] == [79]


def test_carriage_returns_alone_end_lines():
    assert parse(f"[ 1.0] ok\r[ 2.0] {XID_79}\r[ 3.0] ok\r")["counts"]["xids"] == 1


def test_a_needle_far_into_a_long_line_is_not_passed_over():
    facts = parse("[ 1.0] " + "x" * 5000 + f" {XID_79}\n")
    assert [event["list"] for event in facts["unsplit"]] == ["xids"]
    facts = parse("[ 1.0] ok\nNov 21 09:18:29 host app[1]: " + "x" * 5000 + f" {XID_79}\n")
    assert facts["unsplit"] == []


@pytest.mark.parametrize("piece", ["(", "[", "a:", "a ", "日", "{", '"', "<", "1", ".", "NVRM ", "kernel: "])
def test_judging_a_head_takes_time_in_proportion_to_its_length(piece):
    started = time.process_time()
    for _ in range(100):
        kernel_heads.voice(piece * 1000)
        kernel_heads.after_head(piece * 1000)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("journal.json.log", {"xids": 2, "fallen_off_bus": 1, "boots": 2}),
        ("dmesg-J.log", {"soft_lockup": 1, "boots": 1}),
        (
            "heads-of-carriers.log",
            {
                "xids": 2, "fallen_off_bus": 1, "nvme_down": 1, "fs_error": 1, "network_reset": 1, "mlx5": 1,
                "efa_refused": 1, "beyond_end": 1, "unsplit": 1, "driver_loads": 1,
            },
        ),
    ],
)  # fmt: skip
def test_fixtures_of_carriers(name, wanted):
    facts = kernel.parse({"kernel.log": sample(f"kernel/{name}")})
    assert {list_: count for list_, count in facts["counts"].items() if count} == wanted


@pytest.mark.parametrize(
    "line",
    [
        "gpu-07 INFO: task x is fine",
        "2026-03-29 19:20:37 INFO: step 7 NVRM: nothing EXT4-fs error of note",
        "host app[1]: " + "NVRM: " * 300,
        "( [ { < " * 200 + "NVRM: Xid",
        "a " * 900 + "PCIe Bus Error: severity",
    ],
)
def test_lines_that_are_no_message_cost_little(line):
    data = "[ 1.0] ok\n" + (line + "\n") * 2000
    started = time.process_time()
    parse(data)
    assert time.process_time() - started < 3
