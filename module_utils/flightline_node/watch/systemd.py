"""sd_notify(3): tell systemd that the watcher is ready and alive; without systemd nothing is sent."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Optional


class SystemdNotifier:
    """The service manager's socket. watchdog_s: how often it wants to hear from us, None when it does not care."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        spoken = os.environ.get("WATCHDOG_USEC", "")
        self.watchdog_s: Optional[float] = int(spoken) / 1e6 if spoken.isdigit() and int(spoken) else None

    def say(self, *words: str) -> None:
        """Send assignments like READY=1. A manager that does not listen is no trouble of the watcher's."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
            speaker.sendto("\n".join(words).encode(), self._address)
