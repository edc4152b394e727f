"""A demo fleet that a launcher asks on this machine: a real Slurm, or agents of the test for Systems Manager; the nodes'
tools are simulated.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from flightline import contract
from flightline.store.sqlite import SqliteStore
from tests.beds import BIN, begun, own_env, ran
from tests.emulated import REGION, Cloud, lead_to
from tests.healing import slurmbed
from tests.infra.test_contract import OUTPUTS
from tests.ssm_agents import Agents
from tools import nodepackage

NODES = 8


@dataclass
class Fleet:
    """The fleet, a store of its own and what a launcher needs in its environment."""

    place: Path
    launcher_env: Mapping[str, str]
    slurm: slurmbed.Bed | None = None
    agents: Agents | None = None

    @property
    def env(self) -> dict[str, str]:
        # A home without a node library that an earlier run has left.
        own = {"HOME": str(self.place), "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "200"}
        return own_env("FLIGHTLINE", **{**self.launcher_env, **own})

    @property
    def inventory(self) -> Path:
        return self.place / "fleet"

    def set(self, change) -> None:
        """Change the inventory's document."""
        path = self.inventory / "hosts.yml"
        document = yaml.safe_load(path.read_text())
        change(document["demo"])
        path.write_text(yaml.safe_dump(document))

    def preflight(self, *more: str, timeout: float = 150, store: str = "runs.sqlite") -> tuple[int, str]:
        given = ("-i", self.inventory, "--store", self.place / store, *more)
        done = ran("flightline", "preflight", *given, env=self.env, timeout=timeout)
        return done.returncode, done.stdout + done.stderr

    def interrupted(self, *more: str) -> str:
        """A preflight to which Ctrl-C comes when only one node has not answered; what it said to its end."""
        argv = ("flightline", "preflight", "-i", self.inventory, "--store", self.place / "runs.sqlite", *more)
        run = begun(*argv, env=self.env, cwd=None, preexec_fn=None)
        assert run.stdout
        next((line for line in run.stdout if line.startswith(f"[{NODES - 1}/{NODES}]")), None)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=120)[0]
        assert run.returncode == 1 and "NO-GO" in said, said
        return said

    def without_library(self, *via: str) -> None:
        """A node that has no library says what to do, and the others are judged."""
        nowhere = str(self.place / "nothing")
        self.set(lambda demo: demo["hosts"]["gpu-01"].update(flightline_node_directory=nowhere))
        status, _ = self.preflight(*via)
        rows = self.rows()
        assert status == 1 and "--tags flightline_node" in rows["gpu-01"]["findings"][0]["message"]
        assert rows["gpu-02"]["verdict"] == "go"

    def rows(self) -> dict[str, dict]:
        """The records of the latest run by host."""
        with SqliteStore(self.place / "runs.sqlite") as store:
            return {record["host"]: record for record in store.records(store.runs(1)[0].run_id)}


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The node library as the role installs it."""
    place = tmp_path_factory.mktemp("library")
    built = nodepackage.build(place / "flightline-node.pyz")
    (place / "installed").mkdir(mode=0o755)
    subprocess.run([sys.executable, "-I", str(built.path), "install", str(place / "installed")], check=True)
    return place / "installed"


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    why = slurmbed.missing()
    if why:
        pytest.skip(why)
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), NODES) as bed:
        yield bed


SICK = ("gpu_fallen_off_bus=gpu-03", "remap_pending=gpu-06")


Known = Callable[[int], dict]


def demo(place: Path, env: Mapping[str, str], package: Path, known_as: Known, faults: Sequence[str] = SICK) -> Fleet:
    """A fleet of NODES, two of them sick. known_as: variables by which the launcher knows a host, by its number."""
    made = Fleet(place, env)
    named_faults = [word for fault in faults for word in ("--fault", fault)]
    argv = ["flightline", "demo", "--out", str(made.inventory), "--nodes", str(NODES), *named_faults]
    subprocess.run(argv, env=made.env, check=True, capture_output=True)

    def named(demo: dict) -> None:
        demo["vars"]["flightline_node_directory"] = str(package)
        for number, host in enumerate(demo["hosts"], 1):
            demo["hosts"][host].update(known_as(number))

    made.set(named)
    return made


@pytest.fixture
def fleet(tmp_path, slurm, package):
    made = demo(tmp_path, slurm.env, package, lambda number: {"slurm_node_name": f"n{number}"})
    made.slurm = slurm
    yield made
    slurm.run("scancel", "--user=root", check=False)
    for name in slurm.names:
        slurm.run("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)
    slurm.idle_again()


@pytest.fixture(scope="session")
def cloud(server):
    return server


def instance(number: int) -> str:
    return f"i-{number:017x}"


def managed(made: Fleet, cloud: Cloud) -> Fleet:
    """Make the fleet's hosts nodes of a stack that Systems Manager manages. agents: who they are."""
    own = {"cluster_name": "demo", "region": REGION, "results_bucket": cloud.bucket("demo-results")}
    outputs = {**OUTPUTS, **own, "node_count": NODES, "gpu_zone": f"{REGION}a"}
    tags = {**dict.fromkeys(contract.INSTANCE_TAGS, "x"), contract.TAG_CLUSTER: "demo", contract.TAG_ROLE: "gpu-node"}
    tags |= {contract.TAG_STACK: str(outputs["stack"]), contract.TAG_EFA_COUNT: str(outputs["efa_count"])}
    facts = {"ec2_tags": tags, "ec2_instance_type": outputs["instance_type"]}
    made.set(lambda demo: demo["vars"].update(flightline_stack=outputs, **facts))
    made.agents = Agents(cloud, made.env, {instance(number): "Online" for number in range(1, NODES + 1)})
    return made


@pytest.fixture
def stack(tmp_path, cloud, package, monkeypatch):
    lead_to(cloud, monkeypatch)
    made = managed(demo(tmp_path, cloud.env, package, lambda number: {"instance_id": instance(number)}), cloud)
    yield made
    made.agents.close()
