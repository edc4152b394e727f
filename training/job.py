"""Train a small GPT that loses nothing when it is interrupted.

    torchrun --nproc-per-node 4 -m training.job --data c4.bin --checkpoints /fsx/ck/demo --journal /fsx/logs/demo

Exit status: 0 trained to the end; 75 saved and ended because it was told to, start it again; 1 failed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import os
import secrets
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record

from . import checkpoints, copies
from .guard import LossGuard
from .journal import Journal, embedded, next_attempt, who
from .model import GPT, Size, build, flops_per_token
from .order import BatchPlan
from .tokens import DataError, Tokens, fingerprint

REQUEUE = 75
"""EX_TEMPFAIL of sysexits.h: the same again later may work."""
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
"""An end by systemd or Slurm; EC2's notice, as the role flightline_notice sends it."""
CLIP = 1.0
USE_EVERY = 10
"""Steps between two looks at how busy the GPU is: NVML counts over up to a second anyway."""


def arguments() -> argparse.Namespace:
    """The command line."""
    first, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "training.job", description=first, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--job", default=os.environ.get("FLIGHTLINE_JOB", "reference"), help="name in metrics; %(default)s")
    add("--data", type=Path, nargs="+", required=True, help="files; each byte is a token")
    add("--checkpoints", type=Path, required=True, help="directory that is there, on storage that all ranks share")
    add("--copies", type=copies.place, help="s3://BUCKET/PREFIX/ where each whole checkpoint goes as well")
    add("--journal", type=Path, required=True, help="directory for journals and metrics")
    add("--steps", type=int, default=1000)
    add("--checkpoint-every", type=int, default=100, help="steps; %(default)s")
    add("--keep-last", type=int, default=3, help="checkpoints; %(default)s")
    add("--keep-every", type=int, default=0, help="keep checkpoints whose step this divides for good; 0: none")
    add("--batch", type=int, default=64, help="samples of all ranks in a step; %(default)s")
    add("--micro-batch", type=int, default=4, help="samples of one forward; %(default)s")
    add("--layers", type=int, default=4)
    add("--width", type=int, default=128)
    add("--heads", type=int, default=4)
    add("--length", type=int, default=128, help="tokens of a sample; %(default)s")
    add("--rate", type=float, default=3e-4, help="highest learning rate; %(default)s")
    add("--warm-up", type=int, default=20, help="steps; %(default)s")
    add("--seed", type=int, default=0)
    add("--timeout-s", type=float, default=120.0, help="a collective that takes longer is a hang; %(default)s")
    peak = float(os.environ.get("FLIGHTLINE_PEAK_TFLOPS", "0"))
    add("--peak-tflops", type=float, default=peak, help="of one device in bf16, for MFU; 0: not known, no MFU")
    return parser.parse_args()


class SaveError(RuntimeError):
    """A run came to its end, and its checkpoint did not."""


class StepTimes(NamedTuple):
    """Seconds of a step: all, waiting for data, the thread's CPU, and what of its own work was measured."""

    step_s: float
    data_s: float
    cpu_s: float
    local_s: float | None

    def own_s(self, forwards: int) -> float | None:
        """Of all forwards and backwards: measured are all but the first and the last."""
        return None if self.local_s is None else self.local_s * forwards / (forwards - 1)


class GpuUse:
    """How busy this rank's GPU is, by NVML; None without a GPU or nvidia-ml-py."""

    def __init__(self) -> None:
        self._known = torch.cuda.is_available()

    def percent(self) -> float | None:
        """Of NVML's last sample period."""
        if not self._known:
            return None
        try:
            return float(torch.cuda.utilization())
        except (ImportError, RuntimeError):
            self._known = False
            return None


class SaveRequest:
    """Whether somebody asked this process to save and end."""

    def __init__(self) -> None:
        self.by = 0
        for number in SIGNALS:
            signal.signal(number, self._hear)

    def _hear(self, number: int, _frame: Any) -> None:
        self.by = number


