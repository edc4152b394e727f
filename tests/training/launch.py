"""Start the reference job as a user does, and disturb it."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("FLIGHTLINE_TORCH_PYTHON") or ROOT / ".flightline" / "torch" / "bin" / "python")
DEADLINE_S = 600.0
STEPS, EVERY = 24, 4
SIZES = {"batch": 16, "micro-batch": 2, "layers": 2, "width": 32, "length": 32, "warm-up": 4, "timeout-s": 120}
HANG_S = 30
"""Timeout of collectives where a hang is to be seen; elsewhere the start of a rank may take long on a busy machine."""
HANG = f"--timeout-s={HANG_S}"


class Running:
    """One torchrun of the job. place: holds data.bin, ck and logs."""

    def __init__(
        self,
        place: Path,
        *more: str,
        ranks: int = 2,
        checkpoints: Path | None = None,
        attempt: int = 0,
        code: Path = ROOT,
    ):
        self.logs = place / "logs"
        self.checkpoints = checkpoints or place / "ck"
        given = ["--data", place / "data.bin", "--checkpoints", self.checkpoints, "--journal", self.logs]
        sizes = [f"--{name}={value}" for name, value in SIZES.items()]
        argv = [PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "-m", "training.job",
                *given, *sizes, "--steps", STEPS, "--checkpoint-every", EVERY, *more]  # fmt: skip
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_FR_BUFFER_SIZE": "500"}  # fmt: skip
        self.out = place / f"out-{time.time_ns()}.txt"
        with self.out.open("w") as file:
            self.process = subprocess.Popen(list(map(str, argv)), cwd=code, env=environment, stdout=file,
                                            stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        self.attempt = attempt

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            for pid in self.pids().values():
                _kill(pid, signal.SIGKILL)
            _kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def events(self, rank: int = 0) -> list[dict]:
        """What a rank of this start has said."""
        return [event for event in events(self.logs, rank) if event["attempt"] == self.attempt]

    def named(self, name: str, rank: int = 0) -> list[dict]:
        return [event for event in self.events(rank) if event["event"] == name]

    def pids(self) -> dict[int, int]:
        return {rank: found[0]["pid"] for rank in range(8) if (found := self.named("start", rank))}

    def until(self, what, why: str):
        """Wait for something to be true of the run; its value."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if value := what(self):
                return value
            assert self.process.poll() is None or what(self), f"ended before {why}:\n{self.text()}"
            time.sleep(0.01)
        raise AssertionError(f"not within {DEADLINE_S:.0f} s: {why}\n{self.text()}")

    def until_step(self, step: int):
        self.until(lambda run: any(event["step"] >= step for event in run.named("step")), f"step {step}")
        return self

    def until_saved(self, step: int):
        self.until(lambda run: any(event["step"] >= step for event in run.named("checkpoint")), f"checkpoint {step}")
        return self

    def signal(self, rank: int, number: int):
        os.kill(self.pids()[rank], number)

    def ended(self) -> int:
        return self.process.wait(DEADLINE_S)

    def text(self) -> str:
        return self.out.read_text()[-6000:]

    def good(self):
        assert self.ended() == 0, self.text()
        return self


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def events(logs: Path, rank: int) -> list[dict]:
    """What a rank has said in all starts; a line that is being written is left out."""
    path = logs / f"rank-{rank:06d}.jsonl"
    text = path.read_text() if path.exists() else ""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def curve(logs: Path) -> dict[int, str]:
    """Step to loss, bit for bit. A step that was done twice must have given the same twice."""
    found: dict[int, str] = {}
    for event in events(logs, 0):
        if event["event"] == "step":
            assert found.setdefault(event["step"], event["loss_hex"]) == event["loss_hex"], f"step {event['step']}"
    return found
