"""The command's way in, also as `python -m flightline`."""

from __future__ import annotations

import signal


def main() -> None:
    """Import the command, which takes a moment in which Ctrl-C just ends it, and call it."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main as command

    signal.signal(signal.SIGINT, before)
    command()


if __name__ == "__main__":
    main()
