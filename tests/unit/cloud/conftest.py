"""One emulated AWS for the folder, emptied for each test that asks for it."""

from __future__ import annotations

import os

import pytest

from tests.emulated import Cloud


@pytest.fixture(scope="session")
def server():
    cloud = Cloud()
    yield cloud
    cloud.close()


@pytest.fixture
def aws(server, monkeypatch):
    """The server, empty, with an environment that leads there and nowhere else."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "FLIGHTLINE")):
            monkeypatch.delenv(name)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    server.reset()
    yield server
    server.before = server.after = None
