"""Emulated AWS, emptied for each test that asks for it."""

import pytest

from tests.emulated import lead_to


@pytest.fixture
def aws(server, monkeypatch):
    return lead_to(server, monkeypatch)
