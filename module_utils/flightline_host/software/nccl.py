"""The NCCL library's version, and nccl-tests built for the node's architecture."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..host import Host, Problem, Problems
from ..outcome import Outcome
from ..version import numbers, reaches, within

STAMP = "flightline-build.json"
PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf")
_LIBRARY = re.compile(r"libnccl\.so\.(\d+\.\d+\.\d+)$")
_PLACES = (
    "/usr/lib/*/libnccl.so.*",
    "/usr/lib64/libnccl.so.*",
    "/usr/local/lib/libnccl.so.*",
    "/usr/local/cuda*/lib*/libnccl.so.*",
)
_HEADER = re.compile(r"#define\s+NCCL_(MAJOR|MINOR|PATCH)\s+(\d+)")
_NVCC = re.compile(r"release (\d+\.\d+)")
CUDA_FOR: Dict[str, str] = {"89": "11.8", "90": "11.8", "100": "12.8", "103": "12.9", "120": "12.8"}
"""The first CUDA release whose compiler knows an architecture (CUDA release notes)."""


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """NCCL of the wanted version; with a source nccl-tests built against it."""
    found = libraries(host)
    problems = list(_library(host, found, wanted))
    if problems:
        raise Problems(problems)
    facts = {"nccl": sorted(found), "cuda": _cuda(host, wanted["cuda_home"])}
    if not wanted["source"]:
        return Outcome(False, facts, facts, facts)
    if not str(wanted["architecture"]).isdigit():
        raise Problem(f"architecture '{wanted['architecture']}'", "a compute capability such as 90", "set architecture")
    return _tests(host, wanted, facts, check)


def libraries(host: Host) -> Dict[str, str]:
    """Version of every libnccl on the linker's usual places -> its path."""
    paths = [path for place in _PLACES for path in host.glob(place)]
    return {match.group(1): path for path in paths for match in [_LIBRARY.search(path)] if match}


def _library(host: Host, found: Mapping[str, str], wanted: Mapping[str, Any]) -> Iterator[Problem]:
    pin = wanted["version"]
    if wanted["minimum"] and not any(reaches(version, wanted["minimum"]) for version in found):
        yield Problem(
            f"NCCL {', '.join(sorted(found)) or 'not there'}",
            f"NCCL {wanted['minimum']} or later",
            "use a newer image, or let the role install NCCL (cuda_nccl_source: vendor)",
        )
    if not pin:
        return
    if not any(within(version, pin) for version in found):
        yield Problem(
            f"NCCL {', '.join(sorted(found)) or 'not there'}",
            f"NCCL {pin}",
            "install libnccl2 of that version (role cuda_nccl)",
        )
    others = [f"{version} ({path})" for version, path in sorted(found.items()) if not within(version, pin)]
    if others and len(others) < len(found):
        yield Problem(
            f"a second NCCL: {', '.join(others)}",
            f"only NCCL {pin}: which one a program loads would depend on its search path",
            "remove the other one",
        )
    header = _header(host)
    if header and found and not within(header, pin):
        yield Problem(
            f"nccl.h of {header}", f"the header of NCCL {pin}", "install libnccl-dev of the library's version"
        )


def _header(host: Host) -> Optional[str]:
    parts = dict(_HEADER.findall(host.read("/usr/include/nccl.h") or ""))
    return f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCH']}" if len(parts) == 3 else None


def _cuda(host: Host, home: str) -> Optional[str]:
    found = _NVCC.search(host.ask([f"{home}/bin/nvcc", "--version"]).out)
    return found.group(1) if found else None


def gencode(architecture: str) -> str:
    """NVCC_GENCODE for one architecture, with PTX for later ones."""
    virtual = f"arch=compute_{architecture}"
    return f"-gencode={virtual},code=sm_{architecture} -gencode={virtual},code=compute_{architecture}"


