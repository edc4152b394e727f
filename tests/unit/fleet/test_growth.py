"""Counters that grew since an earlier run on the same hardware: found, dated, and forgotten with the window."""

import pytest

from flightline.fleet import growth
from flightline.fleet.judgement import judge_run
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore, StoreError

HOSTS = (ExpectedHost("gpu-01", "p5.48xlarge"), ExpectedHost("gpu-02", "p5.48xlarge"))


def record(host="gpu-01", *, ecc=0, remapped=0, corrected=0, drops=0, timeouts=0, uuid="GPU-a", instance="i-1", **more):
    def entry(values):
        return {"unit": "errors", "values": values}

    return {
        "host": host,
        "instance_id": instance,
        "instance_type": "p5.48xlarge",
        "verdict": "go",
        "findings": [{"check": "gpu_count", "status": "PASS", "message": "8 GPUs"}],
        "gpus": [
            {"index": 0, "uuid": f"{uuid}-{host}", "serial": f"{uuid[-1]}-{host}", "pci_bus_id": "00000000:53:00.0"}
        ],
        "measures": {
            "ecc_uncorrected_aggregate": entry({"GPU 0": ecc}),
            "remapped_rows_uncorrected": entry({"GPU 0": remapped}),
            "ecc_corrected_volatile": entry({"GPU 0": corrected}),
            "efa_rx_drops": entry({"": drops}),
            "efa_retrans_timeout_events": entry({"": timeouts}),
        },
        **more,
    }


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as opened:
        yield opened


def add(store, hour, *records, day=20):
    run_id = f"run-{day}-{hour:02}"
    store.start(Run(run_id, f"2026-11-{day}T{hour:02}:00:00+00:00", hosts=tuple(HOSTS[: len(records)])))
    for one in records:
        store.save(run_id, one)
    return run_id


def grown(report, host="gpu-01"):
    row = next(row for row in report.rows if row.host == host)
    return [finding for finding in row.findings if finding["check"].startswith("growth_")]


def test_errors_that_no_remap_answers_are_a_no_go_with_the_gpu_named(store):
    add(store, 1, record(ecc=3))
    report = judge_run(store, add(store, 5, record(ecc=5)))
    (finding,) = grown(report)
    assert report.verdict == "no-go"
    assert (finding["status"], finding["measured"], finding["expected"], finding["unit"]) == ("FAIL", 2, 0, "errors")
    assert finding["device"]["serial"] == "a-gpu-01"
    assert finding["message"] == (
        "GPU 0: 2 uncorrectable memory errors since 2026-11-20T01:00:00+00:00, and 0 rows remapped"
    )


def test_errors_answered_by_as_many_remapped_rows_warn(store):
    add(store, 1, record(ecc=3, remapped=1))
    report = judge_run(store, add(store, 5, record(ecc=5, remapped=3)))
    assert [finding["status"] for finding in grown(report)] == ["WARN"]
    assert report.verdict == "go"


def test_totals_that_stay_are_no_growth(store):
    add(store, 1, record(ecc=3, corrected=4000, drops=70))
    report = judge_run(store, add(store, 5, record(ecc=3, corrected=4100, drops=70)))
    assert grown(report) == []
    assert {check: str(report.rows[0].cells[check]) for check in ("growth_ecc", "growth_efa")} == {
        "growth_ecc": "PASS",
        "growth_efa": "PASS",
    }


def test_looking_twice_does_not_clear_it(store):
    add(store, 1, record(drops=7))
    add(store, 5, record(drops=19))
    report = judge_run(store, add(store, 6, record(drops=19)))
    (finding,) = grown(report)
    assert finding["message"] == "EFA errors since 2026-11-20T01:00:00+00:00: rx_drops 12"
    assert (finding["status"], finding["measured"]) == ("WARN", 12)


def test_a_run_older_than_the_window_is_not_compared(store):
    add(store, 1, record(ecc=3), day=18)
    report = judge_run(store, add(store, 5, record(ecc=5)))
    assert grown(report) == []
    assert "growth_ecc" not in report.rows[0].cells


@pytest.mark.parametrize("other", [{"uuid": "GPU-b"}, {"instance": "i-2"}])
def test_other_hardware_under_the_same_name_is_not_compared(store, other):
    add(store, 1, record(ecc=3, drops=1))
    report = judge_run(store, add(store, 5, record(ecc=50, drops=50, **other)))
    assert grown(report) == []


def test_the_oldest_run_on_this_hardware_counts_where_the_host_was_replaced(store):
    add(store, 1, record(drops=0, instance="i-0"))
    add(store, 2, record(drops=10))
    report = judge_run(store, add(store, 5, record(drops=15)))
    assert grown(report)[0]["measured"] == 5


def test_a_counter_that_fell_was_reset_and_counts_from_nothing(store):
    add(store, 1, record(corrected=5000))
    report = judge_run(store, add(store, 5, record(corrected=150)))
    (finding,) = grown(report)
    assert (finding["status"], finding["measured"], finding["expected"]) == ("WARN", 150, 100)


def test_corrected_errors_within_the_daily_allowance_pass(store):
    add(store, 1, record(corrected=0))
    assert grown(judge_run(store, add(store, 5, record(corrected=100)))) == []


def test_errors_that_the_node_names_itself_are_not_named_twice(store):
    add(store, 1, record(ecc=3))
    failed = [{"check": "ecc_uncorrected", "status": "FAIL", "message": "2 errors", "remedy": "RESET_GPU"}]
    report = judge_run(store, add(store, 5, record(ecc=5, findings=failed, verdict="no-go")))
    assert grown(report) == []
    assert report.verdict == "no-go"


def test_a_waiver_by_serial_sets_it_aside(store):
    waiver = {"check": "growth_ecc", "scope": "a-gpu-01", "reason": "known", "owner": "ops", "expiry": "2026-12-01"}
    add(store, 1, record(ecc=3))
    report = judge_run(store, add(store, 5, record(ecc=5, fleet_waivers=[waiver])))
    assert report.verdict == "go"
    assert "known" in grown(report)[0]["message"]


def test_each_host_is_compared_with_itself(store):
    add(store, 1, record("gpu-01", ecc=3), record("gpu-02", ecc=9))
    report = judge_run(store, add(store, 5, record("gpu-01", ecc=3), record("gpu-02", ecc=10)))
    assert grown(report, "gpu-01") == []
    assert [finding["measured"] for finding in grown(report, "gpu-02")] == [1]


def test_nothing_counted_reads_no_earlier_run(store, monkeypatch):
    add(store, 1, record(ecc=3))
    run = add(store, 5, record())
    read = []
    whole = store.records
    monkeypatch.setattr(store, "records", lambda run_id: read.append(run_id) or whole(run_id))
    judge_run(store, run)
    assert read == [run]


def test_a_store_that_fails_on_the_way_costs_no_verdict(store, monkeypatch):
    add(store, 1, record(ecc=3))
    run = add(store, 5, record(ecc=5))

    def refuse(limit):
        raise StoreError("throttled")

    monkeypatch.setattr(store, "runs", refuse)
    assert judge_run(store, run).verdict == "go"


@pytest.mark.parametrize(
    "measures", [{"efa_rx_drops": {}}, {"efa_rx_drops": {"values": [1]}}, {"efa_rx_drops": {"values": {"": "x"}}}]
)
def test_measures_of_another_shape_are_no_counts(measures):
    assert not growth.is_counting({"host": "gpu-01", "measures": measures})
