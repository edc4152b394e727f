"""Does every GPU keep its speed under load, as fast as its twins and as cool?"""

from __future__ import annotations

from typing import Iterator, List, Optional

from ...know.expected import NO_TYPE
from ...model import Facts, Finding, Reason, Remedy, Threshold
from ..context import Context
from .common import gpu_check, median, spread

_HARDWARE = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")

SLOWER = Reason("slower", "a GPU is slower than its twins", Remedy.REPLACE, "GPU")
BELOW_PEAK = Reason("below_peak", "a GPU is far below its data sheet", device="GPU")
NO_PEAK = Reason("no_peak", "no figure of the type's GPU is known", device="GPU")
HELD_DOWN = Reason("held_down", "the hardware held a GPU's clock down", Remedy.REPLACE, "GPU")
WARM = Reason("warm", "a GPU lowered its clock to stay cool", device="GPU")
NOT_LOADED = Reason("not_loaded", "a GPU was not measured under load", device="GPU")
FEWER_LOADED = Reason("fewer_loaded", "not every GPU was loaded")
NOT_STARTED = Reason("not_started", "the load program did not start", Remedy.FIX_CONFIG)


def loaded(context: Context, gpu: Facts) -> Context:
    """The context of a GPU of the load program's facts: its findings and measures name it."""
    device = {key: gpu[key] for key in ("index", "pci", "name") if gpu.get(key) is not None}
    return context.of(device, f"GPU {gpu.get('index', '?')}")


def twins(gpu: Facts, gpus: List[Facts]) -> List[Facts]:
    """The other GPUs of the same product with as many multiprocessors."""
    kind = (gpu.get("name"), gpu.get("sm_count"))
    return [other for other in gpus if other is not gpu and (other.get("name"), other.get("sm_count")) == kind]


def _speed(context: Context, tflops: float, others: List[float]) -> Iterator[Finding]:
    rate, known = context.expected.gpu_tflops, context.expected.instance_type != NO_TYPE
    peak = (rate or 0) * (context.expected.gpu_share or 1) * context.threshold("min_peak_percent") / 100
    usual = median(others)
    message = f"{tflops:g} TFLOPS, the other GPUs {usual:g}"
    warn, fail = (usual * (1 - context.threshold(f"{what}_slower_percent") / 100) for what in ("warn", "fail"))
    if tflops < fail:
        yield context.fail(SLOWER, message, tflops, round(fail, 1), "TFLOPS")
    elif tflops < peak:
        yield context.fail(BELOW_PEAK, f"{tflops:g} TFLOPS, wanted {peak:g}", tflops, peak, "TFLOPS")
    elif rate is None and known:
        message = f"{tflops:g} TFLOPS, and no expected gpu_tflops is known of the type"
        yield context.unknown(NO_PEAK, message, tflops, None, "TFLOPS")
    elif tflops < warn:
        yield context.warn(SLOWER, message, tflops, round(warn, 1), "TFLOPS", remedy=Remedy.INVESTIGATE)


def _heat(context: Context, gpu: Facts) -> Iterator[Finding]:
    samples, throttled = gpu.get("samples") or 0, gpu.get("throttled") or {}
    hard = {name: count for name, count in throttled.items() if name in _HARDWARE}
    warm = throttled.get("sw_thermal_slowdown", 0)
    seen = f"in {max(throttled.values(), default=0)} of {samples} samples, {gpu.get('temperature_c_max', '?')} C"
    if hard:
        yield context.fail(HELD_DOWN, f"clock held down by the hardware under load ({', '.join(hard)}) {seen}", hard, 0)
    elif samples and warm > samples * context.threshold("max_warm_percent") / 100:
        yield context.warn(WARM, f"clock lowered to stay cool {seen}", warm)


