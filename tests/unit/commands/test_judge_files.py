"""`flightline judge` accounts for every file of a bundle: nothing is go beside a file that nobody read.

All outputs are simulated (the demo fleet's, and lines written by hand).
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable

import pytest

from flightline.fleet.checks import advice_of
from flightline_node.ask.probes import PROBES
from flightline_node.bounds import MAX_JUDGED_FILES
from flightline_node.read import packed
from flightline_node.read.accounting import ACCOUNTING
from flightline_node.read.kinds import KINDS, kind_of
from flightline_node.read.parsers import PARSERS
from tests.corpus.material import demo
from tests.harness import sample, samples
from tests.unit.made import flightline

NODE = dict(demo("p5.48xlarge"))
STAMP = b"2026-11-21T08:00:01+0000 gpu-7 kernel: "
CLEAN = STAMP + b"Linux version 6.8.0-1018-aws (buildd@host) #20-Ubuntu SMP\n"
LOST = CLEAN + STAMP + b"NVRM: Xid (PCI:0000:86:00): 79, pid=4242, GPU has fallen off the bus.\n"
CHECK = "bundle_files"


@pytest.fixture
def bundle(tmp_path):
    directory = tmp_path / "gpu-7"
    directory.mkdir()
    (directory / "nvidia-smi.xml").write_bytes(NODE["nvidia-smi.xml"])
    return directory


@pytest.fixture
def call(capsys):
    return lambda *words: flightline(capsys, "judge", *words, "--instance-type", "p5.48xlarge")


@pytest.fixture
def judged(call):
    def _judged(path, *arguments):
        status, out, err = call(path, "--json", *arguments)
        assert status in (0, 1), err
        answer = json.loads(out)
        assert answer["verdict"] == ("no-go" if status else "go")
        return answer

    return _judged


def of(answer, name):
    (found,) = [item for item in answer["files"] if item["file"] == name]
    return found


def about(answer, check=CHECK):
    return [item["message"] for item in answer["findings"] if item["check"] == check and item["status"] != "SKIP"]


def test_a_bundle_of_known_files_is_read_and_go(judged, bundle):
    answer = judged(bundle)
    assert answer["verdict"] == "go" and about(answer) == []
    assert answer["files"] == [
        {"file": "nvidia-smi.xml", "state": "read", "as": "nvidia-smi.xml", "why": "read by nvidia_smi"}
    ]


@pytest.mark.parametrize(
    "name",
    ["kernel.log.gz", "kernel.log.xz", "kernel.log.bz2", "Kernel.log", "KERNEL.LOG.GZ", "host1/kernel.log"],
)
def test_a_packed_file_another_case_and_one_folder_are_read(judged, bundle, name):
    packers: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
    pack = packers.get(name.rpartition(".")[2].lower(), bytes)
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_bytes(pack(LOST))
    answer = judged(bundle)
    assert any("79" in message for message in about(answer, "xid")), "the Xid that the file holds"
    assert of(answer, name)["state"] == "read" and of(answer, name)["as"] == "kernel.log"
    assert answer["verdict"] == "no-go" and about(answer) == []


def zst(path, content):
    subprocess.run(("zstd", "-q", "-o", path), input=content, check=True)
    return path


@pytest.mark.skipif(packed.zstd_tool() is None, reason="no zstd program on the PATH")
def test_a_zst_is_read_by_the_program_that_is_there(judged, bundle):
    zst(bundle / "kernel.log.zst", LOST)
    answer = judged(bundle)
    assert about(answer, "xid") and of(answer, "kernel.log.zst")["state"] == "read"


@pytest.mark.skipif(packed.zstd_tool() is None, reason="no zstd program on the PATH")
def test_a_zst_that_is_cut_off_is_unreadable(judged, bundle):
    path = zst(bundle / "kernel.log.zst", os.urandom(40_000).hex().encode())
    path.write_bytes(path.read_bytes()[:-5000])
    assert of(judged(bundle), "kernel.log.zst")["state"] == "unreadable"


def test_a_zst_without_the_program_is_unknown_with_the_command(judged, bundle, monkeypatch):
    monkeypatch.setattr(packed, "zstd_tool", lambda: None)
    monkeypatch.setattr(packed, "ZSTD_MODULE", "no_such_module")
    (bundle / "kernel.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 40)
    answer = judged(bundle)
    (message,) = about(answer)
    assert answer["verdict"] == "no-go" and "zstd -d kernel.log.zst" in message


MISNAMED = {
    "dmesg.log": (LOST, "a kernel log", "kernel.log"),
    "kernel.log.1": (CLEAN, "a kernel log", "kernel.log"),
    "kern.log": (CLEAN, "a kernel log", "kernel.log"),
    "messages": (LOST, "a kernel log", "kernel.log"),
    "dmesg": (b"[   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n", "a kernel log", "kernel.log"),
    ".kernel.log.swx": (LOST, "a kernel log", "kernel.log"),
    "old/deep/kernel.log": (LOST, "two folders", "kernel.log"),
    "smi": (NODE["nvidia-smi.xml"], "nvidia-smi -q -x", "nvidia-smi.xml"),
    "smi.out": (sample("nvidia_smi/b200-580.txt"), "nvidia-smi -q", "nvidia-smi.txt"),
    "allreduce": (sample("nccl_tests/h100-8gpu-all_reduce.log"), "nccl-tests", "nccl-<collective>.log"),
    "slurm-17.out": (sample("nccl_debug/p4d-2node-efa.log"), "NCCL", "nccl-debug.log"),
    "fi": (sample("fi_info/p5-32-devices.txt"), "fi_info", "fi-info.txt"),
    "diag": (sample("dcgm_diag/3x-pass.json"), "dcgmi diag", "dcgm-diag.json"),
    "pci": (sample("lspci/p5-D-nn.txt"), "lspci", "lspci.txt"),
    "syslog": (bytes(20_000) + LOST, "a kernel log", "kernel.log"),
    "dmesg.gz": (gzip.compress(LOST), "a kernel log", "kernel.log"),
    "notes.txt": (b"the node was fine on Monday\n", "no known kind", "a known name"),
    "nvidia_smi.xml": (b"<x/>", "no known kind", "nvidia-smi.xml"),
    "windows.log": (LOST.decode().encode("utf-16"), "a kernel log", "kernel.log"),
    "system.journal": (b"LPKSHHRH" + bytes(100), "journal", "kernel.log"),
    "logs.tar": (b"", "an archive", "unpack"),
}


@pytest.mark.parametrize("name", MISNAMED)
def test_what_looks_like_output_and_has_no_known_name_is_unknown_with_the_name_wanted(judged, bundle, name):
    content, looks, wanted = MISNAMED[name]
    if name == "logs.tar":
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("kernel.log"))
        content = made.getvalue()
    (bundle / name).parent.mkdir(exist_ok=True, parents=True)
    (bundle / name).write_bytes(content)
    answer = judged(bundle)
    assert answer["verdict"] == "no-go"
    (message,) = about(answer)
    assert message.startswith(f"{name}: ") and looks in message and wanted in message
    assert of(answer, name)["state"] == "misnamed"


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)


UNREADABLE = {
    "dangling": ("kernel.log", lambda path: path.symlink_to("nowhere.log"), "leads nowhere"),
    "loop": ("kernel.log", lambda path: path.symlink_to("kernel.log"), "leads nowhere"),
    "folder": ("kernel.log", lambda path: path.mkdir(), "a folder"),
    "folder-gz": ("Kernel.log.gz", lambda path: path.mkdir(), "a folder"),
    "fifo": ("kernel.log", _fifo, "no plain file"),
    "socket": ("kernel.log", _socket, "no plain file"),
    "device": ("kernel.log", lambda path: path.symlink_to("/dev/zero"), "leads out of the bundle"),
    "outside": ("kernel.log", lambda path: path.symlink_to("/etc/hostname"), "leads out of the bundle"),
    "cut gz": ("kernel.log.gz", lambda path: path.write_bytes(gzip.compress(os.urandom(9000))[:-900]), "unpacked"),
    "junk gz": ("kernel.log.gz", lambda path: path.write_bytes(b"\x1f\x8bjunk"), "unpacked"),
    "junk xz": ("kernel.log.xz", lambda path: path.write_bytes(b"\xfd7zXZ\x00junk"), "unpacked"),
    "empty": ("kernel.log", lambda path: path.write_bytes(b""), "empty"),
    "empty gz": ("kernel.log.gz", lambda path: path.write_bytes(gzip.compress(b"")), "empty"),
    "binary": ("kernel.log", lambda path: path.write_bytes(bytes(range(256)) * 40), "binary"),
    "manifest": ("manifest.json", lambda path: path.symlink_to("gone.json"), "leads nowhere"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_known_file_that_cannot_be_read_blocks_with_its_reason(judged, bundle, case):
    name, make, words = UNREADABLE[case]
    make(bundle / name)
    answer = judged(bundle)
    assert answer["verdict"] == "no-go"
    found = of(answer, name)
    assert found["state"] == "unreadable" and words in found["why"]
    blocking = [item["message"] for item in answer["findings"] if item["status"] in ("UNKNOWN", "FAIL")]
    assert any(words in message for message in blocking)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_and_a_folder_that_may_not_be_read_block(judged, bundle):
    (bundle / "kernel.log").write_bytes(LOST)
    (bundle / "kernel.log").chmod(0)
    (bundle / "more").mkdir(mode=0)
    answer = judged(bundle)
    assert (of(answer, "kernel.log")["state"], of(answer, "more")["state"]) == ("unreadable", "unreadable")
    assert len(about(answer)) == 2
    (bundle / "more").chmod(0o700)


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_a_bomb_is_too_large_and_costs_neither_memory_nor_time(judged, bundle, suffix, pack):
    (bundle / f"kernel.log.{suffix}").write_bytes(pack(bytes(200 << 20)))
    began = time.process_time()
    answer = judged(bundle)
    assert time.process_time() - began < 20
    assert "too large" in of(answer, f"kernel.log.{suffix}")["why"] and answer["verdict"] == "no-go"


def test_files_that_hold_no_output_are_named_and_do_not_block(judged, bundle):
    names = {
        "README.md": b"NVRM: Xid 79 is what we look for\n",
        "rack.png": b"\x89PNG\r\n\x1a\n" + bytes(50),
        "core.4242": b"\x7fELF" + bytes(200),
        "nvidia-bug-report.log.gz": gzip.compress(b"Start of NVIDIA bug report log file\n"),
        "runs.sqlite": b"SQLite format 3\x00" + bytes(90),
        ".DS_Store": b"\x00\x00\x00\x01Bud1",
        "empty.log": b"",
        "collect.sh": b"#!/bin/sh\nnvidia-smi -q -x > nvidia-smi.xml\n",
    }
    for name, content in names.items():
        (bundle / name).write_bytes(content)
    _fifo(bundle / "pipe")
    _socket(bundle / "agent.sock")
    (bundle / "nothing in it").mkdir()
    answer = judged(bundle)
    assert (answer["verdict"], about(answer)) == ("go", [])
    left = {item["file"]: item["why"] for item in answer["files"] if item["state"] == "not read"}
    assert set(left) == {*names, "pipe", "agent.sock"} and all(left.values())


def test_a_broken_file_that_no_check_answered_for_blocks_and_one_that_is_not_for_this_type_does_not(judged, bundle):
    (bundle / "kernel.log").write_bytes(bytes(range(256)) * 40)
    (bundle / "neuron-ls.json").write_bytes(b"{}")
    answer = judged(bundle, "--check", "gpu_memory")
    assert answer["verdict"] == "no-go" and [message.split(":")[0] for message in about(answer)] == [
        "kernel.log",
        "neuron-ls.json",
    ]
    answer = judged(bundle)
    assert about(answer) == [] and of(answer, "neuron-ls.json")["state"] == "unreadable"
    assert answer["verdict"] == "no-go" and about(answer, "xid")


def test_outputs_of_several_hosts_are_not_judged_as_one(judged, bundle):
    for host, file in (("host1", "kernel.log"), ("host2", "df.txt")):
        (bundle / host).mkdir()
        (bundle / host / file).write_bytes(NODE[file])
    answer = judged(bundle)
    assert answer["verdict"] == "no-go" and len(about(answer)) == 2
    assert all("judge each alone" in message for message in about(answer))
    assert "kernel" not in answer["facts"] and "df" not in answer["facts"]


def test_two_files_for_one_name_are_told(judged, bundle):
    (bundle / "kernel.log").write_bytes(CLEAN)
    (bundle / "kernel.log.gz").write_bytes(gzip.compress(LOST))
    (bundle / "nvidia-smi.txt").write_bytes(sample("nvidia_smi/b200-580.txt"))
    answer = judged(bundle)
    assert of(answer, "kernel.log")["state"] == "read"
    assert of(answer, "kernel.log.gz")["state"] == "misnamed" and of(answer, "nvidia-smi.txt")["state"] == "misnamed"
    assert "nvidia-smi.xml" in of(answer, "nvidia-smi.txt")["why"] and answer["verdict"] == "no-go"


def test_a_second_file_that_a_parser_leaves_aside_is_told(judged, bundle):
    (bundle / "fabricmanager.log").write_bytes(sample("fabric_log/b200-configured.txt"))
    (bundle / "nvlsm.log").write_bytes(sample("fabric_log/b200-no-bridge.txt"))
    answer = judged(bundle)
    assert of(answer, "nvlsm.log")["state"] == "misnamed" and answer["verdict"] == "no-go"


def test_a_link_within_the_bundle_is_read_and_its_target_not_held_against_it(judged, bundle):
    (bundle / "dmesg.log").write_bytes(CLEAN)
    (bundle / "kernel.log").symlink_to("dmesg.log")
    (bundle / "self").symlink_to(".")
    answer = judged(bundle)
    assert answer["verdict"] == "go" and about(answer) == []
    assert of(answer, "dmesg.log")["state"] == "read" and of(answer, "self")["state"] == "not read"


def test_a_link_to_a_folder_elsewhere_blocks(judged, bundle, tmp_path):
    (tmp_path / "host1").mkdir()
    (bundle / "host1").symlink_to(tmp_path / "host1")
    assert of(judged(bundle), "host1")["state"] == "unreadable"


def test_a_file_that_the_manifest_lists_and_that_is_gone_blocks(judged, bundle):
    probes = [
        {"id": "kernel-log", "argv": ["dmesg"], "rc": 0, "file": "kernel.log"},
        {"id": "numactl", "argv": ["numactl"], "rc": 127, "note": "numactl: not installed", "file": "numactl.txt"},
        {"id": "nvidia-smi", "argv": ["nvidia-smi"], "rc": 0, "file": "nvidia-smi.xml"},
    ]
    (bundle / "manifest.json").write_text(json.dumps({"probes": probes}))
    answer = judged(bundle)
    assert answer["verdict"] == "no-go"
    (message,) = about(answer)
    assert message.startswith("kernel.log: ") and "kernel-log" in message and "missing" in message
    assert of(answer, "numactl.txt")["state"] == "unreadable" and of(answer, "manifest.json")["state"] == "read"


@pytest.mark.parametrize("top", ["", "gpu-7/", "gpu-7/host1/"])
def test_an_archive_is_accounted_for_the_same(judged, tmp_path, top):
    path = tmp_path / "gpu-7.tar.gz"
    files = {"nvidia-smi.xml": NODE["nvidia-smi.xml"], "kernel.log.gz": gzip.compress(LOST), "dmesg.log": CLEAN}
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        folder = tarfile.TarInfo(top + "lspci.txt")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    answer = judged(path)
    inner = "host1/" if top.count("/") > 1 else ""
    states = {item["file"]: item["state"] for item in answer["files"]}
    assert {name.removeprefix(inner): state for name, state in states.items()} == {
        "nvidia-smi.xml": "read", "kernel.log.gz": "read", "dmesg.log": "misnamed", "lspci.txt": "unreadable",
    }  # fmt: skip
    assert about(answer, "xid") and len(about(answer)) == 2


@pytest.mark.parametrize("mode", ["w:xz", "w:bz2"])
def test_an_archive_packed_otherwise_is_unpacked_too(judged, bundle, mode):
    path = bundle.parent / "node.tar.packed"
    with tarfile.open(path, mode) as archive:
        archive.add(bundle, "gpu-7")
    assert judged(path)["verdict"] == "go"


def test_an_archive_of_two_hosts_says_to_judge_each_alone(judged, bundle):
    path = bundle.parent / "two.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(bundle, "gpu-7")
        archive.add(bundle, "gpu-8")
    assert any("judge each alone" in message for message in about(judged(path)))


def test_a_hundred_thousand_files_are_refused_in_bounded_time(call, bundle):
    for number in range(100_000):
        (bundle / f"{number}.log").touch()
    began = time.monotonic()
    status, out, err = call(bundle)
    assert time.monotonic() - began < 10
    assert (status, out) == (2, "") and f"more than {MAX_JUDGED_FILES} files" in err


def test_hundreds_of_unknown_logs_take_seconds_and_a_page(call, bundle):
    for number in range(300):
        (bundle / f"{number}.log").write_bytes(b"a line of a program that nobody knows\n" * 20_000)
    began = time.process_time()
    status, out, _ = call(bundle)
    assert time.process_time() - began < 300 * 60 / MAX_JUDGED_FILES, "a minute for as many as a bundle may have"
    assert status == 1 and len(out.splitlines()) <= 40


def test_names_that_steer_a_terminal_are_printed_safely(call, judged, bundle):
    (bundle / "\x1b[2Jdmesg\n.log").write_bytes(LOST)
    (bundle / os.fsdecode(b"\xff\xfe.log")).write_bytes(LOST)
    status, out, _ = call(bundle)
    assert status == 1 and "\x1b" not in out and out.isprintable() is False
    assert all(line.isprintable() for line in out.splitlines())
    names = [item["file"] for item in judged(bundle)["files"]]
    assert "\\x1b[2Jdmesg\\n.log" in names and all(name.isprintable() for name in names)


def test_a_file_that_grows_is_read_to_where_it_was(judged, bundle):
    path, done = bundle / "kernel.log", threading.Event()
    path.write_bytes(LOST)

    def grow():
        with path.open("ab") as log:
            while not done.is_set():
                log.write(STAMP + b"usb 1-1: new device\n")
                log.flush()
                time.sleep(0.001)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert about(judged(bundle), "xid")
    finally:
        done.set()
        writer.join()


def test_the_check_explains_itself_like_any_other():
    assert ACCOUNTING == CHECK and advice_of(CHECK)


def test_every_known_name_has_a_parser_and_every_parser_a_kind():
    names = {file for parser in PARSERS.values() for file in parser.files}
    assert {probe.file for probe in PROBES} <= names
    of_kinds = {kind.file for kind in KINDS}
    assert of_kinds - names == {"manifest.json", "nccl-<collective>.log"}
    logs = {"nccl_tests"}
    assert [name for name, parser in PARSERS.items() if name not in logs and not of_kinds & set(parser.files)] == []


def _parsers_of(file):
    return {name for name, parser in PARSERS.items() if file.replace("<collective>", "all_reduce") in parser.files}


@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "p6-b200.48xlarge", "p4d.24xlarge"])
def test_every_output_of_a_node_is_known_by_its_content(instance_type):
    found = {name: kind_of(content) for name, content in demo(instance_type) if len(content) > 2}
    wrong = [name for name, kind in found.items() if not kind or not _parsers_of(kind.file) & _parsers_of(name)]
    assert wrong == []


FOLDERS = {"lnet": "lnetctl", "lscpu": "cpuinfo", "systemctl": "services"}
OTHERS = {"proc", "messages", "recorded"}
"""Fixtures of several parsers at once."""


def test_fixtures_of_each_tool_are_known_by_their_content():
    missed = []
    for path in samples():
        folder = path.split("/")[0]
        kind = kind_of(sample(path))
        if (
            folder not in OTHERS
            and len(sample(path)) > 400
            and (not kind or FOLDERS.get(folder, folder) not in _parsers_of(kind.file))
        ):
            missed.append((path, kind and kind.file))
    assert missed == []


@pytest.mark.parametrize(
    ("recorded", "name", "verdict", "says"),
    [
        ("h100-kernel.log", "from-the-ticket.txt", "go", {"xid": "WARN", "sxid": "PASS"}),
        ("h200-nvidia-smi.txt", "smi.out", "go", {"ecc_mode": "PASS"}),
        ("h100-ras.txt", "slurm-77.out", "go", {"nccl_transport": "PASS"}),
        ("h100-nvidia-smi.xml", "query", "go", {"ecc_uncorrected": "PASS"}),
        ("h100-nccl-all_gather.log", "table", "no-go", {"nccl_correctness": "PASS", "nccl_busbw": "SKIP"}),
    ],
)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_single_file_is_judged_as_what_it_is(capsys, tmp_path, recorded, name, verdict, says, packing):
    path, content = tmp_path / (name + packing), sample(f"recorded/{recorded}")
    path.write_bytes(gzip.compress(content) if packing else content)
    status, out, err = flightline(capsys, "judge", path, "--instance-type", "none", "--json")
    assert status in (0, 1), err
    answer = json.loads(out)
    found = {finding["check"]: finding["status"] for finding in reversed(answer["findings"])}
    assert {check: found[check] for check in says} == says
    assert (answer["verdict"] == verdict) or name == "table"
    assert ACCOUNTING not in found


def test_a_single_file_of_no_known_kind_is_no_go(capsys, tmp_path):
    path = tmp_path / "notes.log"
    path.write_text("all went well, said the night shift\n")
    status, out, _ = flightline(capsys, "judge", path, "--instance-type", "none", "--json")
    assert status == 1 and [
        finding["check"] for finding in json.loads(out)["findings"] if finding["status"] == "UNKNOWN"
    ] == [CHECK]


def test_a_single_file_that_cannot_be_unpacked_is_named(capsys, tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(CLEAN)[:20])
    status, out, _ = flightline(capsys, "judge", path, "--instance-type", "none")
    assert status == 1 and "log.gz: it cannot be unpacked" in out


def test_another_archive_alone_is_refused(capsys, tmp_path):
    path = tmp_path / "bundle"
    path.write_bytes(b"PK\x03\x04" + bytes(600))
    status, _, err = flightline(capsys, "judge", path, "--instance-type", "none")
    assert status == 2 and "wanted a tar archive of a bundle" in err
