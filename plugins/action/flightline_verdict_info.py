# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Read a run's verdict from the run store: the gate in front of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

try:
    from flightline.run import gate, locate
    from flightline.store import sqlite as store
except ImportError as error:
    MISSING: ImportError | None = error
else:
    MISSING = None

ARGUMENT_SPEC: Mapping[str, Mapping[str, Any]] = {
    "run": {"type": "str", "default": "latest"},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "max_age_hours": {"type": "float"},
    "store": {"type": "str"},
    "fail_on_no_go": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):
    """Runs on the controller only; the documentation is in library/flightline_verdict_info.py."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the verdict, the hosts of each side and why; fail on no-go unless told not to."""
        if MISSING:
            raise AnsibleActionFail(
                f"saw {MISSING}, wanted the flightline package in the Python that runs Ansible; "
                "do: install it there: the collection's wheel, or pip install --no-deps -e . in the repository's root"
            )
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        try:
            with locate.open_store(given["store"]) as db:
                answer = gate.check(db, given["run"], given["hosts"], given["max_age_hours"])
        except store.StoreError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(changed=False, warnings=[f"run {answer['run']}: {text}" for text in answer["left_out"]], **answer)
        if answer["reasons"] and given["fail_on_no_go"]:
            result.update(failed=True, msg=f"no go by run {answer['run']}: {'; '.join(answer['reasons'])}")
        return result
