"""The same quick preflight of simulated nodes by Ansible and by a real Slurm, one slurmd per node on this machine.

The nodes' own work is the same processes on the same cores, so with many nodes the ratio says what a launcher costs
beside it; on a real cluster that work is spread over the nodes, and Ansible's is not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from bench.common import BIN, demo_inventory, environment, seconds
from tests.healing import slurmbed
from tools import nodepackage


def _named(path: Path, library: Path) -> None:
    """Give each host its name in Slurm, and all the place of the node library."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["demo"]["vars"]["flightline_node_directory"] = str(library)
    for number, host in enumerate(document["demo"]["hosts"].values(), 1):
        host["slurm_node_name"] = f"n{number}"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


def measure(nodes: int) -> tuple[float, float, float]:
    """Wall time in seconds of (Ansible, Slurm, srun of `true` on all nodes)."""
    with tempfile.TemporaryDirectory(prefix="flightline-bench-") as name:
        place = Path(name)
        inventory = demo_inventory(place / "fleet", nodes)
        library = place / "library"
        library.mkdir(mode=0o755)
        package = nodepackage.build(place / "flightline-node.pyz")
        subprocess.run(
            [sys.executable, "-I", str(package.path), "install", str(library)], check=True, capture_output=True
        )
        _named(inventory, library)
        with slurmbed.bed(place / "slurm", nodes) as bed:
            env = {**environment(place / "runs.sqlite"), **bed.env}
            preflight = [str(BIN / "flightline"), "preflight", "-i", str(inventory)]
            seconds(preflight, env)  # puts the simulated nodes up
            ansible = seconds(preflight, env)
            slurm = seconds([*preflight, "--via", "slurm"], env)
            floor = seconds(["srun", f"--nodes={nodes}", "--ntasks-per-node=1", "true"], env)
        return ansible, slurm, floor


def main() -> None:
    """Print the times and their ratio."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=200)
    given = arguments.parse_args()
    why = slurmbed.missing()
    if why:
        print(f"not run: {why}")
        return
    ansible, slurm, floor = measure(given.nodes)
    print(
        f"quick preflight of {given.nodes} nodes with report: Ansible {ansible:.1f} s, Slurm {slurm:.1f} s, ratio "
        f"{slurm / ansible:.2f}; srun of `true` on all of them {floor:.1f} s"
    )


if __name__ == "__main__":
    main()
