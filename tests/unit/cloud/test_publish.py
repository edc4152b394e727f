"""The publisher: everything arrives once and in order, whatever fails on the way, and people are told once."""

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flightline.cloud import outbox
from flightline.cloud import publish as publishing
from flightline.cloud.publish_settings import publish as settings
from flightline.fleet.judgement import judge_run
from flightline.run import conclude
from flightline.store.bundles import bundle_file
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline.tell import digest as messages
from tests.unit.made import finding, record
from tests.unit.tell.receiver import Receiver

BAD = finding(
    "row_remap",
    "FAIL",
    device={"index": 0, "serial": "S-x"},
    measured=9,
    expected=0,
    unit="rows",
    remedy="REPLACE",
    message="GPU 0: 9 rows remapped",
)
BUCKET = "flightline-bundles"
KILLS = 6


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def stamp(day):
    return f"2026-11-{day:02d}T10:00:00+00:00"


def a_run(path, run_id, day, *records):
    """A concluded run in the local store."""
    hosts = tuple(ExpectedHost(item["host"], "p5.48xlarge", item["instance_id"]) for item in records)
    with SqliteStore(path) as store:
        store.start(Run(run_id, stamp(day), "quick", "inventory/made", hosts))
        for item in records:
            store.save(run_id, item)
        bad = any(item["verdict"] == "no-go" for item in records)
        store.finish(run_id, stamp(day).replace("10:00", "10:05"), "no-go" if bad else "go")
    return run_id


def publish(path, where, day, *records):
    """Conclude the run of a day, r1 on the first, and publish it."""
    return publishing.publish_run(path, a_run(path, f"r{day}", day, *records), where)


def waiting(path):
    with outbox.Outbox(path) as queue:
        return [(job.run_id, job.stage, job.trouble) for job in queue.open_jobs()]


def runs_told(aws):
    return [told["MessageAttributes"]["run"]["Value"] for told in aws.told(aws.queue)]


@pytest.fixture
def target(aws):
    topic, queue = aws.topic()
    aws.queue = queue
    return settings({"table": aws.table(), "bucket": aws.bucket(), "topic": topic, "renotify_hours": 48})


def test_a_run_is_stored_and_told(aws, target, path):
    a_run(path, "r1", 1, record("a"), record("b", BAD))
    bundle_file(path, "r1", "b").parent.mkdir(parents=True)
    bundle_file(path, "r1", "b").write_bytes(b"made-up bundle")
    done = publishing.publish_run(path, "r1", target)
    assert done.troubles == [] and "r1 published" in done.notes[0] and waiting(path) == []
    there = aws.items()
    assert there[("RUN#r1", "META")]["verdict"] == "no-go" and there[("RUN#r1", "META")]["finished_at"]
    assert there[("RUN#r1", "NODE#i-b#row_remap")]["remedy"] == "REPLACE"
    assert there[("RUN#r1", "RECORD#b")]["bundle"] == f"s3://{BUCKET}/runs/r1/bundles/b.tar.gz"
    objects = aws.objects()
    assert objects["runs/r1/bundles/b.tar.gz"] == b"made-up bundle"
    assert (
        json.loads(objects["runs/r1/report.json"])["verdict"] == "no-go" and b"<html" in objects["runs/r1/report.html"]
    )
    (told,) = aws.told(aws.queue)
    assert told["Subject"] == "Flightline NO-GO fleet: 1 of 2 nodes no-go"
    for wanted in (
        "b (i-b)",
        "GPU 0 (serial S-x)",
        "row_remap",
        "measured 9 rows",
        "0 rows",
        "REPLACE",
        "Report: s3://flightline-bundles/runs/r1/report.html",
        "Look back: flightline report r1 --store aws:flightline-results",
    ):
        assert wanted in told["Message"], wanted
    assert told["MessageAttributes"]["state"]["Value"] == "alert"


