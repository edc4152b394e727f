"""Where commands print: a reader that goes away (`| head`) ends the printing, and changes no exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from rich import console as rich_console

DEBUG_ENV = "FLIGHTLINE_DEBUG"
"""Set to anything: internal errors come with their traceback."""


EXIT_GO, EXIT_NO_GO, EXIT_BROKEN, EXIT_ASKED = 0, 1, 2, 3
"""Of every command: go (or found); no-go (or nothing found); it could not answer; the nodes were asked and nobody
waited for the verdict. A shell may rely on them."""

WITHOUT_END = 1 << 20
"""Columns; more than any line has. Own choice."""


class Console(rich_console.Console):
    """Rich's own would end the thread that printed with status 1, which here is a no-go.

    A file or a pipe has no width: nothing is cut or folded there, unless COLUMNS says so.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if not self.is_terminal and "width" not in given and not os.environ.get("COLUMNS"):
            self.width = WITHOUT_END

    def on_broken_pipe(self) -> None:
        """Say no more."""
        self.quiet = True
        silence(self.file)


def silence(stream: IO[Any]) -> None:
    """Let what is still written to a stream, also at the interpreter's end, go nowhere."""
    with suppress(OSError, ValueError):  # a stream without a file descriptor, or a closed one
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Around printing to standard output: a reader that goes away ends it, and is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def forgive_encoding() -> None:
    """Print `?` for what the terminal's encoding lacks: a host's name in another script is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
