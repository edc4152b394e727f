"""gpu_inforom: corruption warnings, unreadable objects, products without one."""

from functools import partial

from tests.harness import only

from . import gpus
from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, changed, judging, row, table

judge = partial(judging, "gpu_inforom")

test_gpu_inforom = table(
    *(row("corruption warning fails",
        judge(changed(gpus.node(), {f"nvidia_smi.{place}": [{"pci_bus_id": "0000:53:00.0", "text": text}]})), FAIL,
        remedy=REPLACE, device={"pci": "0000:53:00.0"}, evidence=(text,))
        for place in ["errors", "warnings"]
        for text in ["WARNING: infoROM is corrupted at gpu 0000:53:00.0"]),
    row("corrupted object fails", judge(gpus.one(2, "inforom.ecc", "Corrupted infoROM")), FAIL, index=2),
    row("unreadable object warns", judge(gpus.one(2, "inforom.oem", "[Unknown Error]")), WARN),
    row("readable or not kept", judge(gpus.node()), PASS, says="G520.0200.00.05"),
    row("readable or not kept", [judge(gpus.every("inforom.image", None)), judge(gpus.silent("inforom"))], SKIP),
)  # fmt: skip


def test_unreadable_image_is_unknown():
    facts = gpus.one(2, "inforom.image", "ERR!")
    assert only(judge(facts), UNKNOWN).device["index"] == 2
    facts = gpus.one(2, "inforom.image", None)
    assert only(judge(facts), UNKNOWN).device["index"] == 2
