"""What the active tests print on a healthy simulated node: DCGM's diagnostic and nccl-tests.

No load is put on anything. Bandwidths rise with the message as on real nodes and end at figures near those
published for the type; a type without a published figure gets a plausible one.
"""

from __future__ import annotations

import json
from typing import Any, Dict

from .hardware import HOSTNAME, NCCL, Machine

DCGM = "4.4.1"
_DCGM_TESTS = {"Deployment": ("software",), "Hardware": ("memory",), "Integration": ("pcie",)}

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
_SIZES = [1 << exponent for exponent in range(20, 34)]
_LATENCY_US = 35.0
_PEAK_GB_S = {
    "A100-SXM4-40GB": (232, 220, 220, 200),
    "A100-SXM4-80GB": (232, 220, 220, 200),
    "H100-SXM5-80GB": (482, 362, 363, 350),
    "H200-SXM5-141GB": (478, 361, 363, 350),
    "B200-SXM6": (843, 670, 675, 640),
    "B300-SXM6": (845, 670, 675, 640),
    "B200 (GB200 superchip)": (680, 650, 650, 600),
    "V100": (130, 125, 125, 30),
}
_PCIE_PEAK_GB_S = (18, 18, 18, 14)


def gpu_list(machine: Machine) -> str:
    """`nvidia-smi -L`."""
    return "".join(f"GPU {i}: {machine.gpu.name} (UUID: @UUID{i}@)\n" for i in range(machine.gpu_count))


def dcgm(machine: Machine) -> str:
    """`dcgmi diag -r 2 -j`, in the shape of DCGM 4."""
    gpus = range(machine.gpu_count)
    categories = [
        {"category": category, "tests": [_dcgm_test(name, machine.gpu_count) for name in names]}
        for category, names in _DCGM_TESTS.items()
    ]
    entities = [{"device_id": machine.gpu.pci_id, "entity_id": i, "serial_num": f"@SERIAL{i}@"} for i in gpus]
    document = {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entities": entities, "entity_group": "GPU", "entity_group_id": 1}],
        "metadata": {"Driver Version Detected": machine.driver, "version": DCGM},
    }
    return json.dumps(document, indent="\t") + "\n"


def dcgm_health(machine: Machine) -> str:
    """`dcgmi health -c -j`, in the shape of DCGM 4."""
    document = {"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}
    return json.dumps(document, indent="\t") + "\n"


def conf_compute(machine: Machine) -> str:
    """`nvidia-smi conf-compute -q`."""
    rows = {
        "CC State": "OFF",
        "Multi-GPU Mode": "None",
        "CPU CC Capabilities": "None",
        "CC GPUs Ready State": "Not Ready",
    }
    lines = "".join(f"    {name:<35}: {value}\n" for name, value in rows.items())
    return "\n==============NVSMI CONF-COMPUTE LOG==============\n\n" + lines


def imex_own(machine: Machine) -> str:
    """`nvidia-imex-ctl -q`."""
    return "READY\n"


def imex_domain(machine: Machine) -> str:
    """`nvidia-imex-ctl -N -j` of a domain of this node alone."""
    link = {"host": "10.0.0.7", "status": "CONNECTED", "changed": True}
    node = {"status": "READY", "host": "10.0.0.7", "hostName": "N/A", "connections": {"0": link}}
    return json.dumps({"nodes": {"0": node}, "timestamp": "11/21/2026 09:00:00.000", "status": "UP"}) + "\n"


def _dcgm_test(name: str, gpus: int) -> Dict[str, Any]:
    results = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": i, "status": "Pass"} for i in range(gpus)]
    return {"name": name, "results": results, "test_summary": {"status": "Pass"}}


_DISK_READ_BYTES_S = 2_800_000_000
_FIO_RUNTIME_S = 20


def fio(machine: Machine) -> str:
    """`fio --output-format=json`, one reading job for each disk of the instance store."""
    jobs = [_fio_job(f"nvme{index + 1}n1", index) for index in range(machine.expected.nvme_count or 0)]
    return json.dumps({"fio version": "fio-3.32", "time": 0, "jobs": jobs}, indent=2) + "\n"


def _fio_job(name: str, index: int) -> Dict[str, Any]:
    rate = _DISK_READ_BYTES_S + index * 11_000_000
    read = {
        "io_bytes": rate * _FIO_RUNTIME_S,
        "bw_bytes": rate,
        "bw": rate // 1024,
        "iops": rate / (1 << 20),
        "runtime": _FIO_RUNTIME_S * 1000,
        "total_ios": rate * _FIO_RUNTIME_S >> 20,
        "lat_ns": {"min": 900_000, "max": 31_000_000, "mean": 11_900_000.0, "stddev": 400_000.0},
        "clat_ns": {"mean": 11_800_000.0, "percentile": {"50.000000": 11_700_000, "99.000000": 14_200_000}},
    }
    idle = {"io_bytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    return {"jobname": name, "groupid": 0, "error": 0, "read": read, "write": idle}


def nccl(machine: Machine, collective: str, share: float = 1.0, wrong: int = 0) -> str:
    """Write an nccl-tests log of 1 MiB to 8 GiB. share: of the healthy bandwidth; wrong: values, at the end."""
    count = machine.gpu_count
    head = [
        f"# Collective test starting: {collective}_perf",
        f"# nThread 1 nGpus {count} minBytes {_SIZES[0]} maxBytes {_SIZES[-1]} step: 2(factor) warmup iters: 5 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
        *(
            f"#  Rank {i:2d} Group  0 Pid   4100 on {HOSTNAME} device {i:2d} [{pci[:-2]}] {machine.gpu.name}"
            for i, pci in enumerate(machine.gpu_pci())
        ),
        f"NCCL version {NCCL}+cuda{machine.cuda}",
        "#",
        f"#{'':62}out-of-place{'':23}in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    rates = [_busbw(machine, collective, size) * share for size in _SIZES]
    rows = [_row(machine, collective, *pair, wrong * (pair[0] == _SIZES[-1])) for pair in zip(_SIZES, rates)]
    tail = [
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
        f"# Avg bus bandwidth    : {sum(rates) / len(rates):g} ",
        "#",
        f"# Collective test concluded: {collective}_perf",
    ]
    return "\n".join([*head, *rows, *tail]) + "\n"


def _factor(machine: Machine, collective: str) -> float:
    """Give busbw over algbw (nccl-tests doc/PERFORMANCE.md); 0 for one rank, which has nothing to send."""
    ranks = machine.gpu_count
    return (2.0 if collective == "all_reduce" else 1.0) * (ranks - 1) / ranks


def _busbw(machine: Machine, collective: str, size: int) -> float:
    if machine.gpu_count == 1:
        return 0.0
    peaks = _PEAK_GB_S.get(machine.expected.gpu_model or "", _PCIE_PEAK_GB_S)
    peak = peaks[COLLECTIVES.index(collective)]
    moved = size * _factor(machine, collective) / 1000  # bytes over GB/s are ns
    return moved / (_LATENCY_US + moved / peak)


def _row(machine: Machine, collective: str, size: int, busbw: float, wrong: int) -> str:
    factor = _factor(machine, collective)
    algbw = busbw / factor if factor else size / 1000 / _LATENCY_US
    operator = "sum" if collective in ("all_reduce", "reduce_scatter") else "none"
    half = f"{size / 1000 / max(algbw, 1e-9):8.2f} {algbw:7.2f} {busbw:7.2f} {wrong:6d}"
    elements = size // 4 if collective == "all_reduce" else size // 4 // machine.gpu_count
    return f"{size:12d} {elements:14d}     float {operator:>7}      -1 {half} {half}"
