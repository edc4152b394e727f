"""An inventory's hosts and their variables, as Ansible itself reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flightline_node.model import SettingsError

from . import ansible_errors, playbooks

PROGRAM = "ansible-inventory"
TIMEOUT_S = 300
"""An account with many instances answers slowly."""


def hosts(sources: Sequence[str], limit: str = "") -> dict[str, Mapping[str, Any]]:
    """Each host with its variables, in the inventory's order. Raises SettingsError when Ansible cannot read it."""
    beside = Path(sys.executable).with_name(PROGRAM)
    argv = [str(beside) if beside.exists() else PROGRAM, "--list"]
    argv += [part for source in sources for part in ("-i", playbooks.absolute(source))]
    argv += ["--limit", limit] if limit else []
    env = {**os.environ, **playbooks.environment(playbooks.find())}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unread(sources, str(error)) from error
    if done.returncode:
        raise _unread(sources, ansible_errors.why((done.stdout + done.stderr).splitlines()))
    try:
        listed = json.loads(done.stdout)
    except ValueError as error:
        raise _unread(sources, f"{PROGRAM} printed no JSON") from error
    variables = listed.get("_meta", {}).get("hostvars", {})
    groups = (group for name, group in listed.items() if name != "_meta")
    found = {host: variables.get(host, {}) for group in groups for host in group.get("hosts", ())}
    if not found:
        raise _unread(sources, "it sees no hosts in it" + (f" by the limit {limit}" if limit else ""))
    return found


def _unread(sources: Sequence[str], why: str) -> SettingsError:
    return SettingsError(
        f"inventory {', '.join(sources)}: saw that Ansible cannot read it ({why or 'it says no reason'}), wanted its "
        f"hosts; do: look at {PROGRAM} -i {sources[0] if sources else 'PATH'} --list"
    )
