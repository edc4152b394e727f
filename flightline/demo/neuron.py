"""What Neuron's tools, packages and driver say on a healthy simulated Trainium or Inferentia node.

Formats as AWS Neuron's user guides and aws-neuron-driver's sources describe them; no device was at hand.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List

from flightline_node.know.neuron import neighbours

from .hardware import Machine

DRIVER, RUNTIME, COLLECTIVES = "2.24.7.0", "2.28.23.0", "2.28.27.0"
CLASS = "root/sys/devices/virtual/neuron_device"
GROUPED = 2
"""Physical cores to a logical one on Trn2, as it comes."""
_ECC = ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected")
_COUNTS = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected", "sram_ecc_corrected")
_PCI_IDS = {"Trainium1": "7164", "Inferentia2": "7264", "Trainium2": "7364"}
_SIZES_MIB = (32, 64, 128, 256, 512, 1024)


def pci(machine: Machine) -> List[str]:
    """PCI addresses of the devices: four to a bus."""
    return [f"0000:{0x10 * (index // 4 + 1):02x}:{0x1B + index % 4:02x}.0" for index in range(machine.neuron_count)]


def lspci(machine: Machine) -> List[str]:
    """Their lines in `lspci -D -nn`."""
    number = _PCI_IDS.get(machine.expected.gpu_model or "", "7164")
    return [
        f"{at} System peripheral [0880]: Amazon.com, Inc. NeuronDevice [1d0f:{number}] (rev 01)" for at in pci(machine)
    ]


def _joined(machine: Machine, index: int) -> List[int]:
    kind = machine.expected.neuron_topology
    return sorted(neighbours(kind, machine.neuron_count)[index]) if kind else []


def _cores(machine: Machine) -> int:
    """Logical cores of a device."""
    physical = machine.expected.neuron_cores or 0
    return physical // GROUPED if machine.grouped else physical


def neuron_ls(machine: Machine) -> str:
    """`neuron-ls -j`."""
    cores, devices = _cores(machine), []
    for index, address in enumerate(pci(machine)):
        device: Dict[str, Any] = {"neuron_device": index, "bdf": address[5:], "connected_to": _joined(machine, index)}
        device["nc_count"] = cores
        if machine.grouped:
            device["logical_neuroncore_config"] = GROUPED
        device["memory_size"] = (machine.expected.gpu_memory_mib or 0) << 20
        device["neuroncore_ids"] = list(range(index * cores, (index + 1) * cores))
        devices.append({**device, "neuron_processes": []})
    return json.dumps(devices, indent=4) + "\n"


def neuron_monitor(machine: Machine) -> str:
    """One report of neuron-monitor, without a program."""
    rows = [{"neuron_device_index": index, **dict.fromkeys(_COUNTS, 0)} for index in range(machine.neuron_count)]
    report = {
        "neuron_runtime_data": [],
        "system_data": {"neuron_hw_counters": {"period": 1.000213, "neuron_devices": rows, "error": ""}},
        "instance_info": {"instance_type": machine.expected.instance_type, "error": ""},
        "neuron_hardware_info": {
            "neuron_device_type": (machine.expected.gpu_model or "").lower(),
            "neuron_device_count": machine.neuron_count,
            "neuron_device_memory_size": (machine.expected.gpu_memory_mib or 0) << 20,
            "neuroncore_per_device_count": _cores(machine),
            "logical_neuroncore_config": GROUPED if machine.grouped else 1,
            "error": "",
        },
    }
    return json.dumps(report) + "\n"


def packages(machine: Machine) -> str:
    """`dpkg-query -W` of the Neuron packages."""
    del machine
    rows = {"collectives": COLLECTIVES, "dkms": DRIVER, "runtime-lib": RUNTIME, "tools": "2.26.14.0"}
    return "".join(f"aws-neuronx-{name} {version} installed\n" for name, version in rows.items())


def nccom_test(machine: Machine) -> str:
    """`nccom-test` over all cores, which rises to a third of the NeuronLink rate."""
    top = (machine.expected.neuron_link_gb_s or 160) / 3
    lines = [f"{'size(B)':>13}{'count(elems)':>16}    type{'time:avg(us)':>16}{'algbw(GB/s)':>15}{'busbw(GB/s)':>15}"]
    rates = [top * size / (size + 40) for size in _SIZES_MIB]
    for size_mib, rate in zip(_SIZES_MIB, rates):
        size = size_mib << 20
        cells = f"{size / (rate / 1.9 * 2**30) * 1e6:16.2f}{rate / 1.9:15.2f}{rate:15.2f}"
        lines.append(f"{size:13d}{size // 2:16d}    bf16{cells}")
    return "\n".join([*lines, f"Avg bus bandwidth:\t{sum(rates) / len(rates):.4f}GB/s", ""])


def files(machine: Machine) -> Dict[str, str]:
    """What the driver shows in /sys."""
    found = {"root/sys/module/neuron/version": f"{DRIVER}\n"}
    for index in range(machine.neuron_count):
        base = f"{CLASS}/neuron{index}"
        found[f"{base}/core_count"] = f"{machine.expected.neuron_cores}"
        found[f"{base}/connected_devices"] = ", ".join(map(str, _joined(machine, index))) + "\n"
        found[f"{base}/info/serial_number"] = f"@SERIAL{index}@\n"
        found[f"{base}/info/architecture/device_name"] = f"{machine.expected.gpu_model}\n"
        found.update((f"{base}/stats/hardware/{name}", "0\n") for name in _ECC)
        for name in ("status/hw_error", "status/timeout", "other_info/reset_fail_count"):
            found[f"{base}/neuron_core0/stats/{name}/total"] = "0\n"
    return found
