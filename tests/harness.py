"""What tests of checks and parsers share: judge facts or files without a node."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from flightline_node import settings as site
from flightline_node.judge import judgement as judging
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import resolve
from flightline_node.model import Facts, Finding, Status, worst
from flightline_node.read import bundle as bundles
from flightline_node.read.facts import MISSING, READ, UNREADABLE, FactBook, Parsed

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
FIXTURES = Path(__file__).parent / "unit" / "fixtures"
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FIXTURES),
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    autoescape=False,
)
_TAG = re.compile(r"<(\w+)[^<>]*>(?:(?!\s)[^<>]*)?</\1>|<[^<>]*>|[^<>\s](?:[^<>]*[^<>\s])?")


def _indented(xml: str) -> str:
    """An element a line, by tabs, as nvidia-smi prints it; `<a> x </a>` has its text on a line of its own."""
    lines, depth = "", 0
    for token in (found.group() for found in _TAG.finditer(xml)):
        depth -= token.startswith("</")
        lines += "\t" * depth + token + "\n"
        depth += token[0] == "<" and token[1] not in "/?!" and "</" not in token
    return lines


_TEMPLATES.filters["indented"] = _indented
_TEMPLATES.filters["pretty"] = lambda value, indent: json.dumps(value, indent=indent, ensure_ascii=False)
BROKEN = object()
"""As a parser's facts: the file was there and could not be read."""


@cache
def sample(path: str) -> bytes:
    """The bytes of a fixture, `<tool>/<file>`.

    Where its blocks repeat, it is made of the template `<file>.j2`, which has the filters `pretty` for JSON and `indented` for XML.
    """
    whole = FIXTURES / path
    return whole.read_bytes() if whole.is_file() else _TEMPLATES.get_template(f"{path}.j2").render().encode()


def samples(pattern: str = "*/*") -> list[str]:
    """The paths of the fixtures that match, for `sample`."""
    found = (str(path.relative_to(FIXTURES)).removesuffix(".j2") for path in FIXTURES.glob(pattern))
    return sorted(path for path in found if not path.endswith((".md", ".part")))


class InMemory(bundles.Bundle):
    """A bundle of files that stand nowhere: name to content."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(Path(), {})
        self._files = files

    def has(self, file: str) -> bool:
        return file in self._files

    def read(self, file: str) -> bytes:
        return self._files[file]


class _Given(FactBook):
    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def get(self, name: str) -> Parsed:
        if name not in self._facts:
            return Parsed(MISSING)
        if self._facts[name] is BROKEN:
            return Parsed(UNREADABLE, None, "broken on purpose", "", ("garbage",))
        return Parsed(READ, self._facts[name])


def judge_facts(
    check_id: str,
    facts: dict[str, Facts | object],
    instance_type: str = "p5.48xlarge",
    *,
    expected: dict[str, Any] | None = None,
    thresholds: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    level: str = "deep",
    required: bool = True,
    measures: dict[str, Any] | None = None,
) -> list[Finding]:
    """Findings of one check for given facts (parser name -> facts, or BROKEN); `measures` takes its measures.

    Fails when the check breaks: the judge's UNKNOWN for that must not pass for the check's own. Fails too when a FAIL
    does not say what was measured and what was wanted.
    """
    settings = site.build(level=level, thresholds=thresholds, options=options)
    on, taken = resolve(instance_type, expected), {} if measures is None else measures
    findings = judging._judge_check(CHECKS[check_id], _Given(facts), on, settings, NOW, taken, required)
    assert not any(finding.message.startswith("the check itself broke") for finding in findings), findings
    failed = [finding for finding in findings if finding.status is Status.FAIL]
    assert not [finding for finding in failed if finding.measured is None or finding.expected is None]
    return findings


def judge_dir(directory: Path, instance_type: str = "p5.48xlarge", **expected: Any) -> judging.Judgement:
    """Judge a bundle or a bare directory as `flightline judge` does."""
    return judging.judge(
        bundles.load(directory), resolve(instance_type, expected), site.build(level="deep"), NOW, required=False
    )


def status(findings: Sequence[Finding]) -> Status:
    """The worst status of the findings."""
    return worst(finding.status for finding in findings)


def only(findings: Sequence[Finding], wanted: Status) -> Finding:
    """The one finding of a status; fails the test when there is none or several."""
    found = [finding for finding in findings if finding.status is wanted]
    assert len(found) == 1, f"wanted one {wanted}, got {findings}"
    return found[0]
