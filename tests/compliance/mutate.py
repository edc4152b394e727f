"""Break one thing at a time on a host and see which test notices.

python -m tests.compliance.mutate --inventory FILE --host NAME [--write] [--only PATTERN]: prints the table; --write keeps
it in docs/compliance.md. The host must be one that may be broken.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testinfra

from .mutations import MUTATIONS, UNBREAKABLE, Mutation

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "compliance.md"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mutation: Mutation
    result: str


def statuses(inventory: str, host: str, tests: Iterable[str]) -> dict[str, tuple[set[str], str]]:
    """By test: what its parameters gave (passed, failure, error, skipped), and the reason of a skip."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        argv = [
            sys.executable,
            "-m",
            "pytest",
            *(f"tests/compliance/{test}" for test in tests),
            "-q",
            "-p",
            "no:cacheprovider",
        ]
        argv += [f"--junitxml={report.name}", f"--hosts=ansible://{host}", f"--ansible-inventory={inventory}"]
        subprocess.run(argv, cwd=ROOT, capture_output=True, check=False)
        cases = list(Xml.parse(report.name).iter("testcase"))
    found: dict[str, tuple[set[str], str]] = {}
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name', '').partition('[')[0]}"
        kind = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        seen, why = found.get(name, (set(), ""))
        reason = kind.get("message", "") if kind is not None and kind.tag == "skipped" else ""
        found[name] = (seen | {"passed" if kind is None else kind.tag}, why or reason)
    return found


def unfit(before: dict[str, tuple[set[str], str]], mutation: Mutation) -> str:
    """Why a mutation proves nothing on this host; empty when it does."""
    seen, why = before.get(mutation.test, (set(), "the test was not run"))
    if seen & {"failure", "error"}:
        return "not tried: the host does not comply to begin with"
    return "" if "passed" in seen else f"not tried: {why}"


def try_one(machine: Any, inventory: str, host: str, mutation: Mutation) -> Row:
    """Break it, look, and put it back."""
    try:
        broken = machine.run("sh -c %s", mutation.break_it)
        if broken.rc:
            return Row(mutation, f"not tried: it could not be broken ({broken.stderr.strip()[-120:]})")
        during, _ = statuses(inventory, host, [mutation.test]).get(mutation.test, (set(), ""))
    finally:
        restored = machine.run("sh -c %s", mutation.restore)
    if restored.rc:
        return Row(mutation, f"caught, but not restored ({restored.stderr.strip()[-120:]})")
    return Row(mutation, "caught" if "failure" in during else "MISSED")


def page(rows: Iterable[Row], host: str) -> str:
    """The table as documentation."""
    rows = list(rows)
    caught = sum(row.result == "caught" for row in rows)
    lines = [
        "# Compliance: each test can fail",
        "",
        "`pytest tests/compliance --hosts=ansible://gpu_nodes --ansible-inventory=inventory/aws_ec2.yml` looks at hosts; expected",
        "values are the roles' own variables. A waiver in `compliance_waivers` (check, scope, reason, owner, expiry) sets a finding",
        "aside until it expires. This table comes from `python -m tests.compliance.mutate`, which breaks one thing at a time.",
        "",
        f"{caught} of {len(rows)} mutations caught.",
        "",
        "| test | what was broken | result |",
        "|---|---|---|",
    ]
    lines += [f"| `{row.mutation.test}` | {row.mutation.what.replace('|', '/')} | {row.result} |" for row in rows]
    lines += [
        "",
        "Tests that nothing can break on the test bed, where they are skipped:",
        "",
        "| test | why |",
        "|---|---|",
    ]
    lines += [f"| `{test}` | {why} |" for test, why in sorted(UNBREAKABLE.items())]
    return "\n".join(lines) + "\n"


def table(inventory: str, host: str, chosen: list[Mutation]) -> list[Row]:
    """One row per mutation, printed as it comes; a host that is not whole afterwards is an error."""
    tests = sorted({entry.test for entry in chosen})
    before = statuses(inventory, host, tests)
    machine = testinfra.get_host(f"ansible://{host}?ansible_inventory={inventory}")
    rows = []
    for mutation in chosen:
        reason = unfit(before, mutation)
        rows.append(Row(mutation, reason) if reason else try_one(machine, inventory, host, mutation))
        sys.stdout.write(f"{rows[-1].result}: {mutation.test}: {mutation.what}\n")
        sys.stdout.flush()
    after = statuses(inventory, host, tests)
    worse = [test for test, (seen, _) in after.items() if seen & {"failure", "error"} and "passed" in before[test][0]]
    sys.stdout.write(f"not whole again: {', '.join(worse)}\n" if worse else "the host is whole again\n")
    return rows


def main() -> int:
    """Exit status 0 when every mutation that could be tried was caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inventory", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--only", default="", help="only tests whose name matches")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for ansible-inventory
    chosen = [entry for entry in MUTATIONS if re.search(given.only, entry.test)]
    rows = table(given.inventory, given.host, chosen)
    if given.write:
        PAGE.write_text(page(rows, given.host))
    return 1 if any(row.result == "MISSED" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
