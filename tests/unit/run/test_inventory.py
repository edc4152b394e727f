"""What Ansible is started with, and what it makes of an inventory. ansible-inventory itself runs here."""

import json
from pathlib import Path

import pytest

from flightline.fabric.ansible import FabricRequest, fleet_of
from flightline.run import inventory, playbooks
from flightline_node.model import SettingsError


def written(path: Path, hosts: dict[str, object]) -> str:
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    return str(path)


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "C.UTF-8"),
        ({"LANG": "de_DE.utf8"}, None),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8"}, None),
    ],
)
def test_ansible_gets_a_locale_that_it_takes(monkeypatch, environment, wanted):
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert playbooks.environment(playbooks.find()).get("LC_ALL") == wanted


def test_a_fleet_is_read_in_a_shell_without_utf8(monkeypatch, tmp_path):
    """Ansible ends at once in such a locale, before it reads anything."""
    monkeypatch.setenv("LC_ALL", "C")
    node = {"instance_type": "p5.48xlarge"}
    path = written(tmp_path / "hosts.yml", {"gpu-02": {**node, "node_address": "10.0.0.2"}, "gpu-01": node})
    fleet = fleet_of(FabricRequest((path,)))
    assert fleet.ring == ("gpu-01", "gpu-02") and fleet.addresses["gpu-02"] == "10.0.0.2"


def test_hosts_come_with_the_variables_of_their_groups_and_by_the_limit(tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text(json.dumps({"gpu": {"hosts": {"a": {"x": 1}, "b": {}}, "vars": {"y": 2}}}))
    assert inventory.hosts([str(path)]) == {"a": {"x": 1, "y": 2}, "b": {"y": 2}}
    assert list(inventory.hosts([str(path)], "b")) == ["b"]


@pytest.mark.parametrize("text", [None, "a: [b\n", "all: {hosts: {}}\n"])
def test_an_inventory_that_cannot_be_read_or_is_empty_is_named_with_what_to_do(tmp_path, text):
    path = tmp_path / "hosts.yml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=r"hosts\.yml: saw .*, wanted its hosts; do: "):
        inventory.hosts([str(path)])
