"""A stack that a command left locked or half done: what the next one says, and that doing it makes it go away.

Pulumi is a stand-in with a state, a lock file and operations as its backend of one's own keeps them; it makes nothing.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from infra import standing
from tests.infra.commands.workplace import lay_out
from tests.infra.test_contract import OUTPUTS

PULUMI = f"""#!{sys.executable}
import json, os, signal, socket, sys, time
from pathlib import Path
root = Path(os.environ["BACKEND"])
lock = root / ".pulumi/locks/organization/flightline/dev/one.json"
state = root / "state.json"
words = sys.argv[1:]

def pending(*left):
    state.write_text(json.dumps([{{"type": kind, "resource": {{"urn": f"urn:pulumi:dev::flightline::aws:x::{{name}}"}}}}
                                 for kind, name in left]))

def left():
    return json.loads(state.read_text()) if state.exists() else []

def ended(*_):
    pending()
    lock.unlink()
    sys.exit(255)

if words[:2] == ["stack", "export"]:
    print(json.dumps({{"deployment": {{"pending_operations": left()}}}}))
elif words == ["whoami", "--json"]:
    print(json.dumps({{"url": os.environ.get("URL", f"file://{{root}}")}}))
elif words == ["stack", "ls", "--json"]:
    print(json.dumps([{{"name": "dev", "updateInProgress": bool(os.environ.get("BUSY"))}}, {{"name": "other"}}]))
elif words[:2] == ["stack", "output"]:
    print((root / "outputs.json").read_text() if "--json" in words else "")
elif words[0] in ("up", "destroy"):
    if os.environ.get("FAILS"):
        sys.exit(255)
    if lock.exists():
        sys.exit("error: the stack is currently locked by 1 lock(s).")
    lock.parent.mkdir(parents=True, exist_ok=True)
    me = {{"pid": os.getpid(), "username": "ops", "hostname": socket.gethostname(), "timestamp": "2026-11-26T08:00:00Z"}}
    lock.write_text(json.dumps(me))
    pending(("creating", "nodes-group"), ("updating", "nodes-template"))
    signal.signal(signal.SIGINT, ended)  # the first Ctrl-C: what is being done is ended
    (root / "begun").touch()
    time.sleep(float(os.environ.get("LASTS", "0")))
    pending()
    lock.unlink()
elif words[0] == "cancel":
    lock.unlink(missing_ok=True)
elif words[0] == "refresh":
    cleared = "--clear-pending-creates" in words
    pending(*[(one["type"], one["resource"]["urn"].rsplit("::")[-1]) for one in left()
              if one["type"] == "creating" and not cleared])
"""


@pytest.fixture
def begin(tmp_path):
    """Starts scripts/cluster with that Pulumi."""
    lay_out(tmp_path, PULUMI, OUTPUTS)

    def start(action, **env):
        (tmp_path / "begun").unlink(missing_ok=True)
        return subprocess.Popen(
            ["/bin/sh", "scripts/cluster", action, "dev"],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "BACKEND": str(tmp_path), **env},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


@pytest.fixture
def run(begin):
    def whole(action, **env):
        process = begin(action, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out + err

    return whole


def interrupted(begin, tmp_path, number):
    process = begin("up", LASTS="50")
    until = time.monotonic() + 40
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, number)
    return process.communicate(timeout=60)[1], process.returncode


def done(said):
    """What the sentence says to do."""
    found = re.search(r"; do: (?:.*: )?make ([a-z-]+) STACK=dev", said)
    assert found, said
    return found[1]


def test_an_up_that_was_killed_is_named_and_what_it_says_to_do_frees_the_stack(begin, run, tmp_path):
    interrupted(begin, tmp_path, signal.SIGKILL)
    status, said = run("up")
    assert status == 2 and "locked by ops since 2026-11-26T08:00:00" in said and "which is no more" in said
    action = done(said)
    status, said = run(action, YES="1")
    assert status == 0, said
    assert "nodes-group may stand in AWS" in said and "flightline leftovers flightline-dev --region us-east-1" in said
    assert run("up")[0] == 0


def test_operations_that_nobody_knows_the_end_of_are_named_without_a_lock_too(run, tmp_path):
    urn = "urn:pulumi:dev::flightline::aws:ec2/vpc:Vpc::network-vpc"
    (tmp_path / "state.json").write_text(json.dumps([{"type": "updating", "resource": {"urn": urn}}]))
    for action in ("up", "down", "down-compute"):
        status, said = run(action)
        assert status == 2 and "updating network-vpc" in said
    assert run(done(said))[0] == 0
    assert run("up")[0] == 0


def test_a_creation_is_not_forgotten_without_a_yes(begin, run, tmp_path):
    interrupted(begin, tmp_path, signal.SIGKILL)
    status, said = run("recover")
    assert status == 2 and "creating nodes-group" in said and "YES=1" in said
    assert run("recover", YES="1")[0] == 0


def test_an_up_that_is_interrupted_once_leaves_nothing_and_says_how_to_go_on(begin, run, tmp_path):
    said, status = interrupted(begin, tmp_path, signal.SIGINT)
    assert status == 130 and "nothing locked and nothing pending" in said
    assert run(done(said))[0] == 0


def lock(tmp_path, **changes):
    path = tmp_path / ".pulumi/locks/organization/flightline/dev/one.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {
        "pid": os.getpid(),
        "username": "ann",
        "hostname": socket.gethostname(),
        "timestamp": "2026-11-26T08:00:00Z",
    }
    path.write_text(json.dumps({**given, **changes}))
    return path


def test_a_command_that_runs_is_waited_for_and_never_cancelled(run, tmp_path):
    held = lock(tmp_path)
    for action in ("up", "recover"):
        status, said = run(action, YES="1")
        assert status == 2 and "which runs" in said and "do: wait for that command to end" in said
    held.unlink()  # it ended
    assert run("up")[0] == 0


def test_a_lock_of_another_machine_is_cancelled_by_a_person_who_looked_there(run, tmp_path):
    lock(tmp_path, hostname="head-of-another")
    status, said = run("up")
    assert (
        status == 2
        and "ann since 2026-11-26T08:00:00, process" in said
        and "if it is no more on head-of-another" in said
    )
    assert run(done(said), YES="1")[0] == 0
    assert run("up")[0] == 0


def test_pulumis_service_says_whether_an_update_runs(run):
    status, said = run("up", URL="https://app.pulumi.com/ops", BUSY="1")
    assert status == 2 and "locked by somebody" in said
    assert run("up", URL="https://app.pulumi.com/ops")[0] == 0


def test_a_backend_that_is_not_read_is_no_proof_of_no_lock(run):
    """S3, say: Pulumi itself names the lock then, and what is said after it leads on."""
    assert standing.locks("s3://bucket", "dev") is None
    lock = "s3://bucket"
    status, said = run("up", URL=lock, FAILS="1")
    assert (
        status == 255 and "where Pulumi named a lock: make recover STACK=dev" in said and "nothing locked" not in said
    )
    assert run("recover", URL=lock, YES="1")[0] == 0


def test_a_lock_file_that_is_cut_off_is_a_lock(run, tmp_path):
    lock(tmp_path).write_text('{"pid": 4')
    assert standing.locks(f"file://{tmp_path}", "dev") == (standing.Lock("somebody"),)
    status, said = run("up")
    assert status == 2 and "if it is no more on its machine" in said
