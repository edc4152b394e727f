"""Install the EFA bundle from its installer archive, and verify what is installed."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ..host import Host, Problem, Problems
from ..outcome import Outcome
from ..version import reaches, within
from . import archive
from .efa_matrix import Stack, conflicts

RECORD = "/opt/amazon/efa_installed_packages"
"""Written by the installer: its version, and the packages with their versions in the file names."""
INSTALLER = "efa_installer.sh"
_VERSION = re.compile(r"EFA installer version:\s*([\w.]+)")
_NAMED: Dict[str, re.Pattern[str]] = {
    # rpm joins name and version by "-", deb by "_"; the plugin was first called aws-ofi-nccl, then libnccl-ofi.
    "efa_driver": re.compile(r"(?:^|[\s/])efa[-_](\d+\.\d+\.\d+)"),
    "libfabric": re.compile(r"(?:^|[\s/])libfabric1?-aws[-_](\d+\.\d+\.\d+(?:amzn\d+(?:\.\d+)?)?)"),
    "ofi_nccl": re.compile(r"(?:^|[\s/])(?:aws-ofi-nccl|libnccl-ofi)[-_](\d+\.\d+\.\d+)"),
}
_FLAGS = {
    "minimal": "--minimal",
    "skip_kmod": "--skip-kmod",
    "skip_limits": "--skip-limit-conf",
    "skip_test": "--no-verify",
}
_ADVICE = "read the installer's output; a run after the cause is removed continues"


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """`state` verified looks only; present installs the archive's version when neither it nor a later one is there."""
    version, text = installed(host)
    stack = _stack(text, wanted)
    before = {"installer": version, **stack.facts()}
    if reaches(version, wanted["version"]):
        problems = [*_conflicts(host, stack, wanted), *_pieces(host, wanted)]
        if problems:
            raise Problems(problems)
        return Outcome(False, before, before, {**before, "reboot_needed": _outdated(host, stack.efa_driver)})
    if wanted["state"] == "verified":
        raise Problem(
            f"EFA installer {version or 'never run'}", f"EFA {wanted['version']} or later", "install it (role efa)"
        )
    scratch = tempfile.mkdtemp(prefix="flightline-efa-")
    try:
        return _install(host, wanted, before, scratch, check)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def installed(host: Host) -> Tuple[Optional[str], str]:
    """The installer's version and what it recorded."""
    text = host.read(RECORD) or ""
    found = _VERSION.search(text)
    return (found.group(1) if found else None), text


def recorded(text: str) -> Dict[str, str]:
    """Versions of the bundle's parts, by the names of its packages."""
    return {name: match.group(1) for name, pattern in _NAMED.items() for match in [pattern.search(text)] if match}


def _stack(text: str, wanted: Mapping[str, Any]) -> Stack:
    return Stack(
        **recorded(text), nccl=wanted["nccl_version"] or None, nvidia_driver=wanted["nvidia_driver_version"] or None
    )


def _conflicts(host: Host, stack: Stack, wanted: Mapping[str, Any]) -> List[Problem]:
    """With --minimal neither libfabric nor the plugin is installed, so that nothing of them has to match."""
    minimum = wanted["minimum"]
    if wanted["minimal"]:
        stack = stack._replace(libfabric=None, ofi_nccl=None)
        minimum = {name: least for name, least in minimum.items() if name == "efa_driver"}
    if wanted["skip_kmod"]:
        loaded = (host.read("/sys/module/efa/version") or "").strip()
        stack = stack._replace(efa_driver=loaded.rstrip("g") or None)  # "2.17.3g": built from GitHub's source
    return list(conflicts(stack, minimum))


def _pieces(host: Host, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    """Installed files that the record promises."""
    if wanted["minimal"]:
        return
    for pattern, what in (("/opt/amazon/efa/bin/fi_info", "libfabric"), ("/opt/amazon/ofi-nccl/lib*", "aws-ofi-nccl")):
        if not host.glob(pattern):
            yield Problem(
                f"{pattern} is missing although EFA {wanted['version']} is recorded as installed",
                what,
                f"remove {RECORD} and run again: the installer then puts every package back",
            )


def _install(host: Host, wanted: Mapping[str, Any], before: Dict[str, Any], scratch: str, check: bool) -> Outcome:
    """Everything is verified first; the installer is the first that changes the host."""
    path = wanted["archive"]
    if check and not host.exists(path):
        return Outcome(True, before, {**before, "installer": wanted["version"]}, before)  # not fetched in check mode
    if not host.exists(path):
        raise Problem(f"no file {path}", "the installer archive", "fetch it there first (role efa does)")
    if not wanted["sha256"] and not wanted["signature"]:
        raise Problem(
            f"neither checksum nor signature for {path}",
            "at least one of them; nothing was installed",
            "set efa_sha256",
        )
    if wanted["sha256"]:
        archive.verify_checksum(host, path, wanted["sha256"])
    if wanted["signature"]:
        archive.verify_signature(host, path, wanted["signature"], wanted["key"], wanted["key_fingerprint"], scratch)
    names = _chosen(archive.members(host, path), wanted["packages"])
    stack = _stack("\n".join(names), wanted)
    problems = _conflicts(host, stack, wanted)
    if problems:
        raise Problems(problems)
    after = {"installer": wanted["version"], **stack.facts()}
    if check:
        return Outcome(True, before, after, after)
    archive.unpack(host, path, scratch)
    place = _installer(scratch, path)
    host.change([f"./{INSTALLER}", *arguments(wanted)], f"EFA {wanted['version']}", _ADVICE, cwd=place)
    return _confirm(host, wanted, before)


def arguments(wanted: Mapping[str, Any]) -> List[str]:
    """Options of efa_installer.sh, as its --help lists them."""
    flags = [flag for name, flag in _FLAGS.items() if wanted[name]]
    return ["--yes", *flags, *([f"--mpi={wanted['mpi']}"] if wanted["mpi"] else [])]


def _chosen(names: List[str], pattern: str) -> List[str]:
    """Packages of this distribution: one archive holds those of all."""
    chosen = [name for name in names if fnmatch.fnmatch(name, f"*/{pattern}")]
    if not chosen:
        raise Problem(
            f"no package below {pattern} in the archive",
            "packages for this distribution and architecture",
            "choose an EFA version that supports this distribution, or correct efa_packages",
        )
    return chosen


def _installer(scratch: str, path: str) -> str:
    for place, _, files in sorted(os.walk(scratch)):
        if INSTALLER in files:
            return place
    raise Problem(f"no {INSTALLER} in {path}", "the EFA installer archive", "correct efa_url")


def _confirm(host: Host, wanted: Mapping[str, Any], before: Dict[str, Any]) -> Outcome:
    version, text = installed(host)
    problems = list(_pieces(host, wanted))
    if version is None or not within(version, wanted["version"]):
        problems.insert(
            0,
            Problem(
                f"{RECORD} names {version or 'nothing'} after the installation", f"EFA {wanted['version']}", _ADVICE
            ),
        )
    if problems:
        raise Problems(problems)
    after = {"installer": version, **_stack(text, wanted).facts()}
    return Outcome(True, before, after, {**after, "reboot_needed": _outdated(host, after["efa_driver"])})


def _outdated(host: Host, driver: Optional[str]) -> bool:
    """Does an older module still run? The installer cannot unload one that is in use."""
    loaded = (host.read("/sys/module/efa/version") or "").strip()
    return bool(loaded and driver and not within(loaded, driver))
