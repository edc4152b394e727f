"""What each host parser refuses beside what it reads: nothing, other tools' words, and its own form gone wrong."""

import pytest

from flightline_node.model import ParseError

from .hosttools import parse

REFUSED = {
    "chrony": ["", "hello\n", ",,,,,,,,,,,,,\n", "a,b,c,d,e,f,g,h,i,j,k,l,m,Normal\n"],
    "cpuinfo": ["{}", '{"lscpu": []}', '{"lscpu": [{"field": "CPU(s):", "data": "many"}]}', "{", "x"],
    "df": ["", "bash: df: command not found\n", "Filesystem 1K-blocks Used Available Use% Mounted on\n"],
    "ethtool": ["", "no stats available\n", "NIC statistics:\n", "     a: 1\n", "NIC statistics:\na: b\n"],
    "fio": ["fio: pid=0, err=2/file:fio.c\n", "{}", '{"jobs": []}', '{"jobs": [{"jobname"'],
    "imds": ["{}", '{"colour": "red"}', '{"spot/instance-action": "{cut"}', '{"events/maintenance/scheduled": "{}"}',
        "[1]"],
    "limits": ["", "ulimit: not found\n", "Max locked memory lots lots bytes\n"],
    "lnetctl": ["", "lnetctl: command not found", "errno: -1\n"],
    "loadavg": ["", "0.1 0.2\n", "nan 0 0 1/2 3\n", "0.1 0.2 0.3 1-2 3\n", "0.1 0.2 0.3 1/x 3\n"],
    "lsblk": ["{}", "[]", '{"blockdevices": 3}', '{"blockdevices": [', "lsblk: not found"],
    "lspci": ["", "pcilib: Cannot open /proc/bus/pci\n", "lspci: command not found\n"],
    "meminfo": ["", "MemFree: 1 kB\n", "MemTotal: " + "9" * 40 + " kB\n"],
    "modules": ["", "Module Size Used by\n", "lsmod: not found\n"],
    "mounts": ["", "nothing here\n", "{}", "TARGET SOURCE FSTYPE OPTIONS\n"],
    "numactl": ["", "node 0 size: 5 MB\n", "numactl: not found\n"],
    "nvme_smart": ["", "x", "3", '{"a": 1}', '{"nvme0": {"log": {}}', '"text"', "[" * 5000],
    "processes": ["", "[]", "{}", '{"total": 3}', '{"total": "x", "stuck_count": 1, "zombie_count": 1}'],
    "services": ["", "[]", "{}", "System has not been booted with systemd\n", "0 loaded units listed.\n"],
    "sysctl": ["", "sysctl: cannot stat\n", "# only comments\n"],
    "sysfs": ["", "{}", "[]", '{"other": 1}', '{"efa_ports": 3}', '{"efa_ports": {"a": {}}}', '{"net": {"eth0": 9001}}',
        '{"cpufreq": {}}', '{"edac": [1]}'],
    "uptime": ["", "\x1b[0m", "\x1b[0m \n", "up 3 days\n", "nan 1\n", "-1 2\n", "1 2 3\n", "9" * 400],
    "versions": ["", "{}", '{"kernel": null}', '{"kernel": {"a": 1}}', "6.8.0"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("parser", "output"), [(parser, output) for parser, outputs in REFUSED.items() for output in outputs]
)
def test_anything_else_is_refused(parser, output):
    with pytest.raises(ParseError):
        parse(parser, output)
