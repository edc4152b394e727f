"""What is run: the node's settings, the job's, and what this run was asked for with, made into one plan."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

from ..model import SettingsError

ON_STALL = ("tell", "dump", "requeue", "end")
"""When a run hangs it is told of; NCCL's flight recorder is asked for as well; it ends with 75; it is started again."""


class Meeting(NamedTuple):
    """Where the nodes meet, and how: at least so many, each waiting so many seconds. host: '' for one node alone."""

    host: str
    port: int
    least: int
    join_s: int


class LaunchPlan(NamedTuple):
    """What to run. gate: command that must end with 0 before each start; user: '' for the caller's own.

    mounts: directories that must be file systems of their own before each start. root: below which the node keeps its
    quarantine marker. save_signal: at which the program saves and goes on; 0: it saves at SIGTERM, if at all.
    """

    job: str
    argv: List[str]
    environment: Dict[str, str]
    logs: str
    journal: str
    gate: List[str]
    user: str
    workdir: str
    about: Dict[str, Any]
    meeting: Meeting
    mounts: List[str]
    manifest: str
    restarts: int
    pause_s: float
    grace_s: float
    shm_gib: float
    on_stall: str = ON_STALL[0]
    root: str = "/"
    save_signal: int = 0


def plan(job: str, settings: Dict[str, Any], one: Dict[str, Any], asked: Dict[str, Any], manifest: str) -> LaunchPlan:
    """From the node's settings, the job's, and what this run was asked for with. Raises SettingsError."""
    command = one.get("command")
    if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise SettingsError(f"{job}: saw command {command!r}, wanted a list of words; do: mend training_jobs")
    least, most = one.get("nodes", [1, 1])
    if not 1 <= int(least) <= int(most):
        raise SettingsError(f"{job}: saw nodes {least} to {most}, wanted at least one and the smaller number first")
    logs = f"{settings['logs']}/{job}"
    argv = [settings["torchrun"]]
    if not one.get("whole"):
        argv += [f"--nnodes={least}:{most}", f"--nproc-per-node={one.get('ranks') or settings['ranks']}"]
    if int(most) > 1 and not one.get("rendezvous"):
        raise SettingsError(f"{job}: saw no rendezvous for {most} nodes, wanted HOST:PORT of one of them")
    if one.get("whole"):
        pass  # torchrun's own words say it
    elif int(most) > 1:
        argv += ["--rdzv-backend=c10d", f"--rdzv-endpoint={one['rendezvous']}", f"--rdzv-id={job}",
                 f"--rdzv-conf=join_timeout={int(settings['join_s'])}"]  # fmt: skip
    else:
        argv += ["--standalone"]
    # A restart is decided here: torchrun would repeat the program's own fault as well.
    argv += ["--max-restarts=0", f"--log-dir={logs}", "--tee=3"]
    argv += [f"--numa-binding={settings['numa_binding']}"] if settings.get("numa_binding") else []
    argv += command + [f"--{name}={value}" for name, value in sorted(asked.items())]
    environment = {**settings["environment"], **one.get("environment", {}), "FLIGHTLINE_JOB": job,
                   "FLIGHTLINE_METRICS": f"{logs}/metrics.jsonl",
                   "TORCH_FR_DUMP_TEMP_FILE": f"{logs}/nccl_trace_rank_"}  # fmt: skip
    if manifest:
        environment["FLIGHTLINE_MANIFEST"] = manifest
    journal = one.get("journal") or logs
    return LaunchPlan(
        job, argv, environment, logs, journal, list(settings["gate"]), settings.get("user", ""),
        one.get("workdir", "/"), _about(job, settings, one, manifest),
        _meeting(job, one, int(settings["join_s"])),
        list(one.get("mounts", settings.get("mounts", []))), manifest, int(settings["restarts"]),
        float(settings["pause_s"]), float(settings["grace_s"]), float(one.get("shm_gib", settings.get("shm_gib", 0))),
        _on_stall(job, str(one.get("on_stall") or settings.get("on_stall") or ON_STALL[0])),
        str(settings.get("root", "/")), _signal(job, str(one.get("save_signal") or "")),
    )  # fmt: skip


