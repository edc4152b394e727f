"""The check catalogue as Markdown, generated from the check files so that it cannot drift.

`python -m flightline.catalogue` writes docs/checks.md; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from flightline_node.checks import CHECKS
from flightline_node.model import LEVELS, Check

from .severity import ANSWERS

PAGE = Path(__file__).parents[1] / "docs" / "checks.md"


def _number(value: float) -> str:
    return "unbounded" if value == float("inf") else f"{value:g}"


def _thresholds(check: Check) -> Iterator[str]:
    if not check.thresholds:
        return
    yield "| threshold | default | bounds | what | source |"
    yield "|---|---|---|---|---|"
    for threshold in check.thresholds:
        bounds = f"{_number(threshold.minimum)} to {_number(threshold.maximum)}"
        yield (
            f"| `{check.id}.{threshold.name}` | {threshold.default:g} {threshold.unit} | {bounds} "
            f"| {threshold.what} | {threshold.source} |"
        )
    yield ""


def _judges(check: Check) -> str:
    """The first paragraph of what its judging function says of itself."""
    return " ".join((check.evaluate.__doc__ or "").split("\n\n")[0].split())


def _entry(check: Check) -> Iterator[str]:
    yield f"## {check.id}"
    yield ""
    yield f"**{check.title}** · level {check.level} · tags {', '.join(check.tags)}"
    yield ""
    yield f"- What: {check.what}"
    yield f"- Why: {check.why}"
    yield f"- How it judges: {_judges(check)}"
    yield f"- Out of service for it? {ANSWERS[check.id]}"
    yield f"- Remedy: {check.remedy}"
    yield f"- Source: {check.source}"
    reads = [*check.needs, *(" or ".join(check.needs_any),) * bool(check.needs_any)]
    yield f"- Reads: {', '.join(reads)}" + (f"; if there: {', '.join(check.wants)}" if check.wants else "")
    if check.expects:
        yield f"- Compares with: expected {', '.join(check.expects)}"
    yield (
        f"- Waiver: `{{check: {check.id}, scope: gpu-07, reason: known and harmless, owner: ops@example.com, "
        "expiry: 2026-12-31}`"
    )
    yield ""
    yield from _thresholds(check)


def render(checks: Iterable[Check]) -> str:
    """The whole page."""
    ordered = sorted(checks, key=lambda check: (LEVELS.index(check.level), check.tags[:1], check.id))
    lines = [
        "# Checks",
        "",
        "Generated from `module_utils/flightline_node/checks/` by `python -m flightline.catalogue`; edit there.",
        "",
        "Any finding can be set aside for a while, with a reason. In the inventory:",
        "",
        "```yaml",
        "flightline_waivers:",
        f"  - check: {ordered[0].id}",
        '    scope: "gpu-07"          # host, instance id, GPU UUID, serial or PCI address; shell patterns allowed',
        "    reason: why it is safe to go on",
        "    owner: who answers for it",
        "    expiry: 2026-12-31       # after this day the waiver itself fails the run",
        "```",
        "",
    ]
    for check in ordered:
        lines += _entry(check)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(CHECKS.values()), encoding="utf-8")
