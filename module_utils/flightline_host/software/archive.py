"""Downloaded archives: checksum, detached signature, unpacking."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional

from ..host import Host, Problem
from ..outcome import Outcome

_BLOCK = 1 << 20
_VALID = re.compile(r"^\[GNUPG:\] VALIDSIG ([0-9A-F]{40})(?: \S+){8} ([0-9A-F]{40})", re.MULTILINE)
_ADVICE = "fetch it again from a trusted place; if it stays so, do not use it and ask the vendor"


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Verify a file by all that is given for it; at least one is needed, or nothing would be proven."""
    path = wanted["path"]
    if not wanted["sha256"] and not wanted["signature"]:
        raise Problem(
            f"neither checksum nor signature for {path}", "at least one of them", "set sha256, or signature and key"
        )
    if not host.exists(path):
        if check:
            return Outcome(False, {}, {}, {"verified": []})
        raise Problem(f"no file {path}", "the downloaded file", "fetch it first")
    if wanted["sha256"]:
        verify_checksum(host, path, wanted["sha256"])
    if wanted["signature"]:
        scratch = tempfile.mkdtemp(prefix="flightline-verify-")
        try:
            verify_signature(host, path, wanted["signature"], wanted["key"], wanted["key_fingerprint"], scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(False, {}, {}, {"verified": [name for name in ("sha256", "signature") if wanted[name]]})


def verify_checksum(host: Host, path: str, sha256: str) -> None:
    """Compare a file with its published SHA-256."""
    digest = hashlib.sha256()
    with open(host.path(path), "rb") as handle:
        for block in iter(lambda: handle.read(_BLOCK), b""):
            digest.update(block)
    if digest.hexdigest() != sha256.lower():
        raise Problem(f"{path} has SHA-256 {digest.hexdigest()}", f"{sha256.lower()}; nothing was installed", _ADVICE)


def verify_signature(host: Host, path: str, signature: str, key: str, fingerprint: str, scratch: str) -> None:
    """Verify a detached OpenPGP signature by one pinned key, in a key ring of its own."""
    ring = os.path.join(scratch, "keyring")
    Path(ring).mkdir(mode=0o700, parents=True, exist_ok=True)
    gpg = ["gpg", "--homedir", ring, "--batch", "--no-tty", "--status-fd", "1"]
    loaded = host.ask([*gpg, "--import", host.path(key)])
    if loaded.rc == 127:
        raise Problem("gpg is not there", "gpg, to verify the signature", "install gnupg")
    answer = host.ask([*gpg, "--verify", host.path(signature), host.path(path)])
    wanted = fingerprint.replace(" ", "").upper()
    signers = [print_ for match in _VALID.findall(answer.out) for print_ in match]
    if answer.rc != 0 or wanted not in signers:
        seen = f"signed by {signers[-1]}" if signers else f"no valid signature ({answer.said.splitlines()[-1:]})"
        raise Problem(f"{path}: {seen}", f"a signature by {wanted}; nothing was installed", _ADVICE)


def members(host: Host, path: str) -> List[str]:
    """Names in a tar archive."""
    try:
        with tarfile.open(host.path(path)) as archive:
            return archive.getnames()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Problem(f"{path} is not a readable tar archive ({error})", "the vendor's archive", _ADVICE) from error


def unpack(host: Host, path: str, into: str, member: Optional[str] = None) -> None:
    """Unpack below a directory; a name that leads out of it stops everything before anything is written."""
    with tarfile.open(host.path(path)) as archive:
        for entry in archive.getmembers():
            target = os.path.normpath(os.path.join(into, entry.name))
            if not (target + os.sep).startswith(into.rstrip(os.sep) + os.sep) or entry.isdev():
                raise Problem(f"{path} holds {entry.name}", "names inside the archive's own directory", _ADVICE)
        chosen = [entry for entry in archive.getmembers() if member is None or entry.name == member]
        # Symbolic links could still lead out; the 'tar' filter stops them where this Python has it.
        safe = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
        archive.extractall(into, members=chosen, **safe)  # type: ignore[arg-type] # noqa: S202
