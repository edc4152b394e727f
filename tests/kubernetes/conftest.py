"""One control plane for all tests of this folder; where it cannot be had they are skipped, and say why."""

import pytest

from . import binaries
from .cluster import cluster


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    why = binaries.missing()
    if why:
        pytest.skip(why)
    binaries.build()
    with cluster(tmp_path_factory.mktemp("kubernetes")) as one:
        yield one
