"""The whole plan of one node: run the probes, keep the bundle, judge it, make the record."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from . import __version__
from .ask import reach, site_program
from .ask.probes import BY_ID, NEURON, Probe, plan
from .ask.readers import READERS, with_mounts
from .ask.runner import Node, ProbeResult, run_probes
from .judge.judgement import Judgement, judge
from .judge.waivers import for_fleet
from .know.expected import Expected, resolve
from .model import LEVELS, RECORD_SCHEMA, SettingsError, Verdict
from .read.bundle import Bundle, load, write_manifest
from .settings import NodeSettings
from .tell.shorten import shorten

NEURON_PACKAGES = {"runtime": "aws-neuronx-runtime-lib", "collectives": "aws-neuronx-collectives"}
FALLBACK_TMP = "/dev/shm"  # noqa: S108  # mkdtemp makes a private directory in it


@dataclass(frozen=True)
class Identity:
    """Who the node is, from the inventory; the host name is asked of the node when not given.

    call_id: of the call that is answered, so that an old answer is not taken for a new one.
    """

    host: str = ""
    instance_id: str = ""
    call_id: str = ""


def scratch_dir() -> Path:
    """A private temporary directory; on a node with a full disk, in memory."""
    try:
        return Path(tempfile.mkdtemp(prefix="flightline-"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="flightline-", dir=FALLBACK_TMP))


def _readers(options: Mapping[str, Any]) -> Mapping[str, Callable[[str], str]]:
    """READERS, with the endpoints and mounts that the inventory names given to those that test them."""
    found = READERS if not _named(options, "fs_io_mounts") else with_mounts(_named(options, "fs_io_mounts"))
    endpoints = _named(options, "s3_endpoints")
    return {**found, "s3": partial(reach.s3, endpoints=endpoints)} if endpoints else found


def _named(options: Mapping[str, Any], option: str) -> Sequence[str]:
    named = options.get(option) or ()
    return [named] if isinstance(named, str) else named if isinstance(named, (list, tuple)) else ()


def _probes(node: Node, level: str, instance_type: str) -> Tuple[Probe, ...]:
    """By what the type has; a machine without a type is looked at, and says that it has no Neuron device."""
    try:
        kind = resolve(instance_type).accelerator
    except SettingsError:  # judged by values given by hand
        kind = None
    if kind:
        return plan(level, kind)
    from .ask import neuron  # no node of a known type needs it

    if neuron.present(node.root):
        return plan(level, NEURON)
    return (*plan(level), BY_ID["neuron-sysfs"])


def collect(
    node: Node,
    level: str,
    directory: Path,
    identity: Identity,
    instance_type: str,
    on_done: Optional[Callable[[ProbeResult], None]] = None,
    settings: Optional[NodeSettings] = None,
) -> Bundle:
    """Run the level's probes into a directory. Raises OSError when it cannot be written.

    settings: the site's, for what may keep active tests from starting.
    """
    directory.mkdir(parents=True, exist_ok=True)
    site = settings or NodeSettings()
    own, own_readers = site_program.probes(one for one in site.checks if LEVELS.index(one.level) <= LEVELS.index(level))
    probes, guard = (*_probes(node, level, instance_type), *own), None
    readers = {**_readers(site.options), **own_readers}
    if readers["s3"] is READERS["s3"]:  # no endpoint is asked for
        probes = tuple(probe for probe in probes if probe.reader != "s3")
    if any(probe.exclusive for probe in probes):
        from .ask import idle  # a quick run has nothing to guard

        guard = idle.guard(node, directory, site.options, site.thresholds)
    results = run_probes(probes, node, directory, readers, on_done, guard)
    write_manifest(
        directory,
        host=identity.host or os.uname().nodename,
        instance_id=identity.instance_id,
        instance_type=instance_type,
        collected_at=_stamp(),
        probes=results,
    )
    return load(directory)


def with_directory(node: Node, settings: NodeSettings) -> NodeSettings:
    """The settings with the checks of the node's own directory, unless only some checks are wanted."""
    known = {check.id for check in (*settings.checks, *settings.skipped)}
    more = [] if settings.selects else [one for one in site_program.found(node.root) if one.id not in known]
    return replace(settings, checks=(*settings.checks, *more)) if more else settings


