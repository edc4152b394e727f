"""State of systemd units."""

from __future__ import annotations

from typing import NamedTuple

from ..host import Host


class Unit(NamedTuple):
    """One unit as systemd sees it."""

    name: str
    load: str
    active: str
    enabled: str

    @property
    def there(self) -> bool:
        """Is there a unit file?"""
        return self.load == "loaded"

    @property
    def running(self) -> bool:
        """Started and not failed?"""
        return self.active == "active"


def unit(host: Host, name: str) -> Unit:
    """Ask systemd; where it does not answer the state is 'unknown', which is neither there nor running."""
    answer = host.ask(["systemctl", "show", name, "--property=LoadState,ActiveState,UnitFileState"])
    pairs = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
    return Unit(
        name,
        pairs.get("LoadState", "unknown"),
        pairs.get("ActiveState", "unknown"),
        pairs.get("UnitFileState", ""),
    )
