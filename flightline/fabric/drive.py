"""Play the rounds of a fabric test: everybody, then pairs until the answer stands. `play` is what runs on the nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline_node.know.expected import NO_TYPE, Expected

from .blame import FABRIC, NODE, Blame, blames
from .busy_cpu import discounted
from .criterion import LEAST_SHARE, OF_BASELINE, OF_TYPE, Measured, judge
from .logs import LogResult, read_log
from .pairs import Pair, Tested
from .plan import next_round

READY = "ready"
JUDGED_GB_S = 1e-9
"""Anything at all."""


@dataclass(frozen=True)
class RoundAnswer:
    """What one host said in a round. trouble: why it said nothing of use; lost: it could not be reached."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""
    lost: bool = False
    strays: tuple[str, ...] = ()


Play = Callable[[str, Mapping[str, Sequence[str]], str], Mapping[str, RoundAnswer]]
"""(READY, {}, "") or (a round's name, leader -> nodes, the collective) -> each host's answer."""


@dataclass(frozen=True)
class FabricNodes:
    """Who is tested, with which collectives. ring: inventory names in the order of the ranks.

    addresses: as the launcher has them. groups: node -> its part of the network, where known;
    outside: node -> why it stands apart from the others. ranks: on each node, 0 where nobody knows.
    pair_floors: collective -> GB/s that pairs of known-good nodes reached, where a baseline is in use.
    """

    ring: tuple[str, ...]
    addresses: Mapping[str, str]
    expected: Expected
    collectives: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    ranks: int = 0
    pair_floors: Mapping[str, float] = field(default_factory=dict)


