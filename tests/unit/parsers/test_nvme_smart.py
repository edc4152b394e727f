"""nvme-smart.json, as the reader, nvme-cli and smartctl write it; and the reader."""

import json
import struct

import pytest

from flightline_node.ask import nvme
from tests.harness import sample
from tests.unit.parsers.hosttools import parse, read


def test_reader_document():
    disks = {disk["name"]: disk for disk in read("nvme_smart", "nvme_smart/reader-p5.json")["disks"]}
    assert list(disks) == ["nvme0", "nvme1", "nvme2", "nvme3"]
    assert (disks["nvme1"]["percentage_used"], disks["nvme1"]["spare_threshold"]) == (3, 10)
    assert (disks["nvme1"]["temperature_c"], disks["nvme1"]["power_on_hours"]) == (38, 9211)
    assert "status 0x4109" in disks["nvme3"]["error"]
    assert "critical_warning" not in disks["nvme3"]


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("nvme-cli.json", {"critical_warning": 0, "temperature_c": 38, "percentage_used": 5, "media_errors": 0}),
        ("nvme-cli-2-failing.json", {"critical_warning": 5, "available_spare": 4, "media_errors": 14}),
        ("smartctl.json", {"name": "nvme2", "percentage_used": 101, "temperature_c": 41, "available_spare": 92}),
        ("smartctl-refused.json", {"name": "nvme1", "error": "Smartctl open device: /dev/nvme1 failed: Permission denied"}),
    ],
)  # fmt: skip
def test_tools(file, wanted):
    (disk,) = read("nvme_smart", f"nvme_smart/{file}")["disks"]
    assert {name: disk[name] for name in wanted} == wanted


def test_outputs_one_after_another_and_as_a_list():
    one, other = sample("nvme_smart/smartctl.json"), sample("nvme_smart/nvme-cli.json")
    assert len(parse("nvme_smart", one + b"\n" + other)["disks"]) == 2
    assert len(parse("nvme_smart", b"[" + one + b"," + other + b"]")["disks"]) == 2
    assert parse("nvme_smart", "{}") == {"disks": []}


def test_raw_log():
    raw = bytearray(512)
    struct.pack_into("<BHBBB", raw, 0, 4, 311, 99, 10, 7)
    raw[160:164] = (70000).to_bytes(4, "little")
    log = nvme.decode(bytes(raw))
    assert (log["critical_warning"], log["avail_spare"], log["percent_used"]) == (4, 99, 7)
    assert (log["temperature_c"], log["media_errors"]) == (38, 70000)
    assert "temperature_c" not in nvme.decode(bytes(512))


def test_the_ioctl_number_and_command_are_the_kernels():
    # _IOWR('N', 0x41, 72 bytes): direction 3, size, type, number (asm-generic/ioctl.h).
    assert (3 << 30) | (nvme._COMMAND.size << 16) | (ord("N") << 8) | 0x41 == nvme._ADMIN_IOCTL
    assert nvme._COMMAND.size == 72


def test_reader_tells_what_it_cannot_ask(tmp_path):
    for name, text in (("model", "Amazon EC2 NVMe Instance Storage   \n"), ("serial", "AWS1\n")):
        path = tmp_path / "sys/class/nvme/nvme1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert json.loads(nvme.nvme_smart(str(tmp_path))) == {
        "nvme1": {"model": "Amazon EC2 NVMe Instance Storage", "serial": "AWS1", "error": "No such file or directory"}
    }
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvme1").write_text("a plain file refuses the command")
    assert "ioctl" in json.loads(nvme.nvme_smart(str(tmp_path)))["nvme1"]["error"]
    assert json.loads(nvme.nvme_smart(str(tmp_path / "nothing"))) == {}
