"""1,000 simulated nodes from one control process: rows lost and peak memory of the control side.

Wanted: 0 rows lost, at most 500 MB. Memory is the proportional set size of ansible-playbook and its forks;
the modules' own processes, which run on the nodes of a real fleet, are left out.
"""

from __future__ import annotations

import sqlite3
import subprocess
import time

from bench.common import BIN, ROOT, TreeMemory, demo_inventory, environment, given, place


def main() -> None:
    """Run once and print."""
    nodes = given(__doc__, nodes=1000).nodes
    with place() as directory:
        inventory = demo_inventory(directory / "fleet", nodes)
        store = directory / "runs.sqlite"
        command = [str(BIN / "ansible-playbook"), "-i", str(inventory), "playbooks/preflight.yml"]
        started = time.perf_counter()
        with open(directory / "output", "wb") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment(store), stdout=output, stderr=output)
            memory = TreeMemory(process.pid)
            status = process.wait()
        took, peak_mb = time.perf_counter() - started, memory.stop()
        rows = sqlite3.connect(store).execute("select count(*) from nodes").fetchone()[0]
        report = next(directory.rglob("report.html"), None)
        html_mb = report.stat().st_size / 1e6 if report else float("nan")
    print(
        f"{nodes} nodes: {nodes - rows} rows lost, peak {peak_mb:.0f} MB, {took:.0f} s, "
        f"report.html {html_mb:.1f} MB, exit {status}"
    )


if __name__ == "__main__":
    main()
