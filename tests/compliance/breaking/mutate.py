"""Break one thing at a time on a host and see which test notices; then break many at once and see what the roles repair.

python -m tests.compliance.breaking.mutate --inventory FILE --host NAME [--first] [--repair] [--resume FILE] [--write] [--only PATTERN]
--first takes one mutation per test, --repair runs the roles, --resume keeps what is known in a file and tries the rest only,
--write keeps the table in docs/compliance.md.
The host must be one that may be broken.
"""

import argparse
import ast
import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import testinfra

from tests.integration import play

from ..looking import forked, say
from ..looking.expected import ROOT, role_of
from ..looking.forked import Loop, Statuses
from . import advice
from .between_runs import BETWEEN
from .break_things import KEPT, Mutation
from .mutations import MUTATIONS, UNBREAKABLE

PAGE = ROOT / "docs" / "compliance.md"
SITE = ROOT / "playbooks" / "site.yml"
HEAD = Path(__file__).with_name("page.md")
NOT_TRIED = "not tried"
REFUSED = "refused"
FOLLOWED, BY_CONFIGURE, BY_HAND = "its advice mends it", "it says make configure", "it names the place"
NO_HELP = "does not mend it"
MOST_ROUNDS = 3
"""A test of several parameters tells of the next one when the first is mended."""
ADVICE = f"do: {say.CONFIGURE}"
TOLD = dict.fromkeys(entry for entry in BETWEEN if entry.left)
"""No role writes these, and many together would cut the host off: that they are left was not tried."""
SHARED_ROLES = {"cluster_ssh", "slurm"}
"""What they write depends on all nodes: keys that these agree on, workers whose size the facts tell."""
MOST_SAID = 1500
SHARED = ("/dev/null", "/bin/", "/usr/bin/env", "/run/kept", "/var/log/flightline", "/etc/systemd/system")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mutation: Mutation
    result: str
    repair: str = NOT_TRIED
    said: str = ""
    advice: str = ""
    """What came of following it: FOLLOWED, BY_CONFIGURE, BY_HAND or NO_HELP."""


class Memory:
    """What earlier runs found, by mutation; a run that is cut short is taken up again. Kept nowhere without a file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        known = self._path.read_text() if self._path and self._path.is_file() else "{}"
        self._known: dict[str, list[str]] = json.loads(known)

    def row(self, mutation: Mutation) -> Row | None:
        """A row that needs no further try; a mutation that was missed, or changed since, is tried again."""
        result, repaired, advice = (*self._known.get(_key(mutation), ["", ""]), "")[:3]
        return (
            Row(mutation, result, repaired, advice=advice)
            if result == "caught" and advice and not advice.startswith(NO_HELP)
            else None
        )

    def keep(self, rows: Iterable[Row]) -> None:
        """Write down rows."""
        self._known.update({_key(row.mutation): [row.result, row.repair, row.advice] for row in rows})
        if self._path:
            self._path.write_text(json.dumps(self._known, indent=1))


def _key(mutation: Mutation) -> str:
    return f"{mutation.test}: {mutation.what}: {mutation.left}"


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
    """Break it, look, follow what the finding says, and put it back."""
    said = advised = ""
    try:
        status, why = shell(machine, mutation.break_it)
        if status:
            return Row(mutation, f"{NOT_TRIED}: it could not be broken ({why})")
        if shell(machine, mutation.whole)[0] == 0:
            return Row(mutation, f"{NOT_TRIED}: nothing was broken")
        during, said = suite.run([mutation.test]).get(mutation.test, (set(), ""))
        advised = follow(machine, suite, mutation.test, said) if "failed" in during else ""
    finally:
        status, why = shell(machine, mutation.restore)
    if status and shell(machine, mutation.whole)[0]:
        return Row(mutation, f"caught, but not restored ({why})")
    return Row(mutation, "caught" if "failed" in during else "MISSED", said=said.partition("\n")[0], advice=advised)


def follow(machine: Any, suite: Loop, test: str, said: str) -> str:
    """Do what the finding says, as often as it says something new."""
    done: list[str] = []
    for _ in range(MOST_ROUNDS):
        steps = [line for line in advice.commands(said) if line not in done]
        for line in steps:
            shell(machine, line)
        done += steps
        if not steps:
            break
        during, said = suite.run([test]).get(test, (set(), ""))
        if "failed" not in during:
            return FOLLOWED
    if advice.asks_for_configure(said):
        return BY_CONFIGURE
    return f"{NO_HELP}: {'; '.join(done)} leaves {said.splitlines()[0]}" if done else BY_HAND


def touched(mutation: Mutation) -> set[str]:
    """What a mutation has in its hands: two of one batch must not share it."""
    paths = set(re.findall(r"(?<![\w.])/[\w.+-]+(?:/[\w.+-]+)+", mutation.break_it))
    found = {path for path in paths if not path.startswith(SHARED) or path.endswith((".service", ".d/zz-site.conf"))}
    unit = re.match(r"(\S+) (stopped|disabled|masked)\b", mutation.what)
    return found | ({f"unit {unit.group(1).removesuffix('.service')}"} if unit else set())


def batches(chosen: Iterable[Mutation]) -> list[list[Mutation]]:
    """As few groups as this order allows, in each of which no two mutations are in each other's way."""
    found: list[tuple[list[Mutation], set[str]]] = []
    for mutation in chosen:
        mine = touched(mutation) or {mutation.what}
        place = next((entry for entry in found if not entry[1] & mine), None)
        if place is None:
            found.append(([mutation], set(mine)))
        else:
            place[0].append(mutation)
            place[1].update(mine)
    return [group for group, _ in found]


