"""What a fault of a Neuron device or of its software changes in a simulated node's files."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import neuron
from .hardware import HOSTNAME, Machine
from .tree import Entry, paths_below, text

Change = Dict[str, Optional[Entry]]
Apply = Callable[[Mapping[str, Entry], Machine], Change]

DEVICE = 5
"""The device that faults of one device are about (the last where a type has fewer)."""
_LS, _MONITOR, _LOG, _TEST = "out/neuron-ls.json", "out/neuron-monitor.json", "out/kernel.log", "out/nccom-test.txt"
_NO_DEVICE = "neuron-ls: no neuron device found\n"


def _target(machine: Machine) -> int:
    if not machine.neuron_count:
        raise KeyError("Neuron device")
    return min(DEVICE, machine.neuron_count - 1)


def together(*steps: Apply) -> Apply:
    """Several changes, each seeing those before it."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        done: Change = {}
        for step in steps:
            done.update(step({**files, **{path: entry for path, entry in done.items() if entry is not None}}, machine))
        return done

    return apply


def listed(change: Callable[[List[Dict[str, Any]], int], None]) -> Apply:
    """Change neuron-ls's list; `change` gets it and the faulty device's index."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        devices = json.loads(text(files, _LS))
        change(devices, _target(machine))
        return {_LS: (json.dumps(devices, indent=4) + "\n").encode()}

    return apply


def reported(change: Callable[[Dict[str, Any], int], None]) -> Apply:
    """Change neuron-monitor's report."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        report = json.loads(text(files, _MONITOR))
        change(report, _target(machine))
        return {_MONITOR: (json.dumps(report) + "\n").encode()}

    return apply


def said(message: str) -> Apply:
    """A kernel line some minutes after boot; {nd} is the device."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        stamp = "2026-11-20T09:11:00+0000"
        line = f"{stamp} {HOSTNAME} kernel: {message.format(nd=_target(machine))}\n"
        return {_LOG: (text(files, _LOG) + line).encode()}

    return apply


def counted(counter: str, count: int = 1) -> Apply:
    """An ECC count of one device, in the driver's files and in neuron-monitor's report."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        index, path = _target(machine), f"{neuron.CLASS}/neuron{_target(machine)}/stats/hardware/{counter}"
        text(files, _MONITOR)
        shown = reported(lambda report, _: _row(report, index).update({counter: count}))(files, machine)
        return {**shown, **({path: f"{count}\n".encode()} if path in files else {})}

    return apply


def _row(report: Dict[str, Any], index: int) -> Dict[str, Any]:
    row: Dict[str, Any] = report["system_data"]["neuron_hw_counters"]["neuron_devices"][index]
    return row


def _unlisted(devices: List[Dict[str, Any]], index: int) -> None:
    """The driver shows neighbours only when all devices are there."""
    del devices[index]
    for device in devices:
        device["connected_to"] = []


def dropped(files: Mapping[str, Entry], machine: Machine) -> Change:
    """The driver lost a device that the bus still shows."""
    gone = dict.fromkeys(paths_below(files, f"{neuron.CLASS}/neuron{_target(machine)}"))
    monitor = reported(lambda report, index: report["system_data"]["neuron_hw_counters"]["neuron_devices"].pop(index))
    return {**listed(_unlisted)(files, machine), **monitor(files, machine), **gone}


def lost(files: Mapping[str, Entry], machine: Machine) -> Change:
    """A device is on no list at all."""
    address = re.escape(neuron.pci(machine)[_target(machine)])
    left = re.sub(rf"(?m)^{address} [^\n]*\n", "", text(files, "out/lspci.txt"))
    return {**dropped(files, machine), "out/lspci.txt": left.encode()}


def unlinked(devices: List[Dict[str, Any]], index: int) -> None:
    """A link is gone, from both ends."""
    if not devices[index]["connected_to"]:
        raise KeyError("NeuronLink neighbour")
    other = devices[index]["connected_to"].pop()
    devices[other]["connected_to"].remove(index)


def driver(version: str) -> Apply:
    """Another driver, installed and loaded."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        packages = text(files, "out/neuron-packages.txt").replace(neuron.DRIVER, version)
        return {"root/sys/module/neuron/version": f"{version}\n".encode(), "out/neuron-packages.txt": packages.encode()}

    return apply


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


def tested(line: str, end: bool) -> Apply:
    """A line below nccom-test's rows; without `end` the table stops there."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        del machine
        head, mark, tail = text(files, _TEST).partition("Avg bus")
        return {_TEST: (head + line + "\n" + (mark + tail if end else "")).encode()}

    return apply


def cut(files: Mapping[str, Entry], machine: Machine) -> Change:
    """neuron-ls's JSON ends in the middle."""
    del machine
    whole = text(files, _LS)
    return {_LS: whole[: len(whole) // 2].encode()}
