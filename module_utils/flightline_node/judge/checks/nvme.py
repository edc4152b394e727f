"""Are all the instance-store disks there, at their size?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...model import Check, Finding, Reason, Remedy, Skip, Threshold
from .. import skips
from ..context import Context

TOO_FEW = Reason("too_few", "instance-store disks of the type are missing", Remedy.REPLACE)
TOO_MANY = Reason("too_many", "more instance-store disks than the type has", Remedy.FIX_CONFIG)
NO_MODEL = Reason("no_model", "NVMe disks without a model name")
NO_SIZE = Reason("no_size", "a disk's size is not printed", device="disk")
TOO_SMALL_DISK = Reason("too_small_disk", "a disk is smaller than the type's", Remedy.REPLACE, "disk")

INSTANCE_STORE = "instance storage"
GB = 10**9


def evaluate(context: Context) -> Iterator[Finding]:
    """Disks by model name: EBS volumes are NVMe devices as well."""
    disks = [item for item in context.facts("lsblk").get("devices", []) if item.get("type") == "disk"]
    found = [item for item in disks if INSTANCE_STORE in str(item.get("model") or "").lower()]
    nameless = [item for item in disks if str(item.get("name")).startswith("nvme") and not item.get("model")]
    wanted = context.expected.nvme_count or 0
    context.measure("nvme_count", len(found), "disks")
    rest: Dict[str, Any] = {"measured": len(found), "expected": wanted, "unit": "disks"}
    if len(found) < wanted and nameless:
        yield _by_size(context, nameless, wanted - len(found), rest)
        return
    if len(found) < wanted:
        message = f"{len(found)} of {wanted} instance-store disks: {wanted - len(found)} missing"
        yield context.fail(TOO_FEW, message, evidence=[_line(item) for item in found], **rest)
    elif len(found) > wanted:
        yield context.fail(TOO_MANY, f"{len(found)} instance-store disks, wanted {wanted}: wrong instance type", **rest)
    wrong = list(_sizes(context, found))
    yield from wrong
    if len(found) == wanted and not wrong:
        yield context.ok(f"{wanted} instance-store disks", **rest)


def _by_size(context: Context, nameless: List[Dict[str, Any]], missing: int, rest: Dict[str, Any]) -> Finding:
    """Without models (lsblk prints none by default): disks of just the instance store's size are taken for it."""
    gb, share = context.expected.nvme_gb or 0, context.threshold("min_size_percent")
    least, most = gb * GB * share, gb * GB * (200 - share)
    alike = [d for d in nameless if least <= (d.get("size_bytes") or 0) * 100 <= most]
    if not gb or len(alike) < missing:
        return context.unknown(
            NO_MODEL, f"{len(nameless)} NVMe disks without a model name: instance store or EBS?", **rest
        )
    return context.ok(f"{len(alike)} disks without a model name have the instance store's size, {gb} GB", **rest)


def _sizes(context: Context, found: List[Dict[str, Any]]) -> Iterator[Finding]:
    gb, share = context.expected.nvme_gb, context.threshold("min_size_percent")
    for item in found:
        size, device = item.get("size_bytes"), {"name": item.get("name"), "serial": item.get("serial")}
        if gb is None:
            continue
        if size is None:
            yield context.unknown(NO_SIZE, f"{item.get('name')}: no size printed", device=device)
        elif size * 100 < gb * GB * share:
            message = f"{item.get('name')}: {size // GB} GB, wanted {gb} GB"
            yield context.fail(TOO_SMALL_DISK, message, device=device, measured=size // GB, expected=gb, unit="GB")


def _line(item: Dict[str, Any]) -> str:
    return f"{item.get('name')} {item.get('model')} {item.get('serial')} {item.get('size_bytes')}"


def _store_expected(context: Context) -> Optional[Skip]:
    none = skips.NO_INSTANCE_STORE.because(f"{context.expected.instance_type} has no instance store")
    return none if context.expected.nvme_count == 0 else None


CHECK = Check(
    id="nvme",
    order=530,
    title="Instance-store disks",
    what="Number and size of the NVMe instance-store disks, against the instance type.",
    why="Data sets and checkpoints are staged on them, mostly striped: one disk missing is the whole array missing.",
    remedy="Replace the instance: the disks are local to its host.",
    do="",
    out_of_service="Yes: a disk that is paid for is missing.",
    source="AWS instance type tables; EC2 user guide: model 'Amazon EC2 NVMe Instance Storage'",
    needs=("lsblk",),
    expects=("nvme_count",),
    tags=("host", "storage"),
    thresholds=(
        Threshold(
            "min_size_percent",
            95,
            "%",
            "least size of a disk, of the type's",
            "EC2's figure is rounded: 3.84 TB disks are listed as 3800 GB",
            1,
            100,
        ),
    ),
    applies=_store_expected,
    skips=(skips.NO_INSTANCE_STORE,),
    evaluate=evaluate,
)