def plan(chosen: Iterable[Mutation]) -> list[list[Mutation]]:
    """Batches of what the roles should repair, of what they should leave, and each by itself what they should refuse.

    A role that refuses ends the run for its host, and everything after it would look as if it were left.
    """
    chosen = list(chosen)
    refused = [[entry] for entry in chosen if entry.left.startswith(REFUSED)]
    left = [entry for entry in chosen if entry.left and not entry.left.startswith(REFUSED)]
    mended = [entry for entry in chosen if not entry.left]
    shared = [entry for entry in mended if role(entry) in SHARED_ROLES]
    return [*batches(entry for entry in mended if entry not in shared), *batches(shared), *batches(left), *refused]


def role(mutation: Mutation) -> str:
    """The role whose tests notice it; empty for what holds on every host."""
    return role_of(mutation.test.partition("::")[0])


def repair(machine: Any, inventory: str, host: str, group: list[Mutation]) -> tuple[dict[Mutation, str], str]:
    """Break all of them, run the roles once, see which are whole; put the rest back. Also what the roles refused, if anything."""
    broken = [mutation for mutation in group if shell(machine, mutation.break_it)[0] == 0]
    roles = {role(mutation) for mutation in broken}
    limit = "" if roles <= SHARED_ROLES else host
    played = play.play(Path(inventory), SITE, limit=limit, tags=[] if "" in roles else sorted(roles))
    whole = {mutation: shell(machine, mutation.whole)[0] == 0 for mutation in broken}
    for mutation in (entry for entry in broken if not whole[entry]):
        shell(machine, mutation.restore)
    shell(machine, f"rm -rf {KEPT}")
    refusals = [line for line in played.output.splitlines() if line.startswith(("[ERROR]", "fatal:", "failed:"))]
    said = (" ".join(refusals) or played.output[-MOST_SAID:])[:MOST_SAID] if played.status else ""
    if said and len(broken) > 1:  # what comes after a refusal was not tried
        return {entry: "repaired" for entry, good in whole.items() if good}, said
    return {entry: "repaired" if good else "refused" if said else "left" for entry, good in whole.items()}, said


def repairs(machine: Any, inventory: str, host: str, rows: list[Row], memory: Memory) -> list[Row]:
    """The column of what the roles do, one run of them per batch."""
    found = {row.mutation: row.repair for row in rows if row.repair != NOT_TRIED}
    groups = plan(row.mutation for row in rows if row.result == "caught" and row.mutation not in found | TOLD)
    for number, group in enumerate(groups, 1):
        ends, said = repair(machine, inventory, host, group)
        found |= ends
        memory.keep(replace(row, repair=found[row.mutation]) for row in rows if row.mutation in found)
        left = [f"{entry.test}: {entry.what}" for entry in group if ends.get(entry) != "repaired"]
        sys.stdout.write(f"batch {number} of {len(groups)}: {len(group) - len(left)} repaired, {len(left)} not\n")
        sys.stdout.write(
            "".join(f"  not repaired: {what}\n" for what in left) + (f"  refused: {said}\n" if said else "")
        )
        sys.stdout.flush()
    return [replace(row, repair=found.get(row.mutation, NOT_TRIED)) for row in rows]


