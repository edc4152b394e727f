"""One interface, two stores: what holds for the SQLite file holds for DynamoDB (moto's)."""

import random

import pytest

from flightline.cloud import blobs, items
from flightline.cloud.awsstore import AwsStore
from flightline.fleet.judgement import judge_run
from flightline.run.locate import open_store
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore, StoreError
from tests.unit.made import a_run, finding, record

BAD = finding("row_remap", "FAIL", device={"index": 0}, measured=True, expected=False, remedy="REPLACE")
LATER = "2026-11-22T10:00:00+00:00"


@pytest.fixture(params=["sqlite", "aws"])
def store(request, tmp_path):
    if request.param == "sqlite":
        made: SqliteStore | AwsStore = SqliteStore(tmp_path / "runs.sqlite")
    else:
        aws = request.getfixturevalue("aws")
        made = AwsStore(aws.table(), aws.bucket())
    yield made
    made.close()


def fill(store, *records, run_id="r1", started_at="2026-11-21T10:00:00+00:00"):
    store.start(a_run(*(item["host"] for item in records), run_id=run_id, started_at=started_at))
    return [store.save(run_id, item) for item in records]


def test_a_run_comes_back_as_it_was_written(store):
    assert fill(store, record("b"), record("a", BAD)) == [True, True]
    store.finish("r1", LATER, "no-go")
    hosts = (ExpectedHost("b", "p5.48xlarge"), ExpectedHost("a", "p5.48xlarge"))
    assert store.run("r1") == Run("r1", "2026-11-21T10:00:00+00:00", "quick", "inventory/made", hosts, LATER, "no-go")
    assert list(store.records("r1")) == [record("b"), record("a", BAD)], "in the inventory's order"
    assert store.answered("r1") == {"a", "b"}
    assert str(judge_run(store, "latest").verdict) == "no-go"


def test_the_first_answer_of_a_host_stays(store):
    fill(store, record("a"))
    assert store.save("r1", record("a", BAD)) is False
    assert [item["verdict"] for item in store.records("r1")] == ["go"]
    store.finish("r1", LATER, "go")
    store.finish("r1", "2026-11-23T10:00:00+00:00", "no-go")
    assert (store.run("r1").finished_at, store.run("r1").verdict) == (LATER, "go")


def test_the_newest_run_is_the_latest(store):
    fill(store, record("a"), run_id="early")
    fill(store, record("a"), run_id="late", started_at=LATER)
    assert store.run("latest").run_id == "late"
    assert [run.run_id for run in store.runs()] == ["late", "early"]
    assert [run.run_id for run in store.runs(1)] == ["late"] and store.runs(1)[0].hosts == ()


def test_a_run_that_is_not_there_is_named_with_those_that_are(store):
    fill(store, record("a"))
    with pytest.raises(StoreError, match="no run 'r9'; wanted one of the store, newest runs: r1"):
        store.run("r9")


@pytest.mark.parametrize("name", ["a", "i-a", "S-a", "GPU-a"])
def test_history_by_host_instance_serial_and_uuid(store, name):
    fill(store, record("a"), record("b"))
    fill(store, record("a", BAD), run_id="r2", started_at=LATER)
    past = store.history(name)
    assert [(item.run_id, item.host, item.verdict, item.status) for item in past] == [
        ("r2", "a", "no-go", "FAIL"),
        ("r1", "a", "go", "PASS"),
    ]
    assert past[0].record == record("a", BAD) and store.history(name, 1) == past[:1]
    assert past[0].instance_id == "i-a" and past[0].started_at == LATER
    assert store.history("nobody") == []


def test_a_gpu_is_followed_to_its_next_instance_and_no_further(store):
    """The host keeps its name and its GPU, the instance is new; later the host has another GPU."""
    gpu, other = ([{"index": 0, "uuid": f"GPU-{n}", "serial": f"S-{n}"}] for n in ("x", "y"))
    fill(store, record("a", BAD, instance_id="i-1", gpus=gpu))
    fill(store, record("b", BAD, instance_id="i-2", gpus=gpu), run_id="r2", started_at=LATER)
    fill(store, record("b", instance_id="i-2", gpus=other), run_id="r3", started_at="2026-11-23T10:00:00+00:00")
    assert [(item.run_id, item.instance_id) for item in store.history("S-x")] == [("r2", "i-2"), ("r1", "i-1")]
    assert [item.run_id for item in store.history("GPU-y")] == ["r3"]


# Only in AWS.


def test_another_run_under_the_same_id_is_refused(aws):
    store = AwsStore(aws.table())
    fill(store, record("a"))
    store.start(a_run("a"))
    with pytest.raises(StoreError, match="r1 belongs to another run"):
        store.start(a_run("a", started_at=LATER))
    assert store.run("r1").started_at != LATER


