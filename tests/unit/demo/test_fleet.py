"""prepare(): materialises what was asked for, shares what is equal, leaves alone what is not its own."""

import os
import subprocess
import sys

import pytest

from flightline.demo import fleet, prepare
from flightline.demo.tree import SIMULATED
from flightline_node.model import SettingsError


def hosts(park, count=2, instance_type="p5.48xlarge", **given):
    names = [f"gpu-{number:02d}" for number in range(1, count + 1)]
    return {name: {"demo_dir": f"{park}/{name}", "instance_type": instance_type, **given} for name in names}


def xml(park, name="gpu-01"):
    return subprocess.run(
        [park / name / "tools/nvidia-smi", "-q", "-x"], capture_output=True, check=True
    ).stdout.decode()


def between(text, tag):
    return [part.partition(f"</{tag}>")[0] for part in text.split(f"<{tag}>")[1:]]


def test_every_node_has_its_own_gpus(tmp_path):
    prepare(hosts(tmp_path))
    for tag in ("uuid", "serial"):
        ids = between(xml(tmp_path, "gpu-01"), tag) + between(xml(tmp_path, "gpu-02"), tag)
        assert len(ids) == 16
        assert len(set(ids)) == 16
        assert not any("@" in one for one in ids)


def test_the_same_node_is_made_the_same_anywhere(tmp_path):
    for place in ("a", "b"):
        prepare(hosts(tmp_path / place, 1))
    assert xml(tmp_path / "a") == xml(tmp_path / "b")


def test_the_inventorys_instance_id_is_the_nodes(tmp_path):
    prepare(hosts(tmp_path, 1, instance_id="i-0123456789abcdef0"))
    assert "i-0123456789abcdef0" in (tmp_path / "gpu-01/root/run/flightline/imds.json").read_text()


def test_unchanged_nodes_are_left_alone_and_changed_ones_made_anew(tmp_path):
    prepare(hosts(tmp_path))
    before = {name: os.stat(tmp_path / name).st_ino for name in ("gpu-01", "gpu-02")}
    changed = hosts(tmp_path)
    changed["gpu-02"]["demo_faults"] = ["gpu_missing"]
    prepare(changed)
    assert os.stat(tmp_path / "gpu-01").st_ino == before["gpu-01"]
    assert os.stat(tmp_path / "gpu-02").st_ino != before["gpu-02"]
    assert (xml(tmp_path, "gpu-01").count("<gpu id"), xml(tmp_path, "gpu-02").count("<gpu id")) == (8, 7)
    prepare(hosts(tmp_path))
    assert xml(tmp_path, "gpu-02").count("<gpu id") == 8


def test_a_new_generator_makes_every_node_anew(tmp_path, monkeypatch):
    prepare(hosts(tmp_path, 1))
    before = os.stat(tmp_path / "gpu-01").st_ino
    monkeypatch.setattr(fleet, "generator", lambda: "another")
    prepare(hosts(tmp_path, 1))
    assert os.stat(tmp_path / "gpu-01").st_ino != before


def test_nothing_is_left_beside_the_nodes(tmp_path):
    prepare(hosts(tmp_path))
    changed = hosts(tmp_path, demo_faults=["disk_full"])
    prepare(changed)
    assert sorted(os.listdir(tmp_path)) == [".healthy", "gpu-01", "gpu-02"]


def test_every_mistake_is_found_before_anything_is_written(tmp_path):
    for given, said in (
        ({"demo_faults": ["no_such"]}, "unknown fault 'no_such'; wanted one of the"),
        ({"demo_faults": "gpu_missing"}, "wanted a list of fault names"),
        ({"demo_faults": ["retired_pages"]}, "does not apply to p5.48xlarge"),
        ({"demo_dir": ""}, "no demo_dir"),
        ({"instance_type": "g6f.large"}, "cannot be simulated"),
        ({"instance_type": "g6f.large"}, "cannot be simulated"),
        ({"instance_type": "p99.metal"}, "unknown instance type"),
    ):
        wanted = hosts(tmp_path)
        wanted["gpu-02"].update(given)
        with pytest.raises(SettingsError, match=f"gpu-02: .*{said}"):
            prepare(wanted)
    assert list(tmp_path.iterdir()) == []


def test_two_nodes_in_one_directory_are_refused(tmp_path):
    wanted = hosts(tmp_path)
    wanted["gpu-02"]["demo_dir"] = wanted["gpu-01"]["demo_dir"]
    with pytest.raises(SettingsError, match=r"gpu-02: saw that demo_dir .* is that of gpu-01"):
        prepare(wanted)


def test_runs_at_the_same_time_do_not_trip_over_each_other(tmp_path):
    script = (
        "import sys; from flightline.demo import prepare;"
        "prepare({f'gpu-{n:02d}': {'demo_dir': f'{sys.argv[1]}/gpu-{n:02d}', 'instance_type': 'p4d.24xlarge'}"
        " for n in range(1, 17)})"
    )
    runs = [subprocess.Popen([sys.executable, "-c", script, tmp_path], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(run.communicate()[1], run.returncode) for run in runs] == [(b"", 0)] * 4
    assert len(os.listdir(tmp_path)) == 17
    assert xml(tmp_path, "gpu-16").count("<gpu id") == 8


def test_a_foreign_directory_is_never_replaced(tmp_path):
    (tmp_path / "gpu-01").mkdir()
    (tmp_path / "gpu-01" / "thesis.txt").write_text("years of work")
    with pytest.raises(SettingsError, match="not a simulated node"):
        prepare(hosts(tmp_path, 1))
    assert (tmp_path / "gpu-01" / "thesis.txt").read_text() == "years of work"


def test_a_link_to_a_foreign_directory_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "gpu-01").symlink_to(tmp_path / "real")
    with pytest.raises(SettingsError, match="not a simulated node"):
        prepare(hosts(tmp_path, 1))


def test_every_tool_says_that_it_is_simulated(tmp_path):
    prepare(hosts(tmp_path, 1, demo_faults=["tool_hung"]))
    tools = sorted((tmp_path / "gpu-01/tools").iterdir())
    assert len(tools) > 8
    for tool in tools:
        assert SIMULATED in tool.read_text().splitlines()[1], tool
        assert os.access(tool, os.X_OK)


def test_an_unknown_question_is_refused(tmp_path):
    prepare(hosts(tmp_path, 1))
    asked = subprocess.run([tmp_path / "gpu-01/tools/nvidia-smi", "-r"], capture_output=True, check=False)
    assert asked.returncode == 64
    assert b"no stored output" in asked.stderr


def test_a_healthy_node_costs_few_file_operations(tmp_path, monkeypatch):
    """64 nodes take 0.1 s, a thousand 1 s on an idle disk; counted instead of timed, because tests run on busy ones."""
    prepare(hosts(tmp_path, 1))
    done = []
    for name in ("open", "mkdir", "symlink", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, real=real, **more: done.append(given) or real(*given, **more))
    prepare(hosts(tmp_path, 11))
    assert 0 < len(done) / 10 < 40
    done.clear()
    prepare(hosts(tmp_path, 11))
    assert done == []


def test_nodes_share_what_is_equal(tmp_path):
    prepare(hosts(tmp_path, 2))
    own = [path for path in (tmp_path / "gpu-01").rglob("*") if path.is_file() and not path.is_symlink()]
    assert {path.name for path in own} == {
        "node.json", "nvidia-smi.xml", "nvidia-smi-list.txt", "nvlink-status.txt", "nvlink-errors.txt", "dcgm-diag.json",
        "imds.json",
    }  # fmt: skip
