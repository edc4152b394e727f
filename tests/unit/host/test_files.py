"""Who owns what flightline_files writes; the rest stands in tests/unit/library/flightline_files.yml."""

import errno
import os
from pathlib import Path

import pytest

from flightline_host.host import Host
from flightline_host.system import files

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
ENTRY = {
    "state": "file",
    "content": "mine\n",
    "source": "",
    "target": "",
    "owner": "root",
    "group": "root",
    "mode": "",
    "validate": [],
}


def ensure(root, check=False, **entry):
    return files.ensure(Host(root=str(root)), {"files": [{**ENTRY, "path": "/etc/a.conf", **entry}]}, check)


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "etc/a.conf"
    path.parent.mkdir()
    path.write_text("mine\n")
    path.chmod(0o644)
    return path


@needs_root
def test_what_was_given_away_is_taken_back(place, tmp_path):
    os.chown(place, NOBODY, NOBODY)
    done = ensure(tmp_path)
    assert done.before == {"/etc/a.conf": {"owner": NOBODY, "group": NOBODY}}
    assert (place.stat().st_uid, place.stat().st_gid) == (0, 0)
    assert not ensure(tmp_path).changed


@needs_root
def test_an_empty_owner_is_left_as_it_is(place, tmp_path):
    os.chown(place, NOBODY, NOBODY)
    assert not ensure(tmp_path, owner="", group="").changed


def test_no_half_of_a_file_stays_when_the_disk_is_full(place, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        ensure(tmp_path, content="new\n", owner="", group="")
    assert place.read_text() == "mine\n"
    assert [path.name for path in place.parent.iterdir()] == ["a.conf"]


def test_a_new_file_is_never_readable_before_it_has_its_mode(tmp_path, monkeypatch):
    seen = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (seen.append(self.stat().st_mode & 0o777), replace(self, target))[1]
    )
    ensure(tmp_path, mode="0400", owner="", group="")
    assert seen == [0o400]
