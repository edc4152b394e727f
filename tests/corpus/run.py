"""Judge every case of the corpus offline, as `flightline judge` does, and count per check.

`python -m tests.corpus.run` prints the table; with --write it also writes docs/corpus.md; with --check ID it judges only
the cases in which that check fires or that are healthy. Exit status 1 unless every check has a case, every case that should fire fires with the right status and remedy, and nothing else fires.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from flightline_node.judge.checks import CHECKS
from flightline_node.judge.judgement import Judgement, judge
from flightline_node.know.expected import resolve
from flightline_node.model import RANK, Finding, Status
from flightline_node.settings import NodeSettings
from flightline_node.settings import build as site
from tests.harness import NOW, InMemory
from tests.messages import catalogue

from . import peers, trials
from .cases import Case, load

PAGE = Path(__file__).parents[2] / "docs" / "corpus.md"
MUTATION = Path(__file__).parents[1] / "mutation" / "result.json"
HEALTHY = "healthy"
FIRES = frozenset({Status.WARN, Status.FAIL, Status.UNKNOWN})


@dataclass
class Count:
    """What became of one check over the corpus. quiet: cases in which it answered and should not fire."""

    should: int = 0
    fired: int = 0
    quiet: int = 0
    false: int = 0


@dataclass
class Outcome:
    """The counts, and a line for every answer that is not the label's."""

    cases: list[Case]
    counts: dict[str, Count] = field(default_factory=lambda: {name: Count() for name in CHECKS})
    wrong: list[str] = field(default_factory=list)
    right_verdicts: int = 0

    @property
    def without_case(self) -> list[str]:
        """Checks that no case makes fire: nothing is known of their recall."""
        return [name for name, count in self.counts.items() if not count.should]

    @property
    def good(self) -> bool:
        """Recall 100 percent, no false positive, every verdict right, every check shown to fire."""
        return not self.wrong and not self.without_case


def judge_case(case: Case, settings: NodeSettings) -> Judgement:
    """Judge the case's files as a bare directory of them is judged."""
    expected = resolve(case.instance_type, case.expected)
    return judge(InMemory(case.material()), expected, settings, NOW, required=False)


def _worst(findings: Iterable[Finding]) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for finding in findings:
        if finding.check not in found or RANK[finding.status] > RANK[found[finding.check].status]:
            found[finding.check] = finding
    return found


def _agrees(findings: Iterable[Finding], worst: Finding, case: Case) -> bool:
    status, remedy = case.expects[worst.check]
    remedies = {finding.remedy for finding in findings if finding.check == worst.check and finding.status is status}
    return worst.status is status and (remedy is None or remedy in remedies)


def _compare(case: Case, judgement: Judgement, outcome: Outcome) -> None:
    for check, worst in _worst(judgement.findings).items():
        count = outcome.counts[check]
        said = f"{case.id}: {check} {worst.status} {worst.remedy}: {worst.message}"
        if check in case.expects:
            count.should += 1
            right = _agrees(judgement.findings, worst, case)
            count.fired += right
            if not right:
                wanted = " ".join(str(word) for word in case.expects[check] if word)
                outcome.wrong.append(f"wanted {wanted}: {said}")
        elif check not in case.may and worst.status is not Status.SKIP:
            count.quiet += 1
            if worst.status in FIRES:
                count.false += 1
                outcome.wrong.append(f"false positive: {said}")
    outcome.right_verdicts += judgement.verdict == case.verdict
    if judgement.verdict != case.verdict:
        outcome.wrong.append(f"{case.id}: verdict {judgement.verdict}, wanted {case.verdict}")


def run(cases: list[Case]) -> Outcome:
    """Judge the cases."""
    outcome, settings = Outcome(cases), site(level="deep")
    for case in cases:
        _compare(case, judge_case(case, settings), outcome)
    return outcome


def _table(outcome: Outcome) -> list[str]:
    rows = ["| check | cases that should fire | fired | recall | answered and should not | false positives |"]
    rows.append("|---|--:|--:|--:|--:|--:|")
    for name, count in sorted(outcome.counts.items()):
        recall = f"{100 * count.fired / count.should:.0f} %" if count.should else "no case"
        rows.append(f"| {name} | {count.should} | {count.fired} | {recall} | {count.quiet} | {count.false} |")
    return rows


