"""Files that are there whole or not at all: whoever reads one meanwhile reads the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside a path to write to; put in place at the end, gone after an error. Raises OSError about the path."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        draft.replace(path)
    except OSError as error:  # about the file that was asked for, not about its draft
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes) -> None:
    """Put these bytes in place. Raises OSError; nothing is left behind then."""
    with draft_of(path) as draft:
        draft.write_bytes(content)
