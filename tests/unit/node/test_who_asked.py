"""Tests on a node end when whoever wanted them is gone."""

import subprocess
import sys
import time

import pytest

TESTING = """
import pathlib, sys, time
from flightline_node import answer
answer._end_with_who_asked()
try:
    sys.stderr.write("begun\\n")
    sys.stderr.flush()
    time.sleep(60)
finally:
    pathlib.Path(sys.argv[1]).touch()
"""


def begun(place, **given):
    argv = [sys.executable, "-c", TESTING, str(place / "in order")]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, **given)
    assert process.stderr.readline() == b"begun\n"
    return process


def test_what_nobody_waits_for_ends_in_order(tmp_path):
    process = begun(tmp_path, stdout=subprocess.PIPE)
    process.stdout.close()
    assert process.wait(5) == 1 and (tmp_path / "in order").exists()


@pytest.mark.parametrize("stdout", [subprocess.PIPE, subprocess.DEVNULL, "file"])
def test_what_somebody_may_still_read_goes_on(tmp_path, stdout):
    with (tmp_path / "out").open("wb") as out:
        process = begun(tmp_path, stdout=out if stdout == "file" else stdout)
        time.sleep(1)
        assert process.poll() is None
        process.kill()
