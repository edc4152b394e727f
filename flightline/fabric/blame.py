"""Who is to blame, from the pairs of three rounds. Pure.

A node that failed with every partner, one of them proven, is bad. A path is bad where a pair failed each time and both
ends passed with others. What failed once and passed when it was tested again is intermittent: both ends are named.
Where nobody is proven (everything fails) the whole fabric is at fault, and no node is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .pairs import Pair, PairReadings, Tested

NODE, PATH, INTERMITTENT, UNCLEAR, GROUP, FABRIC = "node", "path", "intermittent", "unclear", "group", "fabric"
GROUP_SHARE = 0.75
"""Of a group's nodes that failed with nodes of other groups and passed with their own: its uplink, not each of them."""


@dataclass(frozen=True)
class Blame:
    """One fault. nodes: whom it names; sending: the one of a path whose sending is slow, where only one is."""

    kind: str
    nodes: tuple[str, ...]
    why: str
    sending: str = ""


def blames(tested: Sequence[Tested], groups: Mapping[str, str] | None = None) -> list[Blame]:
    """Every fault that the tests show. groups: node -> part of the network (EC2 instance topology), where known."""
    seen = PairReadings.of(tested)
    if not seen.failures:
        return []
    if not seen.passed:
        return [_of_all(seen)]
    shared = _groups_at_fault(tested, groups or {})
    of_group = {node for blame in shared for node in blame.nodes}
    bad = [node for node in seen.failed if node not in of_group and _is_culprit(node, seen)]
    found = shared + [Blame(NODE, (node,), _node_text(node, seen)) for node in sorted(bad)]
    left = [
        test for test in seen.failures if not set(test.pair) & set(bad) and not _crosses(test, of_group, groups or {})
    ]
    return found + _of_pairs(left, tested, seen)


def _of_all(seen: PairReadings) -> Blame:
    if len(seen.failures[0].pair) == len(seen.failed):
        return Blame(UNCLEAR, tuple(sorted(seen.failed)), f"{seen.failures[0].why}; with two nodes none can be cleared")
    return Blame(FABRIC, (), f"no pair passed: {seen.failures[0].why}")


def _is_culprit(node: str, seen: PairReadings) -> bool:
    """It passed with nobody and failed with somebody who passes with others."""
    return not seen.passed.get(node) and any(seen.passed.get(other) for other in seen.failed[node])


def _node_text(node: str, seen: PairReadings) -> str:
    why = next(test.why for test in seen.failures if node in test.pair)
    proven = sorted(other for other in seen.failed[node] if seen.passed.get(other))
    return f"failed with {_names(seen.failed[node])} and passed with none, {_names(proven)} passed with others: {why}"


def _names(nodes: Iterable[str]) -> str:
    listed = sorted(nodes)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")


def _crosses(test: Tested, of_group: set[str], groups: Mapping[str, str]) -> bool:
    """A failure that a group's bad uplink explains."""
    first, second = test.pair
    return bool({first, second} & of_group) and groups.get(first) != groups.get(second)


def _groups_at_fault(tested: Sequence[Tested], groups: Mapping[str, str]) -> list[Blame]:
    """Groups whose nodes fail with others and pass among themselves."""
    outside: dict[str, list[bool]] = defaultdict(list)
    inside: dict[str, list[bool]] = defaultdict(list)
    for test in tested:
        first, second = (groups.get(node, "") for node in test.pair)
        for group in {first, second} - {""}:
            (inside if first == second else outside)[group].append(test.good)
    bad = [
        group
        for group, results in outside.items()
        if len(results) > 2 and results.count(False) >= GROUP_SHARE * len(results) and any(inside[group])
    ]
    # The partner group of the only bad one sees failures as well: it is at fault only if it fails with others too.
    return [
        Blame(GROUP, tuple(sorted(node for node, group in groups.items() if group == name)),
              f"nodes of {name} pass among themselves and fail with the rest of the network")
        for name in sorted(bad)
    ]  # fmt: skip


def _of_pairs(left: Sequence[Tested], tested: Sequence[Tested], seen: PairReadings) -> list[Blame]:
    """Of failures that no bad node explains."""
    of_pair: dict[frozenset[str], list[Tested]] = defaultdict(list)
    for test in tested:
        of_pair[test.pair.key].append(test)
    several = {node for test in left for node in test.pair if len(_partners(node, left)) > 1}
    found = [Blame(INTERMITTENT, (node,), _mixed_text(node, left, seen)) for node in sorted(several)]
    for key in dict.fromkeys(test.pair.key for test in left if not set(test.pair) & several):
        found.append(_of_pair(of_pair[key], seen))
    return found


def _partners(node: str, failures: Sequence[Tested]) -> set[frozenset[str]]:
    return {test.pair.key for test in failures if node in test.pair}


def _mixed_text(node: str, left: Sequence[Tested], seen: PairReadings) -> str:
    others = {other for key in _partners(node, left) for other in key} - {node}
    return f"failed with {_names(others)} and passed with {_names(seen.passed[node])}"


def _of_pair(tests: Sequence[Tested], seen: PairReadings) -> Blame:
    pair, failures = tests[0].pair, [test for test in tests if not test.good]
    sides = tuple(sorted(pair))
    if not all(seen.passed.get(node) for node in pair):
        return Blame(UNCLEAR, sides, f"{failures[0].why}; neither was cleared by another")
    if len(failures) < len(tests):
        return Blame(INTERMITTENT, sides, f"failed {len(failures)} of {len(tests)} times: {failures[0].why}")
    senders = frozenset.union(*(test.slow for test in failures))
    sending = next(iter(senders)) if len(senders) == 1 else ""
    return Blame(
        PATH, sides, f"failed {len(failures)} of {len(tests)} times, both pass with others: {failures[0].why}", sending
    )


def cleared(tested: Iterable[Tested], found: Sequence[Blame]) -> set[str]:
    """Nodes that passed and that no blame names."""
    seen = PairReadings.of(tested)
    return {node for node in seen.passed if seen.passed[node]} - {node for blame in found for node in blame.nodes}


__all__ = ["FABRIC", "GROUP", "INTERMITTENT", "NODE", "PATH", "UNCLEAR", "Blame", "Pair", "blames", "cleared"]
