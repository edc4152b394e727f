"""Is the InfoROM of every GPU readable?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, gpus, is_broken, is_word, judge_gpus, of_gpu, one_of_each

CORRUPTED = Reason("corrupted", "the InfoROM is corrupted", Remedy.REPLACE, "GPU")
FIELD_UNREAD = Reason("field_unread", "a field of the InfoROM could not be read", device="GPU")


def _corrupt(context: Context) -> Iterator[Finding]:
    """The warning nvidia-smi prints below its tables: 'infoROM is corrupted at gpu 0000:41:00.0'."""
    facts = context.facts("nvidia_smi")
    for message in [*facts.get("warnings", []), *facts.get("errors", [])]:
        text, pci = str(message.get("text", "")), message.get("pci_bus_id")
        if "inforom" in text.lower():
            rest: Dict[str, Any] = {"device": {"pci": pci} if pci else {}, "measured": "corrupted", "expected": "valid"}
            yield context.fail(CORRUPTED, "nvidia-smi: the InfoROM is corrupted", evidence=[text], **rest)
    for gpu in gpus(context):
        for name, value in _objects(gpu):
            one, message = of_gpu(context, gpu), f"InfoROM {name}: {value}"
            if "corrupt" in value.lower():
                yield one.fail(CORRUPTED, message, "corrupted", "valid", evidence=[value])
            elif name != "image" and is_broken(value):
                yield one.warn(FIELD_UNREAD, message, evidence=[value])


def _objects(gpu: Facts) -> Iterator[Tuple[str, str]]:
    inforom = gpu.get("inforom")
    for name, value in inforom.items() if isinstance(inforom, dict) else ():
        if isinstance(value, str):
            yield name, value


def evaluate(context: Context) -> Iterator[Finding]:
    """Corruption warnings, then the image version, which only a readable InfoROM has."""
    corrupt = list(_corrupt(context))
    yield from corrupt
    if corrupt:
        return
    yield from judge_gpus(
        context,
        "inforom.image",
        is_word,
        "InfoROM image version",
        lambda _context, _gpu, _value: (),
        lambda images: f"InfoROM image {one_of_each(images)}",
        absent=skips.NOT_PRINTED.because("not printed by this driver"),
        na=skips.NO_INFOROM.because("not kept by this product"),
    )


CHECK = gpu_check(
    id="gpu_inforom",
    order=120,
    title="InfoROM",
    what="InfoROM corruption warnings of nvidia-smi, and the InfoROM image version of each GPU.",
    why="The InfoROM keeps the GPU's ECC history and row remappings: a corrupted one forgets bad memory.",
    remedy="Replace the instance. The InfoROM cannot be rewritten from inside an EC2 instance.",
    do="The InfoROM cannot be rewritten from inside an EC2 instance.",
    out_of_service="Yes when corrupted: the GPU no longer remembers its bad memory. An unreadable version warns.",
    source="DCGM deployment test (CORRUPT_INFOROM, severity TRIAGE); nvidia-smi manual, Inforom Version",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.NO_INFOROM, skips.NOT_PRINTED),
    evaluate=evaluate,
)
