# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Call the node library that a node has kept; send it as a module only where it is not there yet.

Ansible's way to run a module (a remote directory, an archive with the whole library, its wrapper) costs a node
more than all quick probes together. The module leaves its library on the node, compiled, so the next run needs
one remote command. Whatever does not fit (first run, other version, other Python) goes Ansible's way.

Either way the answer passes the gate (flightline/intake.py) here, in the worker of its host: what a node says beyond
its record, and a record that is none, gets no further than a short printable reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import shlex
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

try:
    import flightline_node
    from flightline import intake
    from flightline.asking import asked_of, deadline_s
    from flightline.leash import CutError, leash
    from flightline.shape import printable
    from flightline.validation import CALLBACK_ENV, NOT_KEPT
    from flightline_node import bounds, strictjson
    from flightline_node.arguments import unexpanded
    from flightline_node.model import SettingsError
    from flightline_node.module_call import MARK
except ImportError as error:
    MISSING: ImportError | None = error
    KEY = ""
else:
    MISSING = None

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
t=; command -v timeout >/dev/null && t="timeout --foreground -k 5 {end_s}"
exec $t "$py" -I -S -c {start} "$d" {params}"""

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
    _supports_async = False  # its answer would come past the deadline and the gate

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result: the admitted record, or why there is none."""
        if MISSING:
            raise AnsibleActionFail(
                f"the flightline package is not in the Python that runs Ansible ({MISSING}); "
                "install it there: pip install --no-deps -e . in the repository's root"
            )
        if (task_vars or {}).get("flightline_keeps") and not os.environ.get(CALLBACK_ENV):
            raise AnsibleActionFail(NOT_KEPT)
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=unexpanded())
        given["check_mode"] = bool(self._task.check_mode)  # then the node keeps no evidence of a failure
        given["call_id"] = secrets.token_hex(8)
        try:
            given["timeout_s"] = deadline_s(given["level"], given["timeout_s"])
            asked = asked_of(given)
        except SettingsError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, **self._held(given, asked, task_vars or {})}

    def _held(self, given: dict[str, Any], asked: intake.Asked, variables: dict[str, Any]) -> dict[str, Any]:
        """Ask within the deadline; nothing of the node's own words comes out unclean."""
        self._most_bytes = most_bytes(given["return_bundle"])
        try:
            with leash(given["timeout_s"], bounds.MAX_GROWTH_BYTES + bounds.GROWTH_PER_BYTE * self._most_bytes):
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
            raise AnsibleActionFail(f"its answer has {length} bytes, taken are {self._most_bytes}")
        return answer

    def _call_kept(self, given: dict[str, Any], variables: dict[str, Any]) -> tuple[Any, str]:
        """The kept library's answer, None where there is none; and the key under which to keep it ("": do not)."""
        # default=str: YAML makes a date of 2026-12-31, in a waiver for one.
        params = base64.b64encode(json.dumps(given, default=str).encode()).decode()
        command = self._command(params, self._python(variables), given["timeout_s"] + bounds.NODE_GRACE_S)
        if len(command) > (MAX_COMMAND_BYTES if self._connection.transport in NOT_TYPED else MAX_TYPED_BYTES):
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

    def _command(self, params: str, python: str, end_s: int) -> str:
        script = _SHELL.format(
            key=KEY,
            not_kept=NOT_KEPT_RC,
            python=shlex.quote(python),
            end_s=end_s,
            start=shlex.quote(_START),
            params=params,
        )
        return f"{self._compute_environment_string()} /bin/sh -c {shlex.quote(script)}".strip()


def most_bytes(with_bundle: bool) -> int:
    """What a node may answer, with what is printed around it."""
    return bounds.MAX_RECORD_BYTES + bounds.MAX_CHATTER_BYTES + (bounds.MAX_BUNDLE_TEXT if with_bundle else 0)


def said(text: str) -> str:
    """What somebody else says, printable and short."""
    return " ".join(printable(text[: 4 * bounds.SAID_CHARS]).split())[: bounds.SAID_CHARS] or "nothing"


def answer_in(line: str) -> dict[str, Any]:
    """The answer in the line that the node library prints."""
    try:
        found = strictjson.loads(line)["flightline_call"]
    except (ValueError, KeyError, TypeError) as error:
        return {"failed": True, "msg": f"its answer was refused: {said(str(error))}; it began: {intake.first(line)}"}
    return found if isinstance(found, dict) else {"failed": True, "msg": f"it answered {intake.first(found)}"}


def admitted(answer: dict[str, Any], asked: intake.Asked, with_bundle: bool) -> dict[str, Any]:
    """The task's result: made anew, so that nothing but what is named here gets any further."""
    if answer.get("failed") or "record" not in answer:
        texts = (answer.get(key) for key in ("msg", "module_stderr", "module_stdout", "exception"))
        return {
            "failed": True,
            "msg": next((said(text) for text in texts if text and isinstance(text, str)), "no record"),
        }
    try:
        record = intake.admit(answer["record"], asked)
    except intake.RefusedError as error:
        return {"failed": True, "msg": str(error)}
    result = {"changed": False, "verdict": record["verdict"], "record": record}
    bundle = answer.get("bundle")
    if with_bundle and bundle and not intake.is_go(record):
        if isinstance(bundle, str) and len(bundle) <= bounds.MAX_BUNDLE_TEXT:
            result["bundle"] = bundle
        else:
            result["bundle_refused"] = (
                f"its bundle was left out: saw {intake.first(bundle)}, wanted at most "
                f"{bounds.MAX_BUNDLE_TEXT} characters"
            )
    return result
