"""memory_repair: nothing pending, pending, unrepairable, not printed."""

from tests.harness import only, status

from . import gpus
from .table import FAIL, PASS, REPLACE, RESET_GPU, SKIP, UNKNOWN, judging, row, table

test_memory_repair = table(
    row("nothing to repair", judging("memory_repair", gpus.node()), PASS, says="channel_repair_pending"),
    *(row("faults", judging("memory_repair",
        gpus.put(gpus.put_all(gpus.node(), "unrepairable_memory", False), 3, flag, True)), FAIL, index=3,
        remedy=remedy)
        for flag, remedy in [
            ("channel_repair_pending", RESET_GPU), ("tpc_repair_pending", RESET_GPU), ("unrepairable_memory", REPLACE),
        ]),
    row("a broken GPU is not held to flags that no GPU has",
        judging("memory_repair", gpus.put(gpus.node(), 3, "name", "System is not in ready state")), PASS),
    row("unreadable is unknown", judging("memory_repair",
        gpus.put(gpus.node(), 3, "channel_repair_pending", "ERR!")), UNKNOWN, index=3),
    row("not printed", judging("memory_repair",
        gpus.drop_all(gpus.drop_all(gpus.node(), "channel_repair_pending"), "tpc_repair_pending")), SKIP, says="580"),
    row("no GPU listed is unknown", judging("memory_repair", {"nvidia_smi": {"gpus": []}}), UNKNOWN),
)  # fmt: skip


def test_bank_remapping():
    facts = gpus.put_all(gpus.node(), "bank_remap", {"pending": False})
    assert "bank_remap.pending" in only(judging("memory_repair", facts), PASS).message
    finding = only(judging("memory_repair", gpus.put(facts, 3, "bank_remap", {"pending": True})), FAIL)
    assert (finding.device["index"], finding.remedy) == (3, RESET_GPU)
    gpus.put(facts, 3, "bank_remap", {"pending": "GPU is lost"})
    assert only(judging("memory_repair", facts), UNKNOWN).device["index"] == 3
    assert status(judging("memory_repair", gpus.put_all(facts, "bank_remap", None))) is PASS
