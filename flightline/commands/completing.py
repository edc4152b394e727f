"""What the Tab key offers beside commands and options: runs, hosts and checks. Nothing where they cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from itertools import islice

import click

MOST = 200
"""Runs or hosts that are offered. Own choice."""


def check_ids(_context: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Checks and tags of the node."""
    from flightline_node.judge.checks import CHECKS

    return _begun({*CHECKS, *(tag for check in CHECKS.values() for tag in check.tags)}, begun)


def run_ids(context: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Runs of the store, the newest first."""
    from ..run.locate import open_store
    from ..store.sqlite import LATEST, StoreError

    with contextlib.suppress(StoreError), open_store(context.params.get("store_path")) as store:
        return _begun([LATEST, *(run.run_id for run in store.runs(MOST))], begun)
    return []


def hosts(context: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Hosts of the newest run."""
    from ..run.locate import open_store
    from ..store.sqlite import LATEST, StoreError

    with contextlib.suppress(StoreError), open_store(context.params.get("store_path")) as store:
        return _begun([str(record["host"]) for record in store.records(LATEST)], begun)
    return []


def _begun(names: Iterable[str], begun: str) -> list[str]:
    ordered = sorted(names) if isinstance(names, set) else names
    return list(islice((name for name in ordered if name.startswith(begun)), MOST))
