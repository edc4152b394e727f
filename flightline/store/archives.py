"""Unpack a bundle that came back from a node: nothing in it is trusted, not its names, kinds or sizes."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from flightline_node.bounds import MAX_JUDGED_FILES as MAX_MEMBERS
from flightline_node.bounds import MAX_UNPACKED_BYTES as MAX_TOTAL_BYTES
from flightline_node.bounds import MAX_UNPACKED_FILE_BYTES as MAX_FILE_BYTES
from flightline_node.model import SettingsError
from flightline_node.read import kinds, packed
from flightline_node.read.accounting import look

MAX_DEPTH = 8
"""Folders in folders: what lies deeper than a bundle's files do is told of when it is judged."""

BLOCK_BYTES = 1 << 20
HEADER_BYTES = 1536
"""Of one member in a tar archive: its header, and what fills its last block."""


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A directory with the files and folders of a tar archive (packed or not), gone at the end.

    Where everything lies in one folder, as when a directory was packed by hand, it is that folder.

    Raises SettingsError, before or while unpacking, for what is no archive, is cut off, is larger than a bundle can
    be, or has anything but plain files under plain names in it.
    """
    with TemporaryDirectory(prefix="flightline-bundle-") as name:
        try:
            # As a stream: no member is looked at before those in front of it were accepted.
            with packed.opened(path) as raw, tarfile.open(fileobj=_Limited(raw, path), mode="r|") as archive:
                _extract(archive, Path(name), path)
        except (tarfile.TarError, *packed.DAMAGED, ValueError) as error:
            raise SettingsError(
                f"{path}: saw that it cannot be unpacked ({error}), wanted a tar archive of a bundle, as .tar.gz"
            ) from error
        yield _top(Path(name))


def is_archive(path: Path) -> bool:
    """Does a file hold others, by its name or by what it begins with, packed or not?"""
    if ".tar" in path.suffixes or path.suffix == ".tgz":
        return True
    try:
        return kinds.is_archive(look(path))
    except OSError:
        return False


@contextmanager
def alone(path: Path, name: str) -> Iterator[Path]:
    """A directory that holds a copy of one file under a name, and nothing else; gone at the end."""
    # No link: a bundle's file that leads out of its bundle is refused.
    with TemporaryDirectory(prefix="flightline-bundle-") as directory:
        shutil.copyfile(path, Path(directory) / name)
        yield Path(directory)


def _top(directory: Path) -> Path:
    inside = list(directory.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else directory


class _Limited(io.RawIOBase):
    """Ends the reading of what unpacks to more than a bundle, also within tar's own headers."""

    def __init__(self, raw: IO[bytes], path: Path) -> None:
        self.raw, self.path = raw, path
        self.left = MAX_TOTAL_BYTES + MAX_MEMBERS * HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise SettingsError(
                f"{self.path}: saw that it unpacks to more than {MAX_TOTAL_BYTES >> 20} MiB, wanted a bundle"
            )
        return data


def _extract(archive: tarfile.TarFile, directory: Path, path: Path) -> None:
    total = 0
    for number, member in enumerate(archive, 1):
        if number > MAX_MEMBERS:
            raise SettingsError(f"{path}: saw more than {MAX_MEMBERS} members, wanted a bundle: some dozen files")
        target = directory / _name(member, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            target.mkdir(exist_ok=True)
            continue
        total += member.size
        if member.size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
            most = f"{MAX_FILE_BYTES >> 20} MiB a file and {MAX_TOTAL_BYTES >> 20} MiB in all"
            raise SettingsError(f"{path}: saw that {_shown(member.name)} is too large, wanted at most {most}")
        source = archive.extractfile(member)
        if source is None or target.exists():
            raise SettingsError(
                f"{path}: saw that {_shown(member.name)} is in it twice or is no plain file, wanted plain files"
            )
        with target.open("xb") as out:
            _copy(source, out)


def _name(member: tarfile.TarInfo, path: Path) -> PurePosixPath:
    """The file's name below the directory. Raises SettingsError for what could lead anywhere else."""
    if not member.isreg() and not member.isdir():
        raise SettingsError(f"{path}: saw {_shown(member.name)}, which is a link or a device, wanted plain files only")
    parts = [part for part in PurePosixPath(member.name).parts if part != "."]
    plain = (parts or member.isdir()) and len(parts) <= MAX_DEPTH and not member.name.startswith("/")
    if not plain or ".." in parts or "\0" in member.name or not all(part.isprintable() for part in parts):
        raise SettingsError(f"{path}: saw {_shown(member.name)}, which leads out of the bundle, wanted plain names")
    return PurePosixPath(*parts)


def _copy(source: IO[bytes], out: IO[bytes]) -> None:
    for block in iter(lambda: source.read(BLOCK_BYTES), b""):
        out.write(block)


def _shown(name: str) -> str:
    return ascii(name[:100])
