"""Does every GPU give the right numbers, every time and the same as its twins?"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .common import gpu_check
from .gpu_load import loaded, twins

NOT_REPEATED = Reason("not_repeated", "products differ from run to run", Remedy.REPLACE, "GPU")
CHANGED_IN_MEMORY = Reason("changed_in_memory", "a result changed in memory", Remedy.REPLACE, "GPU")
NOT_COMPARED = Reason("not_compared", "numbers were not compared", device="GPU")
OTHER_RESULT = Reason("other_result", "another result than the GPUs of its kind", Remedy.REPLACE, "GPU")
NOT_STARTED = Reason("not_started", "no numbers were computed", Remedy.FIX_CONFIG)
FEWER_COMPARED = Reason("fewer_compared", "not every GPU was compared")


def _by_itself(context: Context, gpu: Facts) -> Iterator[Finding]:
    wrong, first = gpu.get("mismatches"), gpu.get("first_mismatch") or {}
    if wrong:
        where = f"element {first.get('element', '?')} off by {first.get('off_by', '?')}"
        message = f"{wrong} of {gpu.get('products', '?')} products differ from the first, {where}"
        yield context.fail(NOT_REPEATED, message, wrong, 0, "products")
    elif gpu.get("digest") != gpu.get("digest_at_end"):
        message = "a result changed in its memory while it was kept there"
        yield context.fail(CHANGED_IN_MEMORY, message, *(str(gpu.get(key))[:16] for key in ("digest_at_end", "digest")))
    elif wrong is None or not gpu.get("products") or not gpu.get("digest"):
        why = gpu.get("error") or "no product was compared"
        yield context.unknown(NOT_COMPARED, f"numbers not compared: {why}")


def _against_twins(context: Context, gpu: Facts, gpus: List[Facts]) -> Iterator[Finding]:
    mine = gpu.get("digest")
    others = Counter(twin["digest"] for twin in twins(gpu, gpus) if twin.get("digest"))
    if not mine or not others:
        return
    agreed, count = others.most_common(1)[0]
    if others[mine] < count:
        message = f"another result than {count} of {sum(others.values())} GPUs of its kind, every time"
        yield context.fail(OTHER_RESULT, message, mine[:16], agreed[:16])


def evaluate(context: Context) -> Iterator[Finding]:
    """Any difference fails: cuBLAS gives the same bits at every run on GPUs of one kind."""
    facts = context.facts("gpu_load")
    if facts.get("not_run"):
        yield context.unknown(NOT_STARTED, f"no numbers were computed: {facts['not_run']}")
        return
    gpus, findings = facts["gpus"], []
    for gpu in gpus:
        one = loaded(context, gpu)
        findings += [*_by_itself(one, gpu), *_against_twins(one, gpu, gpus)]
    wanted = context.expected.gpu_count
    if wanted is not None and len(gpus) < wanted:
        findings.append(context.unknown(FEWER_COMPARED, f"{len(gpus)} of {wanted} GPUs compared", len(gpus), wanted))
    yield from findings
    if not findings:
        done = sum(gpu["products"] for gpu in gpus)
        compared = f"every number of {done} products of order {facts.get('order')}"
        yield context.ok(f"{compared} on {len(gpus)} GPUs is right", measured=0, expected=0, unit="products")


CHECK = gpu_check(
    id="gpu_compute",
    order=830,
    title="GPU arithmetic",
    what="Every number of the same matrix product, computed again and again on every GPU: it must stay the same on one "
    "GPU and be the same on all GPUs of a kind.",
    why="A GPU that computes wrong without an error spoils a model silently, and its health counters are all good.",
    remedy="Replace the node. Keep its bundle: it names the GPU and the wrong number.",
    do="Keep its bundle: it names the GPU and the wrong number.",
    out_of_service="Yes: it computes wrong numbers.",
    source="cuBLAS documentation, results reproducibility: the same bits on GPUs of one architecture and number of "
    "multiprocessors; Meta, silent data corruptions at scale (2021)",
    needs=("gpu_load",),
    tags=("gpu",),
    level="standard",
    evaluate=evaluate,
)
