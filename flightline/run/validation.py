"""Check the inventory's variables before any node is touched: every mistake at once, with its hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from shutil import which
from typing import Any

from flightline import stack
from flightline.run import launchers
from flightline.run.request import deadline_s
from flightline_node import names
from flightline_node.inputs import INPUTS, defaults
from flightline_node.judge.xid_policy import read_overrides
from flightline_node.know.expected import NO_TYPE
from flightline_node.model import SettingsError
from flightline_node.settings import resolve_settings
from flightline_node.suggest import unknown

MOST_PLACE_CHARS = 60

OF_THE_RUN: Mapping[str, str] = {
    "flightline_place": "the node's rack or zone, by which a large fleet is ordered; default rack, else EC2's zone",
    "flightline_keep_bundles": "keep the raw outputs of failed nodes beside the run store; true when there is a bucket",
    "flightline_publish": "where results are published and who is told; the same for all hosts",
    "flightline_fabric": "the test over several nodes at level deep: program, launcher, ranks, ...; docs/fabric.md",
    "flightline_hosts": "pattern of the hosts to judge; all when not given",
    "flightline_via": "who asks the nodes for flightline preflight, as --via; the same for all hosts",
}
VARIABLES: Mapping[str, str] = {**{one.variable: one.what for one in INPUTS if one.variable}, **OF_THE_RUN}
OF_A_PREFLIGHT = ("flightline_level", "flightline_checks", "flightline_skip", "flightline_waivers")
"""What a preflight looks at once more: a playbook that configures nodes does not mind."""
MOST_HOSTS_NAMED = 8
SSM_PLUGIN = "/usr/local/bin/session-manager-plugin"
"""Where amazon.aws.aws_ssm looks first; then on the PATH."""

CALLBACK_ENV = "FLIGHTLINE_CALLBACK"
"""Set by the flightline_store callback while it watches a preflight, for the tasks of that playbook."""

NOT_KEPT = (
    "saw that the flightline_store callback is not active; wanted it, because nothing is kept without it, and there is "
    "no verdict; do: look for Ansible's warning of it above, name the preflight before other playbooks, or set "
    "ANSIBLE_CALLBACKS_ENABLED=flightline_store (of the collection: flightline.gpu.flightline_store)"
)


@dataclass
class Checked:
    """What validation found. mistakes: text -> the hosts it concerns, both in inventory order.

    warnings: what is taken and should be written otherwise. hosts: name -> its instance_type and instance_id. demo:
    variables of the hosts that are simulated. asked: of each host what OF_A_PREFLIGHT names, as given.
    """

    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    level: str = "quick"
    publish: dict[str, Any] = field(default_factory=dict)
    via: str = launchers.DEFAULT
    deadlines_s: list[int] = field(default_factory=list)
    mistakes: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    demo: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)


class HostVars(dict[str, Any]):
    """Ansible's variables of one host, templated as they are read.

    A template that cannot be evaluated is a mistake of the inventory: it is kept under errors, by variable.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        super().__init__()
        self._variables = variables
        self.errors: dict[str, str] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """The value, the default when it is not defined or cannot be evaluated."""
        try:
            return self._variables[key]
        except KeyError:
            return default
        except Exception as error:  # Ansible's errors: undefined names, broken templates, failed lookups
            self.errors[key] = " ".join(str(error).split())
            return default

    def names(self) -> list[str]:
        """Every variable of the host."""
        return [str(name) for name in self._variables]


def validate(hosts: Mapping[str, HostVars]) -> Checked:
    """Check every host; the same mistake of many hosts is listed once with all of them."""
    checked = Checked()
    seen: dict[str, tuple[str, ...]] = {}
    for position, (name, variables) in enumerate(hosts.items()):
        given = {
            key: variables.get(key) for key in (*_JUDGED, "instance_type", "instance_id", "demo_dir", "demo_faults")
        }
        mistakes = [f"{key}: {text}" for key, text in variables.errors.items()]
        key = json.dumps([given[part] for part in (*_JUDGED, "instance_type", "demo_faults")], default=str)
        if key not in seen:
            seen[key] = tuple(_mistakes(given, skip=variables.errors))
            checked.warnings += _renamed(given)
        mistakes += _stack_mistakes(variables, seen)
        mistakes += _connection_mistakes(variables)
        for mistake in (*mistakes, *seen[key], *_misspelt(variables.names())):
            checked.mistakes.setdefault(mistake, []).append(name)
        checked.hosts[name] = {
            "instance_type": str(given["instance_type"] or ""),
            "instance_id": str(given["instance_id"] or ""),
            "place": place_of(variables),
            "address": address_of(variables),
        }
        with suppress(SettingsError):  # a mistake, told as one
            level = str(given["flightline_level"] or "quick")
            checked.deadlines_s.append(deadline_s(level, given["flightline_timeout_s"]))
        checked.asked[name] = {part: given[part] for part in OF_A_PREFLIGHT}
        if given["demo_dir"]:
            checked.demo[name] = {part: given[part] for part in ("demo_dir", "instance_type", "demo_faults")}
        via = str(variables.get("flightline_via") or launchers.DEFAULT)
        if via not in launchers.names():
            wanted = ", ".join(launchers.names())
            checked.mistakes.setdefault(f"flightline_via: saw {via!r}, wanted one of {wanted}", []).append(name)
        if position == 0:
            checked.via = via
        elif via != checked.via:
            checked.mistakes.setdefault(VIA_DIFFERS, []).append(name)
        if position == 0:
            checked.level = str(given["flightline_level"] or "quick")
            checked.publish = _published(given["flightline_publish"])
        elif _published(given["flightline_publish"]) != checked.publish:
            checked.mistakes.setdefault(PUBLISH_DIFFERS, []).append(name)
    return checked


