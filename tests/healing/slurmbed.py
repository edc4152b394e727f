"""A real Slurm (Debian's slurmctld, slurmd and munged) in a directory of its own, with ports of its own: no GPU, no host."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.beds import ran

TOOLS = ("slurmctld", "slurmd", "munged", "scontrol", "squeue", "sbatch")
WAIT_S = 30.0
SLURMD_TIMEOUT_S = 10
"""After which a silent slurmd is down; Slurm ships 300."""


def missing() -> str:
    """Why it cannot run here; '' when it can."""
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0:
        return "needs root"
    return f"needs Debian's slurmctld, slurmd, slurm-client and munge: no {', '.join(lacking)}" if lacking else ""


NEEDED = pytest.mark.skipif(bool(missing()), reason=missing())
"""A mark of tests on a bed."""


@dataclass
class Bed:
    """A cluster of that many nodes, n1 to nN, all of them slurmd on this machine."""

    place: Path
    nodes: int
    ports: list[int] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.place / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.config)}

    @property
    def whole_env(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def up(self) -> None:
        self.ports = _free(self.nodes + 1)
        self.place.mkdir(parents=True, exist_ok=True)
        for name in ("state", *(f"spool-{name}" for name in self.names)):
            (self.place / name).mkdir(exist_ok=True)
        key = self.place / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self.config.write_text(self._config(), encoding="utf-8")
        munge = ("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.place}/munge.socket")
        more = ("pid", "seed", "log")
        files = [f"--{name}-file={self.place}/munge.{name}" for name in more]
        self._start("munged", *munge, *files)
        _until(lambda: (self.place / "munge.socket").exists(), "munged")
        self.control_up()
        for name in self.names:
            self.node_up(name)
        _until(lambda: self.states().count("IDLE") == self.nodes, "all nodes idle", self.states)

    @property
    def names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    def control_up(self) -> None:
        self._start("slurmctld", "slurmctld", "-D", "-f", str(self.config))
        _until(lambda: self.run("scontrol", "ping", check=False).returncode == 0, "slurmctld")

    def control_down(self) -> None:
        self._stop("slurmctld")

    def node_up(self, name: str) -> None:
        self._start(name, "slurmd", "-D", "-f", str(self.config), "-N", name)

    def node_down(self, name: str) -> None:
        self._stop(name)

    def down(self) -> None:
        if "slurmctld" in self._running:  # slurmd leaves its jobs running when it ends
            self.run("scancel", "--user=root", check=False)
            with contextlib.suppress(RuntimeError):
                _until(lambda: not self.run("squeue", "-h", check=False).stdout.strip(), "all jobs ended")
        for name in reversed(list(self._running)):
            self._stop(name)

    def run(self, *argv: str, check: bool = True, **given: str) -> subprocess.CompletedProcess[str]:
        return ran(*argv, env=self.whole_env, check=check, timeout=30, **given)

    def idle_again(self) -> None:
        """Wait for all nodes, after a test that took some of them."""
        _until(lambda: set(self.states()) == {"IDLE"}, "all nodes idle again", self.states)

    def states(self) -> list[str]:
        return self.run("sinfo", "-h", "-N", "-o", "%T").stdout.upper().split()

    def sleep_on(self, name: str, seconds: int = 300) -> str:
        """Submit a job to a node; its id, once it runs."""
        script = f"#!/bin/sh\nsleep {seconds}\n"
        argv = ["sbatch", "--parsable", "-w", name, "--requeue", "-o", "/dev/null", "-J", "sleeper"]
        job = self.run(*argv, input=script).stdout.strip()
        _until(lambda: self.job_state(job) == "RUNNING", f"job {job} runs", lambda: self.job_state(job))
        return job

    def job_state(self, job: str) -> str:
        said = self.run("squeue", "-h", "-j", job, "-o", "%T", check=False).stdout.strip()
        return said or "GONE"

    def _start(self, name: str, *argv: str) -> None:
        with (self.place / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(
                argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **self.env}
            )

    def _stop(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def _config(self) -> str:
        host = socket.gethostname().split(".")[0]
        first, last = self.ports[1], self.ports[-1]
        return f"""ClusterName=healing
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={self.ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.place}/munge.socket
CredType=cred/munge
StateSaveLocation={self.place}/state
SlurmdSpoolDir={self.place}/spool-%n
SlurmctldPidFile={self.place}/slurmctld.pid
SlurmdPidFile={self.place}/slurmd-%n.pid
SlurmctldLogFile={self.place}/slurmctld.log
SlurmdLogFile={self.place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldTimeout=30
SlurmdTimeout={SLURMD_TIMEOUT_S}
ReturnToService=0
KillWait=1
MpiDefault=none
NodeName=n[1-{self.nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def _free(count: int) -> list[int]:
    """That many free ports in a row: slurmd's must be a range."""
    for first in range(23000 + os.getpid() % 5000, 60000, count + 7):
        taken = []
        try:
            for port in range(first, first + count):
                held = socket.socket()
                taken.append(held)
                held.bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for held in taken:
                held.close()
        return list(range(first, first + count))
    raise RuntimeError("no free ports")


def _until(good, what, said=lambda: "") -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            if good():
                return
        except subprocess.SubprocessError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{what}: not within {WAIT_S:g} s; {said()}")


@contextlib.contextmanager
def bed(place: Path, nodes: int, kind: type[Bed] = Bed):
    """A cluster, taken down at the end."""
    made = kind(place, nodes)
    try:
        made.up()
        yield made
    finally:
        made.down()
