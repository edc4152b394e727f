"""One emulated AWS for the folder, emptied for each test that asks for it."""

from __future__ import annotations

import pytest

from tests.emulated import Cloud, lead_to


@pytest.fixture(scope="session")
def server():
    cloud = Cloud()
    yield cloud
    cloud.close()


@pytest.fixture
def aws(server, monkeypatch):
    return lead_to(server, monkeypatch)
