"""docs/must.md: what must be judged on each kind of node, from the checks' own declarations.

`python -m tools.must` writes the page; tests hold it to the table and to nodes whose outputs were taken away.
"""

import sys
from collections.abc import Iterator, Sequence

from flightline_node.judge import skips
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.must import Wanted, table_of
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Check, Site, SkipReason
from tools.generated import ROOT, generate

PAGE = ROOT / "docs" / "must.md"
KINDS = (
    "p3dn.24xlarge", "p4d.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge",
    "p6e-gb200.36xlarge", "g4dn.xlarge", "g5.48xlarge", "g6.xlarge", "g6e.12xlarge", "trn1.2xlarge", "trn1.32xlarge",
    "trn2.48xlarge", "inf2.xlarge", "none",
)  # fmt: skip
"""One instance type of each hardware, and the machine without a type."""
REASONS: dict[str, SkipReason] = {one.id: one for one in vars(skips).values() if isinstance(one, SkipReason)}
MUST, NOT_HERE = "must", "-"

_INTRO = """\
# What must be judged

Generated from the checks' declarations by `python -m tools.must`; edit there.

A preflight is *go* only when each check below was measured, or was skipped for a reason that holds. The control side
makes this table itself, from the instance type's row, the level and the inventory; nothing of it comes from the node.
What a node says beside it is UNKNOWN, and blocks: a SKIP for another reason or for none, an INFO where a measurement is
wanted, a check that is missing. A node's word that a finding was waived counts for nothing: the control side applies
the waivers.

`flightline judge` takes every reason of the list, and `not_collected`: it judges the outputs that it is given.

## Reasons to skip

"""

_TABLE = """
## By instance type

*must*: without its evidence the check is UNKNOWN, so no-go. *-*: not for this type. Else the reasons for which it may
be skipped. Checks for which all of this is the same share a row. Other types are like the one of their hardware. A
level asks the checks of the levels before it too.
"""


def cell(row: Wanted) -> str:
    """What the table says of a check on a node."""
    free = [reason for reason, condition in row.reasons.items() if not condition.worse]
    if any(REASONS[reason].of_type for reason in free):
        return NOT_HERE
    return ", ".join(free) or MUST


def table(kind: str) -> dict[str, Wanted]:
    """The table of an instance type at the highest level, as nobody's inventory changes it."""
    return table_of(CHECKS.values(), (), Site(resolve(kind), {}, LEVELS[-1]))


def _holds(reason: SkipReason) -> str:
    words = ["by the type"] * reason.of_type
    words += [f"where its text is true, or {' or '.join(reason.worse)} found something"] * bool(reason.worse)
    words += [f"where {' or '.join(reason.measured)} was measured"] * bool(reason.measured)
    return "; ".join(words) or "where its text is true of inventory and type"


def _rows(checks: list[Check]) -> Iterator[str]:
    tables = {kind: table(kind) for kind in KINDS}
    alike: dict[str, list[str]] = {}
    for check in checks:
        alike.setdefault(" | ".join(cell(tables[kind][check.id]) for kind in KINDS), []).append(check.id)
    yield f"| checks | {' | '.join(KINDS)} |"
    yield f"|---|{'---|' * len(KINDS)}"
    yield from (f"| {', '.join(names)} | {cells} |" for cells, names in alike.items())


def render() -> str:
    """The whole page."""
    holding: dict[str, list[str]] = {}
    for one in REASONS.values():
        holding.setdefault(_holds(one), []).append(f"`{one.id}` {one.says}")
    parts = [_INTRO, *(f"- Holds {by}: {'; '.join(said)}\n" for by, said in holding.items()), _TABLE]
    for level in LEVELS:
        parts.append(
            f"\n### {level}\n\n" + "\n".join(_rows([one for one in CHECKS.values() if one.level == level])) + "\n"
        )
    return "".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with --check say that it is old."""
    return generate("must", "Write docs/must.md from the checks' declarations.", arguments, lambda: {PAGE: render()})


if __name__ == "__main__":
    sys.exit(main())