def test_publishing_again_changes_and_tells_nothing(aws, target, path):
    publish(path, target, 1, record("a", BAD))
    before, objects = aws.items(), aws.objects()
    aws.told(aws.queue)
    assert publishing.publish_run(path, "r1", target).troubles == []
    assert (aws.items(), aws.objects(), aws.told(aws.queue)) == (before, objects, [])


def test_a_trouble_is_told_once_then_when_due_then_when_it_is_over(aws, target, path):
    for day in (1, 2, 4):
        publish(path, target, day, record("a", BAD))
    assert runs_told(aws) == ["r1", "r4"]
    publish(path, target, 5, record("a", finding("row_remap")))
    (told,) = aws.told(aws.queue)
    assert "1 recovered" in told["Subject"] and told["MessageAttributes"]["state"]["Value"] == "recovery"
    assert "row_remap on a (i-a), GPU 0 (serial S-x) (wrong since 2026-11-01T10:05" in told["Message"]
    assert not [key for key in aws.items() if key[0].startswith("ALERT#")]
    publish(path, target, 6, record("a", finding("row_remap")))
    assert aws.told(aws.queue) == [], "a good run is no news"


def test_silence_is_no_recovery(aws, target, path):
    a_run(path, "r1", 1, record("a", BAD))
    a_run(path, "r2", 2, record("a", finding("reachable", "UNREACHABLE")))
    for name in ("r1", "r2"):
        publishing.publish_run(path, name, target)
    _, second = aws.told(aws.queue)
    assert "recovered" not in second["Subject"] and "UNREACHABLE reachable" in second["Message"]
    assert len([key for key in aws.items() if key[0] == "ALERT#fleet"]) == 2


def test_without_a_table_what_was_told_is_remembered_here(aws, path):
    topic, queue = aws.topic()
    for day in (1, 2):
        assert publish(path, settings({"topic": topic, "renotify_hours": 48}), day, record("a", BAD)).troubles == []
    assert len(aws.told(queue)) == 1


