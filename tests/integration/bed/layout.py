"""Names, addresses and paths of the bed."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
BEDS = tuple(str(number) for number in range(10))


def chosen(text: str) -> int:
    """The number of the bed that FLIGHTLINE_BED names: beds of different numbers live side by side."""
    if text not in BEDS:
        raise ValueError(f"seen: FLIGHTLINE_BED={text}; wanted: one of {', '.join(BEDS)}; do: correct or unset it")
    return int(text)


BED = chosen(os.environ.get("FLIGHTLINE_BED", "0"))
STATE = ROOT / ".flightline" / (f"hosts-{BED}" if BED else "hosts")
BRIDGE = f"flbed{BED}"
SUBNET = f"10.213.{77 + BED}"
"""A private /24 that only the bridge and the machines use; nothing is routed out of it."""
GATEWAY = f"{SUBNET}.1"
PORT = 3142
URL = f"http://{GATEWAY}:{PORT}"
USER = "admin"
"""The login of Debian's EC2 images: no password, sudo."""
DEFAULT_COUNT = 4
MOST = 200
BINDS: tuple[str, ...] = ()
"""More options of systemd-nspawn, such as --bind-ro=/outer:/inner: what is too large to be copied into each machine."""
TOOLS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "openssl": "openssl",
    "losetup": "mount",
    "unshare": "util-linux",
}


class BedError(Exception):
    """The bed cannot be made; the text says what was seen, wanted and what to do."""


@dataclass(frozen=True)
class Machine:
    """One host: its name, address and directory."""

    name: str
    address: str
    directory: Path

    @property
    def outer_name(self) -> str:
        """What the outer machine calls it: network interfaces and control groups of all beds share one name space."""
        return f"{self.name}-bed{BED}" if BED else self.name

    @property
    def upper(self) -> Path:
        """What the machine wrote on top of the image."""
        return self.directory / "upper"

    @property
    def pid_file(self) -> Path:
        """The process that holds the machine."""
        return self.directory / "pid"

    @property
    def disk(self) -> Path:
        """The file behind the machine's instance-store disk."""
        return self.directory / "disk0"


def machine(number: int, state: Path = STATE) -> Machine:
    """The machine of a number, from 1."""
    name = f"gpu-{number:02d}"
    return Machine(name, f"{SUBNET}.{10 + number}", state / "machines" / name)


def machines(count: int, state: Path = STATE) -> list[Machine]:
    """The first machines."""
    if not 1 <= count <= MOST:
        raise BedError(f"seen: {count} machines asked for; wanted: 1 to {MOST}; do: give another number")
    return [machine(number, state) for number in range(1, count + 1)]


def missing_tools() -> list[str]:
    """Debian packages of the tools that are not on the PATH."""
    return sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
