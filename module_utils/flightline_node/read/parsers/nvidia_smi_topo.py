"""nvidia-smi topo -m: how GPUs and NICs reach each other.

Columns are separated by tabs (spaces in pasted copies), sometimes by two; the header is
underlined by ANSI codes (of which a web page keeps "[4m" and "[0m"); drivers before 5xx name
the NIC columns mlx5_0, later ones NIC0 with a legend; the affinity columns grew from one to three.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .nvidia_messages import Messages, decode

FILES = ("nvidia-smi-topo.txt",)

MAX_COLUMNS = 4096
MAX_GPUS = 256
_HEADER = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|(?:GPU|NIC)\d{1,4}|\S+")
_UNDERLINE = re.compile(r"\[[04]m")
_GPU = re.compile(r"GPU\d{1,4}")
_LINK = re.compile(r"(?:X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS)+")
_AFFINITIES = {"CPU Affinity": "cpu_affinity", "NUMA Affinity": "numa_affinity", "GPU NUMA ID": "gpu_numa_id"}
_NIC_LEGEND = re.compile(r"\s*(NIC\d{1,4}):\s*(\S+)\s*")
_DISTANCE = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")


def parse(files: Mapping[str, Data]) -> Facts:
    """{gpus[], nics[], nic_legend{}, gpu_pair_links{link: pairs}, pairs[], cpu_affinity{}, numa_affinity{}, errors[]}.

    Each unordered GPU pair counts once. A pair whose two cells differ counts with the longer
    path and is listed in asymmetric[]{a b link reverse}. gpu_numa_id{} when printed. pcie_only is True for
    the matrix of topo -mp, which shows no NVLinks and whose legend leaves them out.
    errors[]: messages of the tool in place of the matrix. Raises ParseError when the matrix is
    cut off or is none.
    """
    lines = _UNDERLINE.sub("", decode(t.only(files))).splitlines()
    errors = [message["text"] for message in Messages().read_all(lines).errors]
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        if errors:
            return {"gpus": [], "nics": [], "gpu_pair_links": {}, "errors": errors}
        raise ParseError("no matrix of nvidia-smi topo -m")
    header = _HEADER.findall(lines[start])[:MAX_COLUMNS]
    gpus = [name for name in header if _GPU.fullmatch(name)]
    nics = [name for name in header if name not in _AFFINITIES and not _GPU.fullmatch(name)]
    if len(set(gpus)) < len(gpus) or len(gpus) > MAX_GPUS:
        raise ParseError("the header names a GPU twice, or too many")
    rows = _rows(lines[start + 1 :], gpus)
    facts: Facts = {"gpus": gpus, "nics": nics, "nic_legend": _legend(lines[start + 1 :])}
    facts.update(_links(gpus, rows))
    facts.update(_affinities(header, gpus, len(nics), rows))
    if _pcie_only(lines[start + 1 :]) and not any(link.startswith("NV") for link in facts["gpu_pair_links"]):
        facts["pcie_only"] = True
    facts["errors"] = errors
    return facts


def _is_header(line: str) -> bool:
    # A row begins with its own name and has a cell "X"; the header has none.
    cells = line.split()
    return bool(cells) and bool(_GPU.fullmatch(cells[0])) and "X" not in cells


def _rows(lines: List[str], gpus: List[str]) -> Dict[str, List[str]]:
    rows: Dict[str, List[str]] = {}
    wanted = frozenset(gpus)
    for line in lines:
        cells = line.split(None, MAX_COLUMNS)
        if cells and cells[0] in wanted and cells[0] not in rows:
            rows[cells[0]] = cells[1:]
    missing = [name for name in gpus if name not in rows]
    if missing:
        raise ParseError(f"the matrix is cut off: no row of {', '.join(missing[:8])}")
    short = [name for name in gpus if len(rows[name]) < len(gpus)]
    if short:
        raise ParseError(f"the matrix is cut off: the row of {short[0]} is too short")
    odd = [name for place, name in enumerate(gpus) if rows[name][place] != "X"]
    if odd:
        raise ParseError(f"the row of {odd[0]} does not fit the header: no X in its own column")
    return rows


def _links(gpus: List[str], rows: Mapping[str, List[str]]) -> Facts:
    counts: Dict[str, int] = {}
    pairs: List[Dict[str, str]] = []
    asymmetric: List[Dict[str, str]] = []
    for first, name in enumerate(gpus):
        for second in range(first + 1, len(gpus)):
            there, back = rows[name][second], rows[gpus[second]][first]
            link = max(there, back, key=_distance)
            counts[link] = counts.get(link, 0) + 1
            pairs.append({"a": name, "b": gpus[second], "link": link})
            if there != back:
                asymmetric.append({"a": name, "b": gpus[second], "link": there, "reverse": back})
    facts: Facts = {"gpu_pair_links": counts, "pairs": pairs}
    if asymmetric:
        facts["asymmetric"] = asymmetric
    return facts


def _distance(link: str) -> Tuple[int, int]:
    """Sort key: a longer path, or fewer bonded NVLinks, is greater; unknown words greatest."""
    if link.startswith("NV") and link[2:].isdecimal():
        return 0, -int(link[2:6])
    return (_DISTANCE.index(link), 0) if link in _DISTANCE else (len(_DISTANCE), 0)


def _affinities(header: List[str], gpus: List[str], nics: int, rows: Mapping[str, List[str]]) -> Facts:
    columns = [_AFFINITIES[name] for name in header if name in _AFFINITIES]
    facts: Dict[str, Any] = {column: {} for column in columns}
    for name in gpus:
        row = rows[name]
        # Pasted copies of wide matrices run cells together (NODEPIX), so cells cannot just be counted.
        linked = [place for place, cell in enumerate(row) if _LINK.fullmatch(cell)]
        start = min(max(len(gpus), linked[-1] + 1), len(gpus) + nics)
        for column, cell in zip(columns, _fit(row[start:], columns)):
            if cell:
                facts[column][name] = t.value(cell)
    return facts


def _fit(cells: List[str], columns: List[str]) -> List[str]:
    """Cells by column; where one is printed empty, the last belongs to the last column when that is the NUMA id."""
    missing = len(columns) - len(cells)
    if missing > 0 and cells and columns[-1] == "gpu_numa_id":
        return cells[:-1] + [""] * missing + cells[-1:]
    return cells


def _pcie_only(lines: List[str]) -> bool:
    explained = [line.split("=")[0].strip() for line in lines if "= Connection " in line]
    return "PIX" in explained and "NV#" not in explained


def _legend(lines: List[str]) -> Dict[str, str]:
    found = (_NIC_LEGEND.fullmatch(line) for line in lines)
    return {match.group(1): match.group(2) for match in found if match}
