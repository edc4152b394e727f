"""nvbandwidth: JSON (-j, from 0.4) and the text that every version prints.

Formats after NVIDIA/nvbandwidth, json_output.cpp, output.cpp and README.md. The description tells what rows and columns
are: CPU(row) -> GPU(column) has one row, GPU(row) <- GPU(column) one for each GPU. A cell that was not measured (a
GPU to itself) is "N/A", in old text 0.00.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("nvbandwidth.json", "nvbandwidth.txt")
LATER = True

_RUNNING = re.compile(r"Running (\w{1,80})\.?\s*$")
_WAIVED = re.compile(r"(Waived|Error|Not Found)\b:? ?(.*)")
_ROW = re.compile(r"\s*\d{1,3}((?:\s+(?:\d{1,9}(?:\.\d{1,6})?|N/A))+)\s*$")
_ABOUT = re.compile(r"(?:memcpy|memory latency|Device local copy)\b.*\([A-Za-z/]+\)\s*$")
_VERSION = re.compile(r"nvbandwidth Version: *v?(\S{1,20})")
_DRIVER = re.compile(r"^\W*Driver Version\"?: *\"?(\d[\d.]{1,20})", re.MULTILINE)
_TROUBLE = re.compile(r"error|Invalid value when checking the pattern", re.IGNORECASE)
_DEVICE = re.compile(r"Device \d{1,3}: ")
_MAX_CELLS, _MAX_TESTS, _MAX_TEXT = 1024, 256, 300

Row = List[Optional[float]]


def parse(files: Mapping[str, Data]) -> Facts:
    """{version, driver_version, tests[]{name status about matrix[[GB/s or None]] error}, error}.

    status: Passed, Waived (the node cannot do it), Error, Not Found, as printed; text without a word is Passed
    when it has a matrix. error: why nothing was measured. Raises ParseError when it is another tool's output.
    """
    data = t.only(files)
    if len(data) > v.MAX_JSON_BYTES:
        raise ParseError(f"{len(data)} bytes, nvbandwidth prints no more than {v.MAX_JSON_BYTES}")
    text = t.decode(data)
    facts = _json(data) if re.search(r"^\s*\{", text, re.MULTILINE) and '"nvbandwidth"' in text else _text(text)
    driver = _DRIVER.search(text)
    facts.update({"driver_version": driver.group(1)} if driver else {})
    if not facts["tests"] and not facts.get("error"):
        raise ParseError("no test of nvbandwidth in it")
    return facts


def _number(cell: object) -> Optional[float]:
    value = v.real(cell)
    return value if value else None  # 0.00 stands for "not measured" in text


def _json(data: Data) -> Facts:
    body = v.json_object(data).get("nvbandwidth")
    if not isinstance(body, dict):
        raise ParseError("JSON without nvbandwidth's object")
    facts: Facts = {"tests": [_testcase(row) for row in v.mappings(body.get("testcases"))[:_MAX_TESTS]]}
    for name in ("version", "error"):
        word = v.word(body.get(name))
        if word:
            facts[name] = word.lstrip("v") if name == "version" else word[:_MAX_TEXT]
    return facts


def _testcase(row: Dict[str, Any]) -> Facts:
    rows = row.get("bandwidth_matrix")
    listed = [cells for cells in rows if isinstance(cells, list)] if isinstance(rows, list) else []
    matrix = [list(map(_number, cells[:_MAX_CELLS])) for cells in listed]
    test: Facts = {"name": (v.word(row.get("name")) or "")[:80], "status": (v.word(row.get("status")) or "")[:40]}
    about, error = v.word(row.get("bandwidth_description")), v.word(row.get("error"))
    test.update({"about": about[:_MAX_TEXT]} if about else {})
    test.update({"error": error[:_MAX_TEXT]} if error else {})
    return {**test, "matrix": matrix[:_MAX_CELLS]}


def _text(text: str) -> Facts:
    facts: Facts = {"tests": []}
    version = _VERSION.search(text)
    if version:
        facts["version"] = version.group(1)
    test: Facts = {}
    complaints: List[str] = []
    for line in text.splitlines():
        if len(line) > v.MAX_LINE_CHARS or len(facts["tests"]) > _MAX_TESTS:
            continue
        line = line.strip()
        started = _RUNNING.match(line)
        if started:
            test = {"name": started.group(1), "status": "Running", "matrix": []}
            facts["tests"].append(test)
        elif test:
            _continue(test, line)
        elif re.match(r"\s*\[?(?:CUDA|CU|NVML)[A-Z_ ]*ERROR|ERROR|Invalid|No (?:CUDA )?device", line, re.IGNORECASE):
            complaints.append(line)
    if complaints:
        facts["error"] = "; ".join(complaints[:3])[:_MAX_TEXT]
    return facts


def _continue(test: Facts, line: str) -> None:
    row, waived = _ROW.match(line), _WAIVED.match(line)
    if _ABOUT.match(line):
        test["about"] = line.strip()[:_MAX_TEXT]
    elif row and "about" in test and ("." in line or "N/A" in line):
        # The line of column numbers has no point in it.
        test["matrix"].append(list(map(_number, row.group(1).split()))[:_MAX_CELLS])
        test["status"] = "Passed"
    elif waived:
        test["status"] = waived.group(1)
    elif _TROUBLE.search(line) and not line.startswith("SUM"):
        said = [word for word in (test.get("error"), line.strip()) if word]
        test.update(status="Error", error="; ".join(said)[:_MAX_TEXT])
