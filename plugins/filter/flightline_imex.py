# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Filter of the role nvidia_driver: the nodes that share GPU memory with a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from flightline.configure import imex_plan
from flightline_node.model import SettingsError


def flightline_imex_nodes(name: str, names: Iterable[str], hostvars: Mapping[str, Any]) -> list[str]:
    """Addresses of the nodes in a node's rack."""
    try:
        return imex_plan.nodes(str(name), names, hostvars)
    except SettingsError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {"flightline_imex_nodes": flightline_imex_nodes}
