"""Which run healing goes by."""

import pytest

from flightline.healing.plan.seen import look
from flightline.store.sqlite import LATEST, Run, SqliteStore, StoreError


def test_a_run_that_is_not_at_its_end_takes_no_node_out(tmp_path):
    """Hosts that have not answered yet would be UNKNOWN, and a healthy one would be drained."""
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        store.start(Run("20261122T120000Z-aaaaaa", "2026-11-22T12:00:00+00:00", "quick", "inventory"))
        with pytest.raises(StoreError, match="not at its end"):
            look(store, LATEST)
        store.finish("20261122T120000Z-aaaaaa", "2026-11-22T12:01:00+00:00", "go")
        store.start(Run("20261122T130000Z-bbbbbb", "2026-11-22T13:00:00+00:00", "quick", "inventory"))
        assert look(store, LATEST).run.run_id == "20261122T120000Z-aaaaaa"