def unexpected(row: Row) -> str:
    """How a row differs from what the list of mutations says; empty when it does not."""
    if row.result != "caught":
        return row.result
    if row.advice.startswith(NO_HELP):
        return row.advice
    if row.said.endswith(ADVICE) and row.mutation.left and not row.mutation.left.startswith(REFUSED):
        return "its advice is make configure, which the list says leaves it"
    if row.repair in ("left", "refused") and not row.mutation.left:
        return "the roles should repair it and do not"
    if row.repair == "repaired" and row.mutation.left:
        return "the roles repair it; the list says that they leave it"
    return ""


def cell(text: str) -> str:
    """Text for one cell of a table."""
    return text.replace("|", "/").replace("\n", " ")


def page(rows: list[Row]) -> str:
    """The table by class, which is a file of tests, below the page's own words; what was not as it should be is named."""
    caught = [row for row in rows if row.result == "caught"]
    tried = sum(row.repair != NOT_TRIED for row in rows)
    mended = sum(row.repair == "repaired" for row in rows)
    total = f"{len(caught)} of {len(rows)} mutations caught; `make configure` repairs {mended} of {tried} that it was tried with."
    if tried < len(rows):
        total += f" Of the other {len(rows) - tried} that says nothing: not tried, or in a batch that a role refused."
    lines = [HEAD.read_text().rstrip(), "", total, ""]
    lines += [
        f"| class | broken | found | repaired | refused | left, and told | {FOLLOWED} | {BY_CONFIGURE} | {BY_HAND} |"
    ]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    tests = PAGE.parents[1] / "tests" / "compliance"
    for file in ["", *sorted({row.mutation.test.partition("::")[0] for row in rows})]:
        mine = [row for row in rows if row.mutation.test.startswith(file)]
        counts = [len(mine), sum(row.result == "caught" for row in mine)]
        counts += [sum(row.repair == end for row in mine) for end in ("repaired", "refused", "left")]
        counts += [sum(row.advice == way for row in mine) for way in (FOLLOWED, BY_CONFIGURE, BY_HAND)]
        about = (ast.get_docstring(ast.parse((tests / file).read_text())) or "").splitlines()[0] if file else ""
        lines.append(f"| {f'`{file}`: {cell(about)}' if file else 'all'} | {' | '.join(map(str, counts))} |")
    odd = [
        f"- `{row.mutation.test}`, {cell(row.mutation.what)}: {cell(unexpected(row))}"
        for row in rows
        if unexpected(row)
    ]
    lines += ["", "Not as it should be:", "", *odd] if odd else []
    lines += ["", "Tests that nothing can break on the test bed, where they are skipped:", ""]
    lines += ["| test | why |", "|---|---|"]
    lines += [f"| `{test}` | {why} |" for test, why in sorted(UNBREAKABLE.items())]
    return "\n".join(lines) + "\n"


def detect(machine: Any, suite: Loop, chosen: list[Mutation], before: Statuses, memory: Memory) -> list[Row]:
    """One row per mutation, printed as it comes."""
    rows = []
    for mutation in chosen:
        row = memory.row(mutation)
        if row is None:
            reason = unfit(before, mutation)
            row = Row(mutation, reason) if reason else try_one(machine, suite, mutation)
            sys.stdout.write(f"{row.result}: {mutation.test}: {mutation.what}: {row.said}\n")
            sys.stdout.flush()
        rows.append(row)
        memory.keep([row])
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
    parser.add_argument("--resume", default="", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def work(given: argparse.Namespace, suite: Loop) -> int:
    """Everything on one host. Exit status 0 when every mutation was caught and the roles did what the list says."""
    chosen = [entry for entry in MUTATIONS if re.search(given.only, f"{entry.test}: {entry.what}")]
    chosen = first_of_each(chosen) if given.first else chosen
    machine = testinfra.get_host(f"ansible://{given.host}?ansible_inventory={given.inventory}")
    before, memory = suite.run(), Memory(given.resume)
    rows = detect(machine, suite, chosen, before, memory)
    if given.repair:
        rows = repairs(machine, given.inventory, given.host, rows, memory)
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