def _judge(context: Context, gpu: Facts, gpus: List[Facts]) -> Iterator[Finding]:
    tflops = gpu.get("tflops")
    yield from _heat(context, gpu)
    if not tflops:
        why = gpu.get("error") or "no product was timed"
        yield context.unknown(NOT_LOADED, f"not measured under load: {why}")
        return
    context.measure("gpu_load_tflops", tflops, "TFLOPS")
    context.measure("gpu_load_sm_mhz", gpu.get("sm_mhz_median"), "MHz")
    context.measure("gpu_load_temperature_c", gpu.get("temperature_c_max"), "C")
    yield from _speed(context, tflops, [twin["tflops"] for twin in twins(gpu, gpus) if twin.get("tflops")])


def _missing(context: Context, facts: Facts) -> Optional[Finding]:
    wanted, seen = context.expected.gpu_count, len(facts["gpus"])
    if wanted is None or seen >= wanted:
        return None
    return context.unknown(FEWER_LOADED, f"{seen} of {wanted} GPUs loaded", measured=seen, expected=wanted)


def evaluate(context: Context) -> Iterator[Finding]:
    """Each GPU against the median of its twins, then against a share of the data sheet; heat by clock reasons."""
    facts = context.facts("gpu_load")
    if facts.get("not_run"):
        yield context.unknown(NOT_STARTED, f"the GPUs were not loaded: {facts['not_run']}")
        return
    findings = [finding for gpu in facts["gpus"] for finding in _judge(loaded(context, gpu), gpu, facts["gpus"])]
    missing = _missing(context, facts)
    yield from findings + ([missing] if missing else [])
    speeds = [gpu["tflops"] for gpu in facts["gpus"] if gpu.get("tflops")]
    if not findings and not missing:
        # Heat shows in the speed too, so that a node whose nvidia-smi said nothing is not held back for it.
        unseen = "" if any(gpu.get("samples") for gpu in facts["gpus"]) else "; clocks and heat were not sampled"
        yield context.ok(f"{spread(speeds)} TFLOPS on {len(speeds)} GPUs for {facts.get('seconds') or 0:g} s{unseen}")


CHECK = gpu_check(
    id="gpu_load",
    order=820,
    title="GPUs under load",
    what="Speed, clocks and heat of every GPU while all of them multiply large half-precision matrices.",
    why="In a job every GPU waits for the slowest. A bad heat sink or power stage shows under load only.",
    remedy="Run it again on the idle node. A GPU that stays behind, or is slowed down by the hardware: replace. "
    "All are slow: look at the power limit, the clocks and the driver.",
    do="Run it again on the idle node. All are slow: look at the power limit, the clocks and the driver.",
    out_of_service="Yes far behind its twins or the floor, or slowed down by the hardware; a little behind warns.",
    first="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",
    source="NVIDIA data sheets; NVML clocks event reasons; cuBLAS and CUDA driver references",
    needs=("gpu_load",),
    expects=(),
    tags=("gpu", "thermal"),
    level="standard",
    thresholds=(
        Threshold(
            "warn_slower_percent", 8, "%", "how far below the median of its twins a GPU warns",
            "GPUs of one model differ by some percent at one power limit (Sinha et al., Not all GPUs are equal, SC22)",
            0, 100,
        ),
        Threshold(
            "fail_slower_percent", 20, "%", "how far below the median of its twins a GPU fails",
            "site choice: above the variation of healthy GPUs (Sinha et al., SC22)", 0, 100,
        ),
        Threshold(
            "min_peak_percent", 45, "%", "least share of the data sheet's dense FP16 rate; 0 sets no floor",
            "matrix products reach 70 to 87 % on one GPU (stas00/ml-engineering, MAMF), fewer at the power limit",
            0, 90,
        ),
        Threshold(
            "max_warm_percent", 10, "%", "most samples with the clock lowered by the driver to stay cool",
            "site choice: a moment at the start is no fault", 0, 100,
        ),
    ),
    evaluate=evaluate,
)  # fmt: skip
