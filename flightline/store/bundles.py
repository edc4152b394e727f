"""Bundles of failed nodes on the control node: <store's directory>/bundles/<run>/<host>.tar.gz."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from urllib.parse import quote

from .atomic import write_atomic


def bundle_file(store: Path, run_id: str, host: str) -> Path:
    """Where a node's bundle is; a host's name cannot climb out of the directory."""
    return store.parent / "bundles" / run_id / f"{quote(host, safe='@:+,=') or '-'}.tar.gz"


def keep(store: Path, run_id: str, host: str, encoded: str) -> str:
    """Write what a node sent, base64 of a tar.gz; returns why that was not possible, or ""."""
    path = bundle_file(store, run_id, host)
    try:
        write_atomic(path, base64.b64decode(encoded, validate=True))
    except (OSError, binascii.Error) as error:
        return f"{path}: the bundle of {host} could not be kept ({error})"
    return ""
