"""The same quick preflight of simulated nodes by Ansible and by a real Slurm, one slurmd per node on this machine.

The nodes' own work is the same processes on the same cores, so with many nodes the ratio says what a launcher costs
beside it; on a real cluster that work is spread over the nodes, and Ansible's is not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import yaml

from bench.common import BIN, demo_inventory, environment, place, seconds
from flightline.store.sqlite import SqliteStore
from tests.healing import slurmbed
from tools import nodepackage


def _named(path: Path, library: Path) -> None:
    """Give each host its name in Slurm, and all the place of the node library."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["demo"]["vars"]["flightline_node_directory"] = str(library)
    for number, host in enumerate(document["demo"]["hosts"].values(), 1):
        host["slurm_node_name"] = f"n{number}"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


def measure(nodes: int, with_ansible: bool) -> str:
    """The wall times in words. A row that is missing ends the process."""
    with place() as folder:
        inventory = demo_inventory(folder / "fleet", nodes)
        library = folder / "library"
        library.mkdir(mode=0o755)
        package = nodepackage.build(folder / "flightline-node.pyz")
        subprocess.run(
            [sys.executable, "-I", str(package.path), "install", str(library)], check=True, capture_output=True
        )
        _named(inventory, library)
        with slurmbed.bed(folder / "slurm", nodes) as bed:
            env = {**environment(folder / "runs.sqlite"), **bed.env}
            preflight = [str(BIN / "flightline"), "preflight", "-i", str(inventory)]
            # Nodes that all work at once on few cores may find no time for a tool: no go, and answered all the same.
            first = seconds([*preflight, "--via", "slurm"], env, ok=(0, 1))  # puts the simulated nodes up as well
            slurm = seconds([*preflight, "--via", "slurm"], env, ok=(0, 1))
            floor = seconds(["srun", f"--nodes={nodes}", "--ntasks-per-node=1", "true"], env)
            ansible = f"Ansible {seconds(preflight, env, ok=(0, 1)):.1f} s, " if with_ansible else ""
        with SqliteStore(folder / "runs.sqlite") as store:
            runs = [list(store.records(run.run_id)) for run in store.runs()]
    answered = [sum(len(record["findings"]) > 1 for record in records) for records in runs]
    if {len(records) for records in runs} != {nodes}:
        sys.exit(f"rows of the runs: {list(map(len, runs))}, wanted {nodes} of each")
    return (
        f"quick preflight of {nodes} nodes with report, {nodes} slurmd on this machine: {ansible}Slurm {slurm:.1f} s "
        f"(the first {first:.1f} s), srun of `true` on all of them {floor:.1f} s; {nodes} of {nodes} rows in each run, "
        f"answers of nodes {', '.join(map(str, answered))}"
    )


def main() -> None:
    """Print the times and their ratio."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=200)
    arguments.add_argument("--without-ansible", action="store_true", help="ask by Slurm only")
    given = arguments.parse_args()
    # Hundreds of slurmd start one after another, and share this machine's cores with what the nodes do.
    slurmbed.WAIT_S, slurmbed.SLURMD_TIMEOUT_S = 600.0, 300
    why = slurmbed.missing()
    if why:
        print(f"not run: {why}")
        return
    print(measure(given.nodes, not given.without_ansible))


if __name__ == "__main__":
    main()
