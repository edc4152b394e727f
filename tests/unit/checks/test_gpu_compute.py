"""gpu_compute: any number that differs fails, over time, in memory, or from the other GPUs."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, REPLACE, SKIP, UNKNOWN, judging, row, table

RIGHT, WRONG = "5f" * 32, "a7" * 32


def gpu(index, digest=RIGHT, **more):
    base = {"index": index, "name": "NVIDIA H100 80GB HBM3", "sm_count": 132, "products": 800, "mismatches": 0}
    return {**base, "digest": digest, "digest_at_end": digest, **more}


def judge(*gpus, instance_type="p5.48xlarge"):
    return judging("gpu_compute", {"gpu_load": {"order": 8192, "gpus": list(gpus)}}, instance_type)


def healthy(*left_out):
    return [gpu(index) for index in range(8) if index not in left_out]


test_gpu_compute = table(
    row("equal numbers pass", judge(*healthy()), PASS, alone=True, says="6400 products"),
    row("one wrong product fails",
        judge(*healthy(3), gpu(3, mismatches=1, first_mismatch={"element": "24117248", "off_by": "0.015625"})), FAIL,
        remedy=REPLACE, measured=1, index=3, says="24117248 off by 0.015625"),
    row("a result that changed in memory fails", judge(*healthy(2), gpu(2, digest_at_end=WRONG)), FAIL, remedy=REPLACE,
        index=2),
    row("always wrong differs from the others", judge(*healthy(5), gpu(5, WRONG)), FAIL, remedy=REPLACE, index=5),
    row("two that disagree name one of them at least", judge(gpu(0), gpu(1, WRONG), instance_type="g5g.16xlarge"), FAIL,
        every=True),
    row("GPUs of another kind may have other numbers",
        judge(*healthy(6, 7), *[gpu(index, WRONG, sm_count=114) for index in (6, 7)]), PASS),
    *(row("what was not compared is unknown", judge(*healthy(7), broken), UNKNOWN, index=7)
        for broken in [
            {"index": 7, "error": "the GPU hangs"}, gpu(7, mismatches=None), gpu(7, products=0), gpu(7, None),
        ]),
    row("a GPU that is not there is unknown", judge(*healthy(7)), UNKNOWN, expected=8),
    row("the program's own output",
        judging("gpu_compute", {"gpu_load": read("gpu_load", "gpu_load/simulated-8-gpus.json")}), PASS),
    row("the program's own output",
        judging("gpu_compute", {"gpu_load": read("gpu_load", "gpu_load/simulated-wrong.json")}, "g5g.16xlarge"), FAIL,
        measured=117, of={"pci": "0000:11:00.0"}),
    row("not run", judging("gpu_compute", {"gpu_load": {"not_run": "CUDA sees no GPU"}}), UNKNOWN, remedy=FIX_CONFIG),
    row("not run", judging("gpu_compute", {}, "inf2.xlarge"), SKIP),
    row("why nothing was compared is said", judge(*healthy(7), {"index": 7, "error": "the GPU hangs"}), UNKNOWN,
        message="GPU 7: numbers not compared: the GPU hangs"),
    row("why nothing was compared is said", judge(*healthy(7), gpu(7, products=0)), UNKNOWN,
        says="no product was compared"),
)  # fmt: skip


def test_half_of_them_differ_and_nobody_is_trusted():
    findings = judge(*[gpu(index, RIGHT if index % 2 else WRONG) for index in range(8)])
    assert [finding.device["index"] for finding in findings] == list(range(8))
    assert {finding.status for finding in findings} == {FAIL}
