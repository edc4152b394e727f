"""The command's way in, also as `python -m flightline`."""

from __future__ import annotations

import os
import signal
import sys

BROKEN = 2
"""Not 1, with which Python ends for what it cannot import: that is a no-go."""


def main() -> None:
    """Import the command, which takes a moment in which Ctrl-C just ends it, and call it."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_closed_streams()
    try:
        from .cli import main as command
    except Exception as error:
        sys.stderr.write(f"flightline: cannot start: {type(error).__name__}: {error}; run `make preflight` once\n")
        sys.exit(BROKEN)
    signal.signal(signal.SIGINT, before)
    command()


def _open_closed_streams() -> None:
    """What the shell has closed (>&-) goes nowhere: the next file that is opened must not take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
