# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Call the node library that a node has kept; send it as a module only where it is not there yet.

Ansible's way to run a module (a remote directory, an archive with the whole library, its wrapper) costs a node
more than all quick probes together. The module leaves its library on the node, compiled, so the next run needs
one remote command. Whatever does not fit (first run, other version, other Python, async) goes Ansible's way.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

try:
    import flightline_node
    from flightline_node.arguments import unexpanded
    from flightline_node.module_call import MARK
except ImportError:  # the Python that runs Ansible does not have the project: the module says what it needs
    KEY = ""
else:

    def _key(directory: Path) -> str:
        """Name a version of the library by its sources."""
        found = hashlib.sha256()
        for path in sorted(directory.rglob("*.py")):
            found.update(f"{path.relative_to(directory)}\0".encode() + path.read_bytes() + b"\0")
        return found.hexdigest()[:16]

    # At import, which Ansible does once in the process from which it forks a worker per host.
    KEY = _key(Path(flightline_node.__file__).parent)

NOT_KEPT_RC, BROKEN_RC = 97, 96
MAX_COMMAND_BYTES = 64 << 10
"""Linux takes 128 KiB in one argument, and Ansible quotes it once more."""
MAX_TYPED_BYTES = 3000
"""Where a connection types its commands into a terminal (aws_ssm): a terminal's line ends at 4096 bytes."""
NOT_TYPED = ("local", "ssh")

# The directory must be the user's own: code is run from it. -I and -S: nothing but the library and Python's own.
_SHELL = """\
b=~/.ansible/flightline; d=$b/{key}
[ -O "$b" ] && [ -O "$d" ] && [ -d "$d" ] || exit {not_kept}
py={python}
[ -n "$py" ] || read -r py < "$d/python" || exit {not_kept}
command -v "$py" >/dev/null || exit {not_kept}
exec "$py" -I -S -c {start} "$d" {params}"""

_START = f"""\
import os, sys
sys.path.insert(0, sys.argv[1])
mark = "node.%s.pyc" % sys.implementation.cache_tag
if not os.path.exists(os.path.join(sys.argv[1], "flightline_node", "__pycache__", mark)):
    sys.exit({NOT_KEPT_RC})
try:
    from flightline_node.module_call import main
except Exception:
    sys.exit({BROKEN_RC})
main(sys.argv[2])"""


class ActionModule(ActionBase):
    """The documentation is in library/flightline_node.py."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        answer, key = (None, KEY) if self._task.async_val or not KEY else self._call_kept(variables)
        if answer is None:
            answer = self._execute_module(
                module_args={**self._task.args, "library_key": key},
                task_vars=variables,
                wrap_async=self._task.async_val,
            )
        return {**result, **answer}

    def _call_kept(self, variables: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """The kept library's answer, None where there is none; and the key under which to keep it ("": do not)."""
        _, given = self.validate_argument_spec(argument_spec=unexpanded())
        given["check_mode"] = bool(self._task.check_mode)  # then the node keeps no evidence of a failure
        # default=str: YAML makes a date of 2026-12-31, in a waiver for one.
        params = base64.b64encode(json.dumps(given, default=str).encode()).decode()
        command = self._command(params, self._python(variables))
        if len(command) > (MAX_COMMAND_BYTES if self._connection.transport in NOT_TYPED else MAX_TYPED_BYTES):
            return None, KEY
        said = self._low_level_execute_command(command)
        if said["rc"] in (NOT_KEPT_RC, BROKEN_RC):
            return None, KEY if said["rc"] == NOT_KEPT_RC else ""
        for line in reversed(said["stdout"].splitlines()):
            if line.startswith(MARK):
                answer: dict[str, Any] = json.loads(line)["flightline_call"]
                return answer, KEY
        told = (said["stderr"] or said["stdout"]).strip().splitlines() or ["nothing"]
        return {"failed": True, "msg": f"the node library ended with status {said['rc']} and said: {told[-1]}"}, KEY

    def _python(self, variables: dict[str, Any]) -> str:
        """The interpreter that the inventory names; empty when Ansible would look for one."""
        named = str(self._templar.template(variables.get("ansible_python_interpreter") or "auto"))
        return "" if re.match(r"auto(_|$)", named) else named

    def _command(self, params: str, python: str) -> str:
        script = _SHELL.format(
            key=KEY,
            not_kept=NOT_KEPT_RC,
            python=shlex.quote(python),
            start=shlex.quote(_START),
            params=params,
        )
        return f"{self._compute_environment_string()} /bin/sh -c {shlex.quote(script)}".strip()
