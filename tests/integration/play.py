"""Run playbooks against the bed and read what they did."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.beds import own_env, ran

from .bed import layout

# Machines of a bed share the processors of one with whatever else it does.
os.environ.setdefault("FLIGHTLINE_COMPLIANCE_S", "1200")
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
PLAY_TIMEOUT_S = 3600
ANSWERS_WITHIN_S = "120"
"""For sudo of a healthy host on a busy machine. A machine that was ended is known at once: nobody answers for its address."""


@dataclass(frozen=True)
class Recap:
    """One host's line at the end of a playbook."""

    ok: int
    changed: int
    unreachable: int
    failed: int


@dataclass(frozen=True)
class Played:
    """What a playbook run gave back."""

    status: int
    output: str

    @property
    def recap(self) -> dict[str, Recap]:
        """The last line of every host."""
        return {row[0]: Recap(*map(int, row[1:])) for row in _RECAP.findall(self.output)}

    def changed(self) -> list[str]:
        """The tasks that changed something, with the host."""
        task, found = "", []
        for line in self.output.splitlines():
            task = line if line.startswith("TASK") else task
            if line.startswith("changed:"):
                found.append(f"{task.strip(' *')} {line}")
        return found


def command(
    inventory: Path,
    playbook: Path,
    *,
    limit: str = "",
    tags: Sequence[str] = (),
    variables: dict[str, Any] | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """The argument list of ansible-playbook."""
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    argv = [program, "-i", str(inventory), "-i", "inventory/roles.yml", str(playbook), *options]
    if limit:
        argv += ["--limit", limit]
    if tags:
        argv += ["--tags", ",".join(tags)]
    for name, value in (variables or {}).items():
        argv += ["--extra-vars", yaml.safe_dump({name: value}, default_flow_style=True, width=100_000).strip()]
    return argv


def environment() -> dict[str, str]:
    """The caller's, without what would change Ansible's output."""
    own = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_TIMEOUT": ANSWERS_WITHIN_S}
    return own_env("ANSIBLE_", **own, ANSIBLE_ROLES_PATH=str(layout.ROOT / "roles"))


def play(inventory: Path, playbook: Path, **given: Any) -> Played:
    """Run a playbook to its end."""
    argv, where = command(inventory, playbook, **given), {"cwd": layout.ROOT, "env": environment()}
    done = ran(*argv, **where, stdin=subprocess.DEVNULL, timeout=PLAY_TIMEOUT_S)
    return Played(done.returncode, done.stdout + done.stderr)