def test_a_lost_network_keeps_everything_for_later_in_order(aws, target, path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # the discard port: nothing listens
    for day in (1, 2, 3):
        (trouble,) = publish(path, target, day, record("a", finding(f"check{day}", "FAIL"))).troubles
        assert "r1 waits to be published" in trouble and "no answer from AWS" in trouble, "the oldest goes first"
    assert [job[0] for job in waiting(path)] == ["r1", "r2", "r3"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
    assert publishing.drain(path).troubles == [] and waiting(path) == []
    assert runs_told(aws) == ["r1", "r2", "r3"]
    assert [key[1] for key in aws.items() if key[1] == "META"] == ["META"] * 3


@pytest.mark.parametrize(
    "action", ["BatchWriteItem", "PutItem", "UpdateItem", f"PUT /{BUCKET}/runs/r1/report.json", "POST /"]
)
def test_a_network_lost_in_the_middle_is_gone_on_from_there(aws, target, path, action):
    a_run(path, "r1", 1, record("a", BAD), record("b"))
    aws.before = lambda seen: (400, "ExpiredTokenException") if seen == action else None
    (trouble,) = publishing.publish_run(path, "r1", target).troubles
    assert "credentials have expired" in trouble and "renew" in trouble
    with SqliteStore(path) as store:
        assert len(list(store.records("r1"))) == 2, "the run itself is not lost"
    aws.before = None
    assert publishing.drain(path).troubles == [] and waiting(path) == []
    assert len(aws.told(aws.queue)) == 1 and aws.items()[("RUN#r1", "META")]["verdict"] == "no-go"


def test_throttling_is_waited_out(aws, target, path):
    a_run(path, "r1", 1, record("a", BAD))
    refusals = Counter({"BatchWriteItem": 4, "PutItem": 3, "POST /": 4})

    def throttle(action):
        refusals[action] -= 1
        return (400, "ThrottlingException") if refusals[action] >= 0 else None

    aws.before = throttle
    assert publishing.publish_run(path, "r1", target).troubles == []
    assert len(aws.told(aws.queue)) == 1


def test_sns_that_throttles_to_the_end_loses_nothing(aws, target, path):
    a_run(path, "r1", 1, record("a", BAD))
    aws.before = lambda action: (400, "Throttling") if action == "POST /" else None
    (trouble,) = publishing.publish_run(path, "r1", target).troubles
    assert f"{target.channels['topic']}: Throttling" in trouble and [job[1] for job in waiting(path)] == [
        outbox.PLANNED
    ]
    aws.before = None
    aws.seen.clear()
    assert publishing.drain(path).troubles == []
    assert aws.seen["Query"] == 0, "what is told was decided once, and is not decided again"
    publish(path, target, 2, record("a", BAD))
    assert runs_told(aws) == ["r1"], "told once, then known"


def test_a_bucket_that_is_not_there_is_named(aws, path):
    (trouble,) = publish(path, settings({"bucket": "no-such-bucket"}), 1, record("a")).troubles
    assert "s3://no-such-bucket: not there (NoSuchBucket); check the name" in trouble


def test_another_target_does_not_wait(aws, target, path):
    broken = settings({"table": "not-there"})
    for day, where in ((1, broken), (2, target), (3, broken)):
        publish(path, where, day, record("a", BAD))
    assert [job[0] for job in waiting(path)] == ["r1", "r3"] and "not there" in waiting(path)[0][2]
    assert ("RUN#r2", "META") in aws.items()


def test_a_run_that_was_deleted_does_not_hold_up_the_queue(aws, target, path):
    a_run(path, "r1", 1, record("a", BAD))
    with outbox.Outbox(path) as queue:
        queue.add("gone", target.target, target.to_dict())
    done = publishing.publish_run(path, "r1", target)
    assert "gone is not in the run store any more" in done.notes[0] and waiting(path) == []


def test_what_is_refused_for_good_holds_up_nothing(aws, target, path):
    """Another run has the id; an item that the table will never take."""
    a_run(path, "r1", 1, record("a", BAD))
    with SqliteStore(path.with_name("other.sqlite")) as other:
        other.start(Run("r1", stamp(9)))
    publishing.publish_run(path.with_name("other.sqlite"), "r1", target)
    (trouble,) = publishing.publish_run(path, "r1", target).troubles
    assert "belongs to another run" in trouble and "not tried again" in trouble
    a_run(path, "r2", 2, record("b", BAD))
    aws.before = lambda action: (400, "ValidationException") if action == "BatchWriteItem" else None
    assert "ValidationException" in publishing.publish_run(path, "r2", target).troubles[0] and waiting(path) == []
    aws.before = None
    assert publish(path, target, 3, record("c", BAD)).troubles == []


def test_a_queue_that_cannot_be_written_says_how_to_publish_later(target, path):
    a_run(path, "r1", 1, record("a"))
    outbox.path_for(path).mkdir()
    (trouble,) = publishing.publish_run(path, "r1", target).troubles
    assert "flightline publish r1" in trouble and str(outbox.path_for(path)) in trouble


def test_two_publishers_at_once_do_not_overtake_each_other(aws, target, path):
    a_run(path, "r1", 1, record("a"))
    with outbox.Outbox(path) as queue, queue.lock() as mine:
        assert mine
        queue.add("r1", target.target, target.to_dict())
        assert "another publisher" in publishing.drain(path, wait_s=0.2).troubles[0]
    assert publishing.drain(path).troubles == [] and waiting(path) == []


@pytest.fixture
def hook(tmp_path, monkeypatch):
    made = Receiver(tmp_path)
    monkeypatch.setenv("HOOK", made.url)
    monkeypatch.setattr("flightline.tell.channel.time.sleep", lambda _: None)
    yield made
    made.close()


def to_slack(hook, place="env:HOOK", **rest):
    return settings({"slack": place, "slack_hosts": "127.0.0.1", "slack_ca": str(hook.ca), **rest})


def test_slack_is_told(aws, hook, path):
    assert publish(path, to_slack(hook), 1, record("a", BAD)).troubles == []
    (message,) = hook.got
    assert "row_remap" in json.dumps(message) and message["blocks"][0]["type"] == "header"


def test_the_webhook_comes_from_secrets_manager(aws, hook, path):
    aws.client("secretsmanager").create_secret(Name="hook", SecretString=json.dumps({"url": hook.url}))
    assert publish(path, to_slack(hook, "secretsmanager:hook"), 1, record("a", BAD)).troubles == []
    assert len(hook.got) == 1
    (trouble,) = publish(path, to_slack(hook, "secretsmanager:nope"), 2, record("b", BAD)).troubles
    assert "secretsmanager:nope: not there (ResourceNotFoundException)" in trouble


def test_slack_that_is_down_is_told_later(aws, hook, path):
    hook.script = [(503, {})] * 5
    (trouble,) = publish(path, to_slack(hook), 1, record("a", BAD)).troubles
    assert "HTTP 503" in trouble and hook.url not in trouble
    assert publishing.drain(path).troubles == [] and len(hook.got) == 1


def test_a_webhook_that_was_revoked_is_said_and_holds_up_nothing(aws, hook, path):
    hook.script = [(404, {})]
    for day in (1, 2):
        a_run(path, f"r{day}", day, record(f"n{day}", BAD))
    (trouble,) = publishing.publish_run(path, "r1", to_slack(hook)).troubles
    assert "was not told of run r1" in trouble and "HTTP 404" in trouble and "secret" not in trouble
    assert publishing.publish_run(path, "r2", to_slack(hook)).troubles == [] and len(hook.got) == 1
    for file in path.parent.glob("*.sqlite*"):
        assert b"very-secret" not in file.read_bytes(), "nor is it in a file of ours"


KILLED = """
import sys
from pathlib import Path
from flightline.cloud.publish import drain
sys.exit(bool(drain(Path(sys.argv[1])).troubles))
"""


def drain_in_process(path):
    return subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[3])


def killed_at(aws, path, number, before):
    """Drain in a process that is killed at its n-th request, before or after the server has done it."""
    seen = []
    process = drain_in_process(path)

    def kill(action):
        seen.append(action)
        if len(seen) == number:
            process.send_signal(signal.SIGKILL)
            process.wait(30)

    aws.before, aws.after = (kill, None) if before else (None, kill)
    process.wait(120)
    aws.before = aws.after = None
    return process.returncode


@pytest.mark.slow
def test_a_publisher_killed_anywhere_and_started_again_leaves_the_same_content(aws, target, path, tmp_path):
    """Two runs of 30 nodes, killed at a random request again and again until it gets through."""
    for day in (1, 2):
        rows = [
            record(f"n{n:02d}", *([finding(f"check{day}", "FAIL", message=f"{n}")] if n % 7 == day else []))
            for n in range(30)
        ]
        a_run(path, f"r{day}", day, *rows)
        bundle_file(path, f"r{day}", f"n0{day}").parent.mkdir(parents=True)
        bundle_file(path, f"r{day}", f"n0{day}").write_bytes(b"bundle")
    with SqliteStore(path) as store:
        store.finish("r1", stamp(1), "no-go")
    whole = publish_both(path, target)
    wanted, objects, requests = aws.items(), aws.objects(), sum(aws.seen.values())
    assert whole.troubles == [] and len(aws.told(aws.queue)) == 2 and requests > 20

    outbox.path_for(path).unlink()
    aws.reset()
    _, aws.queue = aws.topic()
    aws.table(), aws.bucket()
    with outbox.Outbox(path) as queue:
        for run_id in ("r1", "r2"):
            queue.add(run_id, target.target, target.to_dict())
    chance = random.Random(7)
    ends = [killed_at(aws, path, chance.randint(1, 12), chance.random() < 0.5) for _ in range(KILLS)]
    assert set(ends) <= {-signal.SIGKILL, 0} and ends.count(-signal.SIGKILL) >= 3
    assert drain_in_process(path).wait(120) == 0
    assert waiting(path) == []
    assert aws.items() == wanted and aws.objects() == objects
    keys = {told["MessageAttributes"]["key"]["Value"] for told in aws.told(aws.queue)}
    assert len(keys) == 2, "a message whose acknowledgement was lost may come twice, by its key it is one"


def publish_both(path, target):
    publishing.publish_run(path, "r1", target)
    return publishing.publish_run(path, "r2", target)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [(KeyboardInterrupt(), "interrupted"), (ZeroDivisionError("x"), "internal error: ZeroDivisionError")],
)
def test_whatever_happens_the_verdict_stands(target, path, monkeypatch, error, wanted):
    a_run(path, "r1", 1, record("a"))
    with SqliteStore(path) as store:
        outcome = conclude.Conclusion(judge_run(store, "r1"))

    def fail(*_):
        raise error

    monkeypatch.setattr(publishing, "publish_run", fail)
    conclude.publish(outcome, path, target.to_dict())
    assert wanted in outcome.troubles[0] and "flightline publish" in outcome.troubles[0] and outcome.exit_status == 0


