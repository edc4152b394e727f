"""Keep the node library on a node, compiled, between runs: DIRECTORY/<key>/flightline_node.

Ansible sends a module as one archive of sources, which Python compiles on every run; for a library of this
size that takes longer than all probes together. The sources are kept once per version in a private directory,
where Python caches what it compiles as for any installed package: by the role flightline_node for all users, else
by the module itself in the user's home. Whenever that cannot be done (no home, full disk, foreign directory), the
archive is used as it is.

plugins/action/flightline_node.py calls the library directly when a node has it in either place.
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
from typing import TYPE_CHECKING, Dict, List, Mapping

if TYPE_CHECKING:
    from pathlib import Path  # one import less on every run

PACKAGE = "flightline_node"
BASE = os.path.join("~", ".ansible", "flightline")
INSTALLED = "/opt/flightline"
"""Where the role flightline_node installs the library."""
INTERPRETER = "python"
"""The file beside the package that names the Python which compiled it."""
STALE_AFTER_S = 7 * 24 * 3600
KEY_CHARACTERS = 16


def key_of(files: Mapping[str, bytes]) -> str:
    """The version of the library: a digest of its sources by path."""
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(f"{name}\0".encode() + files[name] + b"\0")
    return found.hexdigest()[:KEY_CHARACTERS]


def sources(directory: Path) -> Dict[str, bytes]:
    """The library's files by their path in it."""
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*.py")}


def install(base: str) -> int:
    """Put the package that runs under base, for every user, and remove other versions; says whether it had to."""
    try:
        archive = os.path.dirname(os.path.dirname(__file__))
        with zipfile.ZipFile(archive) as source:
            members = _members(source, PACKAGE + "/")
        directory = os.path.join(base, key_of(members))
        if not _is_whole(members, directory):
            _remove_versions(base)
            os.umask(0o022)
            _unpack(members, base, directory, mode=0o755)
            sys.stdout.write(f"installed {directory}\n")
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        sys.stderr.write(f"flightline-node.pyz install: saw: {error}; wanted: this package and a place for it\n")
        return 2
    return 0


def _is_whole(members: Mapping[str, bytes], directory: str) -> bool:
    try:
        for name, content in members.items():
            with open(os.path.join(directory, PACKAGE, *name.split("/")), "rb") as handle:
                if handle.read() != content:
                    return False
    except OSError:
        return False
    return os.path.exists(compiled_mark(directory))


def _remove_versions(base: str) -> None:
    for name in os.listdir(base):
        if len(name) == KEY_CHARACTERS and os.path.isdir(os.path.join(base, name, PACKAGE)):
            shutil.rmtree(os.path.join(base, name))


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
        with zipfile.ZipFile(archive) as source:
            members = _members(source, prefix)
        _unpack(members, base, directory, mode=0o700)
    _refuse_foreign(base)
    _refuse_foreign(directory)
    if not os.path.exists(compiled_mark(directory)):  # another Python made the copy
        _compile(directory, directory)
    return directory


def compiled_mark(directory: str) -> str:
    """A file that is there when this Python has compiled the copy."""
    return os.path.join(directory, PACKAGE, "__pycache__", f"node.{sys.implementation.cache_tag}.pyc")


def _members(archive: zipfile.ZipFile, prefix: str) -> Dict[str, bytes]:
    """The package's files by their path in it. Raises KeyError when there is none."""
    names = [name for name in archive.namelist() if name.startswith(prefix) and name.endswith(".py")]
    found = {name[len(prefix) :]: archive.read(name) for name in names}
    if not found:
        raise KeyError(prefix)
    return found


def _unpack(members: Mapping[str, bytes], base: str, directory: str, mode: int) -> None:
    """Write all files, then show them under the final name at once: a half-written copy is never imported."""
    draft = tempfile.mkdtemp(dir=base)
    try:
        for name, content in members.items():
            path = os.path.join(draft, PACKAGE, *name.split("/"))
            os.makedirs(os.path.dirname(path), mode=mode, exist_ok=True)
            with open(path, "wb") as handle:
                handle.write(content)
        _compile(draft, directory)
        os.chmod(draft, mode)
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
