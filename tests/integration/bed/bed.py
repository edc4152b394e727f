"""Make and end the whole bed. Both can be repeated, and `down` clears what a killed `up` left."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import image, inventory, layout, machine, mounts, network, processes, vendors
from .layout import BedError, Machine

STATE = layout.STATE
KIB = 1024
SERVES_WITHIN_S = 120


def why_not() -> str:
    """Why there can be no bed on this machine; empty when there can."""
    if os.geteuid() != 0:
        return "the real hosts need root"
    missing = layout.missing_tools()
    return f"the real hosts need the Debian packages {', '.join(missing)}" if missing else ""


def _require() -> None:
    reason = why_not()
    if reason:
        raise BedError(
            f"seen: {reason}; wanted: a machine that can run them; do: sudo, and apt-get install what is named"
        )


def login_uid(root: Path) -> int:
    """The id of the login on an image."""
    rows = (line.split(":") for line in (root / "etc/passwd").read_text().splitlines())
    return next(int(row[2]) for row in rows if row[0] == layout.USER)


def _serve() -> None:
    if processes.alive(STATE / "server.pid", str(STATE)):
        return
    (STATE / "www").mkdir(exist_ok=True)
    vendors.make(STATE)
    upstream = [f"{host}={scheme}" for host, scheme in image.hosts_of(image.outer_sources()).items()]
    argv = [sys.executable, "-m", "tests.integration.bed.server", str(STATE), *upstream]
    processes.start(argv, STATE / "server.pid", STATE / "server.log", layout.ROOT)
    deadline = time.monotonic() + SERVES_WITHIN_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection((layout.GATEWAY, layout.PORT), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise BedError(f"seen: no server on {layout.URL}; wanted: one; do: read {STATE / 'server.log'}")


def existing() -> list[Machine]:
    """The machines that have a directory."""
    names = {path.name for path in (STATE / "machines").glob("*")}
    return [found for found in layout.machines(layout.MOST, STATE) if found.name in names]


def up(count: int = layout.DEFAULT_COUNT) -> Path:
    """Make the machines that are not there and boot those that do not run. Returns the inventory."""
    _require()
    fleet = layout.machines(count, STATE)
    root = image.build(STATE)
    network.up(STATE)
    _serve()
    machine.make_key(STATE / "id_ed25519")
    key = (STATE / "id_ed25519.pub").read_text()
    for one in fleet:
        if not one.disk.exists():
            machine.clone(one, fleet, key, login_uid(root))
        machine.start(one, root)
    for one in fleet:
        _wait(one)
    return inventory.write(fleet, STATE)


def _wait(one: Machine) -> None:
    """Until a login succeeds: sshd answers before the boot lets anybody but root in, and closes what comes too early."""
    machine.wait(one)
    argv = ["ssh", "-i", str(STATE / "id_ed25519"), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
    argv += ["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"{layout.USER}@{one.address}", "true"]
    deadline = time.monotonic() + machine.BOOTS_WITHIN_S
    while (done := subprocess.run(argv, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > deadline:
            raise BedError(f"seen: no login on {one.name} ({done.stderr.strip()}); wanted: one as {layout.USER}")
        time.sleep(0.1)


def reset(one: Machine) -> None:
    """A machine as it was when it was made: bare, with new host keys."""
    machine.stop(one)
    mounts.remove(one.directory)
    up(max(layout.DEFAULT_COUNT, int(one.name.rpartition("-")[2])))


def restart(one: Machine, *, wipe_disk: bool = False) -> float:
    """Stop and start a machine as EC2 does; a wiped disk is what an instance store is after that. Returns seconds."""
    machine.stop(one)
    if wipe_disk:
        with one.disk.open("wb") as disk:
            disk.truncate(machine.DISK_MIB << 20)
    began = time.monotonic()
    machine.start(one, image.build(STATE))
    _wait(one)
    return time.monotonic() - began


def down() -> None:
    """End everything and remove it; the image and the package cache stay."""
    for one in existing():
        machine.stop(one)
    for pid in (*processes.marked(str(STATE / "machines")), processes.alive(STATE / "server.pid", str(STATE))):
        if pid:
            processes.end(pid)
    network.down(STATE)
    for name in ("machines", "www", "www-gnupg", "image-draft", "group_vars", "tls"):
        mounts.remove(STATE / name)
    for name in ("inventory.yml", "known_hosts", "id_ed25519", "id_ed25519.pub", "server.pid", "server.log"):
        (STATE / name).unlink(missing_ok=True)


def memory_mib(one: Machine) -> float:
    """Memory of the machine's processes, shared pages counted once among those who share them."""
    holder = processes.alive(one.pid_file, str(one.directory))
    kib = 0
    for pid in _descendants(holder) if holder else []:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        kib += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return kib / KIB


def _descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in _descendants(int(child)))]


def status() -> list[tuple[str, str, bool, int]]:
    """Name, address, running?, memory of every machine."""
    return [(one.name, one.address, machine.running(one), round(memory_mib(one))) for one in existing()]
