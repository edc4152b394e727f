"""Load every GPU with the same matrix product, again and again, and compare every number it gives.

One process per GPU, so that one that hangs costs only its own answer. All begin together, because heat and power
are shared. cuBLAS promises the same bits at every run on GPUs of one architecture and number of multiprocessors
(cuBLAS documentation, Results reproducibility): another result is a fault, not rounding.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import select
import signal
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

from . import stored
from .clocks import Sampler
from .cuda import LIBCUBLAS, LIBCUDA, Blas, CudaDriver, CudaError, Gpu, MissingError, open_library

FILE = "gpu-load.json"
ORDER = 8192
"""1.1 TFLOP a product: milliseconds on any data-centre GPU, and its 2.5 GiB fit all of them."""
BATCH = 8
START_S, END_S = 90.0, 30.0
"""How long GPUs may take to get ready, and to answer when the time is over."""
KILL_S = 2.0
_POLL_S = 0.2
_SEED = b"flightline gpu load 1"

Answer = Dict[str, Any]


@dataclass(frozen=True)
class LoadPlan:
    """How long, how large, and where libraries are looked for (root is "/" but in tests)."""

    seconds: float
    order: int = ORDER
    root: str = "/"
    nvidia_smi: str = "nvidia-smi"


def matrix(order: int, name: str) -> bytes:
    """Half-precision numbers of both signs from 1/8 up to 2, the same on every machine: no overflow, no denormals."""
    size = order * order
    noise = hashlib.shake_256(_SEED + name.encode()).digest(2 * size)
    half = bytearray(2 * size)
    half[0::2] = noise[:size]
    half[1::2] = noise[size:].translate(bytes(0x30 | (byte & 0x0F) | (byte & 0x80) for byte in range(256)))
    return bytes(half)


class _Load:
    """The matrices on one GPU, and what came of multiplying them."""

    def __init__(self, plan: LoadPlan, gpu: Gpu, blas: Blas) -> None:
        self.order, self.count = plan.order, plan.order * plan.order
        self.gpu, self.blas = gpu, blas
        self.a, self.b = gpu.allocate(2 * self.count), gpu.allocate(2 * self.count)
        gpu.upload(self.a, matrix(plan.order, "a"))
        gpu.upload(self.b, matrix(plan.order, "b"))
        self.wanted = gpu.allocate(4 * self.count)
        self.products = [gpu.allocate(4 * self.count) for _ in range(BATCH)]
        blas.multiply(self.order, self.a, self.b, self.wanted)
        self.digest = self.digest_now()
        self.batches, self.busy_s, self.mismatches = 0, 0.0, 0
        self.first: Optional[Answer] = None

    def digest_now(self) -> str:
        """The checksum of the reference product, as the GPU's memory holds it."""
        self.gpu.finish()
        return hashlib.sha256(self.gpu.download(self.wanted, 4 * self.count)).hexdigest()

    def batch(self, counted: bool = True) -> None:
        """Multiply, timed; then compare every number of every product, untimed."""
        began = time.monotonic()
        for product in self.products:
            self.blas.multiply(self.order, self.a, self.b, product)
        self.gpu.finish()
        if counted:
            self.busy_s += time.monotonic() - began
            self.batches += 1
        for number, product in enumerate(self.products):
            difference = self.blas.difference(self.count, self.wanted, product)
            if difference != 0.0:  # NaN as well
                self.mismatches += 1
                self.first = self.first or self._where(number, product, difference)

    def _where(self, number: int, product: ctypes.c_uint64, difference: float) -> Answer:
        element = min(max(self.blas.largest(self.count, product), 0), self.count - 1)
        wanted, off = (self._value(pointer, element) for pointer in (self.wanted, product))
        return {
            "product": self.batches * BATCH + number,
            "element": element,
            "wanted": repr(wanted),
            "off_by": repr(off),
            "sum_of_differences": repr(difference),
        }

    def _value(self, pointer: ctypes.c_uint64, element: int) -> float:
        (value,) = struct.unpack("<f", self.gpu.download(ctypes.c_uint64(pointer.value + 4 * element), 4))
        return float(value)

    def answer(self) -> Answer:
        """The figures of this GPU."""
        products = self.batches * BATCH
        flops = 2.0 * self.order**3 * products
        return {
            "products": products,
            "busy_s": round(self.busy_s, 3),
            "tflops": round(flops / self.busy_s / 1e12, 2) if self.busy_s > 0 else None,
            "mismatches": self.mismatches,
            "first_mismatch": self.first,
            "digest": self.digest,
            "digest_at_end": self.digest_now(),
        }


