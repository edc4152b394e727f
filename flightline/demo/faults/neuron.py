"""Faults of Neuron devices, of their driver, runtime and tools."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Tuple

from flightline_node.model import Remedy, Status

from .. import neuron
from ..hardware import HOSTNAME, Machine
from ..tree import Entry, paths_below, text
from .change import HANG, rewritten, set_tool, together
from .fault import ACTIVE, Apply, Change, Fault

DEVICE = 5
"""The device that faults of one device are about (the last where a type has fewer)."""
_LS, _MONITOR, _LOG, _TEST = "out/neuron-ls.json", "out/neuron-monitor.json", "out/kernel.log", "out/nccom-test.txt"
_NO_DEVICE = "neuron-ls: no neuron device found\n"


def _device_index(machine: Machine) -> int:
    if not machine.neuron_count:
        raise KeyError("Neuron device")
    return min(DEVICE, machine.neuron_count - 1)


def listed(change: Callable[[List[Dict[str, Any]], int], object]) -> Apply:
    """Change neuron-ls's list; `change` gets it and the faulty device's index."""
    return rewritten(_LS, lambda devices, machine: change(devices, _device_index(machine)), 4)


def reported(change: Callable[[Dict[str, Any], int], object]) -> Apply:
    """Change neuron-monitor's report."""
    return rewritten(_MONITOR, lambda report, machine: change(report, _device_index(machine)))


def said(message: str, files: Mapping[str, Entry], machine: Machine) -> Change:
    """A kernel line some minutes after boot; {nd} is the device."""
    line = f"2026-11-20T09:11:00+0000 {HOSTNAME} kernel: {message.format(nd=_device_index(machine))}\n"
    return {_LOG: (text(files, _LOG) + line).encode()}


def counted(counter: str, count: int, files: Mapping[str, Entry], machine: Machine) -> Change:
    """An ECC count of one device, in the driver's files and in neuron-monitor's report."""
    path = f"{neuron.CLASS}/neuron{_device_index(machine)}/stats/hardware/{counter}"
    text(files, _MONITOR)
    shown = reported(lambda report, index: _rows(report)[index].update({counter: count}))(files, machine)
    return {**shown, **({path: f"{count}\n".encode()} if path in files else {})}


def _rows(report: Dict[str, Any]) -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = report["system_data"]["neuron_hw_counters"]["neuron_devices"]
    return rows


def _unlisted(devices: List[Dict[str, Any]], index: int) -> None:
    """The driver shows neighbours only when all devices are there."""
    del devices[index]
    for device in devices:
        device["connected_to"] = []


def dropped(files: Mapping[str, Entry], machine: Machine) -> Change:
    """The driver lost a device that the bus still shows."""
    gone = dict.fromkeys(paths_below(files, f"{neuron.CLASS}/neuron{_device_index(machine)}"))
    monitor = reported(lambda report, index: _rows(report).pop(index))
    return {**listed(_unlisted)(files, machine), **monitor(files, machine), **gone}


def lost(files: Mapping[str, Entry], machine: Machine) -> Change:
    """A device is on no list at all."""
    address = re.escape(neuron.pci(machine)[_device_index(machine)])
    left = re.sub(rf"(?m)^{address} [^\n]*\n", "", text(files, "out/lspci.txt"))
    return {**dropped(files, machine), "out/lspci.txt": left.encode()}


def unlinked(devices: List[Dict[str, Any]], index: int) -> None:
    """A link is gone, from both ends."""
    if not devices[index]["connected_to"]:
        raise KeyError("NeuronLink neighbour")
    other = devices[index]["connected_to"].pop()
    devices[other]["connected_to"].remove(index)


def driver(version: str, files: Mapping[str, Entry], machine: Machine) -> Change:
    """Another driver, installed and loaded."""
    del machine
    packages = text(files, "out/neuron-packages.txt").replace(neuron.DRIVER, version)
    return {"root/sys/module/neuron/version": f"{version}\n".encode(), "out/neuron-packages.txt": packages.encode()}


