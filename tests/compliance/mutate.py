"""Break one thing at a time on a host and see which test notices; then break many at once and see what the roles repair.

python -m tests.compliance.mutate --inventory FILE --host NAME [--first] [--repair] [--write] [--only PATTERN]: prints the table.
--first takes one mutation per test, --repair runs the roles, --write keeps the table in docs/compliance.md.
The host must be one that may be broken.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import testinfra

from tests.integration import play

from . import forked
from .break_things import KEPT, Mutation
from .expected import ROOT
from .forked import Loop, Statuses
from .mutations import MUTATIONS, UNBREAKABLE

PAGE = ROOT / "docs" / "compliance.md"
SITE = ROOT / "playbooks" / "site.yml"
HEAD = Path(__file__).with_name("page.md")
NOT_TRIED = "not tried"
SHARED = ("/dev/null", "/bin/true", "/run/kept", "/var/log/flightline", "/etc/systemd/system")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mutation: Mutation
    result: str
    repair: str = NOT_TRIED
    said: str = ""


def unfit(before: Statuses, mutation: Mutation) -> str:
    """Why a mutation proves nothing on this host; empty when it does."""
    seen, why = before.get(mutation.test, (set(), "the test was not run"))
    if seen & {"failed", "error"}:
        return f"{NOT_TRIED}: the host does not comply to begin with"
    return "" if "passed" in seen else f"{NOT_TRIED}: {why}"


def shell(machine: Any, command: str) -> tuple[int, str]:
    """Run as root; exit status and the end of what was said."""
    done = machine.run("sh -c %s", command)
    return done.rc, (done.stderr or done.stdout).strip()[-160:].replace("\n", " ")


def try_one(machine: Any, suite: Loop, mutation: Mutation) -> Row:
    """Break it, look, and put it back."""
    said = ""
    try:
        status, why = shell(machine, mutation.break_it)
        if status:
            return Row(mutation, f"{NOT_TRIED}: it could not be broken ({why})")
        if shell(machine, mutation.whole)[0] == 0:
            return Row(mutation, f"{NOT_TRIED}: nothing was broken")
        during, said = suite.run([mutation.test]).get(mutation.test, (set(), ""))
    finally:
        status, why = shell(machine, mutation.restore)
    if status:
        return Row(mutation, f"caught, but not restored ({why})")
    return Row(mutation, "caught" if "failed" in during else "MISSED", said=said.partition("\n")[0])


def touched(mutation: Mutation) -> set[str]:
    """What a mutation has in its hands: two of one batch must not share it."""
    paths = set(re.findall(r"(?<![\w.])/[\w.+-]+(?:/[\w.+-]+)+", mutation.break_it))
    return {path for path in paths if not path.startswith(SHARED) or path.endswith((".service", ".conf"))} | {
        mutation.what.split()[0]
    }


def batches(chosen: Iterable[Mutation]) -> list[list[Mutation]]:
    """As few groups as this order allows, in each of which no two mutations are in each other's way."""
    found: list[tuple[list[Mutation], set[str]]] = []
    for mutation in chosen:
        mine = touched(mutation)
        place = next((entry for entry in found if not entry[1] & mine), None)
        if place is None:
            found.append(([mutation], set(mine)))
        else:
            place[0].append(mutation)
            place[1].update(mine)
    return [group for group, _ in found]


def repair(machine: Any, inventory: str, host: str, group: list[Mutation]) -> dict[Mutation, str]:
    """Break all of them, run the roles once, see which are whole; put the rest back."""
    broken = [mutation for mutation in group if shell(machine, mutation.break_it)[0] == 0]
    played = play.play(Path(inventory), SITE, limit=host)
    found = {}
    for mutation in broken:
        whole = shell(machine, mutation.whole)[0] == 0
        found[mutation] = "repaired" if whole else "left"
    for mutation in broken:
        if found[mutation] == "left":
            shell(machine, mutation.restore)
    shell(machine, f"rm -rf {KEPT}")
    if played.status:
        lines = [line for line in played.output.splitlines() if line.startswith(("[ERROR]", "fatal:", "failed:"))]
        sys.stdout.write(f"the roles refused: {' '.join(lines)[:1500]}\n")
    return found


