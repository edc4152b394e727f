"""The channels: one file each, NAME.py with a CHANNEL. A file that stands here is offered; no list is kept."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from ..channel import Channel

CHANNELS: Mapping[str, Channel] = {
    name: import_module(f".{name}", __name__).CHANNEL
    for name in sorted(module.name for module in iter_modules(__path__))
}
