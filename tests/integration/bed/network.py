"""The bridge between the outer machine and the hosts."""

import json
from pathlib import Path

from tests.beds import ran

from . import layout, timesource

HALF_MADE = "nobody"
"""A bridge without an owner: `up` was killed between two commands. Any bed may remove it."""


def _ip(*arguments: str) -> str:
    done = ran("ip", *arguments)
    if done.returncode:
        seen = done.stderr.strip()
        raise layout.BedError(
            f"seen: ip {' '.join(arguments)}: {seen}; wanted: a bridge; do: run as root with iproute2"
        )
    return done.stdout


def owner() -> str:
    """The directory whose bed holds the bridge; empty when there is no bridge."""
    for link in json.loads(_ip("-json", "link", "show")):
        if link["ifname"] == layout.BRIDGE:
            return str(link.get("ifalias", HALF_MADE))
    return ""


def up(state: Path) -> None:
    """Make the bridge unless it is there. Raises BedError when another checkout's bed has it."""
    held = owner()
    if held == str(state):
        return
    if held == HALF_MADE:
        _ip("link", "delete", layout.BRIDGE)
    elif held:
        raise layout.BedError(
            f"seen: bridge {layout.BRIDGE} of {held}; wanted: a free one; do: run `make hosts-down` in that checkout"
        )
    _ip("link", "add", layout.BRIDGE, "type", "bridge")
    _ip("link", "set", "dev", layout.BRIDGE, "alias", str(state))
    _ip("address", "add", f"{layout.GATEWAY}/24", "dev", layout.BRIDGE)
    _ip("address", "add", f"{timesource.ADDRESS}/32", "dev", layout.BRIDGE)
    _ip("link", "set", layout.BRIDGE, "up")


def down(state: Path) -> None:
    """Remove the bridge if it is ours."""
    if owner() in (str(state), HALF_MADE):
        _ip("link", "delete", layout.BRIDGE)
