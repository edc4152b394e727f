"""How a finding is said: what was seen, what was wanted, what to do. A bare assert would leave the reader to guess."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import pytest

CONFIGURE = "run make configure for this host"
REINSTALL = "apt-get install --reinstall --yes PACKAGE (dnf reinstall), and look who changed it"
"""PACKAGE: whose file it is, by dpkg -S PATH or rpm -qf PATH."""
PACKAGED = f"apt-get install -o Dpkg::Options::=--force-confask -o Dpkg::Options::=--force-confnew{REINSTALL[15:]}"
"""Likewise for its settings: dpkg keeps an edited file of the version that it is without asking (dpkg(1), confask)."""
Finding = pytest.fail.Exception
MOST_NAMED = 8


def finding(saw: str, wanted: str, do: str, rest: Sequence[str] = ()) -> NoReturn:
    """Fail the test with one line; what that line had no room for follows, so that no report lacks a name."""
    more = "".join(f"\nsaw also: {entry}" for entry in rest)
    pytest.fail(f"saw: {saw}; wanted: {wanted}; do: {do}{more}", pytrace=False)


def unreachable(why: str) -> NoReturn:
    """Fail the test of a host that cannot be asked: nothing is known of it, which is no pass."""
    pytest.fail(f"UNREACHABLE: saw: {why}; wanted: an answer over ssh; do: ssh to it; replace it", pytrace=False)


def needs(good: Any, why: str) -> None:
    """Skip the test, with the reason, where there is nothing for it to look at."""
    if not good:
        pytest.skip(why)


def holds(good: Any, saw: str, wanted: str, do: str = CONFIGURE) -> None:
    """A finding unless `good`."""
    if not good:
        finding(saw, wanted, do)


def same(what: str, saw: Any, wanted: Any, do: str = CONFIGURE) -> None:
    """A finding unless both are equal."""
    holds(saw == wanted, f"{what} {saw!r}", repr(wanted), do)


def unchanged(files: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, str], do: str) -> None:
    """A finding that names the files whose content is not the recorded one."""
    gone = [path for path in wanted if files.get(path, {}).get("sha256") != wanted[path]]
    none("not as they were recorded", gone, "the recorded content", do)


def none(what: str, found: Iterable[Any], wanted: str, do: str = CONFIGURE) -> None:
    """A finding that names what should not be there."""
    rows = [str(entry) for entry in found]
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    if rows:
        finding(f"{what}: {', '.join(rows[:MOST_NAMED])}{more}", wanted, do, rows[MOST_NAMED:])
