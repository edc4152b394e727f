# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Check what the inventory says about every host, before any node is touched."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ansible import constants as C  # Ansible's own name for it
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

try:
    from flightline import stack
    from flightline.configure import variable_names
    from flightline.run import beforehand, calls, launchers, live, validation
    from flightline.run.request import ends_in_s
    from flightline_node.model import SettingsError
except ImportError as error:
    MISSING: ImportError | None = error
else:
    MISSING = None
    ROLE_VARIABLES = variable_names.known(Path(__file__).parents[2] / "roles")


class ActionModule(ActionBase):
    """Runs on the controller only; the documentation is in library/flightline_validate.py."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the hosts' identities and the level, or fail with every mistake at once."""
        if MISSING:
            raise AnsibleActionFail(
                f"saw {MISSING}, wanted the flightline package in the Python that runs Ansible; "
                "do: install it there: the collection's wheel, or pip install --no-deps -e . in the repository's root"
            )
        result: dict[str, Any] = super().run(tmp, task_vars)
        found = {"changed": False, **self._found(task_vars or {})}
        live.say(live.REFUSED if found.get("failed") else live.VALIDATED, found)
        return {**result, **found}

    def _found(self, variables: dict[str, Any]) -> dict[str, Any]:
        if variables.get("flightline_keeps") and not os.environ.get(validation.CALLBACK_ENV):
            raise AnsibleActionFail(validation.NOT_KEPT)
        names = list(variables.get("ansible_play_hosts_all") or [])
        checked = validation.validate({name: validation.HostVars(variables["hostvars"][name]) for name in names})
        mistakes = {**validation.limit_mistakes(self._unmatched(variables)), **checked.mistakes}
        if variables.get("flightline_keeps") or variables.get("flightline_calls"):
            mistakes.update(beforehand.mistakes(checked, variables.get("flightline_need")))
            mistakes.update(self._together(variables, checked))
        if variables.get("flightline_configures"):
            for name in names:
                for mistake in self._configures(variables["hostvars"][name]):
                    mistakes.setdefault(mistake, []).append(name)
        if mistakes:
            text = validation.explain(mistakes, len(names))
            return {"failed": True, "msg": text, "mistakes": mistakes}
        if variables.get("flightline_launches") and checked.via != launchers.DEFAULT:
            # The command line asks again by the launcher; no task of this playbook may reach a node.
            return {"failed": True, "msg": f"asked by {checked.via}", "via": checked.via}
        validation.prepare_demo(checked.demo)
        answer: dict[str, Any] = {"hosts": checked.hosts, "level": checked.level, "publish": checked.publish}
        forks = int(variables.get("ansible_forks") or C.DEFAULT_FORKS)
        answer["ends_at"] = time.time() + ends_in_s(checked.deadlines_s, forks)
        if variables.get("flightline_calls"):
            answer["calls"] = calls.of_hosts({name: validation.HostVars(variables["hostvars"][name]) for name in names})
        absent = self._absent(variables, names)
        warnings = list(dict.fromkeys([*checked.warnings, *(entry["message"] for entry in absent)]))
        return {**answer, "absent": absent, "warnings": warnings}

    def _configures(self, host: Any) -> list[str]:
        """What stands in the way of the roles on a host."""
        outputs = validation.HostVars(host).get(stack.OUTPUTS)
        return [*stack.configure_mistakes(outputs), *variable_names.mistakes(host, ROLE_VARIABLES)]

    def _together(self, variables: dict[str, Any], checked: validation.Checked) -> dict[str, list[str]]:
        """What is wrong with the test over several nodes, the last stage of a deep preflight."""
        found: dict[str, list[str]] = {}
        for name in checked.hosts if checked.level == "deep" else ():
            given = validation.HostVars(variables["hostvars"][name]).get("flightline_fabric")
            if given is None:
                continue
            from flightline.fabric.settings import wanted_of

            try:
                wanted_of({"flightline_fabric": given})
            except SettingsError as error:
                for mistake in error.mistakes:
                    found.setdefault(mistake, []).append(name)
        return found

    def _unmatched(self, variables: dict[str, Any]) -> list[str]:
        """Parts of --limit that no host matches. Ansible only warns of them. What is left out may be missing."""
        inventory = variables["hostvars"]._inventory
        asked = [part for part in inventory._subset or () if not part.startswith("!")]
        return [
            part
            for part in asked
            if not inventory.get_hosts(part.lstrip("&"), ignore_limits=True, ignore_restrictions=True)
        ]

    def _absent(self, variables: dict[str, Any], names: list[str]) -> list[dict[str, str]]:
        """Nodes of the stack that the inventory lacks; none under --limit, which leaves nodes out by intent."""
        listed = variables["groups"].get("gpu_nodes", [])
        if not set(listed) <= set(names):
            return []
        hosts = (validation.HostVars(variables["hostvars"][name]) for name in listed)
        return stack.absent({part: host.get(part) for part in (stack.OUTPUTS, stack.TAGS)} for host in hosts)
