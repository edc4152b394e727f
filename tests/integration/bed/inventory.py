"""The inventory of the bed: addresses, login and host keys. Host-key checking stays on."""

from pathlib import Path

import yaml

from . import layout
from .layout import Machine


def known_hosts(fleet: list[Machine]) -> str:
    """One line per machine, from the public key it was given."""
    lines = []
    for machine in fleet:
        key = (machine.upper / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
        lines.append(f"{machine.name},{machine.address} {key[0]} {key[1]}\n")
    return "".join(lines)


def no_swap() -> bool:
    """Swap belongs to the outer machine: a container can see it and may not turn it off."""
    return len(Path("/proc/swaps").read_text().splitlines()) <= 1


def inventory(fleet: list[Machine], state: Path) -> dict[str, dict]:
    """The inventory as Ansible reads it."""
    variables = {
        "ansible_user": layout.USER,
        "ansible_become": True,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(state / "id_ed25519"),
        # Each machine proves its identity; connections are shared below the bed's own directory.
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={state / 'known_hosts'} -o IdentitiesOnly=yes",
        # No such instance: only what needs no expectation is judged.
        "instance_type": "none",
        **({} if no_swap() else {"base_swap_off": False}),
    }
    hosts = {machine.name: {"ansible_host": machine.address} for machine in fleet}
    # Beside the controller one more has the remediator: what is broken on purpose is broken there.
    breakable = fleet[min(2, len(fleet) - 1)].name
    groups = {
        "gpu_nodes": {"hosts": hosts},
        "slurm_controller": {"hosts": {fleet[0].name: {}}},
        "flightline_remediate": {"hosts": {breakable: {}}},
    }
    return {"all": {"vars": variables, "children": groups}}


def write(fleet: list[Machine], state: Path) -> Path:
    """Write inventory and host keys."""
    (state / "known_hosts").write_text(known_hosts(fleet))
    path = state / "inventory.yml"
    path.write_text(yaml.safe_dump(inventory(fleet, state), sort_keys=False))
    return path
