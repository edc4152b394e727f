"""Steps of healing through real Ansible, on local nodes whose root is a directory of the test."""

from flightline.healing.journal import incident as incidents
from flightline.healing.steps.nodes import AnsibleNodes
from flightline_node.model import Remedy
from tests.unit.healing.made import incident


def test_a_node_answers_and_one_that_cannot_keep_its_state_says_why(tmp_path):
    (tmp_path / "gpu-1/proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "gpu-1/proc/sys/kernel/random/boot_id").write_text("boot-1\n")
    (tmp_path / "gpu-2").write_text("no directory")
    hosts = "".join(f"gpu-{n} ansible_connection=local flightline_root={tmp_path}/gpu-{n}\n" for n in (1, 2))
    (tmp_path / "hosts").write_text(hosts)
    nodes = AnsibleNodes((str(tmp_path / "hosts"),))
    found = nodes.ask(["gpu-1", "gpu-2"], "look", 3)
    assert (found["gpu-1"].said["boot_id"], found["gpu-1"].said["marker"]) == ("boot-1", None)
    assert found["gpu-2"].said == {} and found["gpu-2"].reached
    assert f"Not a directory: '{tmp_path}/gpu-2" in found["gpu-2"].trouble
    refused = nodes.repair("gpu-1", Remedy.RESET_GPU, incident("gpu-1"))
    assert refused.what == incidents.NOT_DONE and "lease 3 has asked this node" in refused.detail
