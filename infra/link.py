"""Give the stack's outputs to Ansible: `make outputs`, or python -m infra.link --help.

Writes inventory/group_vars/aws_ec2/stack.json, which inventory/aws_ec2.yml and the roles read, and for access by SSH
inventory/known_hosts with the host keys that the instances printed on their consoles.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from flightline import contract
from flightline.cloud.clients import Clients
from flightline.console import EXIT_BROKEN
from flightline.store.atomic import write_atomic
from flightline_node import names

INVENTORY = Path("inventory")
STACK_FILE = Path("group_vars/aws_ec2/stack.json")
KNOWN_HOSTS = Path("known_hosts")
VARIABLE = "flightline_stack"

_CONSOLE_KEYS = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----\s*(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL)
_KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-\S+|ssh-rsa) [A-Za-z0-9+/=]+")


class LinkError(Exception):
    """What was seen, what was wanted and what to do, in one text."""


def checked(outputs: Any) -> Mapping[str, Any]:
    """The outputs that the contract promises. Raises LinkError with every one that is missing or wrong."""
    if not isinstance(outputs, dict):
        raise LinkError(f"stack outputs: saw {type(outputs).__name__}, wanted an object of names and values")
    outputs = contract.today(outputs)
    wrong = contract.mistakes(outputs)
    if wrong:
        text = "\n".join(f"- {mistake}" for mistake in wrong)
        raise LinkError(
            f"saw other outputs of the stack, wanted what Ansible relies on; do: run `pulumi up` again:\n{text}"
        )
    return {name: outputs[name] for output in contract.OUTPUTS for name in (output.name, *output.aliases)}


def host_keys(console: str) -> list[str]:
    """The host keys that cloud-init printed on an instance's console; the last block is that of the last boot."""
    blocks = _CONSOLE_KEYS.findall(console)
    return [match.group(0) for line in blocks[-1].splitlines() if (match := _KEY.search(line))] if blocks else []


def known_hosts(ec2: Any, cluster: str) -> tuple[list[str], list[str]]:
    """Lines of known_hosts for a cluster's running instances, and the ids of those that have printed no key yet."""
    lines: list[str] = []
    silent: list[str] = []
    for instance in _instances(ec2, cluster):
        console = ec2.get_console_output(InstanceId=instance["InstanceId"], Latest=False).get("Output") or ""
        names = [instance.get(part) for part in ("PublicIpAddress", "PrivateIpAddress")]
        address = ",".join(name for name in names if name)
        keys = host_keys(console)
        lines += [f"{address} {key}" for key in keys]
        if not keys:
            silent.append(instance["InstanceId"])
    return lines, silent


def _instances(ec2: Any, cluster: str) -> Iterator[Mapping[str, Any]]:
    filters = [
        {"Name": f"tag:{contract.TAG_CLUSTER}", "Values": [cluster]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=filters):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def ask_pulumi(stack: str) -> Any:
    """The outputs of a stack, secrets left out. Raises LinkError when Pulumi cannot tell."""
    command = ["pulumi", "stack", "output", "--json", "--non-interactive", *(["--stack", stack] if stack else [])]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LinkError(
            "saw no pulumi on the PATH, wanted it; "
            "do: install its command line (https://www.pulumi.com/docs/install/), "
            "or give a file: --outputs FILE"
        ) from None
    if run.returncode:
        raise LinkError(
            f"{' '.join(command)}: saw {run.stderr.strip() or f'status {run.returncode}'}; wanted the stack's outputs"
        )
    return json.loads(run.stdout)


def _given(stack: str, file: Path | None) -> Any:
    if file is None:
        return ask_pulumi(stack)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise LinkError(f"{file}: saw {error.strerror}; wanted what `pulumi stack output --json` prints") from None
    except ValueError as error:
        raise LinkError(
            f"{file}: saw what is not JSON ({error}); wanted what `pulumi stack output --json` prints"
        ) from None


def link(outputs: Mapping[str, Any], inventory: Path) -> list[str]:
    """Write what Ansible reads; returns what was done, a line each."""
    write_atomic(inventory / STACK_FILE, (json.dumps({VARIABLE: outputs}, indent=2) + "\n").encode())
    done = [f"outputs     {inventory / STACK_FILE}"]
    done += [f"renamed     {names.earlier(alias, name)}" for alias, name in contract.EARLIER.items()]
    if outputs["access_mode"] == "ssh":
        lines, silent = known_hosts(Clients(outputs["region"]).get("ec2"), outputs["cluster_name"])
        write_atomic(inventory / KNOWN_HOSTS, "".join(f"{line}\n" for line in lines).encode())
        done.append(f"host keys   {inventory / KNOWN_HOSTS}, {len(lines)} keys")
        if silent:
            wait = "they print them some minutes after the first boot: run `make outputs` again"
            done.append(f"no host key {', '.join(silent)}: {wait}")
    return done


@click.command(epilog="Example: python -m infra.link --stack p5-reservation")
@click.option("--stack", default="", help="Stack name; Pulumi's selected stack when not given.")
@click.option("--outputs", type=click.Path(path_type=Path), help="File with the outputs, instead of asking Pulumi.")
@click.option("--inventory", type=click.Path(path_type=Path), default=INVENTORY, help="Inventory directory.")
def main(stack: str, outputs: Path | None, inventory: Path) -> None:
    """Give the stack's outputs to Ansible; ends with 2 when they cannot be read or are wrong."""
    try:
        lines = link(checked(_given(stack, outputs)), inventory)
    except (LinkError, OSError) as error:
        _fail(str(error))
    except Exception as error:  # botocore's errors: no credentials, no permission, no network
        _fail(f"host keys could not be read: {error}")
    else:
        click.echo("\n".join(lines))


def _fail(text: str) -> None:
    click.echo(f"outputs: {text}", err=True)
    sys.exit(EXIT_BROKEN)


if __name__ == "__main__":
    main()
