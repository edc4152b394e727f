"""Judge, analyse and report 10,000 stored node results (wanted: at most 10 s and 1 GB).

The results are copies of one simulated node's real record with their own names, GPU identities and measures;
every hundredth node has a fault. Each phase is timed in a process of its own, so that the peak memory is its own.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from flightline.demo import prepare
from flightline.record.intake import stamped
from flightline.run.conclude import conclude
from flightline.store import sqlite as stores
from flightline.store.aside import Aside
from flightline_node import node, settings
from flightline_node.ask.runner import Node
from flightline_node.know.expected import resolve

TYPE = "p5.48xlarge"


def _template(directory: Path, faults: list[str]) -> dict[str, Any]:
    demo = directory / f"node-{len(faults)}"
    prepare({demo.name: {"demo_dir": str(demo), "instance_type": TYPE, "demo_faults": faults}})
    identity = node.Identity(demo.name)
    return node.run(Node(f"{demo}/root", (f"{demo}/tools",)), resolve(TYPE), settings.build(), identity)


def _variant(template: dict[str, Any], number: int, rng: random.Random) -> dict[str, Any]:
    record = copy.deepcopy(template)
    record["host"], record["instance_id"] = f"gpu-{number:05d}", f"i-{number:017x}"
    for gpu in record["gpus"]:
        gpu["uuid"], gpu["serial"] = f"GPU-{number:08d}-{gpu['index']}", f"{number:09d}{gpu['index']}"
    for measure in record["measures"].values():
        for device, value in measure["values"].items():
            measure["values"][device] = value * rng.gauss(1, 0.01)
    return record


def _fill(path: Path, directory: Path, nodes: int) -> None:
    rng = random.Random(1)
    good, bad = _template(directory, []), _template(directory, ["remap_pending"])
    hosts = tuple(stores.ExpectedHost(f"gpu-{n:05d}", f"i-{n:017x}", TYPE) for n in range(nodes))
    run = stores.Run("bench", stores.now_stamp(), "quick", "bench", hosts)
    with stores.SqliteStore(path) as store:
        store.start(run)
        for number in range(nodes):
            # As the gate leaves what it admitted: without its stamp every reading would take the shape again.
            store.save("bench", stamped(_variant(bad if number % 100 == 0 else good, number, rng)))


def _conclude(path: Path, directory: Path) -> None:
    with stores.SqliteStore(path) as store:
        run = store.run("bench")
    started, cpu = time.perf_counter(), time.process_time()
    outcome = conclude(path, run, Aside(path, run), directory / "report")
    took, used = time.perf_counter() - started, time.process_time() - cpu
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = outcome.report.counts
    html_mb = (directory / "report" / "report.html").stat().st_size / 1e6
    print(
        f"{counts['nodes']} results ({counts['no_go']} no-go): judged, analysed and reported in {took:.1f} s "
        f"({used:.1f} s of CPU), peak {peak_mb:.0f} MB, report.html {html_mb:.1f} MB"
    )


def main() -> None:
    """Fill a store, then conclude the run once."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=10_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="flightline-bench-") as name:
        directory = Path(name)
        path = directory / "runs.sqlite"
        context = multiprocessing.get_context("spawn")
        for target, rest in ((_fill, (given.nodes,)), (_conclude, ())):
            process = context.Process(target=target, args=(path, directory, *rest))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
