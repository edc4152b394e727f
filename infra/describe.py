"""Say what a command will do to a stack before it does it: python -m infra.describe --help.

Reads the stack's file and Pulumi.yaml's defaults only; what is wrong in them, `pulumi preview` says.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from flightline.console import EXIT_BROKEN
from infra.config.values import today

PREFIX = "flightline:"
ACTIONS = ("up", "down", "down-compute", "recover")


def values(stack: str, root: Path) -> dict[str, Any]:
    """The stack's values over the project's defaults. Raises FileNotFoundError, or ValueError for a broken file."""
    project = yaml.safe_load((root / "Pulumi.yaml").read_text(encoding="utf-8"))
    found = {key: entry.get("default") for key, entry in project["config"].items()}
    chosen = _chosen(root / f"Pulumi.{stack}.yaml").items()
    found.update(today({key.removeprefix(PREFIX): value for key, value in chosen}))
    return found


def _chosen(path: Path) -> Mapping[str, Any]:
    wanted = f"{path}: wanted YAML with `config:` and below it keys with values"
    try:
        parsed = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{wanted}; saw {' '.join(str(error).split())}") from None
    config = parsed.get("config", {}) if isinstance(parsed, dict) else parsed
    if not isinstance(config or {}, dict):
        raise ValueError(f"{wanted}; saw {config!r}")
    return config or {}


def lines(action: str, stack: str, given: Mapping[str, Any], asks: bool = True) -> list[str]:
    """What the action does, a line each. asks: whether Pulumi waits for a yes."""
    head = f"{action} {stack}: cluster {given['clusterName']} in {given.get('aws:region', 'no region')}"
    made = {"up": _up, "down": _down, "down-compute": _down_compute, "recover": _recover}[action](given)
    if action == "recover":
        return [head, *(f"  {line}" for line in made)]
    made.append("Pulumi shows the preview next and asks." if asks else "Pulumi shows the preview next and goes on.")
    return [head, *(f"  {line}" for line in made)]


def _up(given: Mapping[str, Any]) -> list[str]:
    bought = ", then ".join(given["capacityOrder"]) or str(given["capacityType"])
    bought += f" {given['capacityReservationId']}" if given["capacityReservationId"] else ""
    nodes = f"nodes    {given['gpuNodeCount']} x {given['gpuInstanceType']}, {bought}, EFA {given['efa']}"
    found = [
        nodes,
        *_cluster(given),
        f"network  {_network(given)}, access by {given['accessMode']}",
    ]
    if given["fsxSizeGib"]:
        found.append(f"storage  FSx for Lustre {given['fsxSizeGib']} GiB at {given['fsxThroughput']} MB/s per TiB, S3")
    found.append("costs    AWS bills the nodes from their launch, by the second; NAT, FSx and S3 as long as they exist")
    if given["monthlyBudgetUsd"]:
        found.append(f"budget   alerts near {given['monthlyBudgetUsd']} USD a month; it stops nothing")
    return found


def _network(given: Mapping[str, Any]) -> str:
    return str(given["vpcId"]) or f"{given['vpcCidr']}, NAT {given['natGateways']}"


def _cluster(given: Mapping[str, Any]) -> list[str]:
    if given["orchestrator"] != "eks":
        return []
    public = ", ".join(given["kubernetesPublicCidrs"]) or "nobody outside the VPC"
    others = f"{given['cpuNodeCount']} x {given['cpuInstanceType']} beside the GPU nodes"
    return [f"cluster  EKS, Kubernetes {given['kubernetesVersion']}, {others}; its API is public to {public}"]


def _kept(given: Mapping[str, Any]) -> str:
    if given["keepData"]:
        file_system = ", the file system and the subnet it is in" if given["fsxSizeGib"] else ""
        return f"keeps    buckets, tables{file_system} (keepData is true): they go on costing"
    return "destroys buckets, tables and file system as well, with everything in them (keepData is false)"


def _down(given: Mapping[str, Any]) -> list[str]:
    return ["destroys nodes, NAT gateways and the rest of the network, functions, alarms", _kept(given)]


def _down_compute(_: Mapping[str, Any]) -> list[str]:
    return [
        "destroys GPU nodes, head node and what hangs on them (hook, node alarms)",
        "keeps    network, buckets, tables, file system and, with EKS, cluster and nodes without a GPU: they go on "
        "costing; `make up` brings the nodes back",
    ]


def _recover(_: Mapping[str, Any]) -> list[str]:
    return ["frees the stack of a lock and of operations that a dead command left; deletes nothing in AWS"]


@click.command(epilog="Example: python -m infra.describe up dev")
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("stack")
@click.option("--yes", is_flag=True, help="Pulumi's question is answered already.")
def main(action: str, stack: str, yes: bool) -> None:
    """Say what ACTION will do to STACK."""
    try:
        click.echo("\n".join(lines(action, stack, values(stack, Path()), asks=not yes)))
    except FileNotFoundError as error:
        known = ", ".join(sorted(path.name.split(".")[1] for path in Path().glob("Pulumi.*.yaml")))
        click.echo(f"{error.filename}: no such file; stacks with a file here: {known or 'none'}", err=True)
        sys.exit(EXIT_BROKEN)
    except ValueError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_BROKEN)


if __name__ == "__main__":
    main()
