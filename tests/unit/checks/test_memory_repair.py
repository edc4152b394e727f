"""memory_repair: nothing pending, pending, unrepairable, not printed."""

from functools import partial

from tests.harness import only, status

from . import gpus
from .table import FAIL, PASS, REPLACE, RESET_GPU, SKIP, UNKNOWN, judging, row, table

judge = partial(judging, "memory_repair")

test_memory_repair = table(
    row("nothing to repair", judge(gpus.node()), PASS, says="channel_repair_pending"),
    *(row("faults", judge(gpus.put(gpus.every("unrepairable_memory", False), 3, flag, True)), FAIL, index=3,
        remedy=remedy)
        for flag, remedy in [
            ("channel_repair_pending", RESET_GPU), ("tpc_repair_pending", RESET_GPU), ("unrepairable_memory", REPLACE),
        ]),
    row("a broken GPU is not held to flags that no GPU has", judge(gpus.one(3, "name", "System is not in ready state")),
        PASS),
    row("unreadable is unknown", judge(gpus.one(3, "channel_repair_pending", "ERR!")), UNKNOWN, index=3),
    row("not printed", judge(gpus.drop_all(gpus.silent("channel_repair_pending"), "tpc_repair_pending")), SKIP,
        says="580"),
    row("no GPU listed is unknown", judge({"nvidia_smi": {"gpus": []}}), UNKNOWN),
)  # fmt: skip


def test_bank_remapping():
    facts = gpus.every("bank_remap", {"pending": False})
    assert "bank_remap.pending" in only(judge(facts), PASS).message
    finding = only(judge(gpus.put(facts, 3, "bank_remap", {"pending": True})), FAIL)
    assert (finding.device["index"], finding.remedy) == (3, RESET_GPU)
    gpus.put(facts, 3, "bank_remap", {"pending": "GPU is lost"})
    assert only(judge(facts), UNKNOWN).device["index"] == 3
    assert status(judge(gpus.put_all(facts, "bank_remap", None))) is PASS
