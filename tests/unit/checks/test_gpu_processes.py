"""gpu_processes: a job beside a quick run, strays later, memory without a process."""

from . import gpus
from .table import FAIL, INFO, PASS, RESET_GPU, RESTART_APP, UNKNOWN, WARN, judging, row, table

PYTHON = {"pid": 4211, "type": "C", "name": "python3", "used_mib": 71000}


def judge(level, processes, used=4):
    facts = gpus.one(2, "processes", processes)
    return judging("gpu_processes", gpus.put(facts, 2, "memory_used_mib", used), level=level)


test_gpu_processes = table(
    *(row("idle node", judge(level, []), PASS, count=1) for level in ["quick", "standard", "deep"]),
    row("quick beside a job only reports", judge("quick", [PYTHON], 71000), INFO, says="python3"),
    *(row("stray process fails before tests that need the GPUs", judge(level, [PYTHON], 71000), FAIL, index=2,
        remedy=RESTART_APP, shows="4211")
        for level in ["standard", "deep"]),
    row("type not printed counts as compute",
        judge("standard", [{"pid": 1, "type": None, "name": "x", "used_mib": None}]), FAIL),
    row("graphics and MPS server do not count",
        judge("standard", [{"pid": 1, "type": "G", "name": "/usr/lib/xorg/Xorg", "used_mib": 4},
        {"pid": 2, "type": "M+C", "name": "/usr/bin/nvidia-cuda-mps-server", "used_mib": 30}]), PASS),
    row("memory without a process", judge("standard", [], 40000), WARN, measured=40000, remedy=RESET_GPU),
    row("memory without a process", judge("quick", [], 40000), INFO),
    row("memory without a process", judge("standard", [], 1024), PASS),
    row("memory without a process", judge("standard", [], 1025), WARN, expected=1024),
    *(row("unreadable is unknown", judge("standard", processes, used), UNKNOWN, index=2)
        for processes, used in [("ERR!", 4), (None, 4), ([], "GPU is lost")]),
)  # fmt: skip
