"""Run it on the bed or on production:

pytest tests/compliance --hosts=ansible://gpu_nodes --ansible-inventory=inventory/aws_ec2.yml
"""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from . import expected as values
from . import waivers as waiving


def _site(config):
    source = config.getoption("ansible_inventory", None)
    return values.site((source,)) if source else None


def pytest_configure(config):
    """Testinfra calls ansible-inventory by its name."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def pytest_ignore_collect(collection_path, config):
    """Without hosts there is nothing to look at; the tests about the suite itself are elsewhere."""
    hosts = config.getoption("hosts", None)
    return True if collection_path.name.startswith("test_") and not hosts else None


def pytest_generate_tests(metafunc):
    """`over(name)`: one test per key or entry of an inventory variable, over all hosts."""
    marker = metafunc.definition.get_closest_marker("over")
    if marker:
        site = _site(metafunc.config)
        metafunc.parametrize("item", site.union(marker.args[0]) if site else [])


@pytest.fixture(scope="session")
def site(pytestconfig):
    found = _site(pytestconfig)
    if found is None:
        pytest.fail("seen: no inventory; wanted: the inventory of the hosts; do: add --ansible-inventory=FILE")
    return found


@pytest.fixture
def wanted(site, request):
    """The expected values of the host under test."""
    return site.expected(_host_of(request))


@pytest.fixture(autouse=True)
def applies(site, request):
    """A file test_<role>.py is for the hosts of the group <role>; waived findings are set aside with their reason."""
    host = _host_of(request)
    role = request.path.stem.removeprefix("test_")
    if role != "host" and role not in site.groups_of(host):
        pytest.skip(f"{host} is not in the group {role}")
    entries = site.expected(host).get("compliance_waivers") or []
    what, why = waiving.verdict(
        waiving.parse(entries), request.node.originalname, host, datetime.now(timezone.utc).date()
    )
    if what == "skip":
        pytest.skip(why)
    if what == "fail":
        pytest.fail(why)


def _host_of(request):
    return str(request.getfixturevalue("_testinfra_host").backend.host)


@pytest.fixture
def part(wanted, item):
    """Give a test its own entry of a variable; hosts without the entry are skipped."""

    def pick(name):
        found = wanted[name]
        if item not in map(str, found):
            pytest.skip(f"{item} is not in this host's {name}")
        return (
            next((value for key, value in found.items() if str(key) == item), None) if isinstance(found, dict) else item
        )

    return pick
