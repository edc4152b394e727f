"""Are the GPUs connected to each other as on a good node of the type?"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...know.catalog import nvml
from ...model import Check, Device, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context
from .common import OF_GPU, gpu_device, nvidia_gpus_expected

_PATH = re.compile(r"^(?:NV\d+|SYS|NODE|PHB|PXB|PIX)$")

WITHOUT_LINKS = Reason("without_links", "GPU pairs lack NVLinks", Remedy.REBOOT, "GPU")
PAIRS_UNREAD = Reason("pairs_unread", "the topology of some GPU pairs could not be read")
NO_PAIR = Reason("no_pair", "the topology of no GPU pair could be read")
MIXED = Reason("mixed", "some GPU pairs have NVLink and some not")
PCIE_ONLY = Reason("pcie_only", "the matrix shows PCIe paths only")
NO_GPU = Reason("no_gpu", "no GPU in the topology matrix")


def _links(path: str) -> int:
    """NV18 -> 18 NVLinks; a PCIe path has none."""
    return int(path[2:]) if path.startswith("NV") else 0


def _shown(paths: Dict[str, int]) -> str:
    return ", ".join(f"{count} x {path}" for path, count in sorted(paths.items()))


def unread_pairs(measured: Any, expected: Any) -> Tuple[int, int]:
    """How many GPU pairs were not read, of how many: from a finding's values, as _shown writes them."""
    pairs = int(str(expected).split()[0])
    found = [item.partition(" x ") for item in str(measured).split(", ") if item]
    return pairs - sum(int(count) for count, _, path in found if _PATH.match(path)), pairs


def _evidence(pairs: Any, bad: List[str]) -> List[str]:
    found = []
    for pair in pairs if isinstance(pairs, list) else ():
        words = [str(word) for word in (pair.values() if isinstance(pair, dict) else pair)]
        if any(word in bad for word in words):
            found.append(" ".join(words))
    return found


def _culprit(context: Context, pairs: Any, bad: List[str]) -> Device:
    """The one GPU that is in every bad pair, when there are several: its links are down, not its peers'."""
    found = [pair for pair in pairs if isinstance(pair, dict) and pair.get("link") in bad] if pairs else []
    common = set.intersection(*({pair.get("a"), pair.get("b")} for pair in found)) if found else set()
    name = str(common.pop()) if len(common) == 1 else ""
    if not name[3:].isdecimal():
        return {}
    index = int(name[3:])
    known = [gpu for gpu in (context.optional("nvidia_smi") or {}).get("gpus", []) if gpu.get("index") == index]
    return gpu_device(known[0]) if known else {"index": index}


def _wrong(context: Context, paths: Dict[str, int], gpu_count: int) -> List[str]:
    """The paths that no good node of the type has."""
    wanted = context.expected.nvlink_links_per_gpu
    if context.expected.nvswitch:
        return [path for path in paths if _links(path) < (wanted or 1)]
    if wanted:
        # A cube mesh (V100): some pairs have one link, some two, some none; the sum is fixed.
        total = sum(_links(path) * count for path, count in paths.items())
        return sorted(paths) if total < gpu_count * wanted // 2 else []
    return []


def _judge(context: Context, paths: Dict[str, int], gpu_count: int, listed_pairs: Any) -> Finding:
    pairs = gpu_count * (gpu_count - 1) // 2
    odd = [path for path in paths if not _PATH.match(path)]
    wrong = [path for path in _wrong(context, paths, gpu_count) if path not in odd]
    shown, lines = _shown(paths), _evidence(listed_pairs, wrong + odd)
    if wrong:
        device = _culprit(context, listed_pairs, wrong)
        whose = f", all of GPU {device['index']}" if device else ""
        message = f"GPU pairs without all their NVLinks{whose}: {shown}"
        rest = {"measured": shown, "expected": f"{pairs} pairs", "evidence": lines, "device": device}
        return context.fail(WITHOUT_LINKS, message, **rest)
    if odd or sum(paths.values()) < pairs:
        unread = pairs - sum(count for path, count in paths.items() if path not in odd)
        message = f"topology of {unread} of {pairs} GPU pairs could not be read: {shown or 'no GPU pair'}"
        return context.unknown(PAIRS_UNREAD if paths else NO_PAIR, message, shown, f"{pairs} pairs", evidence=lines)
    mixed = len({path.startswith("NV") for path in paths}) > 1
    if mixed and context.expected.nvlink_links_per_gpu is None:
        message = f"some GPU pairs have NVLink and some not: {shown}"
        return context.warn(MIXED, message, measured=shown)
    return context.ok(shown, measured=shown)


def _pairs_expected(context: Context) -> Optional[Skip]:
    if context.expected.gpu_count == 1:
        return skips.ONE_GPU.because(f"{context.expected.instance_type} has one GPU: no pairs")
    return nvidia_gpus_expected(context)


def evaluate(context: Context) -> Iterator[Finding]:
    """NVSwitch types: all NVLinks between all pairs. Cube mesh: as many links in all. PCIe: for information."""
    facts = context.facts("nvidia_smi_topo")
    seen = len(facts.get("gpus", []))
    count = max(seen, context.expected.gpu_count or 0)
    if facts.get("pcie_only") and context.expected.nvlink_links_per_gpu != 0:
        yield context.unknown(PCIE_ONLY, "the matrix shows PCIe paths only (nvidia-smi topo -mp, wanted topo -m)")
    elif seen > 1 and facts.get("gpu_pair_links") == {"OK": seen * (seen - 1) // 2} and not context.expected.gpu_count:
        # nvidia-smi topo -p2p: what the driver lets GPUs do with each other, not over which path.
        yield context.ok(f"all {seen} GPUs can reach each other's memory (topo -p2p)", measured=seen)
    elif count > 1:
        yield _judge(context, facts.get("gpu_pair_links") or {}, count, facts.get("pairs"))
    elif seen:
        yield context.skip(skips.ONE_GPU.because("one GPU: no pairs"))
    elif any(map(nvml.saying, facts.get("errors", []))):
        text = next(text for text in facts["errors"] if nvml.saying(text))
        yield context.fail(
            NO_GPU, f"nvidia-smi topo: {text}", measured="an error", expected="a matrix", evidence=[text]
        )
    else:
        yield context.unknown(NO_GPU, "no GPU in the topology matrix", evidence=map(str, facts.get("errors", [])))


CHECK = Check(
    id="gpu_topology",
    order=390,
    title="GPU topology",
    what="The path between each pair of GPUs in nvidia-smi's matrix, against the instance type.",
    why="One pair on PCIe instead of NVLink makes NCCL build its rings through PCIe, at a tenth of the speed.",
    remedy="Start the fabric manager if no pair has NVLink; else reboot, and replace the instance if it stays.",
    out_of_service="Yes where a pair of GPUs lacks its NVLink path.",
    source="nvidia-smi topo -m captures of NVSwitch and DGX-1V style machines; AWS instance type pages",
    needs=("nvidia_smi_topo",),
    wants=("nvidia_smi",),
    tags=("gpu", "nvlink"),
    applies=_pairs_expected,
    skips=(*OF_GPU, skips.ONE_GPU),
    evaluate=evaluate,
)
