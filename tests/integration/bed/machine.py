"""One machine: cloned from the image, given a name, keys and an address, booted and ended."""

import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.beds import ran

from . import cgroups, layout, processes, timesource
from .layout import BedError, Machine

BOOTS_WITHIN_S = 300
DETACHES_WITHIN_S = 120
DISK_MIB = 320
"""xfs wants at least 300 MiB."""

SUPERVISOR = f"""\
# Runs in namespaces of its own. Arguments: the image, the machine's directory, its outer name, its disk, more for nspawn.
# The console goes to the log: one that nobody reads fills up, and systemd, which tells there how long a job has run, waits.
set -eu
{cgroups.ENTER}image=$1 directory=$2 name=$3 disk=$4
shift 4
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t overlay overlay -o "lowerdir=$image,upperdir=$directory/upper,workdir=$directory/work" "$directory/root"
while :; do
    status=0
    # The interface of a machine that was killed goes a moment after its processes.
    ip link delete "vb-$name" 2>/dev/null || true
    systemd-nspawn --quiet --directory="$directory/root" --machine="$name" --boot --register=no --keep-unit \\
        --network-bridge={layout.BRIDGE} --link-journal=no --resolv-conf=off --timezone=off --console=read-only \\
        --bind="$disk":/dev/nvme1n1 "$@" || status=$?
    # 133: the machine asked to be rebooted.
    [ "$status" -eq 133 ] || exit "$status"
done
"""


def _files(machine: Machine, fleet: list[Machine], login_key: str) -> dict[str, str]:
    known = "".join(f"{other.address} {other.name}\n" for other in fleet)
    return {
        "etc/hostname": f"{machine.name}\n",
        "etc/hosts": f"127.0.0.1 localhost\n{layout.GATEWAY} mirror\n{known}",
        "etc/machine-id": f"{secrets.token_hex(16)}\n",
        "etc/systemd/network/10-host0.network": "[Match]\nName=host0\n[Network]\n"
        f"Address={machine.address}/24\nLinkLocalAddressing=no\n"
        f"[Route]\nDestination={timesource.ADDRESS}/32\nScope=link\n",
        f"home/{layout.USER}/.ssh/authorized_keys": login_key,
    }


def clone(machine: Machine, fleet: list[Machine], login_key: str, uid: int) -> None:
    """Write what is the machine's own onto its layer."""
    for name in ("upper", "work", "root"):
        (machine.directory / name).mkdir(parents=True, exist_ok=True)
    for name, text in _files(machine, fleet, login_key).items():
        path = machine.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    home = machine.upper / "home" / layout.USER
    for path in (home, *home.rglob("*")):
        shutil.chown(path, uid, uid)
    (home / ".ssh").chmod(0o700)
    (machine.upper / "etc/ssh").mkdir(parents=True, exist_ok=True)
    key = machine.upper / "etc/ssh/ssh_host_ed25519_key"
    make_key(key)
    with machine.disk.open("wb") as disk:
        disk.truncate(DISK_MIB << 20)


def ssh_words(machine: Machine, *options: str, state: Path = layout.STATE) -> list[str]:
    """The beginning of a command as root on a machine, whose host key is known."""
    files = ["-i", str(state / "id_ed25519"), "-o", f"UserKnownHostsFile={state / 'known_hosts'}"]
    quiet = ["-o", "BatchMode=yes", "-o", "LogLevel=ERROR", *options]
    return ["ssh", *files, *quiet, f"{layout.USER}@{machine.address}", "sudo"]


def make_key(path: Path) -> None:
    """An SSH key pair without a passphrase, unless it is there."""
    if not path.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
        subprocess.run(argv, check=True)


def _loop(machine: Machine) -> str:
    done = ran("losetup", "--find", "--show", machine.disk)
    if done.returncode:
        raise BedError(f"seen: {done.stderr.strip()}; wanted: a loop device for the disk; do: free one (losetup -a)")
    return done.stdout.strip()


def release_disk(machine: Machine) -> None:
    """Detach the loop devices of the machine's disk, and wait until they are gone.

    A file system of a machine that was killed is written back when its last namespace goes, a moment after its processes:
    a disk used again or wiped before that gets the old machine's writes. Raises BedError when they stay.
    """
    deadline = time.monotonic() + DETACHES_WITHIN_S
    while found := _attached(machine):
        for device in found:
            subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
        if time.monotonic() > deadline:
            raise BedError(f"seen: {' '.join(found)} still hold {machine.disk}; wanted: free; do: look who mounts them")
        time.sleep(0.05)


def _attached(machine: Machine) -> list[str]:
    return ran("losetup", "--noheadings", "--output", "NAME", "--associated", machine.disk).stdout.split()


def running(machine: Machine) -> bool:
    """Is the machine's process there?"""
    return processes.alive(machine.pid_file, str(machine.directory)) != 0


def start(machine: Machine, image: Path) -> None:
    """Boot the machine unless it runs."""
    if running(machine):
        return
    release_disk(machine)
    arguments = [str(image), str(machine.directory), machine.outer_name, _loop(machine), *layout.BINDS]
    inner = ["sh", "-c", SUPERVISOR, "supervisor", *arguments]
    argv = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    processes.start([*argv, *inner], machine.pid_file, machine.directory / "log")


def stop(machine: Machine) -> None:
    """End the machine at once, as a power cut would."""
    pid = processes.alive(machine.pid_file, str(machine.directory))
    if pid:
        processes.end(pid)
    for left in processes.marked(str(machine.directory)):
        processes.end(left)
    cgroups.remove(machine.outer_name)
    release_disk(machine)


def wait(machine: Machine) -> None:
    """Wait until sshd answers. Raises BedError when the machine ends or stays silent."""
    deadline = time.monotonic() + BOOTS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((machine.address, 22), timeout=1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.05)
        if not running(machine):
            break
    log = machine.directory / "log"
    seen = log.read_text(errors="replace").strip().splitlines()[-3:] if log.exists() else []
    raise BedError(
        f"seen: {machine.name} gives no sshd ({' | '.join(seen)}); wanted: one on {machine.address}; do: read {log}"
    )
