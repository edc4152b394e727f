import pytest

from .scene import Scene


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    if made.watcher:
        made.watcher.end()
    made.close()
