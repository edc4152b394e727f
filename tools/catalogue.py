"""docs/checks.md: what each check looks at and what to do for its finding, from the check files.

`python -m tools.catalogue` writes the page; a test compares the two. The first command is that of the probe whose
output the check reads, unless the check names a better one.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from flightline.fleet.checks import FLEET_CHECKS
from flightline.record import reasons as control
from flightline_node.ask.probes import PROBES, Probe
from flightline_node.judge import reasons
from flightline_node.judge.checks import CHECKS, reasons_of
from flightline_node.know.remedies import EC2, NODE, PERSON
from flightline_node.model import LEVELS, Check, Reason, Remedy
from flightline_node.read.parsers import PARSERS
from tools.generated import ROOT, generate

DOCS = ROOT / "docs"
PAGE = DOCS / "checks.md"

READERS: Mapping[str, str] = {
    "imds": "ec2-metadata --all",
    "versions": "uname -r; cat /opt/amazon/efa_installed_packages",
    "limits": "ulimit -l; grep -r memlock /etc/security",
}

_TAKERS = {PERSON: "a person", NODE: "healing, on the node", EC2: "healing, through EC2"}


def _remedies() -> Iterator[str]:
    """The table of remedies; NONE asks for nothing."""
    ladder = sorted(remedy.row.rung for remedy in Remedy if remedy.row.rung)
    yield from (
        "A finding names its remedy. What each means on EC2, and its rung of [healing](healing.md):",
        "",
    )
    yield from ("| remedy | do | rung | who takes it |", "|---|---|--:|---|")
    for remedy in Remedy:
        row = remedy.row
        if row.advice:
            rung = str(ladder.index(row.rung) + 1) if row.rung else ""
            yield f"| {remedy} | {row.guide or row.advice} | {rung} | {_TAKERS[row.by]} |"
    yield from ("", "UNKNOWN blocks like FAIL: mend what kept the tool from answering, then measure again.", "")


_REASONS = """\
A finding that is no PASS carries the id of its reason; programs match the id, never the message. A part after a dot
says which of a family it is: `xid.79`, `unreadable.kernel_log`. Any check may have these: """


def _number(value: float) -> str:
    return "unbounded" if value == float("inf") else f"{value:g}"


def _thresholds(check: Check) -> Iterator[str]:
    for one in check.thresholds:
        value = f"{one.default:g} {one.unit} (bounds {_number(one.minimum)} to {_number(one.maximum)})"
        yield f"- Threshold `{check.id}.{one.name}`: {value}; {one.what}. Source: {one.source}"


def _command(probe: Probe) -> str:
    if probe.reader:
        return READERS.get(probe.reader, "")
    words = [part.replace("{root}", "") for part in probe.commands[0]]
    return " ".join(words) if words[:2] != ["sh", "-c"] else ""


def first_command(check: Check) -> str:
    """The first command to run; a check of a file that no simple command writes has its collection instead."""
    if check.first:
        return check.first
    reads = [name for name in (*check.needs, *check.needs_any) if name in PARSERS]
    files = [file for name in reads for file in PARSERS[name].files]
    commands = [_command(probe) for file in files for probe in PROBES if probe.file == file]
    return next((command for command in commands if command), f"flightline collect --out DIR --level {check.level}")


def _judges(check: Check) -> str:
    """The first paragraph of what its judging function says of itself."""
    return " ".join((check.evaluate.__doc__ or "").split("\n\n")[0].split())


def _reasons(found: Iterable[Reason]) -> str:
    return "; ".join(f"`{one.id}` {one.says}" for one in found)


def _inputs(check: Check) -> Iterator[str]:
    reads = [*check.needs, *(" or ".join(check.needs_any),) * bool(check.needs_any)]
    yield f"reads {', '.join(reads)}" + (f", if there {', '.join(check.wants)}" if check.wants else "")
    if check.expects:
        yield f"compares with expected {', '.join(check.expects)}"
    if check.skips:
        yield f"may be skipped: {', '.join(one.id for one in check.skips)} ([must.md](must.md))"


def _repetition(check: Check) -> str:
    """What the number of each class comes to."""
    limits = {threshold.name: threshold for threshold in check.thresholds}
    said = []
    for one in check.repeated:
        limit = limits.get(one.threshold)
        end = f"FAIL from {limit.default:g} per {one.per} (`{one.threshold}`)" if limit else f"at any number: {one.why}"
        start = f"no preflight starts on {one.refused} that did not pass, " if one.refused else ""
        said.append(f"{one.what}: {one.alone}, {start}{end}")
    return "; ".join(said)


def _entry(check: Check) -> Iterator[str]:
    yield from (f"## {check.id}", "")
    yield (
        f"**{check.title}** (level {check.level}; {', '.join(check.tags)}). {check.what} {check.why} "
        f"*How it judges:* {_judges(check)} *Out of service for it?* {check.out_of_service} "
        f"*First:* `{first_command(check)}` *Remedy:* {check.remedy}"
    )
    yield ""
    yield f"- Evidence: {'; '.join(_inputs(check))}. Source: {check.source}"
    if check.repeated:
        window = "`window_hours`" if any(one.name == "window_hours" for one in check.thresholds) else "the boot"
        yield f"- Repetition, within {window}: {_repetition(check)}"
    if reasons_of(check.id):
        yield f"- Reasons: {_reasons(reasons_of(check.id))}"
    yield from (*_thresholds(check), "")


def render(checks: Iterable[Check]) -> str:
    """The whole page."""
    ordered = sorted(checks, key=lambda check: (LEVELS.index(check.level), check.tags[:1], check.id))
    lines = [
        "# Checks",
        "",
        "Generated from `module_utils/flightline_node/judge/checks/` by `python -m tools.catalogue`; edit there.",
        "",
        "How often each was tried on the labelled corpus: [corpus.md](corpus.md).",
        "",
        "Any finding can be set aside for a while, with a reason. In the inventory:",
        "",
        "```yaml",
        "flightline_waivers:",
        f"  - check: {ordered[0].id}",
        '    scope: "gpu-07"          # host, instance id, GPU UUID, serial or PCI address; shell patterns allowed',
        "    reason: why it is safe to go on",
        "    owner: who answers for it",
        "    expiry: 2026-12-31       # the last day; after it no run of its hosts begins",
        "```",
        "",
        *_remedies(),
        f"{_REASONS}{_reasons(reasons.COMMON)}.",
        "",
    ]
    for check in ordered:
        lines += _entry(check)
    lines += ["# Checks of the fleet", ""]
    for name, fleet in sorted(FLEET_CHECKS.items()):
        made = _reasons(control.OF_CHECK.get(name, ()))
        story = f"**{fleet.title}**. {fleet.why} *Remedy:* {fleet.remedy}"
        lines += [f"## {name}", "", story + f" *Reasons:* {made}" * bool(made), ""]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with --check say that it is old."""
    does = "Write docs/checks.md from the check files."
    return generate("catalogue", does, arguments, lambda: {PAGE: render(CHECKS.values())})


if __name__ == "__main__":
    sys.exit(main())
