# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Bring the guard of the exit status into an ansible-playbook that is a preflight, before anything can end it.

Three kinds of plugin in one file, one for each place at which Ansible reads a file of Flightline's without a host: an
inventory plugin, where ansible.cfg names it; a vars plugin, beside the playbook and whatever the configuration; and the
filter in playbooks/preflight.yml, which no start of it goes past. Whichever is first arms the guard.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.plugins.vars import BaseVarsPlugin

PLAYBOOK = Path(__file__).resolve().parents[2] / "playbooks" / "preflight.yml"
FULL_NAME = "flightline.gpu.preflight"
RUNS_PLAYBOOKS = "listtasks" in context.CLIARGS
"""An option of ansible-playbook alone; ansible-lint reads playbooks too, and has an exit status of its own."""
COLLECTION = "flightline.gpu." if __name__.startswith("ansible_collections.") else ""


def enter() -> None:
    """Arm the guard; without the flightline package there is none, and the process ends here."""
    if not RUNS_PLAYBOOKS:
        return
    try:
        from flightline.run import exit_status
    except ImportError as error:
        sys.stderr.write(
            f"flightline: no verdict: saw {error}, wanted the flightline package in the Python that runs Ansible; "
            "do: install it there: the collection's wheel, or pip install --no-deps -e . in the repository's root\n"
        )
        sys.exit(2)
    exit_status.watch(constants, context.CLIARGS, COLLECTION)


def _is_preflight() -> bool:
    """Does the command line of an ansible-playbook name the preflight?"""
    given = context.CLIARGS.get("args") or () if RUNS_PLAYBOOKS else ()
    return any(name.removesuffix(".yml") == FULL_NAME or Path(name).resolve() == PLAYBOOK for name in given)


if _is_preflight():
    enter()


class InventoryModule(BaseInventoryPlugin):
    """Reads no inventory."""

    NAME = "flightline_exit"

    def verify_file(self, path: str) -> bool:
        """Never its own."""
        return False


class VarsModule(BaseVarsPlugin):
    """Has no variables, and is not asked for any."""

    REQUIRES_ENABLED = True


def flightline_guarded(value: Any) -> Any:
    """The value; from here on the process ends with 2 unless there is a verdict."""
    enter()
    return value


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {"flightline_guarded": flightline_guarded}
