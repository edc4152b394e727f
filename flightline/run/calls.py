"""What each host of an inventory is asked, for a launcher that asks many at once. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from flightline_node.inputs import INPUTS, defaults, unexpanded
from flightline_node.keep import INSTALLED
from flightline_node.model import SettingsError
from flightline_node.nonce import call_id

from ..configure.slurm_plan import address, node_name
from ..stack import OUTPUTS
from .request import deadline_s

OF_A_HOST = ("host", "instance_id", "call_id")
"""Inputs in which hosts that are asked alike differ."""

OF_A_STACK = ("cluster_name", "region", "results_bucket", "results_table")
"""Outputs of a stack that a launcher needs."""

EVERY = "*"
"""In what all nodes are told: a node that is not listed, and whose host and instance id are its name."""


@dataclass(frozen=True)
class Call:
    """What one host is asked.

    name: by which the launcher knows it. params: the node library's inputs. installed: where its library is. address:
    where it is reached, for a launcher that knows it by another name. stack: of its stack's outputs what OF_A_STACK
    names, empty without one. key: of the run; who has it knows the call ids of all its nodes.
    """

    host: str
    name: str
    params: Mapping[str, Any]
    installed: str = INSTALLED
    address: str = ""
    stack: Mapping[str, str] = field(default_factory=dict)
    key: str = field(default="", repr=False)


def of_hosts(hosts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of hosts (name -> HostVars) as plain data: alike ones once. Read them with `read`."""
    groups: dict[str, dict[str, Any]] = {}
    for host, variables in hosts.items():
        params, own = _params(host, variables)
        installed = str(variables.get("flightline_node_directory") or INSTALLED)
        stack = _stack(variables.get(OUTPUTS))
        key = json.dumps([params, installed, stack], sort_keys=True, default=str)
        group = groups.setdefault(
            key, {"params": json.loads(key)[0], "installed": installed, "stack": stack, "hosts": {}}
        )
        group["hosts"][host] = {**_known_as(host, variables), "instance_id": own["instance_id"]}
    return list(groups.values())


def read(groups: Sequence[Mapping[str, Any]], key: str) -> list[Call]:
    """The calls of all hosts, each with an id of its own. key: of this run, kept on this side."""
    return [
        Call(
            host,
            one["name"],
            {**group["params"], "host": host, "instance_id": one["instance_id"], "call_id": call_id(key, host)},
            group["installed"],
            one["address"],
            group["stack"],
            key,
        )
        for group in groups
        for host, one in group["hosts"].items()
    ]


def packed(calls: Sequence[Call]) -> dict[str, Any]:
    """What some nodes are told, and each picks its own of: flightline_node.answer.call_of_many reads it."""
    shared: dict[str, int] = {}
    nodes: dict[str, Any] = {}
    for call in calls:
        alike = {name: value for name, value in call.params.items() if name not in OF_A_HOST}
        own = {name: call.params[name] for name in OF_A_HOST}
        nodes[call.name] = [shared.setdefault(json.dumps(alike, sort_keys=True), len(shared)), own]
    return {"calls": [json.loads(text) for text in shared], "nodes": nodes}


def broadcast(calls: Sequence[Call]) -> dict[str, Any] | None:
    """The same for all nodes of a run, however many, where they are asked alike and named by their hosts; else None.

    Ten thousand ids do not fit into a command. Its readers could read a list of them as well as they can the key.
    """
    made, keys = packed(calls), {call.key for call in calls}
    alike = all(own["host"] == own["instance_id"] == name for name, (_, own) in made["nodes"].items())
    if len(made["calls"]) != 1 or len(keys) != 1 or not alike:
        return None
    return {"calls": made["calls"], "nodes": {EVERY: [0, {"call_key": keys.pop()}]}}


def _stack(outputs: Any) -> dict[str, str]:
    given = outputs if isinstance(outputs, Mapping) else {}
    return {name: str(given[name]) for name in OF_A_STACK if given.get(name)}


def _params(host: str, variables: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    given = {one.name: variables.get(one.variable) for one in INPUTS if one.variable}
    named = {name: value for name, value in given.items() if value is not None}
    checked = ArgumentSpecValidator(unexpanded()).validate({**named, "host": host})
    if checked.error_messages:
        raise SettingsError(f"{host}: {'; '.join(checked.error_messages)}")
    params: dict[str, Any] = {**defaults(), **checked.validated_parameters}
    params["timeout_s"] = deadline_s(params["level"], params["timeout_s"])
    own = {name: params.pop(name) or "" for name in OF_A_HOST}
    return params, own


def _known_as(host: str, variables: Any) -> dict[str, str]:
    wanted = ("slurm_node_name", "ansible_facts", "ec2_private_dns_name", "node_address", "ansible_host")
    given = {name: variables.get(name) for name in wanted}
    return {"name": node_name(host, given, {}), "address": address(host, given)}