def test_the_inventory_wins_over_the_environment(aws, target, path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_PUBLISH", "table=other-table")
    a_run(path, "r1", 1, record("a"))
    with SqliteStore(path) as store:
        outcome = conclude.Conclusion(judge_run(store, "r1"))
    conclude.publish(outcome, path, target.to_dict())
    assert outcome.troubles == [] and ("RUN#r1", "META") in aws.items()
    conclude.publish(outcome, path, None)
    assert "aws:other-table: cannot write" in outcome.troubles[0]
    monkeypatch.setenv("FLIGHTLINE_PUBLISH", "tabel=x")
    conclude.publish(outcome, path, {})
    assert "nothing was published: flightline_publish.tabel" in outcome.troubles[1]


@pytest.mark.parametrize("answered", [False, True])
def test_a_publisher_killed_while_it_tells_repeats_at_most_that_message_by_its_key(aws, hook, path, answered):
    """Another channel that was told is not told again."""
    arn, queue = aws.topic()
    given = {"topic": arn, "webhook": "env:HOOK", "webhook_hosts": "127.0.0.1", "webhook_ca": str(hook.ca)}
    target = settings(given)
    a_run(path, "r1", 1, record("a", BAD))
    with outbox.Outbox(path) as waiting_:
        waiting_.add("r1", target.target, target.to_dict())
    process = drain_in_process(path)

    def kill():
        hook.before = lambda: None
        if not answered:
            hook.script = [(503, {})]
        process.send_signal(signal.SIGKILL)
        process.wait(30)

    hook.before = kill
    assert process.wait(60) == -signal.SIGKILL
    assert publishing.drain(path).troubles == [] == publishing.drain(path).troubles and waiting(path) == []
    assert len({headers["webhook-id"] for _, headers, _ in hook.asked}) == 1 and len(hook.asked) == 2
    assert len(aws.told(queue)) == 1


@pytest.mark.parametrize(("stage", "left"), [("sns", ["slack"]), ("slack", [])])
def test_a_job_of_an_earlier_version_goes_on_where_it_was(aws, hook, path, stage, left):
    arn, queue = aws.topic()
    target = to_slack(hook, topic=arn)
    a_run(path, "r1", 1, record("a", BAD))
    with outbox.Outbox(path) as queued:
        queued.add("r1", target.target, target.to_dict())
        digest = messages.Digest("title", run_id="r1").to_json()
        queued.advance(queued.open_jobs()[0], stage, {"digest": digest, "put": {}, "drop": [], "now": stamp(1)})
    assert publishing.drain(path).troubles == [] and waiting(path) == []
    assert aws.told(queue) == [] and len(hook.got) == len(left)
