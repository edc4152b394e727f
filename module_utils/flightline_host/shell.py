"""The thin shell that every module in library/ uses: arguments in, one result shape out."""

from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict, List, Mapping, Type

from ansible.module_utils.basic import AnsibleModule

from .host import Host, Problem, Problems
from .outcome import Outcome

Ensure = Callable[[Host, Mapping[str, Any], bool], Outcome]
"""host, arguments, check mode -> outcome."""


def make_host() -> Host:
    """The host this module runs on."""
    return Host()


class Unlogged(AnsibleModule):  # type: ignore[misc]
    """Does not write its arguments to the system log: whole files would stand there, on every run."""

    def _log_invocation(self) -> None:
        """Nothing."""


def run_module(
    argument_spec: Dict[str, Any],
    ensure: Ensure,
    kind: Type[AnsibleModule] = AnsibleModule,
    **rules: Any,
) -> None:
    """Read the arguments, do the work, answer with changed, facts, commands and diff."""
    module = kind(argument_spec=argument_spec, supports_check_mode=True, **rules)
    host = make_host()
    try:
        outcome = ensure(host, module.params, bool(module.check_mode))
    except Problem as problem:
        module.fail_json(msg=str(problem), problems=_listed([problem]), commands=host.commands)
    except Problems as several:
        module.fail_json(msg=str(several), problems=_listed(several.problems), commands=host.commands)
    except OSError as error:
        where = error.filename or "a file"
        disk = Problem(f"{where}: {error.strerror}", "a file system that takes the change", _advice(error))
        module.fail_json(msg=str(disk), problems=_listed([disk]), commands=host.commands)
    result: Dict[str, Any] = {"changed": outcome.changed, "facts": outcome.facts, "commands": host.commands}
    if module._diff:
        result["diff"] = {"before": _text(outcome.before), "after": _text(outcome.after)}
    module.exit_json(**result)


def _listed(problems: List[Problem]) -> List[Dict[str, str]]:
    return [{"seen": problem.seen, "wanted": problem.wanted, "do": problem.do} for problem in problems]


def _advice(error: OSError) -> str:
    return (
        "free space (df -h), then run again" if error.errno == errno.ENOSPC else "look at the mount and its permissions"
    )


def _text(state: Dict[str, Any]) -> str:
    return json.dumps(state, indent=2, sort_keys=True) + "\n"
