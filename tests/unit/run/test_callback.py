"""What the callback makes of a result that did not come through the action plugin as it should."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from flightline.record.intake import STAMP
from flightline_node.model import Status
from tests.unit.made import loaded, record

PLUGIN = Path(__file__).parents[3] / "plugins/callback/flightline_store.py"
TASK = SimpleNamespace(action="flightline_node")


@pytest.fixture
def keep():
    """Give the callback a module's result for gpu-01; returns what was put into the run's rows."""
    module = loaded("flightline_store_callback", PLUGIN)

    def kept(answer):
        rows = []
        callback = module.CallbackModule()
        callback._preflight, callback._rows = True, SimpleNamespace(put=rows.append)
        host = SimpleNamespace(get_name=lambda: "gpu-01")
        callback.v2_runner_on_ok(SimpleNamespace(task=TASK, host=host, result=answer))
        assert callback._exit.why == ""
        (row,) = rows
        return row

    return kept


UNSTAMPED = {key: value for key, value in record("gpu-01").items() if key != STAMP}


def test_a_record_that_passed_the_gate_is_kept_under_the_inventorys_name(keep):
    row = keep({"record": record("another")})
    assert row["host"] == "gpu-01" and row["findings"] == record("another")["findings"]


@pytest.mark.parametrize(
    "given",
    [None, 5, [], "", json.dumps(record("gpu-01")), UNSTAMPED],
    ids=lambda value: ascii(value)[:12],
)
def test_what_did_not_pass_the_gate_is_an_unknown_row_and_the_run_goes_on(keep, given):
    (finding,) = keep({"record": given})["findings"]
    assert finding["status"] == Status.UNKNOWN.value and "passed the gate" in finding["message"]