def _tests(host: Host, wanted: Mapping[str, Any], facts: Dict[str, Any], check: bool) -> Outcome:
    target = {
        "revision": wanted["revision"],
        "architecture": wanted["architecture"],
        "cuda": facts["cuda"],
        "nccl": max(facts["nccl"], key=numbers, default=None),
        "mpi_home": wanted["mpi_home"],
    }
    built = _stamp(host, wanted["prefix"])
    missing = [name for name in PROGRAMS if not host.exists(f"{wanted['prefix']}/{name}")]
    before = {"build": built if not missing else None}
    after = {"build": target}
    done = {**facts, "build": target, "prefix": wanted["prefix"]}
    if built == target and not missing:
        return Outcome(False, after, after, done)
    if check:
        return Outcome(True, before, after, done)
    problems = list(_tools(target, wanted))
    if problems:
        raise Problems(problems)
    _verify(host, wanted["source"], wanted["revision"])
    scratch = tempfile.mkdtemp(prefix="flightline-nccl-")
    try:
        _build(host, wanted, target, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(True, before, after, done)


def _verify(host: Host, source: str, revision: str) -> None:
    """A commit's id is the digest of everything in it, and git refuses a tree that does not have it."""
    place = host.path(source)
    found = host.ask(["git", "-C", place, "rev-parse", "HEAD"])
    changed = host.ask(["git", "-C", place, "status", "--porcelain"])
    if found.out.strip() != revision or changed.rc != 0 or changed.out.strip():
        raise Problem(
            f"{source} is at {found.out.strip() or found.said}{' with changes' if changed.out.strip() else ''}",
            f"commit {revision} as it is; nothing was built",
            f"remove {source}, then run again",
        )


def _stamp(host: Host, prefix: str) -> Optional[Dict[str, Any]]:
    try:
        read: Dict[str, Any] = json.loads(host.read(f"{prefix}/{STAMP}") or "null")
    except ValueError:
        return None
    return read


def _tools(target: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Problem]:
    if target["cuda"] is None:
        yield Problem(
            f"no nvcc in {wanted['cuda_home']}/bin", "the CUDA compiler", "install cuda-nvcc, or correct cuda_home"
        )
    least = CUDA_FOR.get(target["architecture"])
    if target["cuda"] and least and not reaches(target["cuda"], least):
        yield Problem(
            f"CUDA {target['cuda']}", f"{least} or later for sm_{target['architecture']}", "install a later CUDA"
        )
    if target["nccl"] is None:
        yield Problem("no NCCL library", "libnccl2 and its header", "install libnccl2 and libnccl-dev")


def _build(host: Host, wanted: Mapping[str, Any], target: Mapping[str, Any], scratch: str) -> None:
    source = f"{scratch}/source"
    shutil.copytree(host.path(wanted["source"]), source, symlinks=True)
    goal, advice = "nccl-tests built", "read make's output; CUDA, NCCL header and MPI have to fit each other"
    host.change(make(wanted, str(target["architecture"])), goal, advice, cwd=source)
    programs = [f"{source}/build/{name}" for name in PROGRAMS]
    host.change(["install", "-d", "-m", "0755", host.path(wanted["prefix"])], goal, advice)
    host.change(["install", "-m", "0755", *programs, host.path(wanted["prefix"])], goal, advice)
    host.write(f"{wanted['prefix']}/{STAMP}", json.dumps(target, indent=1, sort_keys=True) + "\n")


def make(wanted: Mapping[str, Any], architecture: str) -> List[str]:
    """The build's command (nccl-tests README)."""
    mpi = ["MPI=1", f"MPI_HOME={wanted['mpi_home']}"] if wanted["mpi_home"] else ["MPI=0"]
    return [
        "make",
        f"-j{wanted['jobs']}",
        *mpi,
        f"CUDA_HOME={wanted['cuda_home']}",
        f"NVCC_GENCODE={gencode(architecture)}",
    ]
