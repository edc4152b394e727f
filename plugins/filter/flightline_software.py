# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Filters: what software an instance type needs, and the CloudWatch agent's configuration for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from flightline.node_software import software
from flightline_node.cwagent import AgentPlan, config
from flightline_node.model import SettingsError


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
        raise AnsibleFilterError(f"the agent's configuration cannot be rendered: {error}") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Name -> function."""
        return {"flightline_software": flightline_software, "flightline_agent_config": flightline_agent_config}
