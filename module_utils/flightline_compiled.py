"""Let Python keep the compiled node library between runs on a node.

Ansible sends a module as one archive of sources, which Python compiles on every run; for a library of this
size that takes longer than all probes together. The sources are kept once per version in a private directory
of the user, where Python caches what it compiles as for any installed package. Whenever that cannot be done
(no home, full disk, foreign directory), the archive is used as it is.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from typing import List

PACKAGE = "flightline_node"
BASE = os.path.join("~", ".ansible", "flightline")
STALE_AFTER_S = 7 * 24 * 3600


def use(search_path: List[str]) -> None:
    """Put the kept sources in front of a package's search path (ansible.module_utils.__path__). Never raises."""
    with contextlib.suppress(OSError, zipfile.BadZipFile, KeyError, ValueError):
        archive, _, inner = search_path[0].partition(".zip")
        if inner:
            search_path.insert(0, _kept(archive + ".zip", inner.strip("/").replace(os.sep, "/") + f"/{PACKAGE}/"))


def _kept(archive: str, prefix: str) -> str:
    base = os.path.expanduser(BASE)
    with zipfile.ZipFile(archive) as source:
        members = [item for item in source.infolist() if item.filename.startswith(prefix)]
        listing = str(sys.implementation.cache_tag) + "".join(
            f"\n{item.filename} {item.CRC} {item.file_size}" for item in members
        )
        if not members:
            raise KeyError(prefix)
        directory = os.path.join(base, hashlib.sha256(listing.encode()).hexdigest()[:16])
        if not os.path.isdir(directory):
            os.makedirs(base, mode=0o700, exist_ok=True)
            _remove_stale(base)
            _unpack(source, members, prefix, base, directory)
    _refuse_foreign(base)
    _refuse_foreign(directory)
    return directory


def _unpack(source: zipfile.ZipFile, members: List[zipfile.ZipInfo], prefix: str, base: str, directory: str) -> None:
    """Write all files, then show them under the final name at once: a half-written copy is never imported."""
    draft = tempfile.mkdtemp(dir=base)
    try:
        for item in members:
            path = os.path.join(draft, PACKAGE, *item.filename[len(prefix) :].split("/"))
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "wb") as handle:
                handle.write(source.read(item))
        # Here and now, because a module's Python is told to leave no bytecode behind.
        compileall.compile_dir(draft, ddir=directory, quiet=2)
        os.rename(draft, directory)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # gone already when it was renamed; else another run was first


def _refuse_foreign(directory: str) -> None:
    """Code is run from here: it must be ours alone."""
    state = os.lstat(directory)
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise OSError(f"{directory}: not a private directory of this user")


def _remove_stale(base: str) -> None:
    for name in os.listdir(base):
        path = os.path.join(base, name)
        with contextlib.suppress(OSError):
            if time.time() - os.lstat(path).st_mtime > STALE_AFTER_S:
                shutil.rmtree(path, ignore_errors=True)
