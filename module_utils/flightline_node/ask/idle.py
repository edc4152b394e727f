"""May the active tests start? Not beside a job: they would slow it down, and their figures would be wrong.

Asked before each active test. The first question is answered from what the run has just collected, later ones ask
nvidia-smi again, because the tests take minutes. A refusal stands for the rest of the run.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional

from ..judge.checks.gpu_processes import CHECK as PROCESSES
from ..judge.checks.gpu_processes import stray
from ..judge.checks.load import CHECK as LOAD
from ..judge.checks.load import cpus
from ..model import Check, Facts
from ..read.bundle import load
from ..read.facts import READ, FactBook, Parsed
from .probes import BY_ID, Probe
from .runner import NOT_FOUND_RC, Node, Refusal, run_probes

SMI, NEURON_LS = BY_ID["nvidia-smi"], BY_ID["neuron-ls"]
OPTION = "active_when_busy"
ATTEMPTS, SETTLE_S = 3, 2.0
HOW_TO = f"end what runs there, or set flightline_options {OPTION}: true"
Guard = Callable[[Probe], Optional[Refusal]]


def _limit(check: Check, name: str, thresholds: Mapping[str, float]) -> float:
    default = next(threshold.default for threshold in check.thresholds if threshold.name == name)
    return thresholds.get(f"{check.id}.{name}", default)


def _gpu_in_use(gpu: Facts, most_mib: float) -> str:
    label = f"GPU {gpu.get('index', '?')}"
    processes, used = gpu.get("processes"), gpu.get("memory_used_mib")
    running = stray(processes) if isinstance(processes, list) else []
    if running:
        first = running[0]
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        return f"{label} is used by pid {first.get('pid')} {first.get('name')}{more}"
    # In a container other containers' processes are hidden, their memory is not.
    if isinstance(used, (int, float)) and used > most_mib:
        return f"{label} has {used:g} MiB in use by a process that cannot be seen"
    return ""


def gpus_in_use(smi: Facts, thresholds: Mapping[str, float]) -> str:
    """Who uses the GPUs, or ''. Memory counts above the threshold of the check gpu_processes."""
    most = _limit(PROCESSES, "max_idle_mib", thresholds)
    users = [text for text in (_gpu_in_use(gpu, most) for gpu in smi.get("gpus", [])) if text]
    return "; ".join(users[:2]) + (f"; {len(users) - 2} more GPUs" if len(users) > 2 else "")


def load_of_a_job(loadavg: Facts, processors: Optional[int], thresholds: Mapping[str, float]) -> str:
    """Which load shows that a job runs, or ''; the threshold is that of the check load."""
    load, most = loadavg["load1"], _limit(LOAD, "max_per_cpu", thresholds)
    if not processors or load <= most * processors:
        return ""
    return f"load {load:g} on {processors} CPUs shows a running job"


def wanted_beside_a_job(options: Mapping[str, Any]) -> bool:
    """Has the user asked for active tests whatever runs on the node?"""
    return str(options.get(OPTION, "")).lower() in ("true", "yes", "1")


def _refusal(name: str, text: str) -> Optional[Refusal]:
    return Refusal(name, text) if text else None


def _told(smi: Parsed, thresholds: Mapping[str, float]) -> Optional[Refusal]:
    """Why not, by nvidia-smi's answer; one that lists no GPU is no permission."""
    facts = smi.facts or {}
    if facts.get("gpus"):
        return _refusal("gpu_busy", gpus_in_use(facts, thresholds))
    said = [str(error.get("text")) for error in facts.get("errors", [])[:1]]
    why = said[0] if said else smi.reason or "no GPU"
    return Refusal(SMI.id, f"nvidia-smi does not tell whether the GPUs are in use ({why})")


def _told_by_neuron(answer: Parsed) -> Optional[Refusal]:
    """Why not, by neuron-ls's answer; one that lists no device is no permission."""
    from ..judge.checks.neuron_processes import stray

    devices = (answer.facts or {}).get("devices", [])
    if not devices:
        said = (answer.facts or {}).get("error") or answer.reason or "no device"
        return Refusal(NEURON_LS.id, f"neuron-ls does not tell whether the Neuron devices are in use ({said})")
    users = [(row["index"], process) for row in devices for process in stray(row)]
    if not users:
        return None
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    (index, first), *_ = users
    return Refusal("neuron_busy", f"neuron{index} is used by pid {first.get('pid')} {first.get('command')}{more}")


def _from_bundle(directory: Path, thresholds: Mapping[str, float]) -> Optional[Refusal]:
    """Why not, by the files collected; a node without nvidia-smi is judged by its load alone."""
    book = FactBook(load(directory))
    if directory.joinpath(SMI.file).exists():
        busy = _told(book.get("nvidia_smi"), thresholds)
        if busy:
            return busy
    if directory.joinpath(NEURON_LS.file).exists():
        busy = _told_by_neuron(book.get("neuron_ls"))
        if busy:
            return busy
    loadavg, cpuinfo = book.get("loadavg"), book.get("cpuinfo").facts or {}
    busy_with = load_of_a_job(loadavg.facts or {}, cpus(cpuinfo), thresholds) if loadavg.state == READ else ""
    return _refusal("load", busy_with)


def _asked_again(node: Node, ask: Probe, thresholds: Mapping[str, float]) -> Optional[Refusal]:
    """Why not, by a new answer. What the test before leaves behind is gone in a moment, a job stays."""
    for attempt in range(ATTEMPTS):
        busy = _asked_once(node, ask, thresholds)
        if not busy:
            break
        if attempt < ATTEMPTS - 1:
            time.sleep(SETTLE_S)
    return busy


def _asked_once(node: Node, ask: Probe, thresholds: Mapping[str, float]) -> Optional[Refusal]:
    place = Path(tempfile.mkdtemp(prefix="flightline-idle-"))
    try:
        (result,) = run_probes([ask], node, place, {})
        if result.rc == NOT_FOUND_RC:
            return None
        if result.timed_out:
            return Refusal(ask.id, f"{ask.id} does not tell whether the devices are in use ({result.note})")
        book = FactBook(load(place))
        return _told_by_neuron(book.get("neuron_ls")) if ask is NEURON_LS else _told(book.get("nvidia_smi"), thresholds)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def guard(node: Node, directory: Path, options: Mapping[str, Any], thresholds: Mapping[str, float]) -> Guard:
    """A question to ask before each active test: why it must not start, or None."""
    answers: List[Optional[Refusal]] = []

    def why_not(probe: Probe) -> Optional[Refusal]:
        if wanted_beside_a_job(options):
            return None
        if not answers:
            answers.append(_from_bundle(directory, thresholds))
        elif not answers[-1]:
            ask = NEURON_LS if directory.joinpath(NEURON_LS.file).exists() else SMI
            answers.append(_asked_again(node, ask, thresholds))
        return answers[-1] and answers[-1]._replace(text=f"{answers[-1].text}; {HOW_TO}")

    return why_not
