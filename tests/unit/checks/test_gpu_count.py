"""gpu_count: fewer GPUs than the type has, more, none readable, not collected."""

from functools import partial

from tests.harness import only

from .table import FAIL, FIX_CONFIG, NONE, PASS, REBOOT, SKIP, UNKNOWN, judging, row, table


def smi(count):
    return {"nvidia_smi": {"gpus": [{"index": index} for index in range(count)]}}


judge = partial(judging, "gpu_count")

test_gpu_count = table(
    *(row("count against the type", judge(smi(count)), wanted, measured=count, expected=8, remedy=remedy, reason=reason)
        for count, wanted, remedy, reason in [(8, PASS, NONE, ""), (7, FAIL, REBOOT, "too_few"),
        (0, FAIL, REBOOT, "none"), (9, FAIL, FIX_CONFIG, "too_many")]),
    *(row("GPUs that the tool could not list are not missing",
        judge({"nvidia_smi": {"gpus": [], "errors": [{"pci_bus_id": None, "text": text}]}}), UNKNOWN, evidence=(text,))
        for text in ("Failed to initialize NVML: Driver/library version mismatch",
        "Unable to determine the device handle")),
    row("GPUs that the tool could not list are not missing",
        judge({"nvidia_smi": {"gpus": [], "errors": [{"pci_bus_id": None, "text": "No devices were found"}]}}), FAIL,
        measured=0),
    row("no type no answer", judge(smi(8), "none"), SKIP),
    row("no type no answer", judge(smi(2), "none", expected={"gpu_count": 2}), PASS),
)  # fmt: skip


def test_a_gpu_listed_twice_is_not_two():
    facts = smi(8)
    for gpu in facts["nvidia_smi"]["gpus"]:
        gpu["uuid"] = f"GPU-{min(gpu['index'], 6)}"
    assert "7 different of 8" in only(judge(facts), UNKNOWN).message
