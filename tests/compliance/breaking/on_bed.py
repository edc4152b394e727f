"""The whole table of mutations on hosts made for it: python -m tests.compliance.breaking.on_bed [--only PATTERN] [--write].

Two of the real hosts (docs/hosts.md), configured by the roles as `make integration` configures them; the worker is broken.
Hosts that were up before stay up.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import yaml

from tests.integration import play, shelf, shelf_gpu
from tests.integration.bed import bed as beds
from tests.integration.bed import layout
from tests.integration.mirror import Mirror
from tools import nodepackage

SITE = layout.ROOT / "playbooks" / "site.yml"
COUNT = 2
WORKER = "gpu-02"
ONE_DRIVER = {
    "nvidia_driver_source": "vendor",
    "nvidia_driver_version": shelf_gpu.DRIVER,
    "nvidia_driver_packages": [],
    "nvidia_driver_fabric_manager": True,
    "nvidia_driver_persistenced": True,
}
"""The worker has the vendor's driver, not Debian's as the integration tests' machine of that name."""


def prepare() -> Path:
    """Hosts, shelf and variables. Returns the inventory."""
    inventory = beds.up(COUNT)
    mirror = Mirror(layout.STATE / "www")
    package = nodepackage.build(layout.STATE / "flightline-node.pyz")
    variables = {**shelf.stock(mirror), **ONE_DRIVER, "flightline_node_package": str(package.path)}
    mirror.publish()
    group = layout.STATE / "group_vars"
    group.mkdir(exist_ok=True)
    (group / "all.yml").write_text(yaml.safe_dump(variables, sort_keys=False))
    return inventory


def configure(inventory: Path) -> None:
    """Run the roles; ends the program with what they said when they fail."""
    done = play.play(inventory, SITE)
    if done.status:
        sys.exit(f"seen: the roles failed; wanted: hosts to break; do: read this\n{done.output[-4000:]}")


def main() -> int:
    """Exit status of tests.compliance.breaking.mutate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    was_up = bool(beds.existing())
    try:
        inventory = prepare()
        configure(inventory)
        argv = [sys.executable, "-m", "tests.compliance.breaking.mutate", "--inventory", str(inventory)]
        argv += ["--host", WORKER, "--repair", "--only", given.only, *(["--write"] if given.write else [])]
        return subprocess.run(argv, cwd=layout.ROOT, check=False).returncode
    finally:
        if not was_up:
            beds.down()


if __name__ == "__main__":
    sys.exit(main())
