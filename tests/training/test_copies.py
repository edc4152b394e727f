"""A run whose checkpoints go to S3 Express as well goes on from there when the shared storage is lost.

Real: the job and the AWS command line. What stands in: moto, with the rules of a directory bucket (tests/express.py).
"""

import shutil
import signal
import time

import pytest

from tests.express import BUCKET, directory_bucket
from training import manifest

from . import table
from .launch import EVERY, STEPS, Running, curve

pytestmark = pytest.mark.usefixtures("aws_command")


express = pytest.fixture(directory_bucket)


def test_the_shared_storage_is_lost_and_the_run_goes_on_from_its_copies(place, whole, express):
    copied = [f"--copies=s3://{BUCKET}/llama-1", "--keep-last=2"]
    with Running(place, *copied) as run:
        # The others wait for this rank, and the copy goes on.
        run.until_saved(2 * EVERY).signal(1, signal.SIGSTOP)
        run.until(lambda run: [one for one in run.named("copied") if step_of(one) >= 2 * EVERY], "a copy")
        run.signal(1, signal.SIGKILL)
        killed = time.time()
        run.ended()
    shutil.rmtree(place / "ck")
    (place / "ck").mkdir()
    with Running(place, *copied, attempt=1) as run:
        assert curve(run.good().logs) == whole
        assert run.named("brought")[0]["name"] == run.named("resumed")[0]["name"]
        assert not run.named("copy_failed")
    table.add("SIGKILL of a rank, shared storage lost: from the copies in S3", "nobody", run.logs, killed)
    left = {key.split("/")[1] for key in express.objects(BUCKET) if key.endswith(manifest.NAME)}
    # One copy at a time: what became whole meanwhile was left out, the last one never.
    assert len(left) == 2 and f"step-{STEPS:08d}" in {name[:13] for name in left}


def test_a_run_that_cannot_ask_for_its_copies_does_not_begin_again(place, express):
    express.before = lambda action: (403, "AccessDenied") if BUCKET in action else None
    with Running(place, f"--copies=s3://{BUCKET}/llama-1") as run:
        assert run.ended() != 0 and not run.named("step")
        assert "aws s3api end with" in run.named("exception")[0]["text"]


def step_of(event):
    return int(event["name"][5:13])
