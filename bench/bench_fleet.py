"""Judge, analyse and report 10,000 stored node results (wanted: 3 s and 100 MB), and open the page (2 s and 5 MB).

The results are copies of one simulated node's real record with their own names, GPU identities and measures;
every hundredth node has a fault. Each phase is timed in a process of its own, so that the peak memory is its own.
"""

from __future__ import annotations

import copy
import multiprocessing
import random
import resource
import time
from pathlib import Path
from typing import Any

from bench.common import TYPE, given, place, recorded
from flightline.record.intake import stamped
from flightline.run.conclude import conclude
from flightline.store import sqlite as stores
from flightline.store.run_rows import RunRows

NODES_A_RACK = 32


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
    good, bad = recorded(directory / "good"), recorded(directory / "bad", ["remap_pending"])
    hosts = tuple(
        stores.ExpectedHost(f"gpu-{n:05d}", TYPE, f"i-{n:017x}", f"rack-{n // NODES_A_RACK}") for n in range(nodes)
    )
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
    outcome = conclude(RunRows(path, run), directory / "report")
    took, used = time.perf_counter() - started, time.process_time() - cpu
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = outcome.report.counts
    html_mb = (directory / "report" / "report.html").stat().st_size / 1e6
    print(
        f"{counts['nodes']} results ({counts['no_go']} no-go): judged, analysed and reported in {took:.1f} s "
        f"({used:.1f} s of CPU), peak {peak_mb:.0f} MB, report.html {html_mb:.1f} MB"
    )


def _open(_: Path, directory: Path) -> None:
    """Open the page as a person would; data-ready is the page's own clock when all of it was drawn."""
    from tests.e2e.test_report_browser import CHROMIUM, said, visit, with_script

    if not CHROMIUM:
        print("report.html was not opened: no chromium on this machine")
        return
    path = directory / "report" / "report.html"
    seen = [visit(path, directory) for _ in range(5)]
    best_s = min(int(one.root["data-ready"]) for one in seen) / 1000
    found = said(visit(with_script(path, SEARCH), directory, "--virtual-time-budget=3000"))
    print(
        f"report.html {path.stat().st_size / 1e6:.1f} MB opens in Chromium in {best_s:.2f} s (best of {len(seen)}); "
        f"by a place the list finds {found[0]} of its nodes, by a host {found[1]}; {found[2]} rows by place; "
        f"{len(seen[0].asked)} requests, {len(seen[0].console)} complaints"
    )


SEARCH = """
const text = document.getElementById("node-text"), found = [];
const search = (words) => { text.value = words; text.dispatchEvent(new Event("input")); };
const count = () => document.getElementById("node-count").textContent.split(" ")[0];
search("rack-7");
setTimeout(() => { found.push(count()); search("gpu-00017"); }, 500);
setTimeout(() => {
  found.push(count(), document.querySelectorAll("#places tbody tr").length);
  document.body.dataset.said = JSON.stringify(found);
}, 1000);
"""


def main() -> None:
    """Fill a store, conclude the run once, open its page."""
    nodes = given(__doc__, nodes=10_000).nodes
    with place() as directory:
        path = directory / "runs.sqlite"
        context = multiprocessing.get_context("spawn")
        for target, rest in ((_fill, (nodes,)), (_conclude, ()), (_open, ())):
            process = context.Process(target=target, args=(path, directory, *rest))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
