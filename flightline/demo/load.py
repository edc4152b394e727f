"""What the load, copy, loopback and file-system tests say on a healthy simulated node. Nothing is loaded or written.

Figures are near those published for the part; a part without one gets a plausible one.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List

from flightline_node.ask.active.gpu_load import BATCH, ORDER

from .hardware import Machine

_LANE_GB_S = {3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
_SECONDS = 20.0
_DIGEST = "5f1c0a9e3b7d2468" * 4
_SW_POWER_CAP = 0x4


def _cell(rate: float, place: int) -> str:
    return f"{rate * (1 - 0.002 * (place % 4)):.2f}"


def _test(name: str, about: str, matrix: List[List[str]]) -> Dict[str, Any]:
    total = sum(float(cell) for row in matrix for cell in row if cell != "N/A")
    status = {"name": name, "status": "Passed", "bandwidth_description": about, "bandwidth_matrix": matrix}
    return {**status, "sum": round(total, 2)}


def _peer(machine: Machine, name: str, arrow: str) -> Dict[str, Any]:
    count = range(machine.gpu_count)
    if not machine.links or machine.gpu_count == 1:
        return {"name": name, "status": "Waived"}
    rate = 0.8 * machine.links * (machine.expected.nvlink_gb_s_per_link or 25) if machine.switched else 22.0
    matrix = [["N/A" if a == b else _cell(rate, a + b) for b in count] for a in count]
    return _test(name, f"memcpy CE GPU(row) {arrow} GPU(column) bandwidth (GB/s)", matrix)


def nvbandwidth(machine: Machine) -> str:
    """`nvbandwidth -j` of the four copies by copy engine."""
    rate = 0.85 * _LANE_GB_S[machine.gpu.pcie_gen] * machine.gpu.width
    row = [_cell(rate, index) for index in range(machine.gpu_count)]
    tests = [
        _test("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", [row]),
        _test("device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", [row]),
        _peer(machine, "device_to_device_memcpy_read_ce", "->"),
        _peer(machine, "device_to_device_memcpy_write_ce", "<-"),
    ]
    body = {"version": "v0.8", "Driver Version": machine.driver, "testcases": tests}
    return json.dumps({"nvbandwidth": body}, indent=3) + "\n"


def gpu_load(machine: Machine) -> str:
    """gpu-load.json, as active/gpu_load.py writes it."""
    pcis = machine.gpu_pci()
    samples = {f"0000{pci}".upper(): _sample(machine, index) for index, pci in enumerate(pcis)}
    gpus = [_loaded(machine, index, pci) for index, pci in enumerate(pcis)]
    document = {"seconds": _SECONDS, "order": ORDER, "precision": "fp16 to fp32", "gpus": gpus, "samples": samples}
    return json.dumps(document, indent=1) + "\n"


def _loaded(machine: Machine, index: int, pci: str) -> Dict[str, Any]:
    tflops = round(machine.gpu.tflops * (1 - 0.004 * (index % 5)), 2)
    products = int(_SECONDS * 0.8 * tflops * 1e12 / (2 * ORDER**3)) // BATCH * BATCH
    return {
        "index": index,
        "name": machine.gpu.name,
        "pci": pci,
        "sm_count": 132,
        "products": products,
        "busy_s": round(_SECONDS * 0.8, 3),
        "tflops": tflops,
        "mismatches": 0,
        "first_mismatch": None,
        "digest": _DIGEST,
        "digest_at_end": _DIGEST,
    }


def _sample(machine: Machine, index: int) -> Dict[str, Any]:
    seconds = int(_SECONDS)
    return {
        "samples": seconds,
        "throttle": {f"0x{_SW_POWER_CAP:x}": seconds},
        "sm_mhz_median": machine.gpu.sm_clock * 0.8,
        "sm_mhz_min": machine.gpu.sm_clock * 0.75,
        "max_sm_mhz": machine.gpu.sm_clock,
        "temperature_c_max": 58 + index % 5,
        "power_w_max": machine.gpu.power * 0.99,
        "power_limit_w": machine.gpu.power,
    }


def fi_pingpong(usec: float = 440.0) -> str:
    """The client's table of `fi_pingpong -S all`: one device's."""
    rows = ["bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec"]
    for name, size in (("64", 64), ("1k", 1 << 10), ("64k", 1 << 16), ("1m", 1 << 20)):
        time_us = usec * (0.04 + 0.96 * size / (1 << 20))
        sent = f"{size * 200 >> 10}k"
        rows.append(f"{name:<8}100     =100     {sent:<8}  0.01s {size / time_us:10.2f} {time_us:10.2f}       0.00")
    return "\n".join(rows) + "\n"


def fi_rdm_bw() -> str:
    """The client's table of fabtests' fi_rdm_bw at 1 MiB."""
    head = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec"
    return f"{head}\n1m      1k      1000m       0.10s  10485.76      100.00       0.01\n"


def fs_io(machine: Machine) -> str:
    """fs-io.json of a node with its instance store mounted."""
    target = {
        "mount": "/opt/dlami/nvme",
        "fstype": "ext4",
        "kind": "instance-store",
        "written_bytes": 1 << 30,
        "read_bytes": 1 << 30,
        "write_mb_s": 1480.3,
        "read_mb_s": 2106.9,
        "direct": True,
        "verified": True,
    }
    return json.dumps({"targets": [target] if machine.expected.nvme_count else []}, indent=1) + "\n"
