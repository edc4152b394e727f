"""Hosts that are network namespaces of this machine, joined by a bridge in a namespace of its own, shaped with tc.

Needs root, iproute2 and Open MPI. Ansible reaches a host through a Python that starts inside it; mpirun through a shell
script in rsh's place. Each host has a name and an address of its own; the file system and the processes are shared.
However the process that made a bed ends, killed too, its keeper ends what runs in the hosts and removes them.

`python -m tests.fabric.bed keep TAG` is the keeper: it waits until its standard input closes.
"""

import ipaddress
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.beds import ROOT, program, ran

RATE_MBIT = 16
PREFIX = "flfab"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
_DROP, _GO_ON = 2, 0xFFFFFFFF
_RANDOM, _IP_DESTINATION = 0xFFFFF038, 30
"""Offsets of a classic BPF program: the kernel's random number, and the destination in an Ethernet frame."""
NETWORK = "10.213.77"
MISSING = [tool for tool in ("ip", "tc", "mpirun", "mpicc", "unshare") if shutil.which(tool) is None]
NEEDED = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"needs {', '.join(MISSING)}: apt-get install openmpi-bin libopenmpi-dev iproute2"
    ),
]
"""Marks of tests on a bed."""


def _run(*argv: str) -> str:
    done = ran(*argv)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
    return done.stdout


def spaces(tag: str) -> list[str]:
    """The namespaces whose names begin so."""
    return [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if line.startswith(tag)]


def remove(tag: str) -> None:
    """End what runs in a bed's hosts, and remove them. Raises nothing for what is gone already."""
    for space in spaces(tag):
        for pid in ran("ip", "netns", "pids", space).stdout.split():
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        ran("ip", "netns", "del", space)


def remove_orphans() -> None:
    """Beds of processes that are gone."""
    for tag in {space.partition("x")[0] for space in spaces(PREFIX)}:
        pid = tag[len(PREFIX) :]
        if not (pid.isdecimal() and Path(f"/proc/{pid}").exists()):
            remove(f"{tag}x")


def lossy(percent: float, destination: str = "") -> str:
    """A classic BPF program for tc: drop so many of the packets (to an address), and leave the rest to the next filter.

    The kernel's netem would do it, where it is built; the one of small virtual machines often is not.
    """
    draw = [(32, 0, 0, _RANDOM), (53, 1, 0, int(percent / 100 * 2**32)), (6, 0, 0, _DROP), (6, 0, 0, _GO_ON)]
    to = [(32, 0, 0, _IP_DESTINATION), (21, 0, 3, int(ipaddress.ip_address(destination)))] if destination else []
    program = to + draw
    return ",".join([str(len(program)), *(" ".join(map(str, step)) for step in program)])


