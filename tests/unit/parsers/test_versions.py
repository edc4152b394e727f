"""The reader `versions` and its parser."""

import json
import os

from flightline_node.ask import decided
from flightline_node.ask.readers import versions
from tests.unit.parsers.hosttools import parse, read


def test_fixture():
    facts = read("versions", "versions/p5.json")
    assert (facts["kernel"], facts["efa_installer"], facts["nccl"]) == ("6.8.0-1018-aws", "1.43.1", ["2.27.7"])
    assert "nvidia_module" not in facts


def test_reader(tmp_path):
    files = {
        "proc/sys/kernel/osrelease": "6.1.147-172.266.amzn2023.x86_64\n",
        "etc/os-release": 'NAME="Amazon Linux"\nPRETTY_NAME="Amazon Linux 2023.8"\n',
        "opt/amazon/efa_installed_packages": "# EFA installer version: 1.43.1\nlibnccl-ofi-1.16.2-1.amzn2023\n",
        "sys/module/nvidia/version": "580.95.05\n",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2.27.7": "",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert parse("versions", versions(str(tmp_path))) == {
        "kernel": "6.1.147-172.266.amzn2023.x86_64",
        "os": "Amazon Linux 2023.8",
        "efa_installer": "1.43.1",
        "ofi_nccl": "1.16.2",
        "nvidia_module": "580.95.05",
        "nccl": ["2.27.7"],
    }


def test_what_configure_decided_is_read_where_it_is_of_this_machine(tmp_path):
    parts = {"driver": {"adopted": True, "version": "580.126.09"}, "nccl": {"adopted": False, "versions": ["2.28.3"]}}
    state = {"name": "gpu-01", "machine": "a1", "parts": {**parts, "efa": {"adopted": False, "installer": "1.44.0"}}}
    files = {"etc/machine-id": "a1\n", "proc/sys/kernel/hostname": "gpu-77\n"}
    for path, text in {**files, "etc/flightline/host_state.json": json.dumps({"state": state})}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    read_back = parse("versions", versions(str(tmp_path)))
    wanted = {"name": "gpu-01", "nvidia_module": "580.126.09", "efa_installer": "1.44.0", "nccl": ["2.28.3"]}
    assert read_back == {"name": "gpu-77", "decided": {**wanted, "adopted": ["driver"]}}
    assert list(decided.own_names(str(tmp_path))) == ["gpu-01"]  # drains and ends: never another node's name
    (tmp_path / "etc/machine-id").write_text("b2\n")
    assert parse("versions", versions(str(tmp_path))) == {"name": "gpu-77"}
    (tmp_path / "etc/flightline/host_state.json").write_text("{")
    assert next(decided.own_names(str(tmp_path))) == os.uname().nodename.partition(".")[0]


def test_one_nccl_version_as_text():
    assert parse("versions", json.dumps({"nccl": "2.26.2", "kernel": None})) == {"nccl": ["2.26.2"]}