def _renamed(given: Mapping[str, Any]) -> list[str]:
    """Earlier names of checks and thresholds in a host's settings."""
    return list(names.warnings({one.name: given.get(one.variable) for one in INPUTS if one.stored}))


def _stack_mistakes(variables: HostVars, seen: dict[str, tuple[str, ...]]) -> list[str]:
    """Is a host of a stack what the stack says? The outputs, alike on all hosts, are checked once."""
    tags, outputs = variables.get(stack.TAGS), variables.get(stack.OUTPUTS)
    if tags is None and outputs is None:
        return []
    key = "outputs " + json.dumps(outputs, default=str)
    if key not in seen:
        seen[key] = tuple(stack.outputs_mistakes(outputs))
    facts = {name: variables.get(name) for name in stack.FACTS}
    return [*seen[key], *stack.host_mistakes(outputs, {stack.TAGS: tags, **facts})]


def _connection_mistakes(variables: HostVars) -> list[str]:
    """Without its plugin no SSM connection can be made: this machine's fault, which would look like every node's."""
    if str(variables.get("ansible_connection") or "").rpartition(".")[2] != "aws_ssm":
        return []
    named = variables.get("ansible_aws_ssm_plugin") or os.environ.get("AWS_SESSION_MANAGER_PLUGIN")
    if Path(named).exists() if named else Path(SSM_PLUGIN).exists() or which(Path(SSM_PLUGIN).name):
        return []
    seen = f"{named} is not there" if named else f"no {Path(SSM_PLUGIN).name} on the PATH of this machine"
    return [f"ansible_connection aws_ssm: {seen}; install AWS's Session Manager plugin here, or set accessMode: ssh"]


VIA_DIFFERS = "flightline_via: saw another value than for the first host; wanted one for all hosts of a run"
PUBLISH_DIFFERS = "flightline_publish: not as on the first host; a run is published as a whole: set it for all hosts"


def _published(given: Any) -> dict[str, Any]:
    """Where the run is published, as plain data; empty when nowhere, or when it is a mistake and told as one."""
    if not given:
        return {}
    from ..cloud.publish_settings import publish

    try:
        wanted = publish(given)
    except SettingsError:
        return {}
    return wanted.to_dict() if wanted else {}


_PATHS_OF_NODES = ("flightline_root", "flightline_bundle_dir")
_JUDGED = (
    *(one.variable for one in INPUTS if one.stored and one.variable.startswith("flightline_")),
    *("flightline_publish", *_PATHS_OF_NODES, "flightline_keep_bundles", "flightline_timeout_s"),
)


def _mistakes(given: Mapping[str, Any], skip: Iterable[str]) -> Iterable[str]:
    if given["instance_type"] in (None, "") and "instance_type" not in skip:
        yield (
            f"instance_type: not set, wanted an EC2 instance type such as p5.48xlarge, or {NO_TYPE} "
            "with the expected values by hand"
        )
    expected = given["flightline_expected"]
    if expected is not None and not isinstance(expected, Mapping):
        yield f"flightline_expected: saw {expected!r}, wanted a mapping of names to values"
        expected = None
    stored = {one.name: given[one.variable] for one in INPUTS if one.stored and one.variable in given}
    stored = {name: value for name, value in stored.items() if value not in (None, "")}
    lists = {name: _names(stored.get(name)) for name in ("checks", "skip")}
    options = given["flightline_options"] if isinstance(given["flightline_options"], Mapping) else {}
    judged = {**defaults(), "instance_type": NO_TYPE, **stored, **lists, "expected": expected, "options": options}
    try:
        resolve_settings({**judged, "level": str(judged["level"]), "instance_type": str(judged["instance_type"])})
    except SettingsError as error:
        yield from error.mistakes
    try:
        deadline_s("", given["flightline_timeout_s"])
    except SettingsError as error:
        yield from error.mistakes
    yield from _option_mistakes(given["flightline_options"])
    yield from _place_mistakes(given)
    yield from _publish_mistakes(given["flightline_publish"])
    yield from _demo_mistakes(given["demo_faults"])


