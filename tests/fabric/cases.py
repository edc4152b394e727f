"""Random cases on one bed, over real MPI traffic: what is shaped must be named, what is healthy must be cleared.

python -m tests.fabric.cases [healthy|shaped] FIRST COUNT FILE: one line per case, and all of them as JSON lines in FILE.
"""

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flightline.fabric.drive import FabricResult
from flightline_host.trial import collective

from .bed import RATE_MBIT, Bed, bed
from .direct import play

HOSTS = 6
PROGRAM = "128 128 5"
LEAST_SHARE = 0.6
"""Two cores run six hosts' ranks: healthy pairs spread further here than on nodes of their own."""
FAULTS = {"slow host": 4, "lossy host": 2, "slow path": 3, "lossy path": 1}
"""And how often each is drawn."""
LOSS_PERCENT = 25


def shape(made: Bed, seed: int) -> tuple[str, tuple[str, ...]]:
    """Make what the seed says sick: (what it is, who must be named)."""
    rng = random.Random(seed)
    at = rng.randrange(len(made.names))
    bad, other = made.names[at], made.names[(at + 1) % len(made.names)]
    fault = rng.choices(list(FAULTS), list(FAULTS.values()))[0]
    if fault == "slow host":
        made.shape(bad, RATE_MBIT / 4)
    elif fault == "lossy host":
        made.shape(bad, to={name: RATE_MBIT for name in made.names if name != bad}, loss=LOSS_PERCENT)
    elif fault == "slow path":
        made.shape(bad, to={other: RATE_MBIT / 5})
    else:
        made.shape(bad, to={other: RATE_MBIT}, loss=LOSS_PERCENT)
    return fault, (bad,) if fault.endswith("host") else tuple(sorted((bad, other)))


def healed(made: Bed) -> None:
    """Every host as it was made."""
    for name in made.names:
        made.shape(name, RATE_MBIT)


def run(made: Bed, sort: str, seed: int, place: Path) -> dict[str, Any]:
    """One case: what it was, what was found and whether that is right."""
    healed(made)
    fault, truth = shape(made, seed) if sort == "shaped" else ("none", ())
    began, run_id = time.monotonic(), f"case-{sort}-{seed}-{os.getpid()}"
    result = play(made, run_id, place / run_id, PROGRAM, LEAST_SHARE)
    left = collective.end(f"{run_id}-all-all-reduce")["strays"]
    named = sorted({blame.nodes for blame in result.found})
    wanted = [truth] if truth else []
    healthy = [name for name in made.names if name not in truth]
    return {
        "sort": sort, "seed": seed, "fault": fault, "truth": list(truth),
        "found": [[blame.kind, list(blame.nodes), blame.why] for blame in result.found],
        "right": named == wanted and result.healthy == healthy and not left,
        "sure": _sure(result), "seconds": round(time.monotonic() - began, 1), "rounds": len(result.rounds),
        "load": round(os.getloadavg()[0], 1),
        "busy": max((one.busy_share for played in result.measured for one in played), default=0.0), "figures": _figures(result),
    }  # fmt: skip


def _sure(result: FabricResult) -> bool:
    """Somebody is said to be sick, not only that it is unknown."""
    return any(blame.kind in ("node", "path", "group") for blame in result.found)


def _figures(result: FabricResult) -> list[list[list[Any]]]:
    return [
        [["-".join(one.pair), round(max(one.sent.values(), default=0.0) * 1e3, 3)] for one in played]
        for played in result.measured
    ]


def main(arguments: list[str]) -> int:
    """Exit status 1 when a case was not right."""
    sort, first, count, file = arguments[0], int(arguments[1]), int(arguments[2]), Path(arguments[3])
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="flightline-cases-") as directory, bed(Path(directory), HOSTS) as made:
        for seed in range(first, first + count):
            row = run(made, sort, seed, Path(directory) / "logs")
            wrong += not row["right"]
            found = "; ".join(f"{kind} {','.join(nodes)}" for kind, nodes, _ in row["found"]) or "nothing"
            word = "right" if row["right"] else "NOT RIGHT"
            where = f"{row['fault']} {','.join(row['truth'])}"
            sys.stdout.write(f"{sort} {seed}: {where}: {found}: {word}, {row['seconds']} s, load {row['load']}\n")
            sys.stdout.flush()
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
