"""gpu-load.json: what our own load program measured (active/gpu_load.py)."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("gpu-load.json",)
LATER = True

MAX_GPUS = 64
_REASONS = {
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
"""NVML clocks event reasons that tell of heat or power trouble; the others are settings, limits and idleness."""
_NUMBERS = ("tflops", "busy_s")
_COUNTS = ("index", "sm_count", "products", "mismatches")
_WORDS = ("name", "digest", "digest_at_end", "error")
_SAMPLED = ("sm_mhz_median", "sm_mhz_min", "max_sm_mhz", "temperature_c_max", "power_w_max", "power_limit_w")
_MAX_WORD_CHARS = 200


def parse(files: Mapping[str, Data]) -> Facts:
    """{not_run} or {seconds, order, sampling_error, gpus[]}.

    gpus: {index name pci sm_count products tflops mismatches digest digest_at_end first_mismatch{} error}, each key
    only when the program wrote it, and of its samples {samples sm_mhz_median temperature_c_max power_w_max ...
    throttled{reason: samples}}. not_run: why nothing could be loaded. Raises ParseError for anything else.
    """
    document = v.json_object(t.only(files))
    not_run = v.word(document.get("not_run"))
    if not_run:
        return {"not_run": not_run[:_MAX_WORD_CHARS]}
    gpus = v.mappings(document.get("gpus"))
    if not gpus or len(gpus) > MAX_GPUS:
        raise ParseError(f"{len(gpus)} GPUs in it: not the load program's JSON")
    sampled = document.get("samples")
    samples = {_pci(pci): entry for pci, entry in sampled.items()} if isinstance(sampled, dict) else {}
    facts: Facts = {
        "seconds": v.real(document.get("seconds")),
        "order": v.integer(document.get("order")),
        "gpus": [_gpu(row, samples) for row in gpus],
    }
    trouble = v.word(document.get("sampling_error"))
    return {**facts, "sampling_error": trouble[:_MAX_WORD_CHARS]} if trouble else facts


def _pci(address: object) -> str:
    """CUDA prints the domain with four digits in small letters, nvidia-smi with eight in capitals."""
    return str(address).lower()[-12:]


def _gpu(row: Dict[str, Any], samples: Mapping[str, Any]) -> Facts:
    gpu: Facts = {name: v.integer(row.get(name)) for name in _COUNTS if name in row}
    gpu.update((name, v.real(row.get(name))) for name in _NUMBERS if name in row)
    words = {name: v.word(row.get(name)) for name in _WORDS}
    gpu.update((name, word[:_MAX_WORD_CHARS]) for name, word in words.items() if word)
    missing = v.word(row.get("missing"))
    if missing:
        gpu["error"] = missing[:_MAX_WORD_CHARS]
    if row.get("pci"):
        gpu["pci"] = _pci(row["pci"])
    first = row.get("first_mismatch")
    if isinstance(first, dict):
        gpu["first_mismatch"] = {str(key)[:40]: (v.word(value) or "")[:40] for key, value in list(first.items())[:8]}
    own = samples.get(gpu.get("pci", ""))
    return {**gpu, **_sampled(own)} if isinstance(own, dict) else gpu


def _sampled(entry: Dict[str, Any]) -> Facts:
    facts: Facts = {name: v.real(entry[name]) for name in _SAMPLED if name in entry}
    facts["samples"] = v.integer(entry.get("samples"))
    throttled: Dict[str, int] = {}
    masks = entry.get("throttle")
    for mask, count in list(masks.items())[:256] if isinstance(masks, dict) else []:
        for reason in _reasons(mask):
            throttled[reason] = throttled.get(reason, 0) + (v.integer(count) or 0)
    return {**facts, "throttled": throttled}


def _reasons(mask: object) -> List[str]:
    try:
        bits = int(str(mask)[:20], 16)
    except ValueError:
        return []
    return [name for bit, name in _REASONS.items() if bits & bit]