def unloaded(files: Mapping[str, Entry], machine: Machine) -> Change:
    """The module is not loaded: no files, no device, and the tools say so."""
    text(files, _LS)
    report = json.loads(text(files, _MONITOR))
    report["system_data"]["neuron_hw_counters"].update(neuron_devices=[], error="neuron driver is not loaded")
    report["neuron_hardware_info"] = {"error": "neuron driver is not loaded"}
    modules = re.sub(r"(?m)^neuron [^\n]*\n", "", text(files, "root/proc/modules"))
    return {
        **dict.fromkeys(paths_below(files, neuron.CLASS)),
        "root/sys/module/neuron/version": None,
        "root/proc/modules": modules.encode(),
        _LS: _NO_DEVICE.encode(),
        _MONITOR: (json.dumps(report) + "\n").encode(),
    }


def program(**executions: int) -> Apply:
    """A program on all devices, with these counts of what it executed in the measured second."""
    outcome = {"completed": 0, "timed_out": 0, **executions}
    entry = {
        "pid": 4711, "neuron_runtime_tag": "pretrain", "error": "",
        "report": {"execution_stats": {"error_summary": {"hardware": 0}, "execution_summary": outcome, "error": ""}},
    }  # fmt: skip
    process = {"pid": 4711, "command": "python3 pretrain.py", "neuron_runtime_version": neuron.RUNTIME}

    def use(devices: List[Dict[str, Any]], _index: int) -> None:
        for device in devices:
            device["neuron_processes"] = [process]

    return together(listed(use), reported(lambda report, _: report.update(neuron_runtime_data=[entry])))


