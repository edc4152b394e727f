"""The gate in front of a job: only hosts that were found good, and lately."""

from datetime import datetime, timedelta, timezone

import pytest

from flightline.run.gate import check
from tests.memory_store import MemoryStore
from tests.unit.made import a_run, finding, record


def store(*records, started=None):
    started = started or datetime.now(timezone.utc).isoformat()
    return MemoryStore(a_run(*(item["host"] for item in records), started_at=started), {r["host"]: r for r in records})


BAD = record("bad", finding(status="FAIL", message="too little"))


def test_good_hosts_may_go():
    answer = check(store(record("a"), record("b")), "latest", max_age_hours=1)
    assert (answer["verdict"], answer["go"], answer["no_go"], answer["reasons"]) == ("go", ["a", "b"], {}, [])


def test_one_bad_host_stops_all_of_the_run_but_not_the_others_asked_for():
    answer = check(store(record("a"), BAD), "latest")
    assert answer["verdict"] == "no-go" and answer["no_go"] == {"bad": ["memory: too little"]}
    assert answer["reasons"] == ["bad: memory: too little"]
    assert check(store(record("a"), BAD), "latest", ["a"])["verdict"] == "go"
    assert check(store(record("a"), BAD), "latest", ["bad"])["verdict"] == "no-go"


def test_a_host_that_was_not_judged_is_no_go():
    answer = check(store(record("a")), "latest", ["a", "new"])
    assert answer["no_go"] == {"new": ["not judged in this run"]} and answer["verdict"] == "no-go"


@pytest.mark.parametrize(("hours", "verdict"), [(1, "go"), (13, "no-go")])
def test_an_old_verdict_is_none(hours, verdict):
    started = (datetime.now(timezone.utc) - timedelta(hours=hours)).isoformat()
    answer = check(store(record("a"), started=started), "latest", max_age_hours=12)
    assert answer["verdict"] == verdict


def test_a_run_without_hosts_is_no_go_with_a_reason():
    answer = check(store(), "latest")
    assert answer["verdict"] == "no-go" and "no hosts" in answer["reasons"][0]


def test_a_run_of_the_future_has_no_age():
    started = (datetime.now(timezone.utc) + timedelta(hours=2)).isoformat()
    answer = check(store(record("a"), started=started), "latest", max_age_hours=1)
    assert answer["verdict"] == "no-go" and "2.0 hours from now by this clock" in answer["reasons"][0]


def test_checks_that_were_left_out_are_told():
    (told,) = check(store(record("a")), "latest")["left_out"]
    assert told.startswith("1 of ") and told.endswith("only memory.")


def test_the_reason_is_the_root_cause_and_says_what_follows_from_it():
    lost = finding(
        "gpu_lost", "FAIL", message="nvidia-smi: a GPU is lost", reason="lost", device={"pci": "0000:86:00.0"}
    )
    count = finding("gpu_count", "FAIL", message="7 of 8 GPUs: 1 missing", reason="too_few", measured=7, expected=8)
    answer = check(store(record("bad", count, lost)), "latest")
    assert answer["reasons"] == ["bad: gpu_lost: nvidia-smi: a GPU is lost (+1 finding)"]