def test_batches_write_what_single_saves_write(aws):
    one, many = AwsStore(aws.table("one-by-one")), AwsStore(aws.table("in-batches"))
    records = [record(f"n{number}", *([BAD] if number % 3 == 0 else [])) for number in range(15)]
    fill(one, *records)
    run = a_run(*(item["host"] for item in records))
    many.start(run)
    many.save_many(run, iter(records))
    assert aws.items("one-by-one") == aws.items("in-batches")
    # 15 summaries, 5 findings, a serial and a UUID per node.
    assert many.stats.items == 15 + 5 + 30 and many.stats.calls == 2


def test_hundreds_of_nodes_take_no_more_batches_than_needed(aws):
    store = AwsStore(aws.table())
    run = a_run(*(f"n{number}" for number in range(300)))
    store.start(run)
    known = store.save_many(run, (record(host.host) for host in run.hosts))
    assert store.stats.calls == -(-store.stats.items // 25) == 36
    store.save_many(run, (record(host.host) for host in run.hosts), {}, known)
    assert (store.stats.items, store.stats.calls) == (300, 12), "whose GPUs are known takes a summary each"
    assert len(store.answered("r1")) == 300 and len(list(store.records("r1"))) == 300


def huge(host):
    """5 MB of measured text that does not compress away: what a broken tool can print."""
    noise = random.Random(1)
    lines = [f"{noise.getrandbits(2048):0512x}" for _ in range(3000)]
    return record(host, finding("xid", "FAIL", message=lines[0], measured=lines), BAD)


def test_a_record_too_large_for_an_item_lies_in_s3(aws):
    store = AwsStore(aws.table(), aws.bucket())
    fill(store, huge("a/../b"), record("c"))
    item = aws.items()[("RUN#r1", "RECORD#a/../b")]
    assert "body" not in item and item["body_at"] == "s3://flightline-bundles/runs/r1/records/a%2F..%2Fb.json.zlib"
    assert next(store.records("r1")) == huge("a/../b") == store.history("S-a/../b")[0].record
    assert items.size(aws.items()[("RUN#r1", "NODE#i-a/../b#xid")]) < items.MAX_ITEM_BYTES


def test_objects_are_written_once(aws):
    client, bucket = aws.client("s3"), aws.bucket()
    assert blobs.put(client, bucket, "k", b"first") == blobs.put(client, bucket, "k", b"second") == f"s3://{bucket}/k"
    assert blobs.get(client, f"s3://{bucket}/k") == b"first"


def test_an_object_that_another_request_is_at_is_tried_again(aws):
    """Source: S3 API reference, PutObject: after 409 ConditionalRequestConflict the upload is to be tried again."""
    client, bucket = aws.client("s3"), aws.bucket()
    refusals = iter([(409, "ConditionalRequestConflict")])
    aws.before = lambda action: next(refusals, None) if action == f"PUT /{bucket}/k" else None
    blobs.put(client, bucket, "k", b"first")
    assert aws.objects(bucket) == {"k": b"first"}


def test_without_a_bucket_it_is_shortened_and_stays_no_go(aws):
    store = AwsStore(aws.table())
    fill(store, huge("a"))
    (kept,) = store.records("r1")
    assert kept["verdict"] == "no-go" and "left out" in kept["shortened"]
    assert {found["check"]: found["status"] for found in kept["findings"]} == {"xid": "FAIL", "row_remap": "FAIL"}


def test_a_damaged_record_costs_only_its_own_host(aws):
    store = AwsStore(aws.table())
    fill(store, record("a"), record("b"))
    broken = {**aws.items()[("RUN#r1", "RECORD#a")], "body": b"garbage"}
    aws.client("dynamodb").put_item(TableName=items.DEFAULT_TABLE, Item=items.marshal(broken))
    assert [item["host"] for item in store.records("r1")] == ["b"]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("ExpiredTokenException", "credentials have expired .*renew"),
        ("UnrecognizedClientException", "no valid AWS credentials"),
        ("AccessDeniedException", "AWS denies it .*permission"),
        ("ResourceNotFoundException", "not there .*check the name, the region"),
    ],
)
def test_refusals_say_what_to_do(aws, code, wanted):
    aws.table()
    aws.before = lambda action: (400, code)
    with pytest.raises(StoreError, match=f"aws:flightline-results: cannot read: .*{wanted}"):
        AwsStore().run("latest")


def test_no_credentials_and_no_region_are_named(aws, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(StoreError, match="no valid AWS credentials"):
        AwsStore().runs()
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(StoreError, match="no AWS region"):
        AwsStore().runs()


def test_stores_are_opened_by_name(aws, tmp_path, monkeypatch):
    fill(AwsStore(aws.table("mine")), record("a"))
    with open_store("aws:mine") as store:
        assert store.answered("r1") == {"a"}
    monkeypatch.setenv("FLIGHTLINE_PUBLISH", "table=mine")
    with open_store("aws") as store:
        assert store.answered("r1") == {"a"}
    monkeypatch.setenv("FLIGHTLINE_STORE", "aws:mine")
    with open_store() as store:
        assert store.answered("r1") == {"a"}
    with pytest.raises(StoreError, match="no run store here"), open_store(tmp_path / "none.sqlite"):
        pass