def slow(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Every collective at a fiftieth of its speed."""
    del machine

    def crawl(match: re.Match[str]) -> str:
        return f"{match.group(1)}{float(match.group(2)) / 50:15.2f}"

    return {_TEST: re.sub(r"(?m)^(.*\S)\s+([\d.]+)$", crawl, text(files, _TEST)).encode()}


def tested(line: str, end: bool, files: Mapping[str, Entry], machine: Machine) -> Change:
    """A line below nccom-test's rows; without `end` the table stops there."""
    del machine
    head, mark, tail = text(files, _TEST).partition("Avg bus")
    return {_TEST: (head + line + "\n" + (mark + tail if end else "")).encode()}


def cut(files: Mapping[str, Entry], machine: Machine) -> Change:
    """neuron-ls's JSON ends in the middle."""
    del machine
    whole = text(files, _LS)
    return {_LS: whole[: len(whole) // 2].encode()}


def _neuron(name: str, what: str, check: str, remedy: Remedy, apply: Apply, **rest: Any) -> Fault:
    return Fault(name, what, check, remedy, apply, **{"type": "trn1.32xlarge", **rest})


FAULTS: Tuple[Fault, ...] = (
    _neuron("neuron_device_missing", "one Neuron device is on no list, not even on the bus",
            "neuron_devices", Remedy.REPLACE, lost, also=("neuron_topology",)),
    _neuron("neuron_device_dropped", "the driver lost a Neuron device that the bus still shows",
            "neuron_devices", Remedy.REBOOT, dropped, also=("neuron_topology",)),
    _neuron("neuron_core_missing", "one Neuron device has no core left",
            "neuron_cores", Remedy.REBOOT, listed(lambda devices, index: devices[index].update(nc_count=0))),
    _neuron("neuron_memory_small", "one Neuron device has half of its memory", "neuron_memory", Remedy.REPLACE,
            listed(lambda devices, index: devices[index].update(memory_size=devices[index]["memory_size"] // 2))),
    _neuron("neuron_link_missing", "a NeuronLink between two devices is gone: the torus has a gap",
            "neuron_topology", Remedy.REPLACE, listed(unlinked)),
    _neuron("neuron_hbm_ecc", "uncorrectable errors in the HBM of one Neuron device",
            "neuron_ecc", Remedy.REPLACE, partial(counted, "mem_ecc_uncorrected", 1)),
    _neuron("neuron_sram_ecc", "an uncorrectable error in the SRAM of one Neuron device",
            "neuron_ecc", Remedy.REPLACE, together(
                partial(counted, "sram_ecc_uncorrected", 1),
                partial(said, "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR nd-id={nd} nc-id=0 action=TERMINATE_INSTANCE")),
            also=("neuron_messages",)),
    _neuron("neuron_hbm_repairable", "an HBM error that a reboot repairs",
            "neuron_ecc", Remedy.REBOOT, partial(counted, "mem_ecc_repairable_uncorrected", 1), type="trn2.48xlarge"),
    _neuron("neuron_ecc_unread", "the driver shows 0 because it could not read an ECC count", "neuron_ecc",
            Remedy.INVESTIGATE,
            partial(said, "neuron:fw_io_get_total_uecc_err_count: sysfs failed to read ECC HBM0 error from FWIO"),
            status=Status.UNKNOWN),
    _neuron("neuron_ecc_corrected", "one Neuron device corrects many errors: a warning, the node stays go",
            "neuron_ecc_corrected", Remedy.INVESTIGATE, partial(counted, "mem_ecc_corrected", 4200),
            status=Status.WARN),
    _neuron("neuron_driver_old", "a Neuron driver from before the type", "neuron_driver", Remedy.UPDATE_SOFTWARE,
            partial(driver, "2.4.6.0")),
    _neuron("neuron_driver_missing", "the Neuron driver is not loaded", "neuron_driver", Remedy.FIX_CONFIG,
            unloaded, blinds=("neuron_ls", "neuron_monitor", "neuron_sysfs"), also=("kernel_modules",)),
    _neuron("neuron_runtime_mismatch", "driver and runtime library do not go together",
            "neuron_software", Remedy.UPDATE_SOFTWARE, partial(driver, "2.29.1.0")),
    _neuron("neuron_reset_failed", "a Neuron device did not come back from a reset",
            "neuron_messages", Remedy.REBOOT,
            partial(said, "neuron:nr_process_requests: nd{nd}: reset request 3 was initiated, but failed to complete")),
    _neuron("neuron_runtime_hung", "a program's executions time out and none ends",
            "neuron_errors", Remedy.INVESTIGATE, program(timed_out=8)),
    _neuron("neuron_monitor_error", "neuron-monitor says that it could not measure",
            "neuron_errors", Remedy.INVESTIGATE,
            reported(lambda report, _: report["neuron_hardware_info"].update(error="failed to query the driver")),
            status=Status.UNKNOWN),
    _neuron("neuron_process_left", "a program of the last job is still on the Neuron devices",
            "neuron_processes", Remedy.RESTART_APP, program(completed=40), also=ACTIVE, level="standard"),
    _neuron("nccom_slow", "collectives over the Neuron devices crawl",
            "nccom_busbw", Remedy.INVESTIGATE, slow, level="standard"),
    _neuron("nccom_failed", "collectives over the Neuron devices end with an error",
            "nccom_test", Remedy.INVESTIGATE,
            partial(tested, "Failure running neuron-bench - log file /x.log\n1 errors found - test failed", False),
            also=("nccom_busbw",), level="standard"),
    _neuron("nccom_wrong_data", "a collective delivers other data than was sent",
            "nccom_test", Remedy.REPLACE,
            partial(tested, "Output mismatch on rank 7: differs from golden tensor", True), level="standard"),
    _neuron("neuron_ls_hung", "neuron-ls never ends and ignores a polite kill", "neuron_devices", Remedy.INVESTIGATE,
            set_tool("neuron-ls", script=HANG), status=Status.UNKNOWN, blinds=("neuron_ls",)),
    _neuron("neuron_ls_truncated", "neuron-ls's JSON ends in the middle", "neuron_devices", Remedy.INVESTIGATE,
            cut, status=Status.UNKNOWN, blinds=("neuron_ls",)),
)  # fmt: skip
