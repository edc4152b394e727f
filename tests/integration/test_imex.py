"""NVIDIA's own IMEX daemon reads what the role writes: two of them, each in a network namespace, without a GPU (--nogpu).

The daemon is Ubuntu's package, fetched by its address in the archive and unpacked, not installed.
"""

import hashlib
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.unit.roles.render import Role

from .bed import ubuntu

NAME = "nvidia-imex-580_580.178.04-0ubuntu0.24.04.1_amd64.deb"
URL = f"{ubuntu.ARCHIVE}/pool/multiverse/n/nvidia-imex-580/{NAME}"
SHA256 = "de489391f70999a1bd55c4adbb71f73a960e9ba44a79f9c0654258fe7d0d170c"
TIMEOUT_S = 120
ADDRESSES = {"a": "198.51.100.1", "b": "198.51.100.2"}
"""Of documentation (RFC 5737), in namespaces of their own."""
CONFIG = "etc/nvidia-imex/config.cfg"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "dpkg-deb"))), reason="needs root, iproute2 and dpkg"
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The unpacked package."""
    place = tmp_path_factory.mktemp("imex")
    try:
        data = urllib.request.urlopen(URL, timeout=ubuntu.TIMEOUT_S).read()
    except OSError as error:
        pytest.skip(f"{error} from {URL}")
    assert hashlib.sha256(data).hexdigest() == SHA256
    (place / NAME).write_bytes(data)
    subprocess.run(["dpkg-deb", "-x", str(place / NAME), str(place / "root")], check=True)
    return place / "root"


@pytest.fixture
def spaces():
    """Two network namespaces with a cable between them."""
    names = {side: f"flimex{os.getpid()}{side}" for side in ADDRESSES}
    try:
        for name in names.values():
            _ip("netns", "add", name)
        _ip("-n", names["a"], "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", names["b"])
        for side, name in names.items():
            _ip("-n", name, "address", "add", f"{ADDRESSES[side]}/24", "dev", "wire")
            for link in ("lo", "wire"):
                _ip("-n", name, "link", "set", link, "up")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def written(*sides):
    """What the role writes for a rack of these nodes."""
    hostvars = {
        side: {"instance_type": "p6e-gb200.36xlarge", "node_address": ADDRESSES[side], "nvidia_driver_imex_rack": "one"}
        for side in sides
    }
    known = {"hostvars": hostvars, "groups": {"nvidia_driver": list(hostvars)}, "inventory_hostname": sides[0]}
    return Role("nvidia_driver", "Ubuntu 24.04", known).file("imex-nodes.j2")


def configured(package, place, nodes):
    """The package's own configuration, with paths of this test, in the foreground."""
    place.mkdir()
    (place / "nodes_config.cfg").write_text(nodes)
    text = (package / CONFIG).read_text()
    assert "IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg" in text, "the path that the role writes"
    text = text.replace("/etc/nvidia-imex", str(place)).replace("/var/log", str(place))
    (place / "config.cfg").write_text(text.replace("DAEMONIZE=1", "DAEMONIZE=0"))
    return place / "config.cfg"


def started(package, space, config):
    argv = ["ip", "netns", "exec", space, str(package / "usr/bin/nvidia-imex"), "-c", str(config), "--nogpu"]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def domain(package, space, config, wanted):
    """What the control program says of the domain, as soon as it says `wanted`."""
    argv = ["ip", "netns", "exec", space, str(package / "usr/bin/nvidia-imex-ctl"), "-c", str(config), "-N"]
    deadline, said = time.monotonic() + TIMEOUT_S, ""
    while wanted not in said and time.monotonic() < deadline:
        said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.partition("Nodes:")[2]
        time.sleep(0.5)
    return said


def run(package, spaces, place: Path, lists, wanted):
    configs = {side: configured(package, place / side, lists[side]) for side in spaces}
    daemons = [started(package, spaces[side], configs[side]) for side in spaces]
    try:
        return domain(package, spaces["a"], configs["a"], wanted)
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


def test_nodes_with_the_roles_list_are_one_domain(package, spaces, tmp_path):
    both = written("a", "b")
    said = run(package, spaces, tmp_path, {"a": both, "b": both}, "Domain State: UP")
    assert "Domain State: UP" in said, said
    assert all(address in said for address in ADDRESSES.values())


def test_nodes_with_lists_that_differ_are_none(package, spaces, tmp_path):
    """Why the role takes no fact of a node into the list: one that did not answer would part the rack."""
    said = run(package, spaces, tmp_path, {"a": written("a", "b"), "b": written("b")}, "!M!")
    assert "!M!" in said, said
    assert "Domain State: UP" not in said
