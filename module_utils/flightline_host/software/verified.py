"""Are the files of packages what the packages brought? What is not is put back from the same version, or named."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..host import Host, Problem
from . import packages

# dpkg(1), --verify, and rpm(8), -V: nine characters or "missing", a settings file's attribute, the path.
_ROW = re.compile(r"^(?:\S{9}|missing)\s+(?:([cdglr]) )?\s*(/\S.*)$")
_SETTINGS = "/etc/"
"""The roles' and the site's to change; the compliance tests look at them one by one."""
_LEFT_OUT = ("/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/share/locale")
"""May be left out on purpose (dpkg's path-exclude, rpm's nodocs)."""
_SHOWN = 4
_DEBIAN = "/etc/debian_version"
_RPM = ["rpm", "-V", "--nodeps", "--nomtime"]
_APT = ["apt-get", "install", "--reinstall", "--yes", "--allow-downgrades", "--allow-change-held-packages"]
_APT += ["-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"]


class Altered(NamedTuple):
    """One package with files that are gone or changed."""

    package: str
    version: str
    files: Tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.files) - _SHOWN} more" if len(self.files) > _SHOWN else ""
        return f"{', '.join(self.files[:_SHOWN])}{more} of {self.package} {self.version}"


def altered(host: Host, patterns: Sequence[str]) -> List[Altered]:
    """Packages among the patterns whose files are not as they were brought; settings and documentation left out."""
    found = packages.installed(host, patterns) if patterns else []
    there = {one.name: one.version for one in found if one.installed}
    if not there:
        return []
    rpm = not host.exists(_DEBIAN)
    said = host.ask([*(_RPM if rpm else ["dpkg", "--verify"]), *sorted(there)])
    rows = [row for row in map(_ROW.match, said.out.splitlines()) if row]
    if said.rc not in (0, 1) and not rows:
        raise Problem(
            f"package verification ended with {said.rc}: {said.said}", "its answer", "dpkg --audit, rpm --verifydb"
        )
    paths = [row[2] for row in rows if not row[2].startswith((_SETTINGS, *_LEFT_OUT))]
    owners: Dict[str, List[str]] = {}
    for path in paths:
        owners.setdefault(_owner(host, path, rpm), []).append(path)
    return [Altered(name, there.get(name, ""), tuple(sorted(found))) for name, found in sorted(owners.items())]


def _owner(host: Host, path: str, rpm: bool) -> str:
    argv = ["rpm", "-qf", "--qf", "%{NAME}\\n", path] if rpm else ["dpkg-query", "--search", path]
    first = (host.ask(argv).out.splitlines() or ["an unknown package"])[0]
    return first if rpm else first.partition(": ")[0].partition(",")[0].partition(":")[0]


def put_back(host: Host, found: Sequence[Altered]) -> List[Problem]:
    """Install the same versions again. Returns what stays altered, with the package manager's own reason."""
    problems = []
    for one in found:
        argv = ["dnf", "reinstall", "--assumeyes", one.package]
        argv = [*_APT, f"{one.package}={one.version}"] if host.exists(_DEBIAN) else argv
        why = ""
        try:
            host.change(argv, "the package as it was brought", "", env={"DEBIAN_FRONTEND": "noninteractive"})
        except Problem as problem:
            why = f"; {problem.seen}"
        left = altered(host, [one.package])
        problems += [_problem(still, why) for still in left]
    return problems


def _problem(one: Altered, why: str) -> Problem:
    return Problem(
        f"{one} not as the package brought it{why}",
        "what training depends on unaltered",
        f"put {one.package} {one.version} where the package manager finds it and run again, or replace the node",
    )


def empty(files: Mapping[str, str]) -> List[Problem]:
    """Libraries of no package that are empty: nobody can load one."""
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    return [
        Problem(f"{path} is empty", "a library", "bring the image's file back, or replace the node")
        for path, digest in sorted(files.items())
        if digest == nothing
    ]
