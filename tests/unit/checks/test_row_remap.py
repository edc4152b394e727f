"""row_remap: failed, pending, used up, some, none, unreadable, not there."""

from tests.harness import only, status

from . import gpus
from .table import FAIL, INFO, PASS, REPLACE, RESET_GPU, SKIP, UNKNOWN, judging, row, table


def judge(instance_type="p5.48xlarge", **remap):
    facts = gpus.node()
    for name, value in remap.items():
        gpus.put(facts, 4, f"remap.{name}", value)
    return judging("row_remap", facts, instance_type)


NA = {"corrected": None, "uncorrected": None, "pending": None, "failure": None, "histogram": None}


test_row_remap = table(
    row("none", [judge(), judge("none")], PASS, count=1),
    *(row("faults", judge(**remap), FAIL, index=4, remedy=remedy)
        for remap, remedy in (
            ({"failure": True}, REPLACE), ({"failure": True, "pending": True}, REPLACE), ({"pending": True}, RESET_GPU),
            ({"uncorrected": 512}, REPLACE), ({"pending": True, "uncorrected": 600}, REPLACE),
        )),
    row("rows remapped are information", judge(uncorrected=3), INFO, measured=3).also(PASS, count=1),
    *(row("unreadable is unknown", judge(**remap), UNKNOWN, index=4)
        for remap in ({"failure": "ERR!"}, {"pending": None}, {"uncorrected": "[Unknown Error]"})),
    row("one GPU without is unknown", judging("row_remap", gpus.one(4, "remap", None)), UNKNOWN, index=4),
    row("one GPU without is unknown", judging("row_remap", gpus.one(4, "remap", "GPU is lost")), UNKNOWN),
    row("GPUs that retire pages instead",
        [judging("row_remap", gpus.node(gpus.T4), "g4dn.metal"), judging("row_remap", gpus.silent("remap"))], SKIP),
    row("flags without counts are enough unless the count is there and cannot be read",
        judging("row_remap", gpus.every("remap", {"pending": False, "failure": False})), PASS),
    row("flags without counts are enough unless the count is there and cannot be read",
        judging("row_remap", gpus.every("remap", {"pending": False, "failure": False, "uncorrected": None})), UNKNOWN),
    row("a block of N/A is a product without remapping", judging("row_remap", gpus.every("remap", NA)), SKIP),
    row("a block of N/A is a product without remapping", judging("row_remap", gpus.one(3, "remap", NA)), UNKNOWN,
        index=3),
)  # fmt: skip


def test_a_gpu_with_mig_on_does_not_show_it():
    facts = gpus.put(gpus.one(4, "mig_mode", "Enabled"), 4, "remap", None)
    assert status(judging("row_remap", facts)) is PASS
    assert status(judging("row_remap", gpus.put(facts, 4, "remap", "GPU is lost"))) is UNKNOWN
    facts = gpus.put_all(gpus.every("mig_mode", "Enabled"), "remap", None)
    assert "MIG" in only(judging("row_remap", facts), SKIP).message
