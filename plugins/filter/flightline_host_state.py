# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Filters of the role host_state: what this side keeps of a host, and its signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

from flightline.configure import host_state


def flightline_kept_state(directory: str, host: str) -> dict[str, Any]:
    """What is kept of a host; nothing where it was never configured from here."""
    try:
        return host_state.kept(Path(str(directory)), str(host))
    except (host_state.NotSigned, OSError) as error:
        raise AnsibleFilterError(str(error)) from error


def flightline_signed_state(state: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The state with its signature."""
    return host_state.sign(state, str(key).strip())


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {
            "flightline_kept_state": flightline_kept_state,
            "flightline_signed_state": flightline_signed_state,
        }