@dataclass
class Bed:
    """The hosts and what starts programs in them."""

    place: Path
    names: list[str]
    tag: str = field(default_factory=lambda: f"{PREFIX}{os.getpid()}x")
    keeper: subprocess.Popen[bytes] | None = None

    @property
    def switch(self) -> str:
        """The namespace with the bridge."""
        return f"{self.tag}sw"

    def space(self, name: str) -> str:
        """A host's namespace."""
        return f"{self.tag}{name}"

    def address(self, name: str) -> str:
        """A host's address."""
        return f"{NETWORK}.{self.names.index(name) + 1}"

    @property
    def inventory(self) -> Path:
        """Its inventory."""
        return self.place / "hosts.yml"

    @property
    def program(self) -> Path:
        """The test program."""
        return self.place / "all_reduce_perf"

    @property
    def options(self) -> list[str]:
        """What mpirun needs here: its rsh, and no way past the network."""
        network = f"{NETWORK}.0/24"
        return [
            "--mca", "plm_rsh_agent", str(self.place / "rsh"), "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
            "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network, "--mca", "plm_rsh_no_tree_spawn",
            "1", "--oversubscribe",
        ]  # fmt: skip

    def up(self) -> None:
        """Make the hosts."""
        remove_orphans()
        argv = [sys.executable, "-m", "tests.fabric.bed", "keep", self.tag]
        # A session of its own: what a terminal or a runner sends to this process's group must not reach it.
        self.keeper = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True, cwd=ROOT)
        _run("ip", "netns", "add", self.switch)
        self._switch("ip", "link", "add", "name", "sw0", "type", "bridge")
        self._switch("ip", "link", "set", "sw0", "up")
        for at, name in enumerate(self.names):
            space, port = self.space(name), f"p{at}"
            _run("ip", "netns", "add", space)
            _run(
                "ip", "link", "add", "eth0", "netns", space, "type", "veth", "peer", "name", port, "netns", self.switch
            )
            self._switch("ip", "link", "set", port, "master", "sw0", "up")
            _run("ip", "-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                _run("ip", "-n", space, "link", "set", link, "up")
            # One packet a frame, as on a wire: else a loss takes up to 64 KiB at once, or nothing.
            _run("ip", "-n", space, "link", "set", "eth0", "gso_max_segs", "1")
            self.shape(name, RATE_MBIT)
        self._scripts()

    def down(self) -> None:
        """End what runs in the hosts, and remove them."""
        remove(self.tag)
        if self.keeper and self.keeper.stdin:
            self.keeper.stdin.close()
            self.keeper.wait(30)

    def _switch(self, *argv: str) -> None:
        _run("ip", "netns", "exec", self.switch, *argv)

    def shape(self, name: str, mbit: float = RATE_MBIT, to: dict[str, float] | None = None, loss: float = 0.0) -> None:
        """Let a host send (and receive) so many Mbit/s and lose so many percent.

        to: host -> Mbit/s towards it alone; then the loss is towards these hosts alone.
        """
        space, port = self.space(name), f"p{self.names.index(name)}"
        for where, link in ((space, "eth0"), (self.switch, port)):
            tc = ["ip", "netns", "exec", where, "tc"]
            ran(*tc, "qdisc", "del", "dev", link, "root")
            _run(*tc, "qdisc", "add", "dev", link, "root", "handle", "1:", "htb", "default", "1", "r2q", "1")
            rates = list((to or {}).items()) if link == "eth0" else []
            for minor, rate in enumerate([mbit, *(rate for _, rate in rates)], 1):
                _run(*tc, "class", "add", "dev", link, "parent", "1:", "classid", f"1:{minor}", "htb", "rate",
                     f"{rate}mbit", "burst", "16k")  # fmt: skip
            lose_to = [self.address(other) for other, _ in rates] if to else [""]
            for address in lose_to if loss else ():
                _run(*tc, "filter", "add", "dev", link, "protocol", "ip", "parent", "1:", "prio", "1", "bpf",
                     "direct-action", "bytecode", lossy(loss, address))  # fmt: skip
            for minor, (other, _) in enumerate(rates, 2):
                _run(*tc, "filter", "add", "dev", link, "protocol", "ip", "parent", "1:", "prio", "2", "u32",
                     "match", "ip", "dst", f"{self.address(other)}/32", "flowid", f"1:{minor}")  # fmt: skip

    def _scripts(self) -> None:
        into = 'exec ip netns exec "{space}" unshare --uts sh -c \'hostname {name}; exec "$@"\' sh {what} "$@"\n'
        lines = ["#!/bin/sh", "while :; do case $1 in -*) shift;; *) break;; esac; done", 'case "$1" in']
        hosts = {}
        for name in self.names:
            asked = into.format(space=self.space(name), name=name, what=sys.executable)
            python = program(self.place / f"python-{name}", f"#!/bin/sh\n{asked}")
            lines += [f"{self.address(name)}|{name}) shift"]
            lines += [
                f'  exec ip netns exec {self.space(name)} unshare --uts sh -c \'hostname {name}; exec sh -c "$*"\' sh "$@" ;;'
            ]
            hosts[name] = {"node_address": self.address(name), "ansible_python_interpreter": str(python)}
        lines += ["esac", "exit 255"]
        program(self.place / "rsh", "\n".join(lines) + "\n")
        self.inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {"ansible_connection": "local"}}}))
        _run("mpicc", "-O2", "-o", str(self.program), str(Path(__file__).with_name("collective.c")))
        for name in COLLECTIVES[1:]:
            self.program.with_name(f"{name}_perf").hardlink_to(self.program)


@contextmanager
def bed(place: Path, count: int) -> Iterator[Bed]:
    """So many hosts, removed at the end."""
    made = Bed(place, [f"n{at}" for at in range(count)])
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was begun ends as at Ctrl-C
    try:
        made.up()
        yield made
    finally:
        made.down()
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove(sys.argv[2])
