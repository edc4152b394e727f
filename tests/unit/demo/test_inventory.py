"""The inventory of a simulated fleet: names checked, nothing of the user's overwritten."""

from pathlib import Path

import pytest
import yaml

from flightline.demo import inventory, write_inventory
from flightline_node.model import SettingsError

COMMITTED = Path(__file__).parents[3] / "inventory" / "demo" / "hosts.yml"


def test_the_hosts_and_their_faults(tmp_path):
    faults = [("gpu_missing", "gpu-02"), ("disk_full", "gpu-02"), ("gpu_missing", "gpu-02"), ("unreachable", "gpu-03")]
    path = write_inventory(tmp_path / "fleet", 3, "p4d.24xlarge", faults)
    assert path == tmp_path / "fleet" / "hosts.yml"
    group = yaml.safe_load(path.read_text())["demo"]
    assert group["vars"]["instance_type"] == "p4d.24xlarge"
    assert {name: given["demo_faults"] for name, given in group["hosts"].items()} == {
        "gpu-01": [],
        "gpu-02": ["gpu_missing", "disk_full"],
        "gpu-03": ["unreachable"],
    }
    ids = [given["instance_id"] for given in group["hosts"].values()]
    assert len(set(ids)) == 3
    assert all(one.startswith("i-0demo") and len(one) == 19 for one in ids)


def test_names_sort_at_every_size():
    for count in (3, 100, 1000):
        names = inventory.node_names(count)
        assert len(names) == count
        assert names == sorted(names)


@pytest.mark.parametrize(
    ("nodes", "instance_type", "faults", "said"),
    [
        (0, "p5.48xlarge", [], "0 nodes, wanted 1 to"),
        (2, "g6f.large", [], "cannot be simulated"),
        (2, "p5", [], "unknown instance type"),
        (2, "p5.48xlarge", [("gpu_gone", "gpu-01")], "unknown fault 'gpu_gone'; wanted one of the"),
        (2, "p5.48xlarge", [("gpu_missing", "gpu-03")], "saw no node gpu-03, wanted one of gpu-01 to gpu-02"),
        (2, "p5.48xlarge", [("retired_pages", "gpu-01")], "gpu-01: saw that fault retired_pages does not apply"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(tmp_path, nodes, instance_type, faults, said):
    with pytest.raises(SettingsError, match=said):
        write_inventory(tmp_path / "fleet", nodes, instance_type, faults)
    assert not (tmp_path / "fleet").exists()


def test_an_earlier_demo_inventory_is_replaced_and_its_neighbours_kept(tmp_path):
    write_inventory(tmp_path, 2, "p5.48xlarge", [])
    (tmp_path / "group_vars").mkdir()
    write_inventory(tmp_path, 4, "p5.48xlarge", [])
    assert len(yaml.safe_load((tmp_path / "hosts.yml").read_text())["demo"]["hosts"]) == 4
    assert (tmp_path / "group_vars").is_dir()


def test_a_foreign_directory_is_refused(tmp_path):
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    production:\n")
    with pytest.raises(SettingsError, match="not empty"):
        write_inventory(tmp_path, 2, "p5.48xlarge", [])
    assert "production" in (tmp_path / "hosts.yml").read_text()


def test_a_file_and_a_path_that_ansible_would_evaluate_are_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="not a directory"):
        write_inventory(tmp_path / "file", 2, "p5.48xlarge", [])
    with pytest.raises(SettingsError, match="braces"):
        write_inventory(tmp_path / "{{ lookup }}", 2, "p5.48xlarge", [])


def test_the_inventory_in_the_repository_is_what_the_generator_writes():
    faults = [("gpu_fallen_off_bus", "gpu-03"), ("remap_pending", "gpu-06")]
    wanted = inventory.render(8, "p5.48xlarge", faults, "{{ inventory_dir }}/../../.flightline/demo")
    assert COMMITTED.read_text() == wanted
