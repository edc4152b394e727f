"""sysctl -a and sysctl.d's form."""

from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    values = read("sysctl", "sysctl/debian12.txt")["values"]
    assert values["fs.aio-max-nr"] == "65536"
    assert len(values["net.ipv4.tcp_rmem"].split(" ")) == 3
    assert "\t" not in "".join(values.values())


def test_forms():
    text = "# a comment\nnet/ipv4/conf/eth0.1/rp_filter = 1\n-vm.swappiness=10\nkernel.core_pattern = |/bin/x a=b\n"
    text += "sysctl: permission denied on key 'vm.x'\n"
    assert parse("sysctl", text) == {
        "values": {"net.ipv4.conf.eth0/1.rp_filter": "1", "vm.swappiness": "10", "kernel.core_pattern": "|/bin/x a=b"},
        "errors": ["sysctl: permission denied on key 'vm.x'"],
    }
