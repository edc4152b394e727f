"""What the package manager knows: dpkg where it is, rpm elsewhere."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence

from ..host import Host, Problem
from ..version import upstream

_DPKG = ("dpkg-query", "-W", "-f", "${Package}\\t${Version}\\t${db:Status-Abbrev}\\n")
_RPM = ("rpm", "-qa", "--qf", "%{NAME}\\t%{VERSION}-%{RELEASE}\\t.i\\n")
_INSTALLED = "i"
_GONE = ("n", "c")
"""Second letter of dpkg's abbreviated status: not installed, only configuration left (dpkg-query(1))."""


class Package(NamedTuple):
    """One package that is on the host, whole or not."""

    name: str
    version: str
    state: str

    @property
    def installed(self) -> bool:
        """Unpacked and configured?"""
        return self.state[1:2] == _INSTALLED and self.state[2:3] in ("", " ")

    @property
    def upstream(self) -> str:
        """The vendor's version, without epoch and packaging revision."""
        return upstream(self.version)


def installed(host: Host, patterns: Sequence[str]) -> List[Package]:
    """Packages whose names match one of the patterns, half-installed ones included."""
    deb = host.ask([*_DPKG, *patterns])
    # dpkg-query answers 1 when one of several patterns matches nothing; the others are printed all the same.
    if deb.rc in (0, 1):
        return _rows(deb.out)
    rpm = host.ask([*_RPM, *patterns])
    if rpm.rc == 0:
        return _rows(rpm.out)
    raise Problem(
        f"neither dpkg-query ({deb.said}) nor rpm ({rpm.said}) answers",
        "a package manager that says what is installed",
        "repair the package database (dpkg --audit, rpm --verifydb), then run again",
    )


def _rows(text: str) -> List[Package]:
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 2]
    found = [Package(*row) for row in rows]
    return sorted(package for package in found if package.state[1:2].lower() not in _GONE)
