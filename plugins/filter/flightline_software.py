# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Filters: software of an instance type, the agent's configuration, a file's digest, a host's record, advice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

from flightline.configure import host_state, package_trouble
from flightline.configure.node_software import software
from flightline_node.model import SettingsError
from flightline_node.tell.cwagent import AgentPlan, config


def flightline_software(instance_type: str) -> dict[str, Any]:
    """Look an instance type up; an unknown one is an error of the inventory."""
    try:
        return software(str(instance_type))
    except SettingsError as error:
        raise AnsibleFilterError(str(error)) from error


def flightline_agent_config(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Render the agent's configuration from the fields of AgentPlan."""
    try:
        return config(AgentPlan(**{**plan, "mounts": tuple(plan.get("mounts", ("/",)))}))
    except (SettingsError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"saw {error}, wanted variables from which the agent's configuration can be rendered"
        ) from error


def flightline_sha256(path: str) -> str:
    """The SHA-256 of a file of the control node, in hex."""
    try:
        return hashlib.sha256(Path(str(path)).read_bytes()).hexdigest()
    except OSError as error:
        raise AnsibleFilterError(f"saw: {path}: {error.strerror}; wanted: a file of the control node") from error


def flightline_package_advice(result: Mapping[str, Any] | str, otherwise: str) -> str:
    """What to do about a package task that failed, by what it said."""
    return package_trouble.advice(result, otherwise)


def flightline_kept_state(directory: str, host: str) -> dict[str, Any]:
    """What is kept of a host; nothing where it was never configured from here."""
    try:
        return host_state.kept(Path(str(directory)), str(host))
    except (host_state.NotSigned, OSError) as error:
        raise AnsibleFilterError(str(error)) from error


def flightline_signed_state(state: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The record with its signature."""
    return host_state.signed(state, str(key).strip())


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {
            "flightline_software": flightline_software,
            "flightline_agent_config": flightline_agent_config,
            "flightline_sha256": flightline_sha256,
            "flightline_package_advice": flightline_package_advice,
            "flightline_kept_state": flightline_kept_state,
            "flightline_signed_state": flightline_signed_state,
        }