def _by(cases: list[Case], *names: str) -> list[str]:
    counts = Counter(tuple(getattr(case, name) or "-" for name in names) for case in cases)
    rows = ["| " + " | ".join(names) + " | cases |", "|---" * len(names) + "|--:|"]
    return rows + ["| " + " | ".join(map(str, key)) + f" | {number} |" for key, number in sorted(counts.items())]


def _mutation() -> list[str]:
    if not MUTATION.is_file():
        return ["Not measured yet: `make mutation`."]
    found = json.loads(MUTATION.read_text(encoding="utf-8"))
    lines = [
        f"`make mutation` changed the judging code of {found['checks']} checks in {found['mutants']} ways, one at a time "
        f"({found['sampling']}), and ran that check's own test file: **{found['killed']} killed, {found['survived']} "
        f"survived, {len(found.get('timed_out', []))} timed out** ({100 * found['killed'] / max(found['mutants'], 1):.1f} %). "
        "A change that means the same (a message, an unreachable branch) survives too; survivors are listed in "
        "`tests/mutation/result.json`.",
        "",
        "| mutation | mutants | killed |",
        "|---|--:|--:|",
    ]
    return lines + [f"| {kind} | {total} | {killed} |" for kind, (total, killed) in sorted(found["kinds"].items())]


