"""What a failed node keeps: the archive, its bounds, and NVIDIA's report. The report's tool is simulated here."""

import stat
import tarfile

import pytest

from flightline_node import answer, inputs, settings
from flightline_node.ask.runner import Node
from flightline_node.model import Finding, Status
from flightline_node.read import bundle as bundles
from flightline_node.tell import evidence

GPU_FAULT = [Finding("row_remap", Status.FAIL, "x")]
HOST_FAULT = [Finding("disk_space", Status.FAIL, "x"), Finding("row_remap", Status.WARN, "x")]


@pytest.fixture
def place(tmp_path):
    """A node's root with the prepared directory, tools of its own, and a bundle."""
    root, tools, files = tmp_path / "root", tmp_path / "tools", tmp_path / "bundle"
    for directory in (root / evidence.DIRECTORY, tools, files):
        directory.mkdir(parents=True)
    (files / "manifest.json").write_text('{"host": "gpu 7/x", "collected_at": "2026-11-21T12:00:00+00:00"}')
    (files / "kernel.log").write_text("first\n" + "line\n" * 50 + "last\n")
    return Node(str(root), (str(tools),)), root / evidence.DIRECTORY, tools, files


def tool(tools, script):
    path = tools / evidence.TOOL
    path.write_text("#!/bin/sh\n# Simulated: takes the arguments of NVIDIA's script and touches no GPU.\n" + script)
    path.chmod(0o755)


WRITES = 'while [ "$1" != --output-file ]; do shift; done; echo report | gzip >"$2.gz"\n'


def keep(place, findings=(), level="standard", **options):
    node, _, _, files = place
    return evidence.keep(node, bundles.load(files), findings, settings.build(level=level, options=options))


def test_the_bundle_is_kept_compressed_and_private(place):
    kept = keep(place)
    archive = place[1] / "bundle-20261121120000-gpu_7_x.tar.gz"
    assert (kept["archive"], kept["bytes"]) == (str(archive), archive.stat().st_size)
    assert stat.S_IMODE(archive.stat().st_mode) & 0o007 == 0
    with tarfile.open(archive) as packed:
        assert packed.getnames() == ["kernel.log", "manifest.json"]
        assert packed.extractfile("kernel.log").read() == (place[3] / "kernel.log").read_bytes()
    assert [path.name for path in place[1].iterdir()] == [archive.name]


def test_of_a_long_file_the_end_is_kept(place, monkeypatch):
    monkeypatch.setattr(evidence, "MAX_FILE_BYTES", 10)
    with tarfile.open(keep(place)["archive"]) as packed:
        assert packed.extractfile("kernel.log").read() == b"line\nlast\n"


def test_only_the_newest_are_kept(place):
    for number in range(8):
        (place[3] / "manifest.json").write_text(f'{{"host": "a", "collected_at": "2026-11-2{number}"}}')
        (place[1] / f"bundle-2026112{number}-a{evidence.REPORT}.gz").write_text("report")
        keep(place)
    names = {path.name for path in place[1].iterdir()}
    wanted = {f"bundle-2026112{number}-a" for number in range(3, 8)}
    assert names == {f"{name}{end}" for name in wanted for end in (evidence.ARCHIVE, evidence.REPORT + ".gz")}


def test_nothing_is_created_that_was_not_prepared(place):
    place[1].rmdir()
    assert "no directory" in keep(place)["note"]
    assert not place[1].exists()


def test_the_site_names_another_directory_or_none(place, tmp_path):
    (tmp_path / "root/srv").mkdir()
    assert keep(place, evidence_dir="/srv")["archive"].startswith(str(tmp_path / "root/srv/bundle-"))
    assert "archive" not in keep(place, evidence_dir="")


def test_a_disk_that_is_nearly_full_is_left_alone(place, monkeypatch):
    monkeypatch.setattr(evidence, "MIN_FREE_BYTES", 1 << 62)
    assert "free" in keep(place)["note"]
    assert list(place[1].iterdir()) == []


def test_a_gpu_fault_brings_nvidias_report(place):
    tool(place[2], WRITES)
    kept = keep(place, GPU_FAULT)
    assert kept["bug_report"] == kept["archive"][: -len(evidence.ARCHIVE)] + evidence.REPORT + ".gz"


@pytest.mark.parametrize(
    ("findings", "level", "wish", "words"),
    [
        (HOST_FAULT, "deep", "auto", "no GPU check failed"),
        (GPU_FAULT, "quick", "auto", "beside a job"),
        (GPU_FAULT, "deep", "never", "wants none"),
    ],
)
def test_when_no_report_is_made(place, findings, level, wish, words):
    tool(place[2], WRITES)
    kept = keep(place, findings, level, bug_report=wish)
    assert words in kept["note"]
    assert "bug_report" not in kept


def test_a_quick_run_makes_one_when_told_to(place):
    tool(place[2], WRITES)
    assert "bug_report" in keep(place, GPU_FAULT, "quick", bug_report="always")


def test_no_tool(place, monkeypatch):
    monkeypatch.setattr("flightline_node.ask.runner.SYSTEM_PATHS", "")
    assert "not installed" in keep(place, GPU_FAULT)["note"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("sleep 600 & wait\n", "did not end within"),
        ("trap '' TERM\nsleep 600 & wait; sleep 600\n", "did not end within"),
        ("exit 3\n", "wrote nothing"),
    ],
)
def test_a_tool_that_hangs_or_writes_nothing_costs_only_its_report(place, monkeypatch, script, words):
    monkeypatch.setattr(evidence, "REPORT_DEADLINE_S", 0.3)
    monkeypatch.setattr(evidence, "GRACE_S", 0.3)
    tool(place[2], script)
    kept = keep(place, GPU_FAULT)
    assert words in kept["note"]
    assert tarfile.is_tarfile(kept["archive"])


def test_a_report_that_is_too_large_is_not_kept(place, monkeypatch):
    monkeypatch.setattr(evidence, "REPORT_MAX_BYTES", 3)
    tool(place[2], WRITES)
    assert "bytes" in keep(place, GPU_FAULT)["note"]
    assert not list(place[1].glob(f"*{evidence.REPORT}*"))


def test_no_report_beside_a_job(place):
    """Where the active tests were not allowed to start, NVIDIA's script is not either."""
    tool(place[2], WRITES)
    busy = [
        *GPU_FAULT,
        Finding("dcgm_diag", Status.UNKNOWN, "not run: GPU 0 is used by pid 7 x", reason="not_run.gpu_busy"),
    ]
    assert keep(place, busy)["note"] == "no bug report: the node is in use (option bug_report: always)"
    assert "bug_report" in keep(place, busy, bug_report="always")
    assert "bug_report" in keep(place, GPU_FAULT)


@pytest.mark.parametrize(("check_mode", "wanted"), [(True, ""), (False, None)])
def test_in_check_mode_nothing_is_kept(monkeypatch, check_mode, wanted):
    seen = {}

    def run(node, expected, settings, *_):
        seen.update(settings.options)
        return {"verdict": "go"}

    monkeypatch.setattr(answer, "run", run)
    answer.answer({**inputs.defaults(), "instance_type": "none", "check_mode": check_mode})
    assert seen.get("evidence_dir") == wanted
