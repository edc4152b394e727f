"""The page of one node: what an operator needs first stands first, and it never has more than 40 lines."""

import io

from flightline.console import Console
from flightline.fleet.result import NodeRow
from flightline.report.one_node import NodePage
from flightline_node.model import Status, Verdict
from flightline_node.read.accounting import MISNAMED, NOT_READ, READ, BundleFile

from .factory import finding


def page(findings, files=(), verdict=Verdict.NO_GO):
    out = io.StringIO()
    row = NodeRow("gpu-7", verdict, Status.FAIL, instance_type="p5.48xlarge", findings=list(findings))
    NodePage(row, ["p5.48xlarge", "./gpu-7"], files, Console(file=out, width=80)).print()
    text = out.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    return text


def bad(check, message, remedy="REBOOT", status="FAIL", **rest):
    return finding(check=check, status=status, message=message, remedy=remedy, **rest)


LOST = (
    bad("gpu_lost", "0000:86:00.0: a GPU is lost", device={"pci": "0000:86:00.0"}, reason="lost"),
    bad("xid", "Xid 79 on 0000:86:00.0", device={"pci": "0000:86:00.0"}, reason="xid.79"),
    bad("gpu_count", "7 of 8 GPUs", measured=7, expected=8, unit="GPUs", reason="too_few"),
    *(
        bad(
            f"check_{n}",
            "could not be measured: df.txt: empty output",
            "INVESTIGATE",
            "UNKNOWN",
            reason="unreadable.df",
        )
        for n in range(9)
    ),
    *(finding(check=f"good_{n}") for n in range(30)),
)
FILES = [
    BundleFile("dmesg.log", MISNAMED, "kernel.log", "looks like a kernel log; wanted kernel.log", True),
    BundleFile("nvidia-smi.xml", READ, "nvidia-smi.xml", "read by nvidia_smi"),
    BundleFile("README.md", NOT_READ, "", "no tool's output by its name"),
]


def test_verdict_first_then_root_causes_then_what_blocks_then_what_was_not_read_then_counts():
    text = page(LOST, FILES)
    lines = text.splitlines()
    assert lines[0].startswith(" NO-GO  gpu-7: 2 root causes, 12 blocking findings")
    order = ["NO-GO", "Root causes", "gpu_lost: ", "What to do", "Drain the node", "Blocking", "xid: ", "Not read"]
    order += ["dmesg.log: looks like a kernel log; wanted kernel.log", "README.md", "30 PASS", "1 of 3 files read"]
    at = [text.index(words) for words in order]
    assert at == sorted(at)
    assert "check_1, check_2, check_3 and 5 more: df.txt: empty output" in text


def test_the_worst_node_has_forty_lines_at_most():
    many = [
        bad(f"check_{n}", f"{chr(97 + n % 26) * 9} word " * 40, ("REPLACE", "REBOOT", "FIX_CONFIG")[n % 3])
        for n in range(200)
    ]
    warnings = [bad(f"warn_{n}", "quite slow " * 30, status="WARN") for n in range(30)]
    files = [BundleFile(f"{'long' * 40}{n}.log", MISNAMED, "", "why " * 60, n % 2 == 0) for n in range(500)]
    unknown = [bad("bundle_files", f"{one.file}: {one.why}", "FIX_CONFIG", "UNKNOWN") for one in files[:50]]
    text = page([*many, *LOST, *warnings, *unknown], files)
    assert 30 < len(text.splitlines()) <= 40


def test_a_go_is_a_few_lines_with_its_warnings():
    text = page([finding(), bad("load", "load 2.3 on 2 CPUs", "INVESTIGATE", "WARN")], FILES[1:2], Verdict.GO)
    assert text.startswith(" GO  gpu-7: nothing blocks") and "load 2.3 on 2 CPUs" in text
    assert "Root causes" not in text and len(text.splitlines()) < 10


def test_a_bundle_of_which_nothing_could_be_judged_says_so():
    assert "nothing in the bundle could be judged" in page([bad("df", "not collected", "NONE", "SKIP")])