def of_words(words: Sequence[str], settings: Dict[str, Any], job: str) -> LaunchPlan:
    """For what stands behind torchrun on a command line, which it gets as it is. job: '' for the program's name.

    Raises SettingsError.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("nnodes", "rdzv-endpoint", "master-addr", "master-port"):
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default="")
    parser.add_argument("-m", "--module", action="store_true")
    known, rest = parser.parse_known_args(words)
    program = next(
        (word for word in rest if word.endswith(".py") or (known.module and not word.startswith("-"))), "job"
    )
    name = re.sub(
        r"[^a-z0-9]+", "-", Path(program).with_suffix("").name.lower() if not known.module else program.lower()
    )
    least, _, most = (known.nnodes or "1").partition(":")
    place = known.rdzv_endpoint or (f"{known.master_addr}:{known.master_port or 29500}" if known.master_addr else "")
    one = {"command": list(words), "whole": True, "workdir": str(Path.cwd()), "nodes": [int(least), int(most or least)],
           "rendezvous": place}  # fmt: skip
    return plan(job or name.strip("-")[:63] or "job", {**settings, "numa_binding": ""}, one, {}, "")


def _signal(job: str, word: str) -> int:
    try:
        return int(signal.Signals[f"SIG{word.upper().replace('SIG', '')}"]) if word else 0
    except KeyError:
        raise SettingsError(f"{job}: saw save_signal {word!r}, wanted a signal's name such as USR2") from None


def _on_stall(job: str, word: str) -> str:
    if word not in ON_STALL:
        raise SettingsError(f"{job}: saw on_stall {word!r}, wanted {', '.join(ON_STALL)}; do: mend training_jobs")
    return word


def _meeting(job: str, one: Dict[str, Any], join_s: int) -> Meeting:
    least, most = map(int, one.get("nodes", [1, 1]))
    host, _, port = str(one.get("rendezvous", "")).rpartition(":") if most > 1 else ("", "", "0")
    if most > 1 and not (host and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError(f"{job}: saw rendezvous {one.get('rendezvous')!r}, wanted HOST:PORT of one of the nodes")
    return Meeting(host, int(port), least, join_s)


def is_here(host: str) -> bool:
    """Is that this node's name?"""
    return host in (socket.gethostname(), socket.getfqdn())


def _about(job: str, settings: Dict[str, Any], one: Dict[str, Any], manifest: str) -> Dict[str, Any]:
    """What is told of the run, by the node of the rendezvous, so that it is told once; {} on the others.

    Into files of the job's own, so that Slurm's runs, which are the user's, are told of as well.
    """
    place = str(one.get("rendezvous", "")).rpartition(":")[0]
    alone = int(one.get("nodes", [1, 1])[1]) == 1
    if not (alone or is_here(place)):
        return {}
    slurm = os.environ.get("SLURM_JOB_ID", "")
    # The request's own id: what the training input function wrote of this run has it too. Slurm keeps a requeued job's.
    run = os.path.basename(manifest).rpartition(".")[0] or (
        f"{job}-slurm-{slurm}" if slurm else f"{job}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    )
    told = {
        "job": job,
        "dataset": one.get("dataset", "unknown"),
        "model": one.get("model", "unknown"),
        "manifest": manifest,
        "code": one.get("code", "unknown"),
        "nodes": int(os.environ.get("SLURM_JOB_NUM_NODES") or one.get("nodes", [1, 1])[1]),
    }
    logs = f"{settings['logs']}/{job}"
    return {"run": run, "told": told, "records": f"{logs}/records.jsonl",
            "metrics": f"{logs}/metrics.jsonl", "usd_per_hour": float(settings.get("node_usd_per_hour") or 0),
            "namespace": str(settings.get("environment", {}).get("FLIGHTLINE_NAMESPACE", "Flightline"))}  # fmt: skip