def repairs(machine: Any, inventory: str, host: str, rows: list[Row]) -> list[Row]:
    """The column of what the roles do, one run of them per batch; then the whole suite, which must be green."""
    found: dict[Mutation, str] = {}
    groups = batches(row.mutation for row in rows if row.result == "caught")
    for number, group in enumerate(groups, 1):
        found |= repair(machine, inventory, host, group)
        left = [mutation.what for mutation in group if found.get(mutation) == "left"]
        sys.stdout.write(
            f"batch {number} of {len(groups)}: {len(group) - len(left)} repaired, left: {'; '.join(left) or 'none'}\n"
        )
        sys.stdout.flush()
    return [replace(row, repair=found.get(row.mutation, NOT_TRIED)) for row in rows]


def unexpected(row: Row) -> str:
    """How a row differs from what the list of mutations says; empty when it does not."""
    if row.result != "caught":
        return row.result
    if row.repair == "left" and not row.mutation.left:
        return "the roles should repair it and do not"
    if row.repair == "repaired" and row.mutation.left:
        return "the roles repair it; the list says that they leave it"
    return ""


def cell(text: str) -> str:
    """Text for one cell of a table."""
    return text.replace("|", "/").replace("\n", " ")


def page(rows: list[Row]) -> str:
    """The table as documentation, below the page's own words."""
    caught = sum(row.result == "caught" for row in rows)
    mended = sum(row.repair == "repaired" for row in rows)
    lines = [
        HEAD.read_text().rstrip(),
        "",
        f"{caught} of {len(rows)} mutations caught; `make configure` repairs {mended} of them.",
        "",
        "| test | what was broken | result | `make configure` |",
        "|---|---|---|---|",
    ]
    for row in rows:
        after = f"left: {row.mutation.left}" if row.repair == "left" else row.repair
        lines.append(f"| `{row.mutation.test}` | {cell(row.mutation.what)} | {cell(row.result)} | {cell(after)} |")
    lines += [
        "",
        "Tests that nothing can break on the test bed, where they are skipped:",
        "",
        "| test | why |",
        "|---|---|",
    ]
    lines += [f"| `{test}` | {why} |" for test, why in sorted(UNBREAKABLE.items())]
    return "\n".join(lines) + "\n"


def detect(machine: Any, suite: Loop, chosen: list[Mutation], before: Statuses) -> list[Row]:
    """One row per mutation, printed as it comes."""
    rows = []
    for mutation in chosen:
        reason = unfit(before, mutation)
        rows.append(Row(mutation, reason) if reason else try_one(machine, suite, mutation))
        sys.stdout.write(f"{rows[-1].result}: {mutation.test}: {mutation.what}: {rows[-1].said}\n")
        sys.stdout.flush()
    return rows


def worse(before: Statuses, after: Statuses) -> list[str]:
    """Tests that passed before and do not now, each with what it says."""
    bad = {"failed", "error"}
    return [
        f"{test} ({why.splitlines()[0]})"
        for test, (seen, why) in after.items()
        if seen & bad and not before[test][0] & bad
    ]


def first_of_each(mutations: Iterable[Mutation]) -> list[Mutation]:
    """One mutation per test: enough to show that each test can fail."""
    return list({mutation.test: mutation for mutation in reversed(list(mutations))}.values())[::-1]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inventory", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--only", default="", help="only mutations whose test or description matches")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def work(given: argparse.Namespace, suite: Loop) -> int:
    """Everything on one host. Exit status 0 when every mutation was caught and the roles did what the list says."""
    chosen = [entry for entry in MUTATIONS if re.search(given.only, f"{entry.test}: {entry.what}")]
    chosen = first_of_each(chosen) if given.first else chosen
    machine = testinfra.get_host(f"ansible://{given.host}?ansible_inventory={given.inventory}")
    before = suite.run()
    rows = detect(machine, suite, chosen, before)
    if given.repair:
        rows = repairs(machine, given.inventory, given.host, rows)
    if given.write:
        PAGE.write_text(page(rows))
    odd = [f"{unexpected(row)}: {row.mutation.test}: {row.mutation.what}" for row in rows if unexpected(row)]
    left = worse(before, suite.run())
    sys.stdout.write("\n".join(odd) + "\n" if odd else "")
    sys.stdout.write(f"not whole again: {', '.join(left)}\n" if left else "the host is whole again\n")
    return 1 if odd or left else 0


def main() -> int:
    """The exit status of the work."""
    given = arguments()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for ansible-inventory
    return forked.main(given.inventory, given.host, lambda suite: work(given, suite))


if __name__ == "__main__":
    sys.exit(main())