def run(
    node: Node,
    expected: Expected,
    settings: NodeSettings,
    identity: Identity,
    bundle_dir: Optional[Path] = None,
) -> Dict[str, Any]:
    """Collect and judge; returns the node's record for the run store.

    The bundle stays in bundle_dir when one is given, else it is removed.
    """
    started, began = _stamp(), time.monotonic()
    settings = with_directory(node, settings)
    directory = bundle_dir or scratch_dir()
    try:
        bundle = collect(node, settings.level, directory, identity, expected.instance_type, settings=settings)
        names = [name for name in (identity.host, identity.instance_id) if name]
        judgement = judge(bundle, expected, settings, datetime.now(timezone.utc), required=True, names=names)
        found = record(bundle, judgement, settings.level, started, time.monotonic() - began)
        if identity.call_id:
            found["call_id"] = identity.call_id
        handed_on = for_fleet(settings.waivers)
        if handed_on:
            found["fleet_waivers"] = handed_on
        if judgement.verdict is Verdict.NO_GO:
            from .tell import evidence  # a good node has nothing to keep

            found["evidence"] = evidence.keep(node, bundle, judgement.findings, settings)
        return shorten(found)
    finally:
        if bundle_dir is None:
            shutil.rmtree(directory, ignore_errors=True)


def record(bundle: Bundle, judgement: Judgement, level: str, started: str, seconds: float) -> Dict[str, Any]:
    """One node's row of the run store: plain JSON, the same in SQLite and DynamoDB."""
    manifest = bundle.manifest
    times = os.times()
    return {
        "schema": RECORD_SCHEMA,
        "flightline": __version__,
        "host": manifest.get("host", ""),
        "instance_id": manifest.get("instance_id", ""),
        "instance_type": manifest.get("instance_type", ""),
        "level": level,
        "verdict": str(judgement.verdict),
        "started_at": started,
        "seconds": round(seconds, 3),
        "library_cpu_s": round(times.user + times.system, 3),
        "findings": [finding.to_record() for finding in judgement.findings],
        "measures": judgement.measures,
        "versions": versions(judgement.facts),
        "gpus": _accelerators(judgement.facts),
        "probes": [
            {key: entry.get(key) for key in ("id", "rc", "seconds", "timed_out", "note")}
            for entry in manifest.get("probes", [])
        ],
    }


def _accelerators(facts: Dict[str, Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The GPUs by nvidia-smi, or the Neuron devices, whose serial numbers the driver has: what history follows."""
    gpus = facts.get("nvidia_smi", {}).get("gpus", [])
    keys = ("index", "uuid", "serial", "pci_bus_id", "name")
    serials = {row["index"]: row.get("serial") for row in facts.get("neuron_sysfs", {}).get("devices", [])}
    devices = [
        {"index": row["index"], "serial": serials.get(row["index"]), "pci_bus_id": row.get("bdf")}
        for row in facts.get("neuron_ls", {}).get("devices", [])
    ]
    named = [{**row, "name": f"neuron{row['index']}"} for row in devices]
    return [{key: gpu.get(key) for key in keys} for gpu in [*gpus, *named]]


def versions(facts: Dict[str, Dict[str, Any]]) -> Dict[str, str]:
    """The versions a fleet must share: driver, CUDA, VBIOS, kernel, NCCL, EFA, Neuron libraries."""
    smi, files = facts.get("nvidia_smi", {}), facts.get("versions", {})
    vbios = sorted({str(gpu["vbios_version"]) for gpu in smi.get("gpus", []) if gpu.get("vbios_version")})
    nccl = files.get("nccl") or []
    neuron_driver, packages = facts.get("neuron_sysfs", {}).get("driver"), facts.get("neuron_packages", {})
    found = {
        "driver": smi.get("driver_version") or neuron_driver,
        "cuda": smi.get("cuda_version"),
        "vbios": ", ".join(vbios),
        "kernel": files.get("kernel"),
        "nccl": ", ".join(nccl) if isinstance(nccl, list) else nccl,
        "efa_installer": files.get("efa_installer"),
        "efa_driver": files.get("efa_driver"),
        **{f"neuron_{key}": packages.get("packages", {}).get(name) for key, name in NEURON_PACKAGES.items()},
    }
    return {name: str(value) for name, value in found.items() if value}


def _stamp() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
