"""What neither a package nor a role nor the site has put on a host. Each such file decides something: it needs an owner."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from typing import Any

from . import installed, say
from .ask import Asked

OURS = (
    *("/etc/systemd/system/*.mount", "/etc/systemd/system/*.automount", "/etc/systemd/system/swap.target"),
    "/etc/systemd/system/nvmf-autoconnect.service",
    *("/run/systemd/generator*", "/run/systemd/system/netplan-*"),
)
"""Units that roles write by a name of the site's, and those that systemd makes of files that are looked at themselves."""
DO = "remove it, or name it in compliance_known_files"


class Strangers:
    """The strangers of one host."""

    def __init__(self, ask: Asked, wanted: Mapping[str, Any]) -> None:
        self._ask = ask
        self._known = (*OURS, *map(str, wanted["compliance_known_files"]))

    def among(self, paths: Iterable[str]) -> list[str]:
        """The paths that nobody answers for."""
        return self._ask.unowned(set(self.unnamed(paths)) - installed.paths())

    def unnamed(self, paths: Iterable[str]) -> list[str]:
        """The paths that the site does not name, whoever brought them."""
        return sorted({path for path in paths if not any(fnmatch(path, pattern) for pattern in self._known)})

    def none(self, what: str, paths: Iterable[str], wanted: str) -> None:
        """A finding that names the strangers."""
        say.none(what, self.among(paths), wanted, DO)