class TrainingJob:
    """One rank from start to end."""

    def __init__(self, given: argparse.Namespace, told: SaveRequest) -> None:
        self.given, self.told = given, told
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        # Not the group of the training: a checkpoint is written while that one is in use.
        self.beside = dist.new_group(backend="gloo", timeout=timedelta(seconds=given.timeout_s))
        self.journal = Journal(given.journal, self.rank, self._attempt())
        self.size = Size(given.layers, given.width, given.heads, given.length)
        self.used = GpuUse()
        self.step, self.guard, self.productive_s, self.began_at = 0, LossGuard(), 0.0, time.time()

    def run(self) -> int:
        """Train; the exit status."""
        given = self.given
        flight_file(given.journal, self.rank).unlink(missing_ok=True)
        self.journal.say("start", world=self.world, **who())
        self._said_together()
        self._lock = self._only_one()
        self.data = Tokens(given.data, given.length)
        self.plan = BatchPlan(self.data.samples, given.batch, given.micro_batch, given.seed)
        self.accumulation = self.plan.accumulation(self.world)
        self.model = build(self.size, init_device_mesh(self.device, (self.world,)), given.seed)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=given.rate, betas=(0.9, 0.95))
        nonce = self._nonce()
        checkpoints.shared(given.checkpoints, nonce, self.beside)
        self.saver = checkpoints.Saver(given.checkpoints, nonce, self.beside, self.journal.say,
                                       given.keep_last, given.keep_every, given.timeout_s, given.copies)  # fmt: skip
        if given.copies:
            checkpoints.bring(given.checkpoints, nonce, given.copies, self.journal.say)
        self._resume()
        while self.step < given.steps:
            if self._one_step():
                self._save()
                self._saved()
                self._ended("requeue", by=signal.Signals(self.told.by).name if self.told.by else "another rank")
                return REQUEUE
        self._saved()
        self._ended("finished")
        self.saver.copied()
        return 0

    def _saved(self) -> None:
        """The last save is whole, at the second try if need be; without it the run has no result."""
        if self.saver.last_failed():
            self._save()
        why = self.saver.last_failed()
        if why:
            raise SaveError(
                f"step {self.step} is trained and not saved: {why}; do: make room, the run starts again before"
            )

    def _ended(self, how: str, **values: Any) -> None:
        dist.barrier(group=self.beside)
        self.journal.say(how, step=self.step, **values)

    def _only_one(self) -> Any:
        """Hold the checkpoint directory. Two runs of one name would take each other's checkpoints."""
        root = self.given.checkpoints
        if self.rank:
            return None
        if not root.is_dir():
            raise DataError(f"{root}: saw no directory, wanted the place of the checkpoints; do: mount or make it")
        lock = (root / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{root}: another run holds it; do: end that run, or give this one its own name") from None
        return lock

    def _attempt(self) -> int:
        number = [next_attempt(self.given.journal) if self.rank == 0 else 0]
        dist.broadcast_object_list(number, src=0, group=self.beside)
        return number[0]

    def _said_together(self) -> None:
        """Rank 0 says which nodes train together and by what code, so that one journal is enough to know."""
        hosts: list[Any] = [None] * self.world
        dist.all_gather_object(hosts, who()["host"], group=self.beside)
        if not self.rank:
            self.journal.say("together", nodes=sorted(set(hosts)), code=code_version())

    def _nonce(self) -> str:
        made: list[Any] = [secrets.token_hex(4)]
        dist.broadcast_object_list(made, src=0, group=self.beside)
        return str(made[0])

    def _about(self) -> dict[str, Any]:
        return {"data": fingerprint(self.given.data), "code": code_version(), "seed": self.given.seed,
                "batch": self.given.batch, "size": list(self.size)}  # fmt: skip

    def _resume(self) -> None:
        """Go on from the last whole checkpoint. Raises DataError where going on would be another run."""
        self.about = self._about()
        found = checkpoints.find(self.given.checkpoints, self.journal.say, self.beside)
        if not found:
            self.journal.say("fresh")
            return
        where, saved = found
        for key in ("data", "seed", "batch", "size"):
            if saved[key] != self.about[key]:
                raise DataError(
                    f"{where.name}: saved with {key} {saved[key]}, this run has {self.about[key]}; "
                    "do: give the run the same, or an empty directory for checkpoints"
                )
        checkpoints.load(where, self.model, self.optimizer, self.beside)
        self.step, self.guard = saved["step"], LossGuard(saved["losses"])
        self.productive_s, self.began_at = saved["productive_s"], saved["began_at"]
        self.journal.say("resumed", step=self.step, name=where.name, saved_world=saved["world"], world=self.world,
                         code_changed=saved["code"] != self.about["code"])  # fmt: skip

    def _one_step(self) -> bool:
        """One optimizer step; whether some rank was told to end."""
        began, began_cpu = time.perf_counter(), time.thread_time()
        batches = self._batches()
        data_s = time.perf_counter() - began
        loss, local_s = self._gradients(batches)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        seen = torch.tensor([loss, float(bool(self.told.by))], dtype=torch.float64, device=self.device)
        dist.all_reduce(seen)
        mean, stop = float(seen[0]) / self.world, float(seen[1]) > 0
        self.guard.look(self.step, mean, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.step, self.given)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        step_s, cpu_s = time.perf_counter() - began, time.thread_time() - began_cpu
        self.productive_s += step_s
        due = self.step % self.given.checkpoint_every == 0 or self.step == self.given.steps
        stall_s = self._save() if due and not stop else 0.0
        self._tell(mean, stall_s, StepTimes(step_s, data_s, cpu_s, local_s))
        return stop

    def _batches(self) -> list[torch.Tensor]:
        indices = self.plan.at(self.step, self.rank, self.world)
        rows = torch.frombuffer(bytearray(b"".join(map(self.data.sample, indices))), dtype=torch.uint8)
        rows = rows.view(len(indices), -1).long().to(self.device)
        return list(rows.split(self.given.micro_batch))

    def _gradients(self, batches: list[torch.Tensor]) -> tuple[float, float | None]:
        """The loss of this rank, and seconds of what needed no other rank (None: there is only one forward)."""
        model: GPT = self.model
        total, local_s = 0.0, 0.0
        for number, rows in enumerate(batches):
            last = number == len(batches) - 1
            model.set_requires_gradient_sync(last)
            model.set_reshard_after_backward(last)
            began = time.perf_counter()
            loss = model(rows[:, :-1], rows[:, 1:]) / len(batches)
            total += float(loss.detach())
            local_s += time.perf_counter() - began if number else 0.0
            began = time.perf_counter()
            loss.backward()
            local_s += 0.0 if last else time.perf_counter() - began
        return total, local_s if len(batches) > 1 else None

    def _save(self) -> float:
        more = {**self.about, "losses": self.guard.seen, "productive_s": self.productive_s, "began_at": self.began_at}
        stall_s = self.saver.save(self.step, self.model, self.optimizer, more)
        self.journal.say("saving", step=self.step, stall_s=round(stall_s, 4))
        return stall_s

    def _tell(self, loss: float, stall_s: float, took: StepTimes) -> None:
        own_s = took.own_s(self.accumulation)
        gpu = self.used.percent() if self.step % USE_EVERY == 0 else None
        self.journal.say("step", step=self.step, loss=loss, loss_hex=loss.hex(), step_s=took.step_s, data_s=took.data_s,
                         local_s=took.local_s, own_s=own_s, cpu_s=took.cpu_s, gpu_percent=gpu)  # fmt: skip
        if self.rank:
            return
        tokens_s = self.given.batch * self.size.length / took.step_s
        values = {
            "TrainStep": self.step,
            "TrainLoss": loss,
            "TrainTokensPerSecond": tokens_s,
            "TrainEffectiveTime": 100.0 * self.productive_s / max(time.time() - self.began_at, 1e-9),
            "TrainCheckpointStall": 1000.0 * stall_s,
            "TrainDataWait": 100.0 * took.data_s / took.step_s,
        }
        if own_s is not None:
            values["TrainOthersWait"] = 100.0 * max(0.0, 1 - (own_s + took.data_s) / took.step_s)
        if self.given.peak_tflops:
            peak = self.given.peak_tflops * 1e12 * self.world
            values["TrainMfu"] = 100.0 * tokens_s * flops_per_token(self.size) / peak
        path = os.environ.get("FLIGHTLINE_METRICS") or self.given.journal / "metrics.jsonl"
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(embedded(os.environ.get("FLIGHTLINE_NAMESPACE", "Flightline"), self.given.job, values))


def rate(step: int, given: argparse.Namespace) -> float:
    """Learning rate: a linear warm-up, then a cosine down to a tenth. Follows from the step alone."""
    if step < given.warm_up:
        return float(given.rate * (step + 1) / given.warm_up)
    part = (step - given.warm_up) / max(1, given.steps - given.warm_up)
    return float(given.rate * (0.1 + 0.45 * (1.0 + math.cos(math.pi * min(1.0, part)))))


def code_version() -> str:
    """Hash of the job's own files: said, not refused, when it changes between two starts."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def flight_file(logs: Path, rank: int) -> Path:
    """Where a rank's flight recorder goes; a new start removes the one before."""
    return logs / f"flight-{rank:06d}.json"


def dump_flight(logs: Path, rank: int) -> None:
    """PyTorch's flight recorder: the last collectives of this rank, for `flightline blame`."""
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        dump = getattr(torch._C._distributed_c10d, name, None)
        try:
            found = json.loads(dump()) if dump else {}
        except (RuntimeError, ValueError):
            continue
        if found.get("entries"):
            flight_file(logs, rank).write_text(json.dumps(found), encoding="utf-8")
            return


@record
def main() -> None:
    """Entry point of a rank."""
    given, told = arguments(), SaveRequest()
    torch.use_deterministic_algorithms(True, warn_only=True)
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=given.timeout_s))
    job = TrainingJob(given, told)
    try:
        status = job.run()
    except Exception as error:
        job.journal.say("exception", step=job.step, type=type(error).__name__, text=str(error)[:2000])
        dump_flight(given.journal, job.rank)
        raise
    dist.destroy_process_group()
    sys.exit(status)


if __name__ == "__main__":
    main()