OPTIONS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "active_when_busy": ("true or false", lambda value: _is_flag(value)),
    "bug_report": ("auto, always or never", lambda value: str(value).lower() in ("auto", "always", "never", "false")),
    "evidence_dir": ("an absolute path, or nothing", lambda value: not value or str(value).startswith("/")),
    "fs_io_mounts": ("a list of absolute paths", lambda value: all(name.startswith("/") for name in _names(value))),
    "s3_endpoints": ("a list of buckets or host names", lambda value: isinstance(value, (str, list, tuple))),
    "xid_policy": ("", lambda value: True),  # has sentences of its own
}
"""Name of each option -> what it takes, and whether a value is that."""


def _option_mistakes(given: Any) -> Iterable[str]:
    """A misspelt option would silently be none."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield f"flightline_options: saw {given!r}, wanted a mapping"
        return
    for name, value in given.items():
        wanted, accepts = OPTIONS.get(str(name), ("", None))
        if accepts is None:
            yield f"flightline_options: unknown option {name!r}; known options: {', '.join(OPTIONS)}"
        elif not accepts(value):
            yield f"flightline_options: {name}: saw {value!r}, wanted {wanted}"
    yield from (f"flightline_options: {mistake}" for mistake in read_overrides(given)[1])


def _is_flag(value: Any) -> bool:
    return str(value).lower() in ("true", "yes", "on", "1", "y", "t", "false", "no", "off", "0", "n", "f")


def _place_mistakes(given: Mapping[str, Any]) -> Iterable[str]:
    keep = given["flightline_keep_bundles"]
    for name in _PATHS_OF_NODES:
        if given[name] is not None and not str(given[name]).startswith(("/", "~", "$")):
            yield f"{name}: saw {given[name]!r}, wanted an absolute path"
    if keep is not None and not _is_flag(keep):
        yield f"flightline_keep_bundles: saw {keep!r}, wanted true or false"


def _publish_mistakes(given: Any) -> Iterable[str]:
    if not given:
        return
    from ..cloud.publish_settings import publish

    try:
        publish(given)
    except SettingsError as error:
        yield str(error)


def _names(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, (list, tuple)):
        return [str(part) for part in value]
    return [str(value)]


def _demo_mistakes(faults: Any) -> Iterable[str]:
    if not faults:
        return
    from ..demo import FAULTS

    for name in _names(faults):
        if name not in FAULTS:
            yield f"demo_faults: {unknown('fault', name, FAULTS)}"


def _misspelt(names: Iterable[str]) -> Iterable[str]:
    """A threshold under a misspelt variable would silently be the default."""
    for name in names:
        if name.startswith("flightline_") and name not in VARIABLES:
            close = get_close_matches(name, VARIABLES, 1, cutoff=0.9)
            if close:
                yield f"{name}: no such variable; did you mean {close[0]}?"


def address_of(variables: Mapping[str, Any]) -> str:
    """By which other nodes reach a host: node_address, else what Ansible connects to; "" where its name will do."""
    given = variables.get("node_address") or variables.get("ansible_host") or ""
    return str(given)[:MOST_PLACE_CHARS]


_PLACES = ("flightline_place", "rack", "ec2_placement", "placement")


def place_of(variables: HostVars) -> str:
    """The rack or zone that the inventory gives a host; "" when it gives none."""
    for name in _PLACES:
        value = variables.get(name)
        value = value.get("availability_zone") if isinstance(value, Mapping) else value
        if isinstance(value, (str, int)) and str(value).strip():
            return str(value)[:MOST_PLACE_CHARS]
    return ""


def limit_mistakes(unmatched: Iterable[str]) -> dict[str, list[str]]:
    """What --limit asks for and the inventory has not: judged without it, the rest could be go."""
    wanted = "no such host or group in the inventory; correct --limit, or the inventory"
    return {f"--limit {pattern!r}: {wanted}": [] for pattern in unmatched}


def explain(mistakes: Mapping[str, list[str]], hosts: int) -> str:
    """The text a person reads: a line per mistake, with its hosts."""
    lines = [f"the inventory cannot be judged as it is ({len(mistakes)} to correct, no node was touched):"]
    for mistake, concerned in mistakes.items():
        lines.append(f"- {_where(concerned, hosts)}: {mistake}" if concerned else f"- {mistake}")
    return "\n".join(lines)


def _where(names: list[str], hosts: int) -> str:
    if len(names) == hosts > 1:
        return f"all {hosts} hosts"
    more = len(names) - MOST_HOSTS_NAMED
    return ", ".join(names[:MOST_HOSTS_NAMED]) + (f" and {more} more" if more > 0 else "")


def prepare_demo(hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Put up the simulated nodes of the demo fleet, if there are any."""
    if hosts:
        from ..demo import prepare

        prepare(hosts)
