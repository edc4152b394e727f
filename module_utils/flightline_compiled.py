"""Keep the node library on a node, compiled, between runs.

Ansible sends a module as one archive of sources, which Python compiles on every run; for a library of this
size that takes longer than all probes together. The sources are kept once per version in a private directory
of the user, where Python caches what it compiles as for any installed package. Whenever that cannot be done
(no home, full disk, foreign directory), the archive is used as it is.

plugins/action/flightline_node.py calls the kept library directly when a node has it.
"""

from __future__ import annotations

import compileall
import contextlib
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
INTERPRETER = "python"
"""The file beside the package that names the Python which compiled it."""
STALE_AFTER_S = 7 * 24 * 3600


def use(search_path: List[str], key: str) -> None:
    """Put the kept sources in front of the package's search path (flightline_node.__path__). Never raises.

    key: names this version of the library; nothing is kept without one.
    """
    with contextlib.suppress(OSError, zipfile.BadZipFile, KeyError, ValueError):
        archive, _, inner = search_path[0].partition(".zip")
        if inner and key.isalnum():
            kept = _kept(archive + ".zip", inner.strip("/").replace(os.sep, "/") + "/", key)
            search_path.insert(0, os.path.join(kept, PACKAGE))


def _kept(archive: str, prefix: str, key: str) -> str:
    base = os.path.expanduser(BASE)
    directory = os.path.join(base, key)
    if not os.path.isdir(directory):
        os.makedirs(base, mode=0o700, exist_ok=True)
        _remove_stale(base)
        _unpack(archive, prefix, base, directory)
    _refuse_foreign(base)
    _refuse_foreign(directory)
    if not os.path.exists(compiled_mark(directory)):  # another Python made the copy
        _compile(directory, directory)
    return directory


def compiled_mark(directory: str) -> str:
    """A file that is there when this Python has compiled the copy."""
    return os.path.join(directory, PACKAGE, "__pycache__", f"node.{sys.implementation.cache_tag}.pyc")


def _unpack(archive: str, prefix: str, base: str, directory: str) -> None:
    """Write all files, then show them under the final name at once: a half-written copy is never imported."""
    draft = tempfile.mkdtemp(dir=base)
    try:
        with zipfile.ZipFile(archive) as source:
            members = [item for item in source.infolist() if item.filename.startswith(prefix)]
            if not members:
                raise KeyError(prefix)
            for item in members:
                path = os.path.join(draft, PACKAGE, *item.filename[len(prefix) :].split("/"))
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                with open(path, "wb") as handle:
                    handle.write(source.read(item))
        _compile(draft, directory)
        os.rename(draft, directory)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # gone already when it was renamed; else another run was first


def _compile(where: str, shown_as: str) -> None:
    # Here and now, because a module's Python is told to leave no bytecode behind.
    compileall.compile_dir(where, ddir=shown_as, quiet=2)
    with open(os.path.join(where, INTERPRETER), "w", encoding="utf-8") as handle:
        handle.write(sys.executable + "\n")


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
