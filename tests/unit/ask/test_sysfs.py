"""The readers of small files of /sys: a made tree under a root with odd letters, links and files that do not answer."""

import json
import os
import threading

import pytest

from flightline_node.ask.efa import efa_counters
from flightline_node.ask.files import contents, entries
from flightline_node.ask.sysfs import sysfs


@pytest.fixture
def root(tmp_path):
    """A node with an EFA device of two ports and one of another driver."""
    root = tmp_path / "gpu[01]*"
    for device, driver in (("rdmap0s6", "efa"), ("mlx5_0", "mlx5_core")):
        folder = root / "sys/class/infiniband" / device
        (folder / "device").mkdir(parents=True)
        (folder / "device/driver").symlink_to(f"../../../bus/{driver}")
        for port in ("1", "2"):
            counters = folder / "ports" / port / "hw_counters"
            counters.mkdir(parents=True)
            for name, value in (("tx_bytes", "5\n"), ("rx_drops", "0"), ("lifespan", "12 ms"), ("odd", "\xff")):
                (counters / name).write_bytes(value.encode("latin-1"))
            (counters / "folder").mkdir()
            (counters.parent / "state").write_text("4: ACTIVE\n")
    return root


def test_counters_of_efa_devices_are_summed_over_their_ports(root):
    assert json.loads(efa_counters(str(root))) == {"rdmap0s6": {"tx_bytes": 10, "rx_drops": 0}}
    assert json.loads(efa_counters(str(root), ["tx_bytes", "absent"])) == {"rdmap0s6": {"tx_bytes": 10}}


def test_ports_of_efa_devices_are_listed(root):
    ports = json.loads(sysfs(str(root)))["efa_ports"]
    assert ports == {"rdmap0s6": {"ports": {"1": {"state": "4: ACTIVE"}, "2": {"state": "4: ACTIVE"}}}}


def test_nothing_to_read_is_no_error(tmp_path):
    assert json.loads(efa_counters(str(tmp_path))) == {} and entries(str(tmp_path / "absent")) == []
    assert contents(str(tmp_path)) is None and contents(str(tmp_path / "absent")) is None


def test_a_file_that_comes_in_pieces_is_read_to_its_end(tmp_path):
    """As the tables of /proc do, a page at a time."""
    pipe = tmp_path / "table"
    os.mkfifo(pipe)

    def write():
        with pipe.open("wb", buffering=0) as stream:
            for _ in range(40):
                stream.write(b"0123456789abcdef" * 256)

    writer = threading.Thread(target=write)
    writer.start()
    text = contents(str(pipe))
    writer.join()
    assert text == "0123456789abcdef" * 256 * 40
