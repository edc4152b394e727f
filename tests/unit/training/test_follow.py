"""flightline blame --follow over a run that lives: what is new is said and told once, and it ends with the run."""

import json
import threading
import time

from click.testing import CliRunner

from flightline.cloud import telling
from flightline.commands.blame import command
from flightline.tell.voice import TellingOutcome

from .test_ras import DEAD


def test_a_living_run_is_followed_until_it_is_done(tmp_path, monkeypatch):
    start = tmp_path / "starts/00000"
    start.mkdir(parents=True)
    (start / "start.json").write_text(json.dumps({"host": "gpu-01", "ranks": {"0": 3}}))
    told = []

    class Voice:
        def tell(self, digest, memory, thread=""):
            told.append(digest)
            return TellingOutcome()

    monkeypatch.setattr(telling, "voice_of", lambda *_: Voice())

    def run():
        time.sleep(0.3)
        (start / "ras.txt").write_text(DEAD)
        time.sleep(0.6)
        (start / "start.json").write_text(json.dumps({"host": "gpu-01", "ranks": {"0": 3}, "status": 0}))

    thread = threading.Thread(target=run)
    thread.start()
    done = CliRunner().invoke(
        command,
        [str(tmp_path), "--follow", "--every", "0.1", "--publish", "topic=arn:aws:sns:eu-west-1:123456789012:t"],
    )
    thread.join()
    assert done.exit_code == 1, done.output
    assert done.output.count("vanished") == 1 and "rank 3" in done.output
    (digest,) = told
    assert digest.alerts[0].check == "training" and "RAS considers dead" in digest.alerts[0].message


def test_a_run_that_is_done_is_looked_at_once(tmp_path):
    (tmp_path / "starts/00000").mkdir(parents=True)
    (tmp_path / "starts/00000/start.json").write_text(json.dumps({"status": 0}))
    done = CliRunner().invoke(command, [str(tmp_path), "--follow"])
    assert done.exit_code == 0 and done.output == ""
