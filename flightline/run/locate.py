"""Open the run store that the user named: a SQLite file, or `aws` / `aws:TABLE`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..store.sqlite import STORE_ENV, SqliteStore, Store, default_path, is_aws


@contextmanager
def open_store(spec: str | Path | None = None) -> Iterator[Store]:
    """A store to read, closed at the end. spec: as given on the command line; None takes FLIGHTLINE_STORE.

    Raises StoreError when there is none.
    """
    wanted = str(spec or os.environ.get(STORE_ENV) or "")
    store = _aws(wanted) if is_aws(wanted) else SqliteStore(_file(wanted), create=False)
    try:
        yield store
    finally:
        store.close()


def _file(spec: str) -> Path:
    return Path(spec).expanduser().absolute() if spec else default_path()


def _aws(spec: str) -> Store:
    from ..cloud import publish_settings
    from ..cloud.awsstore import AwsStore
    from ..cloud.clients import Clients

    configured = publish_settings.publish(publish_settings.from_environment()) or publish_settings.Publish()
    table = spec.partition(":")[2] or configured.table or publish_settings.DEFAULT_TABLE
    return AwsStore(table, configured.bucket, Clients(configured.region), configured.ttl_days)
