"""Of every test: a busy machine says nothing of the code, and in the background Ctrl-C counts as well."""

import gc
import os
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import botocore.session
import pytest

# The compliance suite runs on control nodes that have requirements.txt only, without hypothesis.
with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    if not os.environ.get("CI"):  # there Hypothesis has a profile of its own, which repeats the same examples
        settings.load_profile("busy")


# A shell starts what goes on in the background with Ctrl-C ignored, and so would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Each session reads the services' descriptions anew, and tests make some hundred: a tenth of the suite's time.
botocore.session.create_loader = cache(botocore.session.create_loader)

# By default it looks at every object there is each few thousand: a third of a run of the stack's program, and of the
# collection, nearly all of which stays to the end.
gc.set_threshold(20_000)
gc.disable()


def pytest_collection_finish():
    gc.enable()


@pytest.fixture(scope="session")
def server():
    """An emulated AWS for all tests of a process; who uses it empties it first (`tests.emulated.lead_to`)."""
    from tests.emulated import Cloud

    cloud = Cloud()
    yield cloud
    cloud.close()


@pytest.fixture
def aws_command(tmp_path_factory, monkeypatch):
    """On the PATH the AWS command line of requirements-dev.txt, and nothing else of the environment."""
    place = tmp_path_factory.mktemp("aws-command")
    (place / "aws").symlink_to(Path(sys.executable).parent / "aws")
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