def render(outcome: Outcome) -> str:
    """docs/corpus.md."""
    should = sum(count.should for count in outcome.counts.values())
    fired = sum(count.fired for count in outcome.counts.values())
    false = sum(count.false for count in outcome.counts.values())
    sources = Counter(case.source for case in outcome.cases)
    on_gpu = [case for case in outcome.cases if case.source == "recorded" and case.driver]
    lines = [
        "# Labelled corpus",
        "",
        "Written by `make corpus` from `tests/corpus/families/*.yml`; edit there.",
        "",
        f"{len(outcome.cases)} cases, each a bundle judged offline as `flightline judge` does: {fired} of {should} faults "
        f"found with the right status and remedy, {false} false positives, {outcome.right_verdicts} of "
        f"{len(outcome.cases)} verdicts right.",
        "",
        "## What this proves, and what not",
        "",
        f"**{len(on_gpu)} cases were recorded on a machine with a GPU.** {sources['recorded'] - len(on_gpu)} are recorded "
        f"outputs of host tools on machines without one. {sources['hand-written']} are written by hand after the formats "
        "that NVIDIA, AWS and the tools' sources document (each fixture folder's README names them). "
        f"{sources['simulated']} are stored outputs of the simulated fleet, healthy or with a fault put in. A driver "
        "generation is one fixture, or its neighbour's with the names that differ, made healthy and filled up to the type's "
        "number of GPUs, with the same faults put in.",
        "",
        "A label says which check must fire, with which status and remedy, and which others may. The labels follow vendor "
        "documents and the judging rules in docs/architecture.md; the same hands wrote labels, fixtures and checks, so this "
        "is no independent audit. The table says that the code does what those documents say on outputs of the "
        "documented shape. It does not say how often a real fault shows in these outputs.",
        "",
        "The first Xid or SXid code of each label stands behind every form of time stamp, the others behind one each in turn.",
        "",
        "## Cases",
        "",
        *_by(outcome.cases, "family", "source"),
        "",
        "nvidia-smi by driver, in the families that name one:",
        "",
        *_by([case for case in outcome.cases if case.driver], "driver"),
        "",
        "## Checks",
        "",
        *_table(outcome),
        "",
        "## Messages by tool",
        "",
        "What each tool can print, read from its source or documentation and not from the code that judges it; "
        "tests/messages says how a class is meant. Each message is judged behind every head of its file.",
        "",
        *catalogue.table(),
        "",
        "### Where a second reading differed",
        "",
        "The lists were read again by one question alone: this line by itself, at 3 am, would I start a run of 1,000 GPUs on "
        "it? Where the two readings differed, one class was decided (tests/messages/readings.yml).",
        "",
        *catalogue.readings_table(),
        "",
        "## Blind trials",
        "",
        "636 outputs were taken from public issue threads, forums and repositories on 2026-11-26, the newest hardware first: kernel logs, "
        "NCCL's and jobs' logs, tools. One reader labelled each while collecting (would I start a run of 1,000 GPUs on this?), a second "
        "without knowing that label or the rules here. Those of kinds that nothing here reads, cut-off tables, and those on which the two "
        "differed or were unsure left the trial; 431 were dealt to three rounds at random, a tenth of them with a type of instance. A fourth "
        "round was collected after those were mended: 185 outputs, of which 162 are of kinds that are read here. A fifth came after "
        f"that one: 155, of which 145 had the same label twice (sha256 of the labels before the judgement: {trials.FROZEN}). Each "
        "was judged alone; two of the healthy ones blocked in round 3 are a tool's output that no check judges, and a bundle in which "
        "nothing could be judged is no go. Wanted in the third: 92 %, 75 %, at most 2 %.",
        "",
        "Facts are measured apart: `python -m tests.corpus.facts FILE` takes lines of a text and what a person read in it (Xid codes with "
        "their devices, versions, numbers of devices, bandwidths, ECC counts, remapped rows, NVLink states, EFA) and says of each whether "
        "the parsers read the same; wanted 99.5 %. A key that nothing compares is listed and not counted. Of 191 such facts that the "
        "collectors of the three rounds had noted beside their labels 166 agree (86.9 %): most of the others are a number of GPUs or a "
        "driver's version that another tool's output or a job's log mentions, which no check asks there. In the fourth round they were noted "
        "before, of whatever a person could read, and 88 of 131 agree (67.2 %): ranks in a job's log, a driver that does not answer, bandwidths of "
        "tables without a head and what other tools count are no facts of ours. In the fifth, of what the text's own tool states, 56 of 60 agree "
        "(93.3 %). What a text of no kind that is read says (a burn test's list of GPUs, a scheduler's log), and what a key like gpus_died or "
        "driver_reachable tells of another tool, is no longer counted, and averages of nccom-test and devices of one-row matrices are compared: 92 of "
        "116 (79.3 %) in the fourth, 60 of 60 in the fifth; the others are ranks that failed, a NIC's or link's number in a sentence, and bandwidths without a table's head.",
        "",
        *trials.table(),
        "",
        "## What other tools look for",
        "",
        "Each rule of a peer that matches a text or a counter of a node, and what answers it here (tests/corpus/peers.yml). "
        "Their lines are judged alone, as `flightline judge` judges a log.",
        "",
        *peers.table(),
        "",
        "## Do the checks' own tests notice a change?",
        "",
        *_mutation(),
    ]
    return "\n".join(lines) + "\n"


def _one(check: str) -> int:
    """The same for one check: 0 when it fires in each case that says so, and nothing else is wrong in them."""
    outcome = run([case for case in load() if check in case.expects or case.family == HEALTHY])
    count = outcome.counts[check]
    sys.stdout.write(f"{check}: fired in {count.fired} of {count.should} cases, {count.false} false positives\n")
    sys.stderr.writelines(f"{line}\n" for line in outcome.wrong)
    return 0 if count.should and not outcome.wrong else 1


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 0 when all is as labelled."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--write", action="store_true", help="write docs/corpus.md")
    which.add_argument(
        "--check", choices=sorted(CHECKS), metavar="ID", help="only this check's cases and the healthy ones"
    )
    options = parser.parse_args(arguments)
    if options.check:
        return _one(options.check)
    outcome = run(load())
    page = render(outcome)
    sys.stdout.write("\n".join(_table(outcome)) + f"\n{len(outcome.cases)} cases\n")
    if options.write:
        PAGE.write_text(page, encoding="utf-8")
    for line in outcome.wrong:
        sys.stderr.write(line + "\n")
    for name in outcome.without_case:
        sys.stderr.write(f"{name}: no case makes it fire\n")
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
