"""efa-loopback.txt: fi_pingpong (libfabric) and fi_rdm_bw (fabtests) over each EFA device of the node.

The probe writes `# TOOL DOMAIN` before and `# exit N` after the client's output. Both tools print a table whose header
names the columns; formats after ofiwg/libfabric util/pingpong.c (show_perf) and fabtests/common/shared.c. Sizes are
printed short: 64k, 1m (powers of 1024).
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .log_shape import Unread

FILES = ("efa-loopback.txt",)
LATER = True

_BEGIN = re.compile(r"# (fi_\w{1,40}) (\S{1,80})\s*$")
_END = re.compile(r"# exit (\d{1,3})\s*$")
_FAILED = re.compile(
    r"\bf[it]_\w{2,40}(?:\(\))?: .{0,80}(?:ret=-\d|rc ?[=:] ?-\d)"
    r"|\((?:No data available|Unresponsive|Connection)[^)]*\)"
)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,3})?)([kmg]?)$", re.IGNORECASE)
_COLUMNS = {"bytes": "bytes", "MB/sec": "mb_s", "usec/xfer": "usec"}
_MAX_RUNS, _MAX_SAID, _MAX_CHARS = 512, 5, 200


def parse(files: Mapping[str, Data]) -> Facts:
    """{runs[]{tool domain rc rows largest{bytes mb_s usec} said[]}}: one for each device and tool, in order.

    rc None: the output ends before the tool did. said: the first lines that are not the table: errors.
    elided: it is what one run of the tool printed, without the probe's headings.
    """
    runs: List[Facts] = []
    header: List[str] = []
    for line in v.lines(t.only(files)):
        began = _BEGIN.match(line)
        if began:
            runs.append({"tool": began.group(1), "domain": began.group(2), "rc": None, "rows": 0, "said": []})
            header = []
        elif runs and runs[-1]["rc"] is None:
            header = _line(runs[-1], line, header)
        if len(runs) > _MAX_RUNS:
            raise ParseError(f"more than {_MAX_RUNS} runs")
    alone = [] if runs else _alone(list(v.lines(t.only(files))))
    if not (runs or alone):
        raise ParseError("no '# fi_pingpong DOMAIN' line: not the loopback probe's output")
    unread = Unread()
    for line in (line for run in (*runs, *alone) if run["rc"] == 0 and run["rows"] for line in run["said"]):
        unread.note(line)
    return {"runs": runs or alone, **({"elided": True} if alone else {}), **unread.facts()}


def _alone(lines: List[str]) -> List[Facts]:
    """What a person's own run printed: a table, or why there is none."""
    run: Facts = {"tool": "fi_pingpong", "domain": "an EFA device", "rc": None, "rows": 0, "said": []}
    header: List[str] = []
    for line in lines:
        header = _line(run, line, header)
    failed = any(_FAILED.search(line) for line in run["said"])
    return [{**run, "rc": int(failed)}] if failed or run["rows"] else []


def _line(run: Facts, line: str, header: List[str]) -> List[str]:
    words, ended = line.split(), _END.match(line)
    if ended:
        run["rc"] = int(ended.group(1))
    elif "bytes" in words and "MB/sec" in words:
        return words
    elif words:
        row = _row(header, words)
        if row:
            run["rows"] += 1
            if row["bytes"] >= run.get("largest", row)["bytes"]:
                run["largest"] = row
        elif len(run["said"]) < _MAX_SAID:
            run["said"].append(line.strip()[:_MAX_CHARS])
    return header


def _row(header: List[str], words: List[str]) -> Optional[Dict[str, float]]:
    if len(words) != len(header):
        return None
    cells = dict(zip(header, words))
    size, rates = _SIZE.match(cells["bytes"]), {name: v.real(cells.get(name)) for name in ("MB/sec", "usec/xfer")}
    if not size or None in rates.values():
        return None
    factor = 1024 ** ("kmg".index(size.group(2).lower()) + 1 if size.group(2) else 0)
    return {"bytes": float(size.group(1)) * factor, **{_COLUMNS[k]: r for k, r in rates.items() if r is not None}}
