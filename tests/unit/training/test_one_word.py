"""`torchrun ARGUMENTS` becomes `flightline train -- ARGUMENTS`: nothing else is wanted, and torchrun gets what it got before."""

import os
import subprocess
import sys

import pytest

from flightline_node.model import SettingsError
from flightline_node.train.plan import of_words

from .test_launcher import SETTINGS

TORCHRUN = """#!/bin/sh
echo "$@" >> {root}/calls
start=$(wc -l < {root}/calls)
for w in "$@"; do case $w in --log-dir=*) d=${{w#*=}};; esac; done; mkdir -p $d/x_1/attempt_0/0
[ $start -ge 2 ] && exit 0
printf 'Traceback (most recent call last):\\n  File "train.py", line 8, in step\\nConnectionError: Connection reset by peer\\n' > $d/x_1/attempt_0/0/stderr.log
exit 1"""  # fmt: skip


def test_one_word_is_changed_and_a_fault_is_followed_by_another_start(tmp_path):
    (tmp_path / "torchrun").write_text(TORCHRUN.format(root=tmp_path))
    (tmp_path / "torchrun").chmod(0o755)
    words = ["--nproc-per-node", "2", "train.py", "--lr", "1e-4"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "flightline", "train", "--pause-s", "0.1", "--", *words]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    argv_without = {**environment, "PATH": "/nowhere"}
    without = subprocess.run(
        argv, cwd=tmp_path, env=argv_without, capture_output=True, text=True, timeout=120, check=False
    )
    assert without.returncode == 2 and "saw no torchrun, wanted it on the PATH" in without.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    logs = tmp_path / ".flightline/train/train"
    assert calls == [f"--max-restarts=0 --log-dir={logs}/starts/{n:05d} --tee=3 {' '.join(words)}" for n in range(2)]
    assert (logs / "starts/00001/contract/sitecustomize.py").exists()


@pytest.mark.parametrize(
    ("words", "job", "meeting"),
    [
        (["train.py"], "train", ("", 0, 1)),
        (["--standalone", "--nproc-per-node=8", "-m", "torchtitan.train", "--x"], "torchtitan-train", ("", 0, 1)),
        (["--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv_endpoint", "gpu-01:29400", "src/Pre_Train.py"], "pre-train", ("gpu-01", 29400, 2)),
        (["--nnodes", "2", "--node-rank=1", "--master_addr=gpu-01", "train.py"], "train", ("gpu-01", 29500, 2)),
    ],
)  # fmt: skip
def test_what_the_launcher_has_to_know_is_read_from_torchruns_words(words, job, meeting):
    made = of_words(words, SETTINGS, "")
    assert made.job == job and (made.meeting.host, made.meeting.port, made.meeting.least) == meeting
    assert made.argv[-len(words) :] == words and made.workdir == os.getcwd()


def test_several_nodes_that_do_not_know_where_to_meet_are_refused():
    with pytest.raises(SettingsError, match="saw no rendezvous for 2 nodes"):
        of_words(["--nnodes=2", "train.py"], SETTINGS, "")