@dataclass
class FabricResult:
    """What came of it. together: collective -> of all nodes; left_out: host -> why it took no part.

    collective: what the pairs ran; measured: their figures, round by round; called: a host's own name ->
    the inventory's.
    """

    fleet: FabricNodes
    left_out: dict[str, str] = field(default_factory=dict)
    together: dict[str, LogResult] = field(default_factory=dict)
    collective: str = ""
    measured: list[list[Measured]] = field(default_factory=list)
    rounds: list[list[Tested]] = field(default_factory=list)
    found: list[Blame] = field(default_factory=list)
    strays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    least_share: float = LEAST_SHARE
    called: dict[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> list[str]:
        """Nodes that took part in something that passed and that nothing names."""
        named = {node for blame in self.found for node in blame.nodes} | set(self.left_out)
        if self.together and not self.trouble and not self.rounds:
            return [node for node in self.fleet.ring if node not in named]
        passed = {node for results in self.rounds for test in results if test.good for node in test.pair}
        return [node for node in self.fleet.ring if node in passed and node not in named]

    @property
    def go(self) -> bool:
        """Everybody took part, and nothing was wrong, together or in pairs."""
        return bool(self.together) and not self.trouble and not self.found and not self.left_out

    @property
    def trouble(self) -> str:
        """What was wrong with all nodes together; '' when nothing was."""
        return next((f"{name}: {log.trouble}" for name, log in self.together.items() if log.trouble), "")


def drive(
    fleet: FabricNodes,
    play: Play,
    place: Path,
    say: Callable[[str], None],
    pairs_always: bool = False,
    least_share: float = LEAST_SHARE,
) -> FabricResult:
    """Test a fleet; without an instance type nothing says what all together should reach, so pairs always follow.

    least_share: of what the better pairs reach. place: where logs are kept. say: one line of progress. Raises OSError
    when a log cannot be kept.
    """
    result = FabricResult(fleet, least_share=least_share)
    ring = _ready(result, play(READY, {}, ""))
    if len(ring) < 2:
        return result
    say(f"all {len(ring)} nodes together: {', '.join(fleet.collectives)}")
    _together(result, ring, play, place, say)
    # What known-good pairs reached can only be held against pairs.
    judged = fleet.expected.instance_type != NO_TYPE and not fleet.pair_floors
    if not result.trouble and not pairs_always and judged:
        return result
    # What fell short is what the pairs run: it is what tells them apart.
    result.collective = next((name for name, log in result.together.items() if log.trouble), fleet.collectives[0])
    while pairs := next_round([node for node in ring if node not in result.left_out], result.rounds, fleet.groups):
        number = len(result.measured) + 1
        say(f"round {number}: {len(pairs)} pairs at once")
        result.measured.append(_round(result, number, pairs, play, place))
        floor, floor_is = _floor(fleet, result.collective)
        flat = iter(judge([one for played in result.measured for one in played], floor, least_share, floor_is))
        result.rounds = [[next(flat) for _ in played] for played in result.measured]
        bad = sum(not test.good for test in result.rounds[-1])
        say(f"round {number}: {bad} of {len(pairs)} pairs failed" if bad else f"round {number}: all passed")
    named = blames([test for results in result.rounds for test in results], fleet.groups)
    result.found = discounted(named, result.measured, result.rounds)
    result.found += _off_efa(result)
    return result


def _off_efa(result: FabricResult) -> list[Blame]:
    """Nodes whose own ranks say that they used no EFA, and that no pair named: it came and went."""
    if any(blame.kind == FABRIC for blame in result.found):
        return []
    named = {node for blame in result.found for node in blame.nodes}
    said = {host: text for log in result.together.values() for host, text in log.off_efa.items()}
    nodes = {result.called.get(host, host): text for host, text in said.items()}
    return [Blame(NODE, (node,), nodes[node]) for node in result.fleet.ring if node in nodes and node not in named]


def _floor(fleet: FabricNodes, collective: str) -> tuple[float | None, str]:
    """A type's own floor has judged each log already; then few pairs need no peers to be judged by."""
    learned = fleet.pair_floors.get(collective)
    if learned:
        return learned, OF_BASELINE
    return None if fleet.expected.instance_type == NO_TYPE else JUDGED_GB_S, OF_TYPE


def _ready(result: FabricResult, answers: Mapping[str, RoundAnswer]) -> list[str]:
    """The nodes that can take part; why the others cannot is kept."""
    machines: dict[str, list[str]] = defaultdict(list)
    for node in result.fleet.ring:
        answer = answers.get(node, RoundAnswer(trouble="gave no answer", lost=True))
        why = answer.trouble or "; ".join(map(str, answer.facts.get("problems") or ()))
        if why:
            result.left_out[node] = why
        else:
            machines[str(answer.facts.get("machine"))].append(node)
            result.called[str(answer.facts.get("hostname") or node).partition(".")[0]] = node
    for names in machines.values():
        for node in names[1:]:
            result.left_out[node] = f"answers as the same machine as {names[0]}, wanted a machine of its own"
    return [node for node in result.fleet.ring if node not in result.left_out]


def _together(result: FabricResult, ring: Sequence[str], play: Play, place: Path, say: Callable[[str], None]) -> None:
    """Each collective over all nodes, until one breaks: what broke it breaks the next, after a deadline more."""
    for collective in result.fleet.collectives:
        answers = play(f"all-{collective.replace('_', '-')}", {ring[0]: _addresses(result.fleet, ring)}, collective)
        _note_strays(result, answers)
        answer = answers.get(ring[0], RoundAnswer(trouble="gave no answer"))
        if answer.trouble:
            log = LogResult(f"{ring[0]} could not start the test: {answer.trouble}", None)
        else:
            kept, ranks = place / f"all-{collective}", len(ring) * result.fleet.ranks
            log = read_log(kept, collective, answer.facts, result.fleet.expected, len(ring), ranks)
        result.together[collective] = log
        say(f"{collective}: {log.trouble or f'{log.busbw_gb_s:g} GB/s busbw'}")
        if log.trouble and not log.slow_only:
            return


def _addresses(fleet: FabricNodes, nodes: Sequence[str]) -> list[str]:
    return [fleet.addresses.get(node, node) for node in nodes]


def _note_strays(result: FabricResult, answers: Mapping[str, RoundAnswer]) -> None:
    for host, answer in answers.items():
        if answer.strays:
            result.strays[host] = answer.strays


def _round(result: FabricResult, number: int, pairs: Sequence[Pair], play: Play, place: Path) -> list[Measured]:
    tests = {pair.first: _addresses(result.fleet, pair) for pair in pairs}
    answers = play(f"r{number}", tests, result.collective)
    _note_strays(result, answers)
    for pair in pairs:
        for node in pair:
            # The second of a pair is asked only where its test did not end well.
            answer = answers.get(node, RoundAnswer(lost=node == pair.first, trouble="no answer"))
            if answer.lost:
                result.left_out[node] = f"lost in round {number}: {answer.trouble}"
    return [_measured(result, number, pair, answers.get(pair.first), place) for pair in pairs]


def _measured(result: FabricResult, number: int, pair: Pair, answer: RoundAnswer | None, place: Path) -> Measured:
    if answer is None or answer.trouble:
        return Measured(pair, {}, error=answer.trouble if answer else f"{pair.first} gave no answer")
    kept = place / f"r{number}-{pair.first}-{pair.second}"
    ranks = len(pair) * result.fleet.ranks
    log = read_log(kept, result.collective, answer.facts, result.fleet.expected, len(pair), ranks)
    if log.trouble and not log.slow_only:
        return Measured(pair, {}, error=log.trouble)
    if log.busbw_gb_s is None:
        return Measured(pair, {}, error="no bandwidth in its output")
    # One figure for both directions: nccl-tests gives the time of the slower.
    error = log.trouble if log.slow_only else ""
    busy = answer.facts.get("busy_share")
    share = float(busy) if isinstance(busy, (int, float)) else 0.0
    return Measured(pair, dict.fromkeys(pair, log.busbw_gb_s), error=error, busy_share=share, sizes=log.sizes)
