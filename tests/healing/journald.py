"""A real systemd-journald apart from this machine's: mounts of its own, and a pipe in /dev/kmsg's place."""

import array
import fcntl
import os
import shutil
import subprocess
import termios
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.beds import until

PROGRAM = "/lib/systemd/systemd-journald"
WAIT_S = 30.0
_PLACE = """\
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/journal /run/log/journal
mount -t tmpfs none /var/log
mount --bind "$1" /dev/kmsg
exec sleep infinity
"""


def missing() -> str:
    """Why it cannot run here; '' when it can."""
    lacking = [name for name in ("unshare", "nsenter", "journalctl") if not shutil.which(name)]
    lacking += [] if Path(PROGRAM).exists() else [PROGRAM]
    if os.geteuid() != 0:
        return "needs root"
    return f"needs systemd's journal: no {', '.join(lacking)}" if lacking else ""


@dataclass
class Journald:
    """`within`: words that run a command where this journal is the machine's."""

    place: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def within(self) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self._running["place"].pid), "-m")

    def up(self) -> None:
        self.place.mkdir(parents=True)
        pipe = self.place / "journald-kmsg"
        os.mkfifo(pipe)
        self._kernel = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        argv = ("unshare", "--mount", "sh", "-c", _PLACE, "sh", str(pipe))
        self._running["place"] = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        until(lambda: self._is_there("-p", "/dev/kmsg"), WAIT_S, "a place for journald", 0.005)
        self.start()

    def start(self) -> None:
        self._running["journald"] = subprocess.Popen([*self.within, PROGRAM], stdin=subprocess.DEVNULL)
        until(lambda: self._is_there("-S", "/run/systemd/journal/stdout"), WAIT_S, "journald", 0.005)
        # It tells the kernel of a file that was not closed, into the same pipe: two records there at once come as one.
        self.run("journalctl", "--sync")
        until(self._is_read, WAIT_S, "journald to read its own words", 0.005)

    def kill(self) -> None:
        """As a crash: nothing is said, nothing is flushed."""
        one = self._running.pop("journald")
        one.kill()
        one.wait(WAIT_S)
        self.run("rm", "-f", "/run/systemd/journal/stdout")

    def run(self, *argv: str) -> str:
        done = subprocess.run([*self.within, *argv], capture_output=True, text=True, check=True, timeout=WAIT_S)
        return done.stdout

    def say(self, record: bytes) -> None:
        """A record of the kernel; back when journald has taken it, for it reads one record at a time."""
        os.write(self._kernel, record)
        until(self._is_read, WAIT_S, "journald to read", 0.005)

    def _is_read(self) -> bool:
        waiting = array.array("i", [0])
        fcntl.ioctl(self._kernel, termios.FIONREAD, waiting)
        return not waiting[0]

    def _is_there(self, kind: str, path: str) -> bool:
        return subprocess.run([*self.within, "test", kind, path], check=False).returncode == 0

    def down(self) -> None:
        for one in reversed(list(self._running.values())):
            one.kill()
            one.wait(WAIT_S)
        os.close(self._kernel)


@contextmanager
def journald(place: Path):
    """One that is taken down at the end."""
    made = Journald(place)
    try:
        made.up()
        yield made
    finally:
        made.down()
