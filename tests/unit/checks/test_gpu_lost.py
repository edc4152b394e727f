"""gpu_lost: error text in place of a GPU, the kernel log, the bus."""

from functools import partial

from tests.harness import BROKEN, only, status

from . import gpus
from .table import FAIL, INFO, INVESTIGATE, PASS, REBOOT, RESET_GPU, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def smi_error(text, pci=None, count=7):
    facts = gpus.node(count=count)
    facts["nvidia_smi"]["errors"] = [{"pci_bus_id": pci, "text": text}]
    return facts


EVENT = {
    "pci": "0000:53:00",
    "time": "",
    "text": "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.",
    "boot": 0,
}
REFUSED = "Setting compute mode to EXCLUSIVE_PROCESS is not supported: GPU 00000000:53:00.0 in use by another client."
judge = partial(judging, "gpu_lost")

test_gpu_lost = table(
    row("healthy by all sources",
        judge({**gpus.node(), "kernel": {"fallen_off_bus": [], "last_boot": 0}, "lspci": {"nvidia_gpus": 8}}), PASS,
        says="nvidia_smi, kernel, lspci"),
    row("words of a lost GPU in its fields", judge(gpus.one(3, "temperature_c", "GPU is lost")), FAIL, index=3,
        remedy=REBOOT),
    row("identity that is an error", judge(gpus.one(3, "uuid", "[Unknown Error]")), FAIL,
        evidence=("uuid: [Unknown Error]",)),
    *(each
        for words in ["System is not in ready state", "Invalid State", "In use by another client"]
        for facts in [gpus.put(gpus.one(3, "name", words), 3, "memory_total_mib", words)]
        for each in (
        row("GPU that answers with another of NVML's errors", judge(facts), FAIL, index=3),
        row("GPU that answers with another of NVML's errors", judging("gpu_model", facts), UNKNOWN),
    )),
    row("a handle that is refused says nothing of the GPU",
        judge(smi_error("Unable to determine the device handle for GPU 0000:53:00.0: Insufficient Permissions")),
        UNKNOWN),
    row("one unreadable sensor is not a lost GPU", judge(gpus.one(3, "power.draw_w", "[Unknown Error]")), PASS),
    *(row("requires reset", judge(gpus.one(3, "memory_total_mib", words)), FAIL, remedy=RESET_GPU)
        for words in ["[GPU requires reset]", "GPU requires restart"]),
    *(row("messages of nvidia-smi", judge(smi_error(text)), FAIL, remedy=remedy, evidence=(text,))
        for text, remedy in [
            ("Unable to determine the device handle for GPU0000:53:00.0: Unknown Error", REBOOT),
            ("Unable to determine the device handle for gpu 0000:53:00.0: GPU is lost.  Reboot the system", REBOOT),
            ("Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.95", REBOOT),
            ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", UPDATE_SOFTWARE),
            ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", UPDATE_SOFTWARE),
            ("No devices were found", REBOOT),
            ("7 of 8 attached GPUs are listed", REBOOT),
        ]),
    row("a message not known is unknown", judge(smi_error("Failed to initialize NVML: Insufficient Permissions")),
        UNKNOWN),
    row("InfoROM warning is for another check",
        judge(smi_error("WARNING: infoROM is corrupted at gpu 0000:41:00.0", "0000:41:00.0", 8)), PASS),
    row("kernel log when nvidia-smi hangs",
        judge({"nvidia_smi": BROKEN, "kernel": {"fallen_off_bus": [EVENT, EVENT], "last_boot": 0}}), FAIL,
        device={"pci": "0000:53:00"}, remedy=REBOOT),
    row("earlier boot is history",
        judge({**gpus.node(), "kernel": {"fallen_off_bus": [{"pci": "0000:53:00", "text": "GPU has fallen off the bus",
        "boot": 0}], "last_boot": 1}}), PASS),
    row("missing on the bus", judge({**gpus.node(count=7), "lspci": {"nvidia_gpus": 7}}), FAIL, measured=7, expected=8),
    row("on the bus but not in the driver needs no type",
        judge({**gpus.node(count=7), "lspci": {"nvidia_gpus": 8}}, "none"), FAIL),
    row("rev ff", judge({**gpus.node(),
        "lspci": {"nvidia_gpus": 8, "gpu_addresses": ["0000:53:00.0"], "rev_ff": ["0000:53:00.0"]}}), FAIL,
        device={"pci": "0000:53:00.0"}),
    row("nothing listed and nothing said is unknown", judge(gpus.node(count=0)), UNKNOWN),
    *(row("a message in place of one GPU is about that GPU", judge(smi_error(text, "00000000:5A:00.0")), wanted,
        alone=True, remedy=remedy, device={"pci": "00000000:5A:00.0"})
        for text, wanted, remedy in [
            ("Unable to determine the device handle for GPU 0000:5A:00.0: Unknown Error", FAIL, REBOOT),
            ("Unknown Error", FAIL, REBOOT),
            ("Unknown Error: Insufficient Permissions", UNKNOWN, INVESTIGATE),
            ("words not seen yet", UNKNOWN, INVESTIGATE),
        ]),
    row("a change that is refused while a job runs: start order, no lost GPU",
        judge({"nvidia_smi": {"gpus": [], "errors": [], "partial": True, "busy": [REFUSED]}}), INFO,
        reason="busy", evidence=(REFUSED,)),
    row("a kernel log that cannot be read is no pass beside a healthy nvidia-smi",
        judge({**gpus.node(), "kernel": BROKEN, "lspci": {"nvidia_gpus": 8}}), UNKNOWN,
        message="could not be measured: broken on purpose"),
    *(row("a line that may be a lost GPU is no pass and a harmless Xid is",
        judge({**gpus.node(), "kernel": {"fallen_off_bus": [],
        "unread_xids": [{"code": code, "text": f"an Xid {code} behind a head that nobody can read", "boot": 0}],
        "last_boot": 0}, "lspci": {"nvidia_gpus": 8}}), wanted)
        for code, wanted in [(79, UNKNOWN), (None, UNKNOWN), (9999, UNKNOWN), (43, PASS), (92, PASS)]),
)  # fmt: skip


def test_an_unreadable_temperature_counts_with_a_second_field_only():
    facts = gpus.one(3, "temperature_c", "ERR!")
    assert status(judge(facts)) is PASS
    assert status(judging("gpu_temperature", facts)) is UNKNOWN
    gpus.put(facts, 3, "performance_state", "ERR!")
    assert only(judge(facts), FAIL).device["index"] == 3


def test_gpu_and_its_message_are_one_finding():
    facts = gpus.one(0, "name", "GPU is lost")
    facts["nvidia_smi"]["errors"] = [{"pci_bus_id": "00000000:53:00.0", "text": "GPU is lost"}]
    assert len(judge(facts)) == 1


def test_one_gpu_spelled_in_several_ways_is_one_finding():
    events = [
        {"pci": pci, "text": "NVRM: GPU has fallen off the bus.", "boot": 0}
        for pci in ("0000:53:00", "0000:53:00.0", "53:00.0", "00000000:53:00.0")
    ]
    kernel = {"fallen_off_bus": events, "last_boot": 0}
    alone = only(judge({"nvidia_smi": BROKEN, "kernel": kernel}), FAIL)
    assert alone.device["pci"] == "0000:53:00"
    smi = smi_error("Unable to determine the device handle for GPU0000:53:00.0: Unknown Error", "0000:53:00.0")
    assert len(judge({**smi, "kernel": kernel})) == 1
