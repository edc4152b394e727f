"""write_all: three complete files or none, one record in memory at a time."""

import gzip
import json
import os
import tracemalloc
from xml.etree import ElementTree

import pytest

from flightline.report import existing, files, write_all
from tests.unit.report.factory import fleet


def test_the_files_are_written_and_nothing_else(tmp_path):
    report, records = fleet(8, 2)
    paths = write_all(report, records, tmp_path / "deep" / "er")
    assert {kind: path.name for kind, path in paths.items()} == {
        "json": "report.json",
        "junit": "junit.xml",
        "html": "report.html",
        "hosts": "no-go.txt",
        "mpi": "go.mpi",
        "slurm": "go.slurm",
        "ansible": "go.ini",
    }
    assert sorted(os.listdir(tmp_path / "deep" / "er")) == [
        "go.ini",
        "go.mpi",
        "go.slurm",
        "junit.xml",
        "no-go.txt",
        "report.html",
        "report.json",
    ]
    assert len(json.loads(paths["json"].read_text())["nodes"]) == 8
    assert len(paths["hosts"].read_text().splitlines()) == 2
    assert ElementTree.parse(paths["junit"]).getroot().tag == "testsuites"
    assert paths["html"].read_text().rstrip().endswith("</html>")


def test_a_failure_leaves_the_earlier_report_alone_and_no_litter(tmp_path):
    report, records = fleet(8, 2)
    before = {path: path.read_bytes() for path in write_all(report, records, tmp_path).values()}

    def broken():
        yield from records()
        raise OSError("the store went away")

    with pytest.raises(OSError, match="the store went away"):
        write_all(fleet(20, 1)[0], broken, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_are_readable_as_the_umask_says(tmp_path):
    before = os.umask(0o022)
    try:
        paths = write_all(*fleet(2, 0), tmp_path)
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in paths.values()} == {"0o644"}


def test_the_same_run_gives_the_same_bytes(tmp_path):
    first = {kind: path.read_bytes() for kind, path in write_all(*fleet(30, 5), tmp_path / "a").items()}
    again = {kind: path.read_bytes() for kind, path in write_all(*fleet(30, 5), tmp_path / "b").items()}
    assert first == again


def test_records_stream(tmp_path):
    report, records = fleet(600, 5)
    tracemalloc.start()
    try:
        paths = write_all(report, records, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert paths["json"].stat().st_size > 6_000_000
    assert peak < 3_500_000, "the nodes' records sat in memory together"


def test_a_large_fleet_s_json_is_compressed_and_the_same(tmp_path, monkeypatch):
    plain = write_all(*fleet(30, 5), tmp_path / "plain")
    monkeypatch.setattr(files, "MOST_PLAIN_NODES", 29)
    paths = write_all(*fleet(30, 5), tmp_path / "large")
    assert paths["json"].name == "report.json.gz" and existing(tmp_path / "large") == paths
    assert gzip.decompress(paths["json"].read_bytes()) == plain["json"].read_bytes()
    assert 'href="report.json.gz"' in paths["html"].read_text()
    again = write_all(*fleet(30, 5), tmp_path / "again")
    assert paths["json"].read_bytes() == again["json"].read_bytes()


def test_a_run_of_another_size_leaves_no_other_json_behind(tmp_path, monkeypatch):
    write_all(*fleet(30, 5), tmp_path)
    monkeypatch.setattr(files, "MOST_PLAIN_NODES", 29)
    write_all(*fleet(30, 5), tmp_path)
    assert not (tmp_path / "report.json").exists()
    monkeypatch.undo()
    assert write_all(*fleet(30, 5), tmp_path)["json"].name == "report.json"
    assert not (tmp_path / "report.json.gz").exists()