def _work(plan: LoadPlan, index: int, say: Callable[[Answer], None], start: int) -> None:
    """One GPU's process. `start` can be read when all are ready: the time at which to stop."""
    gpu = Gpu(CudaDriver(open_library(LIBCUDA, plan.root)), index)
    say({"name": gpu.name(), "pci": gpu.pci(), "sm_count": gpu.sm_count()})
    load = _Load(plan, gpu, Blas(open_library(LIBCUBLAS, plan.root)))
    load.batch(counted=False)
    say({"ready": True})
    words = os.read(start, 64)
    if not words:
        return
    stop_at = float(words)
    while time.monotonic() < stop_at or not load.batches:
        load.batch()
    say(load.answer())


class _LoadProcess:
    """A process and what it has said so far."""

    def __init__(self, work: Callable[[Callable[[Answer], None], int], None]) -> None:
        self.answer: Answer = {}
        self._rest = b""
        heard, said = os.pipe()
        start, self._start = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(heard)
            os.close(self._start)
            _speak(work, said, start)
        os.close(said)
        os.close(start)
        self.pipe = heard
        self.open = True

    @property
    def settled(self) -> bool:
        """Nothing more to wait for before the start."""
        return not self.open or bool(self.answer.get("ready"))

    def hear(self) -> None:
        """Take in what can be read; an end of the pipe is the end of the process."""
        data = os.read(self.pipe, 1 << 16)
        self.open = bool(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.answer.update(json.loads(line))

    def begin(self, stop_at: float) -> None:
        """Let it start."""
        if self.open:
            os.write(self._start, b"%.6f" % stop_at)

    def end(self, why: str) -> Answer:
        """Its answer; killed when it has not ended. One that cannot die is left behind, not waited for."""
        if self.open:
            os.kill(self.pid, signal.SIGKILL)
            self.answer.setdefault("error", why)
        os.close(self._start)
        os.close(self.pipe)
        until = time.monotonic() + KILL_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0) and time.monotonic() < until:
            time.sleep(0.01)
        self.answer.pop("ready", None)
        return self.answer


def _speak(work: Callable[[Callable[[Answer], None], int], None], said: int, start: int) -> None:
    def say(answer: Answer) -> None:
        os.write(said, json.dumps(answer).encode() + b"\n")

    try:
        work(say, start)
    except MissingError as error:
        say({"missing": str(error)})
    except BaseException as error:  # the process must end here, whatever happened, and say why
        known = isinstance(error, CudaError)
        say({"error": str(error) if known else f"{type(error).__name__}: {error}"})
    finally:
        sys.stdout.flush()
        os._exit(0)


def _wait(children: List[_LoadProcess], until: float, done: Callable[[_LoadProcess], bool]) -> None:
    while time.monotonic() < until:
        waiting = [child for child in children if child.open and not done(child)]
        if not waiting:
            return
        for pipe in select.select([child.pipe for child in waiting], [], [], _POLL_S)[0]:
            next(child for child in waiting if child.pipe == pipe).hear()


def _count(plan: LoadPlan) -> Answer:
    def look(say: Callable[[Answer], None], _start: int) -> None:
        say({"count": CudaDriver(open_library(LIBCUDA, plan.root)).count()})

    child = _LoadProcess(look)
    _wait([child], time.monotonic() + START_S, lambda _: False)
    return child.end(f"libcuda did not answer within {START_S:g} s")


def run(plan: LoadPlan) -> Answer:
    """Load the GPUs and return what happened; `not_run` with the reason when nothing could be loaded."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as nvidia-smi numbers them
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    found = _count(plan)
    if not found.get("count"):
        return {"not_run": found.get("missing") or found.get("error") or "CUDA sees no GPU"}
    children = [
        _LoadProcess(lambda say, start, index=index: _work(plan, index, say, start))  # type: ignore[misc]
        for index in range(int(found["count"]))
    ]
    _wait(children, time.monotonic() + START_S, lambda child: child.settled)
    sampler = Sampler(plan.nvidia_smi)
    stop_at = time.monotonic() + plan.seconds
    for child in children:
        child.begin(stop_at)
    _wait(children, stop_at + END_S, lambda _: False)
    samples = sampler.end()
    late = f"did not answer within {END_S:g} s after the end: the GPU hangs"
    gpus = [{"index": index, **child.end(late)} for index, child in enumerate(children)]
    missing = next((gpu["missing"] for gpu in gpus if gpu.get("missing")), "")
    if missing and all(gpu.get("missing") for gpu in gpus):
        return {"not_run": missing}
    return {"seconds": plan.seconds, "order": plan.order, "precision": "fp16 to fp32", "gpus": gpus, **samples}


def _reader(seconds: float, root: str) -> str:
    answer = stored(root, FILE)
    return answer if answer is not None else json.dumps(run(LoadPlan(seconds, root=root)), indent=1)


def short(root: str) -> str:
    """Level standard: enough to warm the GPUs up and compare some thousand products."""
    return _reader(20, root)


def sustained(root: str) -> str:
    """Level deep: until every GPU has the temperature it has in a job."""
    return _reader(300, root)
