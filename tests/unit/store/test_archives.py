"""A bundle that came back as an archive: unpacked by its own limits, and hostile ones refused in one sentence."""

import gzip
import io
import resource
import tarfile
import time

import pytest

from flightline.store.archives import unpacked
from flightline_node.bounds import MAX_JUDGED_FILES
from flightline_node.model import SettingsError

TYPES = {"link": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}


def packed(path, *members, mode="w:gz"):
    """members: (name, bytes), or a TarInfo."""
    with tarfile.open(path, mode) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                entry = tarfile.TarInfo(member[0])
                entry.size = len(member[1])
                archive.addfile(entry, io.BytesIO(member[1]))
    return path


def refused(path, words):
    with pytest.raises(SettingsError, match=words) as error, unpacked(path):
        pass
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mode", ["w:gz", "w"])
@pytest.mark.parametrize("prefix", ["", "./", "gpu-7/"])
def test_a_bundle_s_files_come_out_and_are_gone_at_the_end(tmp_path, mode, prefix):
    path = packed(tmp_path / "b.tar.gz", (f"{prefix}df.txt", b"x"), (f"{prefix}lspci.txt", b"y"), mode=mode)
    with unpacked(path) as directory:
        assert {one.name: one.read_bytes() for one in directory.iterdir()} == {"df.txt": b"x", "lspci.txt": b"y"}
    assert not directory.exists()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "/".join("abcdefghi"), "..", "x\x1b[31m", "x\ny"])
def test_a_name_that_leads_out_is_refused(tmp_path, name):
    refused(packed(tmp_path / "b.tar.gz", (name, b"x")), "leads out of the bundle")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz"]


@pytest.mark.parametrize("kind", TYPES)
def test_links_and_devices_are_refused(tmp_path, kind):
    member = tarfile.TarInfo("df.txt")
    member.type, member.linkname = TYPES[kind], "/etc/passwd"
    refused(packed(tmp_path / "b.tar.gz", member), "is a link or a device")


def test_a_file_twice_is_refused(tmp_path):
    refused(packed(tmp_path / "b.tar.gz", ("df.txt", b"good"), ("./df.txt", b"bad")), "in it twice")


def test_more_members_than_a_bundle_has_are_refused(tmp_path):
    refused(packed(tmp_path / "b.tar.gz", *((f"f{n}", b"") for n in range(MAX_JUDGED_FILES + 1))), "more than 2000")


@pytest.mark.parametrize("headers", [False, True])
def test_a_bomb_is_refused_soon_and_in_little_memory(tmp_path, headers):
    path = tmp_path / "b.tar.gz"
    member = tarfile.TarInfo("df.txt")
    member.size = 8 << 30
    member.type = tarfile.XHDTYPE if headers else tarfile.REGTYPE
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(300):
            out.write(bytes(1 << 20))
    assert path.stat().st_size < 4 << 20
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    refused(path, "too large|unpacks to more|cannot be unpacked")
    assert time.process_time() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000, "KiB"


@pytest.mark.parametrize("content", [b"", b"junk", b"\x1f\x8bjunk", bytes(10240) + b"x"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(content)
    if content == bytes(10240) + b"x":
        with unpacked(path) as directory:
            assert list(directory.iterdir()) == [], "two empty blocks end an archive"
    else:
        refused(path, "cannot be unpacked")


def test_one_that_was_cut_off_is_refused(tmp_path):
    path = packed(tmp_path / "b.tar.gz", ("df.txt", bytes(range(256)) * 4000))
    path.write_bytes(path.read_bytes()[:-2000])
    refused(path, "cannot be unpacked")
