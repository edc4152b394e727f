"""fio --output-format=json, or the text that fio prints by itself (fio(1), OUTPUT).

The JSON is that of fio 2 (KiB/s, microseconds) or 3 (bytes/s, nanoseconds).
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("fio.json",)
LATER = True

MAX_TEXT_BYTES = 1 << 20
_JOB = re.compile(r"(\S{1,100}): \(groupid=\d+, jobs=\d+\): err= *(\d{1,5})")
_RATE = re.compile(r"\s*(read|write)\s*: .{0,80}?\b(?:BW|bw)=([\d.]{1,12}) ?([KMGT]?)(i?)B/s", re.IGNORECASE)


def parse(files: Mapping[str, Data]) -> Facts:
    """{fio_version, jobs[]{name rw bw_bytes_s iops lat_mean_us lat_p99_us io_bytes error}}.

    One entry per job and direction (read, write) that moved data; a job that moved none has one
    entry with rw None. error is fio's error number of the job (0: none).
    """
    text = _printed(t.decode(t.only(files), MAX_TEXT_BYTES))
    if text:
        return {"jobs": text}
    document = v.json_object(t.only(files))
    jobs = v.mappings(document.get("jobs")) or v.mappings(document.get("client_stats"))
    if not jobs:
        raise ParseError("no jobs: not fio's JSON, or fio ended before its first job")
    entries: List[Dict[str, Any]] = []
    for job in jobs:
        if job.get("jobname") != "All clients":  # the sum that client mode adds
            entries += _directions(job)
    facts: Facts = {"jobs": entries}
    version = v.word(document.get("fio version"))
    return {**facts, "fio_version": version} if version else facts


def _printed(text: str) -> List[Dict[str, Any]]:
    """The jobs of fio's own text: the rate of each direction under the job's line."""
    entries: List[Dict[str, Any]] = []
    for line in text.splitlines():
        job, rate = _JOB.search(line), _RATE.match(line)
        if job:
            entries.append({"name": job.group(1), "error": int(job.group(2)), "rw": None})
        elif rate and entries:
            of_job = entries.pop() if entries[-1]["rw"] is None else entries[-1]
            power = "KMGT".find(rate.group(3).upper()) + 1 if rate.group(3) else 0
            speed = round(float(rate.group(2)) * (1024 if rate.group(4) else 1000) ** power)
            entries.append({**of_job, "rw": rate.group(1).lower(), "bw_bytes_s": speed})
    return entries


def _directions(job: Dict[str, Any]) -> List[Dict[str, Any]]:
    base = {"name": v.word(job.get("jobname")), "error": v.integer(job.get("error"))}
    entries = []
    for direction in ("read", "write"):
        stats = job.get(direction)
        if isinstance(stats, dict) and (v.real(stats.get("io_bytes")) or v.real(stats.get("bw"))):
            entries.append({**base, "rw": direction, **_numbers(stats)})
    return entries or [{**base, "rw": None}]


def _numbers(stats: Dict[str, Any]) -> Dict[str, Any]:
    kib_s = v.real(stats.get("bw"))
    exact = v.integer(stats.get("bw_bytes"))  # fio 3; fio 2 prints KiB/s alone
    modern = "lat_ns" in stats or "clat_ns" in stats
    return {
        "bw_bytes_s": exact if exact is not None else None if kib_s is None else int(kib_s * 1024),
        "iops": v.real(stats.get("iops")),
        "io_bytes": v.integer(stats.get("io_bytes")),
        "lat_mean_us": _micro(_inside(stats, "lat", "mean"), modern),
        "lat_p99_us": _micro(_p99(stats), modern),
    }


def _inside(stats: Dict[str, Any], name: str, key: str) -> Any:
    block = stats.get(name + "_ns", stats.get(name))
    return block.get(key) if isinstance(block, dict) else None


def _p99(stats: Dict[str, Any]) -> Any:
    """The 99th percentile of the completion latency: fio's default; of the total latency when asked for."""
    for name in ("clat", "lat"):
        table = _inside(stats, name, "percentile")
        if isinstance(table, dict) and "99.000000" in table:
            return table["99.000000"]
    return None


def _micro(value: object, nanoseconds: bool) -> Optional[float]:
    number = v.real(value)
    return None if number is None else round(number / 1000 if nanoseconds else number, 3)
