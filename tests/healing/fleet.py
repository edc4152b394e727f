"""Watchers as processes, one a node, each with a pipe in /dev/kmsg's place."""

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.beds import until

F_SETPIPE_SZ = 1031
"""fcntl(2); Python names it from 3.10 on."""

UNIT = Path(__file__).parents[2] / "roles/flightline_watch/templates/flightline-watch.service.j2"
NICE = int(re.findall(r"^Nice=(-?\d+)$", UNIT.read_text(), re.MULTILINE)[0]) if os.geteuid() == 0 else 0
"""The unit's: on a node that is full of work the watcher goes first."""

SITE = {
    "instance_type": "p5.48xlarge",
    "instance_id": "",
    "level": "quick",
    **{key: [] for key in ("checks", "skip", "waivers")},
    **{key: {} for key in ("expected", "thresholds", "options")},
}


@dataclass
class Watched:
    """One node's kernel and its watcher."""

    name: str
    place: Path
    env: dict[str, str]
    scheduler: str = "slurm"
    own: dict[str, object] = field(default_factory=lambda: {"smi_every_s": 0, "sample_every_s": 0})
    sequence: int = 0
    within: tuple[str, ...] = ()
    """Words before the watcher's command: a place of its own to run in."""

    def up(self) -> None:
        self.place.mkdir(parents=True)
        os.mkfifo(self.place / "kmsg")
        self._kernel = os.open(self.place / "kmsg", os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self._kernel, F_SETPIPE_SZ, 1 << 20)  # as much as a kernel's buffer of a large machine holds
        (self.place / "node.json").write_text(json.dumps({"host": self.name, **SITE}))
        own = {
            "directory": str(self.place / "lib"),
            "log": str(self.place / "records.jsonl"),
            "heartbeat_log": str(self.place / "beat.jsonl"),
            "kmsg": str(self.place / "kmsg"),
            "scheduler": self.scheduler,
            "slurm_node": self.name,
        }
        (self.place / "watch.json").write_text(json.dumps({**own, **self.own}))
        self.start()

    def start(self) -> None:
        """The watcher; again after its end."""
        self._said = (self.place / "said").open("ab")
        env = {**os.environ, **self.env}
        self.process = subprocess.Popen(
            [*self.within, *self._argv()], env=env, stderr=self._said, stdin=subprocess.DEVNULL
        )
        os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)  # before its threads and tools begin

    def _argv(self, *more: str) -> list[str]:
        files = ["--settings", str(self.place / "node.json"), "--watch-settings", str(self.place / "watch.json")]
        return [sys.executable, "-m", "flightline_node", "watch", *files, *more]

    def say(self, *messages: str, priority: int = 3) -> float:
        """What the kernel says; the wall clock when it had said it."""
        for message in messages:
            os.write(self._kernel, f"{priority},{self.sequence},{self.sequence * 1000},-;{message}\n".encode())
            self.sequence += 1
        return time.time()

    def pour(self, messages: list[str]) -> None:
        """Many messages in one write, waiting while the pipe is full."""
        numbered = enumerate(messages, self.sequence)
        data = "".join(f"3,{number},{number * 1000},-;{text}\n" for number, text in numbered).encode()
        self.sequence += len(messages)
        while data:
            try:
                data = data[os.write(self._kernel, data) :]
            except BlockingIOError:
                time.sleep(0.001)

    def marker(self) -> dict | None:
        path = self.place / "lib/quarantine.json"
        return json.loads(path.read_text()) if path.exists() else None

    def decided(self) -> bool:
        """Is it out, or a suspect?"""
        suspect = self.place / "lib/suspect.json"
        found = json.loads(suspect.read_text()) if suspect.exists() else self.marker()
        return found is not None and found["scheduler"]["state"] != "pending"

    def said_so_far(self) -> str:
        return (self.place / "said").read_text()

    def records(self) -> int:
        path = self.place / "records.jsonl"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def release(self, run: str, *more: str) -> None:
        subprocess.run(self._argv("--release", run, *more), check=True, capture_output=True)

    def down(self) -> None:
        self.process.terminate()
        self.process.wait(15)
        os.close(self._kernel)
        self._said.close()


def ready(watched: list[Watched], most_s: float = 300.0) -> None:
    """Wait until every watcher reads its pipe: it has written its first heartbeat."""
    until(lambda: all((one.place / "beat.jsonl").exists() for one in watched), most_s, "the watchers start", 0.05)
