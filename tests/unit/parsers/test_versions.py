"""The reader `versions` and its parser."""

import json

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


def test_one_nccl_version_as_text():
    assert parse("versions", json.dumps({"nccl": "2.26.2", "kernel": None})) == {"nccl": ["2.26.2"]}
