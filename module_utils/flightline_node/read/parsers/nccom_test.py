"""nccom-test.txt: the table of nccom-test, once or several times.

Format: AWS Neuron documentation, "NCCOM-TEST User Guide": a header that names the columns, a row a size, the average.
The probe writes `# nccom-test ARGUMENTS` before and `# exit N` after each; the table alone will do as well.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("nccom-test.txt",)
LATER = True

_BEGIN = re.compile(r"(?:# |.{0,200}\$ ?|\s*)(?:[A-Z_]+=\S+ )*nccom-test (.{1,300})$")
_END = re.compile(r"# exit (\d{1,3})\s*$")
_RANKS = re.compile(r"(?:^|\s)(?:-r|--nworkers)[ =](\d{1,6})\b")
_NODES = re.compile(r"(?:^|\s)(?:-N|--nnodes)[ =](\d{1,6})\b")
_AVERAGE = re.compile(r"\s*Avg bus bandwidth:\s*([\d.]{1,20})\s*GB/s")
_FAILED = re.compile(
    r"errors? found - test failed|failure running neuron-bench|\bmismatch|\bnot running|\berror\b|\bfail|traceback"
    r"|timed? ?out|incorrect|validation|not found|no such file",
    re.I,
)
_WRONG = re.compile(r"mismatch|incorrect|(?:data|golden|correctness|integrity).{0,40}fail|not (?:equal|match)", re.I)
_OPERATIONS = {
    "allr": "all_reduce", "allg": "all_gather", "redsct": "reduce_scatter", "allgv": "all_gatherv",
    **{name: name for name in ("all_reduce", "all_gather", "reduce_scatter", "sendrecv", "alltoall", "permute")},
}  # fmt: skip
MAX_RUNS, MAX_SAID, MAX_CHARS, MAX_LINE_CHARS = 64, 8, 240, 1000


def parse(files: Mapping[str, Data]) -> Facts:
    """{runs[]{operation ranks nodes checked rc rows largest{bytes busbw_gb_s} average_gb_s complete said[] wrong[]}}.

    complete: the average stands below the rows. said: lines that tell of a failure. wrong: those of them that say that
    the data was not what it should be. checked: run with --check. ranks None: not told. Sizes in bytes, rates
    in GB/s as the tool counts them (it prints GiB). Raises ParseError when there is neither a table nor a failure.
    """
    runs: List[Facts] = []
    header: List[str] = []
    for whole in v.lines(t.only(files)):
        line = whole[:MAX_LINE_CHARS]
        began, words = _BEGIN.match(line) if "nccom-test " in line else None, line.split()
        if began:
            runs.append(_new(began.group(1)))
            header = []
        elif _is_header(words):
            if not runs or runs[-1]["rows"] or runs[-1]["complete"] or runs[-1]["rc"] is not None:
                runs.append(_new(""))
            header = words
        elif words:
            if not runs:
                runs.append(_new(""))
            _line(runs[-1], line, words, header)
        if len(runs) > MAX_RUNS:
            raise ParseError(f"more than {MAX_RUNS} runs")
    runs = [run for run in runs if run["rows"] or run["complete"] or run["said"] or run["rc"] is not None]
    if not runs:
        raise ParseError("neither a table nor an error of nccom-test in it")
    return {"runs": runs}


def _new(arguments: str) -> Facts:
    words = arguments.split()
    ranks, nodes = _RANKS.search(arguments), _NODES.search(arguments)
    return {
        "operation": next((_OPERATIONS[word] for word in words if word in _OPERATIONS), None),
        "ranks": int(ranks.group(1)) if ranks else None,
        "nodes": int(nodes.group(1)) if nodes else 1,
        "checked": "--check" in words or "-c" in words,
        "rc": None,
        "rows": 0,
        "complete": False,
        "said": [],
        "wrong": [],
    }


def _is_header(words: List[str]) -> bool:
    return "size(B)" in words and "busbw(GB/s)" in words


def _line(run: Facts, line: str, words: List[str], header: List[str]) -> None:
    ended, average = _END.match(line), _AVERAGE.match(line)
    row = _row(header, words)
    if ended:
        run["rc"] = int(ended.group(1))
    elif average:
        run["complete"], run["average_gb_s"] = True, v.real(average.group(1))
    elif row:
        run["rows"] += 1
        if row["bytes"] >= run.get("largest", row)["bytes"]:
            run["largest"] = row
    elif _FAILED.search(line):
        for name, meant in (("said", True), ("wrong", bool(_WRONG.search(line)))):
            if meant and len(run[name]) < MAX_SAID:
                run[name].append(line.strip()[:MAX_CHARS])


def _row(header: List[str], words: List[str]) -> Optional[Dict[str, float]]:
    if len(words) != len(header):
        return None
    cells = dict(zip(header, words))
    size, busbw = v.integer(cells.get("size(B)")), v.real(cells.get("busbw(GB/s)"))
    return None if size is None or busbw is None else {"bytes": size, "busbw_gb_s": busbw}
