"""Every file of a directory that somebody brought: what stands under each name, and why it cannot be read.

Nothing is opened before it is known to be a plain file: a FIFO would hold the reader, a device never ends.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Iterator, List, Tuple

from ..bounds import MAX_JUDGED_FILES
from ..model import SettingsError

MOST_FOLDERS = 16
"""One in another; deeper ones are told as unreadable."""
SHOWN_CHARS = 200


@dataclass(frozen=True)
class Entry:
    """One name in a bundle. path: where it is; folders: those it stands in; trouble: why it cannot be read, or ''.

    special: no plain file and no folder, so that there is nothing in it to be read.
    """

    path: Path
    folders: Tuple[str, ...]
    trouble: str = ""
    special: bool = False
    folder: bool = False
    same: Tuple[int, int] = (0, 0)
    """Device and inode: two names of one file have the same."""

    @property
    def name(self) -> str:
        """Its own name, without the folders."""
        return self.path.name

    @property
    def shown(self) -> str:
        """Folders and name on one line, with nothing that steers a terminal."""
        return printable("/".join((*self.folders, self.name)))


def printable(name: str) -> str:
    """A name with escapes for what cannot be printed; of a very long one the beginning."""
    safe = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return safe if len(safe) <= SHOWN_CHARS else safe[:SHOWN_CHARS] + "..."


def listing(directory: Path) -> List[Entry]:
    """Every file below a directory, and each folder that has something to be told of, in the order of their names.

    Raises SettingsError when there are more than a bundle can have.
    """
    try:
        walk = _walk(directory, os.path.realpath(directory), ())
        found = list(islice(walk, MAX_JUDGED_FILES + 1))
    except OSError as error:
        raise SettingsError(
            f"{directory}: saw what cannot be read ({error.strerror}), wanted a directory of tool outputs"
        ) from error
    if len(found) > MAX_JUDGED_FILES:
        raise SettingsError(
            f"{directory}: saw more than {MAX_JUDGED_FILES} files, wanted one node's outputs: some dozen; "
            "do: judge a directory that holds nothing else"
        )
    return sorted(found, key=lambda entry: (entry.folders, entry.name))


def _walk(directory: Path, root: str, folders: Tuple[str, ...]) -> Iterator[Entry]:
    with os.scandir(directory) as names:
        for item in names:
            path = Path(item.path)
            entry = _look(path, root, folders)
            yield entry
            if entry.folder and not entry.trouble:
                yield from _inside(path, root, (*folders, item.name))


def _inside(path: Path, root: str, folders: Tuple[str, ...]) -> Iterator[Entry]:
    if len(folders) > MOST_FOLDERS:
        yield Entry(path, folders[:-1], "folders in folders, deeper than anybody looks", folder=True)
        return
    try:
        yield from _walk(path, root, folders)
    except OSError as error:
        yield Entry(path, folders[:-1], f"a folder that cannot be read ({error.strerror})", folder=True)


def _look(path: Path, root: str, folders: Tuple[str, ...]) -> Entry:
    try:
        status = path.stat()
    except OSError as error:
        lost = error.errno in (errno.ENOENT, errno.ELOOP)
        return Entry(path, folders, "a link that leads nowhere" if lost else str(error.strerror))
    same, real, link = (status.st_dev, status.st_ino), os.path.realpath(path), path.is_symlink()
    folder, plain = stat.S_ISDIR(status.st_mode), stat.S_ISREG(status.st_mode)
    if link and real != root and not real.startswith(root.rstrip("/") + "/"):
        return Entry(path, folders, f"a link that leads out of the bundle, to {printable(real)}", folder=folder)
    if link and folder:
        return Entry(path, folders, "a link to a folder of the bundle", special=True)
    if folder:
        return Entry(path, folders, folder=True, same=same)
    if not plain:
        return Entry(path, folders, "no plain file", special=True)
    readable = os.access(path, os.R_OK)
    return Entry(path, folders, "" if readable else "permission denied", same=same)
