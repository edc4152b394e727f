# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Call the node library that a node has; send it as a module only where it is not there yet.

Ansible's way to run a module (a remote directory, an archive with the whole library, its wrapper) costs a node
more than all quick probes together. The role flightline_node installs the library, compiled; where it did not, the
module leaves it in the user's home. Then a run needs one remote command. Whatever does not fit (other version, other
Python) goes Ansible's way.

Either way the answer passes the gate (flightline/record/intake.py) in the worker of its host: what a node says beyond
its record, and a record that is none, gets no further than a short printable reason.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

try:
    from flightline.record.answers import admitted, answer_in, asked_of, most_bytes, said
    from flightline.record.intake import Asked
    from flightline.record.outputs import BROKEN_RC, NOT_KEPT_RC
    from flightline.run.library_call import command, own_key
    from flightline.run.process_limits import CutError, process_limits
    from flightline.run.request import deadline_s
    from flightline.run.validation import CALLBACK_ENV, NOT_KEPT
    from flightline_node import bounds
    from flightline_node.answer import MARK
    from flightline_node.inputs import unexpanded
    from flightline_node.keep import INSTALLED, key_of, sources
    from flightline_node.model import SettingsError
except ImportError as error:
    MISSING: ImportError | None = error
    KEY = ""
else:
    MISSING = None

    # At import, which Ansible does once in the process from which it forks a worker per host.
    KEY = own_key()
    # In a collection (plugins/module_utils) it may be of another version than the package that judges its answer.
    SENT = Path(__file__).resolve().parents[1] / "module_utils" / "flightline_node"
    SENT_KEY = key_of(sources(SENT)) if SENT.is_dir() else KEY

OTHER_VERSION = (
    "saw a collection flightline.gpu whose node library is not that of the flightline package in the Python that runs "
    "Ansible; wanted both of one version; do: install both from one build (make collection)"
)
MAX_COMMAND_BYTES = 64 << 10
"""Linux takes 128 KiB in one argument, and Ansible quotes it once more."""
MAX_TYPED_BYTES = 3000
"""Where a connection types its commands into a terminal (aws_ssm): a terminal's line ends at 4096 bytes."""
BARE = ("local", "ssh")
"""Connections that start a process with the command as its argument, and need no client library."""


class ActionModule(ActionBase):
    """The documentation is in library/flightline_node.py."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False  # its answer would come past the deadline and the gate

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result: the admitted record, or why there is none."""
        if MISSING:
            raise AnsibleActionFail(
                f"saw {MISSING}, wanted the flightline package in the Python that runs Ansible; "
                "do: install it there: the collection's wheel, or pip install --no-deps -e . in the repository's root"
            )
        if SENT_KEY != KEY:
            raise AnsibleActionFail(OTHER_VERSION)
        if (task_vars or {}).get("flightline_keeps") and not os.environ.get(CALLBACK_ENV):
            raise AnsibleActionFail(NOT_KEPT)
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=unexpanded())
        given["check_mode"] = bool(self._task.check_mode)  # then the node keeps no evidence of a failure
        given["call_id"] = secrets.token_hex(8)
        try:
            given["timeout_s"] = deadline_s(given["level"], given["timeout_s"])
            asked = asked_of(given, time.time())
        except SettingsError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, **self._held(given, asked, task_vars or {})}

    def _held(self, given: dict[str, Any], asked: Asked, variables: dict[str, Any]) -> dict[str, Any]:
        """Ask within the deadline; nothing of the node's own words comes out unclean."""
        self._most_bytes = most_bytes(given["return_bundle"])
        growth = bounds.MAX_GROWTH_BYTES + bounds.GROWTH_PER_BYTE * self._most_bytes
        growth += bounds.CLIENT_GROWTH_BYTES * (self._connection.transport not in BARE)
        try:
            with process_limits(given["timeout_s"], growth):
                return admitted(self._ask(given, variables), asked, given["return_bundle"])
        except CutError as error:
            return {"failed": True, "msg": str(error)}
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": said(str(error))}
        except AnsibleError as error:
            return {"failed": True, "msg": said(str(error))}

    def _ask(self, given: dict[str, Any], variables: dict[str, Any]) -> Any:
        answer, key = self._call_kept(given, variables)
        if answer is None:
            own = {name: given[name] for name in ("timeout_s", "call_id")}
            args = {**self._task.args, **own, "library_key": key}
            answer = self._execute_module(module_args=args, task_vars=variables)
        return answer

    def _low_level_execute_command(self, *args: Any, **named: Any) -> dict[str, Any]:
        """Ansible's own, for an answer of at most so many bytes."""
        answer: dict[str, Any] = super()._low_level_execute_command(*args, **named)
        length = len(answer["stdout"]) + len(answer["stderr"])
        if length > self._most_bytes:
            raise AnsibleActionFail(
                f"saw an answer of {length} bytes, wanted at most what is taken: taken are {self._most_bytes}"
            )
        return answer

    def _call_kept(self, given: dict[str, Any], variables: dict[str, Any]) -> tuple[Any, str]:
        """The kept library's answer, None where there is none; and the key under which to keep it ("": do not)."""
        # default=str: YAML makes a date of 2026-12-31, in a waiver for one.
        params = base64.b64encode(json.dumps(given, default=str).encode()).decode()
        command = self._command(params, variables, given["timeout_s"] + bounds.NODE_GRACE_S)
        if len(command) > (MAX_COMMAND_BYTES if self._connection.transport in BARE else MAX_TYPED_BYTES):
            return None, KEY
        told = self._low_level_execute_command(command)
        if told["rc"] in (NOT_KEPT_RC, BROKEN_RC):
            return None, KEY if told["rc"] == NOT_KEPT_RC else ""
        lines = [line for line in told["stdout"].splitlines() if line.startswith(MARK)]
        if len(lines) == 1:
            return answer_in(lines[0]), KEY
        last = (told["stderr"] or told["stdout"]).strip().splitlines() or ["nothing"]
        how = f"answered {len(lines)} times" if lines else f"ended with status {told['rc']} and said: {said(last[-1])}"
        return {"failed": True, "msg": f"the node library {how}"}, KEY

    def _python(self, variables: dict[str, Any]) -> str:
        """The interpreter that the inventory names; empty when Ansible would look for one."""
        named = str(self._templar.template(variables.get("ansible_python_interpreter") or "auto"))
        return "" if re.match(r"auto(_|$)", named) else named

    def _command(self, params: str, variables: dict[str, Any], end_s: int) -> str:
        installed = self._templar.template(variables.get("flightline_node_directory") or INSTALLED)
        script = command(KEY, params, end_s, self._python(variables), str(installed))
        return f"{self._compute_environment_string()} /bin/sh -c {shlex.quote(script)}".strip()
