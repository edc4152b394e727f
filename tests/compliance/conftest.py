"""Run it on the bed or on production:

pytest tests/compliance --hosts=ansible://gpu_nodes --ansible-inventory=inventory/aws_ec2.yml
"""

import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
import testinfra

from .looking import decided, installed, say
from .looking import expected as values
from .looking import waivers as waiving
from .looking.ask import Asked
from .looking.strangers import Strangers

ASKED: dict[str, Asked] = {}
"""Answers by host, for the whole run."""
APPLIED: dict[str, set[str]] = {}
SYSTEM = (
    *("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/systemd/system", "/usr/local/sbin", "/opt"),
    "/var/cache/flightline",
    *("/etc/flightline", "/var/lib/flightline", "/var/log/flightline", "/opt/flightline", "/etc/munge/munge.key"),
    *("/etc/slurm/slurm.conf", "/etc/slurm/cgroup.conf", "/opt/flightline/flightline-node.pyz"),
)
LOOKED_AT = {*installed.paths(), *SYSTEM}


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
    """`over(name)`: one test per key or entry of an inventory variable, over all hosts. entry: a file of the test's role."""
    if "entry" in metafunc.fixturenames:
        metafunc.parametrize("entry", installed.of(values.role_of(metafunc.definition.path.name)), ids=str)
    marker = metafunc.definition.get_closest_marker("over")
    if marker:
        site = _site(metafunc.config)
        metafunc.parametrize("item", site.union(marker.args[0]) if site else [])


@pytest.fixture(scope="session")
def site(pytestconfig):
    found = _site(pytestconfig)
    if found is None:
        say.finding("no inventory", "the inventory of the hosts", "add --ansible-inventory=FILE")
    return found


def applied(site, host):
    """The roles of a host, found out once."""
    if host not in APPLIED:
        APPLIED[host] = site.applied(host)
    return APPLIED[host]


def asked(host):
    """The answers of a host, asked over the connection that testinfra has to it."""
    name = str(host.backend.host)
    if name not in ASKED:
        ASKED[name] = Asked(host, ASKED, LOOKED_AT)
    return ASKED[name]


@pytest.fixture
def ask(host):
    """The tools of the host under test."""
    return asked(host)


@pytest.fixture
def name(request):
    """The host's name in the inventory."""
    return _host_of(request)


@pytest.fixture
def peer(pytestconfig):
    """Another host of the inventory by its name; None when it does not answer."""

    def of(other):
        if other not in ASKED:
            source = pytestconfig.getoption("ansible_inventory")
            there = testinfra.get_host(f"ansible://{other}?ansible_inventory={source}")
            ASKED[other] = Asked(there, ASKED, LOOKED_AT)
        return ASKED[other] if ASKED[other].answers() else None

    return of


@pytest.fixture
def wanted(site, ask, name):
    """The expected values of the host under test."""
    return site.expected(name, ask.facts())


@pytest.fixture
def part_of(site, ask, name):
    """What configure decided about a part of the host."""

    def of(part):
        found = decided.record(site, name, ask)["parts"].get(part)
        say.holds(found, f"the record of {name} says nothing of {part}", "what its role decided")
        return found

    return of


@pytest.fixture
def own_login_keys(wanted):
    """Fingerprint of the key that this inventory logs in with; none when an agent or Systems Manager is used."""
    path = Path(str(wanted.get("ansible_ssh_private_key_file") or "")).expanduser()
    if not path.is_file():
        return []
    done = subprocess.run(["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=False)
    return done.stdout.split()[1:2]


@pytest.fixture
def cluster_public_key(ask, site, name, wanted):
    """Fingerprint of the cluster's key, where the role cluster_ssh is applied."""
    if "cluster_ssh" not in applied(site, name):
        return []
    home = ask("getent passwd %s", wanted["cluster_ssh_user"]).split(":")[5]
    return ask("ssh-keygen -lf %s 2>/dev/null || true", f"{home}/.ssh/id_flightline_mpi.pub").split()[1:2]


@pytest.fixture
def strangers(ask, wanted):
    """What neither a package nor a role nor the site has put on the host."""
    return Strangers(ask, wanted)


@pytest.fixture
def as_the_role_writes_it(entry, ask, site, name):
    """Compare a file with what its role would write now."""

    def compare():
        say.needs(entry.family in ("", ask.family()), f"{entry.family} only")
        due = site.of_role(name, entry.role, ask.facts()).template(f"{{{{ ({entry.when}) | bool }}}}")
        say.needs(due, f"the role writes it when {entry.when}")
        text = installed.wanted_text(entry, site, name, ask.facts())
        installed.compare(ask, entry.path, installed.digest(text), entry.mode, text)

    return compare


@pytest.fixture(autouse=True)
def applies(site, request):
    """test_<role>.py is for the hosts that get the role, test_host*.py for all; waived findings are set aside with their reason."""
    host = _host_of(request)
    role = values.role_of(request.path.name)
    here = not role or role in applied(site, host)
    say.needs(here, f"playbooks/site.yml does not apply the role {role} to {host}")
    entries = site.expected(host).get("compliance_waivers") or []
    what, why = waiving.verdict(
        waiving.parse(entries), request.node.originalname, host, datetime.now(timezone.utc).date()
    )
    say.needs(what != "skip", why)
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
