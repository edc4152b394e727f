"""What a failed node sends back: its manifest first, the end of long files, and the names of what does not fit."""

import base64
import io
import random
import tarfile

import pytest

from flightline_node.answer import answer
from flightline_node.inputs import defaults
from flightline_node.tell import packing


def opened(encoded):
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(encoded))) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def test_a_bundle_comes_back_with_its_manifest_first(tmp_path):
    for name in ("a.txt", "manifest.json", "kernel.log"):
        (tmp_path / name).write_text(name)
    (tmp_path / "directory").mkdir()
    found = opened(packing.packed(tmp_path))
    assert next(iter(found)) == "manifest.json" and found == {name: name.encode() for name in found} and len(found) == 3


def test_of_a_long_file_the_end_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_FILE_BYTES", 10)
    (tmp_path / "kernel.log").write_text("old old old newest")
    assert opened(packing.packed(tmp_path)) == {"kernel.log": b"old newest"}


def test_what_does_not_fit_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_PACKED_BYTES", 20_000)
    noise = random.Random(1)
    for size in (10, 60_000, 90_000, 120_000):
        (tmp_path / f"{size:06d}.bin").write_bytes(noise.randbytes(size))
    found = opened(packing.packed(tmp_path))
    assert found["LEFT_OUT.txt"].decode().split() == ["090000.bin", "120000.bin"]
    assert len(base64.b64decode(packing.packed(tmp_path))) < 200_000


PARAMS = {**defaults(), "host": "here", "instance_type": "none", "checks": ["memory"], "return_bundle": True}


@pytest.mark.parametrize("bundle_dir", ["", "kept"])
def test_only_a_node_that_is_not_go_sends_its_outputs(tmp_path, monkeypatch, bundle_dir):
    monkeypatch.setattr("flightline_node.node.tempfile.tempdir", str(tmp_path))
    good, empty, kept = tmp_path / "good", tmp_path / "empty", tmp_path / "kept"
    (good / "proc").mkdir(parents=True)
    (good / "proc" / "meminfo").write_text("MemTotal: 2097152000 kB\nMemAvailable: 2000000000 kB\n")
    empty.mkdir()
    params = {**PARAMS, "bundle_dir": str(kept) if bundle_dir else None}
    fine = answer({**params, "root": str(good)})
    assert fine["verdict"] == "go" and "bundle" not in fine
    bad = answer({**params, "root": str(empty)})
    assert bad["verdict"] == "no-go" and "manifest.json" in opened(bad["bundle"])
    assert "bundle" not in answer({**params, "root": str(empty), "return_bundle": False})
    left = {path.name for path in tmp_path.iterdir()} - {"good", "empty"}
    assert left == ({"kept"} if bundle_dir else set()), "nothing stays that was not asked for"
