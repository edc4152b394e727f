"""What neither a package nor a role nor the site has put on a host. Each such file decides something: it needs an owner."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from . import installed, say
from .ask import Asked

OURS = (
    *("/etc/systemd/system/*.mount", "/etc/systemd/system/*.automount", "/etc/systemd/system/swap.target"),
    "/etc/systemd/system/nvmf-autoconnect.service",
    *("/etc/apt/preferences.d/flightline-nccl", "/etc/apt/preferences.d/flightline-nvidia-driver"),
    *("/etc/containerd/conf.d/99-nvidia.toml", "/etc/containerd/config.toml", "/etc/docker/daemon.json"),
    *("/run/systemd/generator*", "/run/systemd/system/netplan-*"),
)
"""Units and settings that roles write by a name of the site's or edit in place, and those that systemd makes of files that are looked at themselves."""
IMAGES = Path(__file__).parents[2] / "integration" / "images.yml"
DO = "remove it, or name it in compliance_known_files"


class Strangers:
    """The strangers of one host."""

    def __init__(self, ask: Asked, wanted: Mapping[str, Any]) -> None:
        self._ask = ask
        image = str(wanted.get("compliance_image") or "")
        brought = yaml.safe_load(IMAGES.read_text())[image] if image else {}
        own = [*brought.get("files", []), *brought.get("edited", [])]
        self._known = (*OURS, *map(str, [*wanted["compliance_known_files"], *own]))

    def among(self, paths: Iterable[str]) -> list[str]:
        """The paths that nobody answers for."""
        return self._ask.unowned(set(self.unnamed(paths)) - installed.paths())

    def unnamed(self, paths: Iterable[str]) -> list[str]:
        """The paths that the site does not name, whoever brought them."""
        return sorted({path for path in paths if not any(fnmatch(path, pattern) for pattern in self._known)})

    def none(self, what: str, paths: Iterable[str], wanted: str) -> None:
        """A finding that names the strangers."""
        say.none(what, self.among(paths), wanted, DO)
