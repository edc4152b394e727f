"""flightline kube: the manifests of a cluster on Kubernetes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from flightline_node.model import SettingsError

from ..kubernetes import render
from ..kubernetes.site import AGENT_IMAGE, HEAL_MODES, TRAINING_KINDS, of_outputs
from . import options

OUTPUTS = Path("inventory/group_vars/aws_ec2/stack.json")
"""Where `make outputs` puts them."""


@click.command(
    cls=options.Command,
    example="flightline kube | kubectl apply --server-side -f -\n"
    "flightline kube --training-image 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:7 --out manifests",
    epilog="Exit status: 0 written, 2 the outputs or options are of no use.",
)
@click.option("--outputs", type=click.Path(path_type=Path), help=f"The stack's outputs as JSON; {OUTPUTS}.")
@click.option("--part", "only", multiple=True, type=options.Choice(list(render.PARTS)), help="Only this; repeatable.",
              metavar="|".join(render.PARTS))  # fmt: skip
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Write a file per part.")
@click.option("--agent-image", default=AGENT_IMAGE, show_default=True, help="Any image with /usr/sbin/chroot.")
@click.option("--training-image", default="", metavar="IMAGE", help="Write a training run too, of this image.")
@click.option(
    "--training-kind",
    type=options.Choice(TRAINING_KINDS),
    default=TRAINING_KINDS[0],
    show_default=True,
    metavar="|".join(TRAINING_KINDS),
    help="Write it as a JobSet, or as a TrainJob of Kubeflow with its runtime.",
)
@click.option(
    "--control-image",
    default="",
    metavar="IMAGE",
    help="Write the nightly preflight and healing: flightline and kubectl.",
)
@click.option(
    "--heal",
    type=options.Choice(HEAL_MODES),
    default="advise",
    show_default=True,
    metavar="|".join(HEAL_MODES),
    help="What healing in the cluster may do.",
)
@click.option("--serving-image", default="", metavar="IMAGE", help="Write a vLLM service too, of this image.")
@click.option("--serving-model", default="", metavar="MODEL", help="What it serves: a name, or a path such as /fsx/m.")
@click.option("--serving-gpus", type=click.IntRange(1), default=1, show_default=True, help="GPUs of one replica.")
@click.option("--settings", type=click.Path(path_type=Path), help="JSON: what nodes are judged by, such as waivers.")
@click.argument("program", nargs=-1)
def command(
    outputs: Path | None,
    only: tuple[str, ...],
    out: Path | None,
    settings: Path | None,
    program: tuple[str, ...],
    **decided: Any,
) -> None:
    """Write the Kubernetes manifests of a stack: agent, rights, namespaces, control side, workloads, monitoring.

    PROGRAM: what torchrun runs in the training image, after --. The agent's library is in the manifests: they are
    applied on the server's side (kubectl apply --server-side), its own annotation would be too long.
    """
    if program:
        decided["training_program"] = program
    if settings:
        decided["settings"] = _read(settings)
    found = render.parts(of_outputs(_read(outputs or OUTPUTS), **decided), only)
    if out is None:
        click.echo("".join(render.text(objects) for objects in found.values()), nl=False)
        return
    out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(render.PARTS):
        if name in found:
            path = out / f"{number}-{name}.yaml"
            path.write_text(render.text(found[name]), encoding="utf-8")
            click.echo(str(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"saw {path}: {error}; wanted JSON; do: make outputs, or --outputs FILE") from None
    if not isinstance(found, dict):
        raise SettingsError(f"saw {path} with {type(found).__name__}; wanted an object; do: make outputs STACK=...")
    return found
