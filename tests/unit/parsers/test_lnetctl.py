"""lnetctl net show and the kernel's table of the same."""

from flightline_node.read.parsers import lnetctl
from tests.harness import sample
from tests.unit.parsers.hosttools import parse, read


def test_networks():
    assert read("lnetctl", "lnet/efa.txt")["nets"] == {
        "lo": {"up": 1, "down": []},
        "tcp": {"up": 1, "down": []},
        "efa": {"up": 8, "down": []},
    }
    assert parse("lnetctl", "net:\n") == {"nets": {}}


def test_down():
    text = (
        sample("lnet/tcp-only.txt")
        .decode()
        .replace("10.1.0.21@tcp\n          status: up", "10.1.0.21@tcp\n          status: down")
    )
    assert parse("lnetctl", text)["nets"]["tcp"] == {"up": 0, "down": ["10.1.0.21@tcp down"]}


def test_table():
    table = lnetctl.table(sample("lnet/nis-efa-down.txt").decode()) or {}
    assert table["efa"] == {"up": 1, "down": ["10.1.0.101@efa down"]}
    assert lnetctl.table("error: Permission denied") is None


def test_lnet_without_a_network():
    text = 'show:\n    - net:\n          errno: -100\n          descr: "cannot get networks: Network is down"\n'
    assert parse("lnetctl", text) == {"nets": {}, "error": "cannot get networks: Network is down"}
