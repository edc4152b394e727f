"""How well three rounds of pairs name what is at fault, simulated, and what the planning costs the control node.

Nothing here is measured on a network: bandwidth is drawn around 1 with the given noise, a fault lowers it.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flightline.fabric.blame import GROUP, INTERMITTENT, NODE, PATH, Blame, blames
from flightline.fabric.criterion import Measured, judge
from flightline.fabric.pairs import Pair
from flightline.fabric.plan import next_round

NOISE = 0.03
LEAF = 16


@dataclass
class World:
    """A ring of nodes and what is wrong with it: the share of bandwidth that each sender or path has left."""

    ring: list[str]
    rng: random.Random
    sender: dict[str, float] = field(default_factory=dict)
    receiver: dict[str, float] = field(default_factory=dict)
    path: dict[tuple[str, str], float] = field(default_factory=dict)
    now_and_then: dict[str, float] = field(default_factory=dict)
    uplink: dict[str, float] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    truth: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def test(self, pair: Pair) -> Measured:
        """One test of a pair."""
        return Measured(pair, {one: self._sent(one, other) for one, other in (pair, pair[::-1])})

    def _sent(self, one: str, other: str) -> float:
        left = min(self.sender.get(one, 1.0), self.receiver.get(other, 1.0), self.path.get((one, other), 1.0))
        if any(self.rng.random() < self.now_and_then.get(node, 0.0) for node in (one, other)):
            left = min(left, 0.3)
        if self.groups.get(one) != self.groups.get(other):
            left = min(left, *(self.uplink.get(self.groups.get(node, ""), 1.0) for node in (one, other)))
        return left * self.rng.gauss(1.0, NOISE)


def _some(world: World, count: int) -> list[str]:
    return world.rng.sample(world.ring, count)


def node_fault(world: World, count: int = 1) -> None:
    """Nodes slow in both directions."""
    for node in _some(world, count):
        world.sender[node] = world.receiver[node] = 0.5
        world.truth.add((NODE, (node,)))


def sending_fault(world: World) -> None:
    """A node that only sends slowly."""
    (node,) = _some(world, 1)
    world.sender[node] = 0.5
    world.truth.add((NODE, (node,)))


def path_fault(world: World, both: bool = True) -> None:
    """A path of the ring."""
    at = world.rng.randrange(len(world.ring))
    one, other = world.ring[at], world.ring[(at + 1) % len(world.ring)]
    world.path[one, other] = 0.5
    if both:
        world.path[other, one] = 0.5
    world.truth.add((PATH, tuple(sorted((one, other)))))


def intermittent_fault(world: World) -> None:
    """A node that is slow every second time."""
    (node,) = _some(world, 1)
    world.now_and_then[node] = 0.5
    world.truth.add((INTERMITTENT, (node,)))


def neighbours_fault(world: World) -> None:
    """Two nodes side by side."""
    at = world.rng.randrange(len(world.ring) - 1)
    for node in world.ring[at : at + 2]:
        world.sender[node] = world.receiver[node] = 0.5
        world.truth.add((NODE, (node,)))


def uplink_fault(world: World) -> None:
    """All paths out of one part of the network."""
    group = world.rng.choice(sorted(set(world.groups.values())))
    world.uplink[group] = 0.5
    world.truth.add((GROUP, tuple(sorted(node for node, name in world.groups.items() if name == group))))


FAULTS: dict[str, Callable[[World], None]] = {
    "none": lambda world: None,
    "one node": node_fault,
    "one node, sending only": sending_fault,
    "one path": path_fault,
    "one path, one direction": lambda world: path_fault(world, both=False),
    "two neighbours": neighbours_fault,
    "one in fifty nodes": lambda world: node_fault(world, max(2, len(world.ring) // 50)),
    "one node, every second time": intermittent_fault,
    "the uplink of one leaf": uplink_fault,
}


def rounds(world: World) -> tuple[list[Blame], int]:
    """Play the rounds; the blames, rounds played."""
    measures: list[list[Measured]] = []
    while True:
        flat = [measure for played in measures for measure in played]
        tested = iter(judge(flat))
        results = [[next(tested) for _ in played] for played in measures]
        pairs = next_round(world.ring, results, world.groups)
        if not pairs:
            return blames([test for played in results for test in played], world.groups), len(measures)
        measures.append([world.test(pair) for pair in pairs])


def _named(truth: set[tuple[str, tuple[str, ...]]], found: list[Blame]) -> tuple[bool, bool, bool, int]:
    """The right nodes, no others; of the right kind too; at least every faulty node is named; good nodes named."""
    said = {(blame.kind, blame.nodes) for blame in found}
    faulty, named = {node for _, nodes in truth for node in nodes}, {node for blame in found for node in blame.nodes}
    return faulty == named, said == truth, faulty <= named, len(named - faulty)


def measure(nodes: int, fault: str, trials: int, seed: int) -> str:
    """One row of the table."""
    exact = kind = held = accused = played = 0
    seconds = 0.0
    for trial in range(trials):
        rng = random.Random(f"{seed} {nodes} {fault} {trial}")
        ring = [f"n{at:05}" for at in range(nodes)]
        world = World(ring, rng, groups={name: f"leaf-{at // LEAF}" for at, name in enumerate(ring)})
        FAULTS[fault](world)
        begun = time.process_time()
        found, rounds_played = rounds(world)
        played += rounds_played
        seconds += time.process_time() - begun
        right, of_kind, all_in, wrong = _named(world.truth, found)
        exact, kind, held, accused = exact + right, kind + of_kind, held + all_in, accused + wrong
    shares = " | ".join(f"{share:.1%}" for share in (exact / trials, kind / trials, 1 - held / trials))
    cost_ms = 1000 * seconds / played
    return f"| {fault} | {nodes} | {played / trials:.2f} | {shares} | {accused / trials:.3f} | {cost_ms:.2f} |"


def main() -> int:
    """Print the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| fault | nodes | rounds | right nodes | and kind | one missed | good nodes named | ms per round |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for fault in FAULTS:
        for nodes in (8, 9, 64, 512, 4096):
            if fault == "the uplink of one leaf" and nodes <= 2 * LEAF:
                continue
            print(measure(nodes, fault, max(20, trials * 64 // max(64, nodes)), 1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
