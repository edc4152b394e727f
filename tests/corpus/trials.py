"""Blind trials: outputs that strangers posted, labelled by two readers before the judgement, and what it said then.

trials.csv has kind, label, answer and source of each; the texts themselves are not ours to ship. A row is never changed.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROWS = list(csv.DictReader((Path(__file__).parent / "trials.csv").open(encoding="utf-8")))
ANSWERS = ("go", "UNKNOWN", "FAIL")
LABELS = ("faulty", "healthy", "job")
FROZEN = "25fa14f382bbd156c86d65f4d9b0016b6bea1d4478e905223416445cc1314565"
MENDED = {
    "1": "a job's log without NCCL's own lines is judged by what it says; nvidia-smi's table, CSV and error sentences, smart-log and "
    "nvbandwidth in their other forms; trouble of which no line shows that it passed is FAIL (`stands`); words of failure "
    "of a driver that training stands on; complaints of a boot's first seconds are harmless by family",
    "2": "fabric logs, topologies and dcgmi's words brought alone; sockets where the fast network is missing, launchers' errors; "
    "drivers of two versions, lost drivers, cut-off oopses; what an out-of-memory report prints is harmless",
    "3": "parts of lists (dots, one vendor's devices, ranks apart), tables of bars, machines of no known type, drivers loaded again, "
    "RDMA devices that a job does without, want of memory in NCCL's words, what nvidia-smi refuses; excerpts that begin in a call "
    "trace, addresses taken out, weak words in a tool's own log (families/excerpts.yml). The figures stand as they came; by today's "
    "code, which has seen these texts, 236 of 240 faulty are caught, 228 by FAIL, and 1 of 136 healthy and 0 of 55 jobs blocked",
    "4": "the column of errors with MIG, fewer GPUs in a text than are attached (UNKNOWN, was FAIL: one may have been asked for), a panic of an old "
    "kernel, screens that could show a panic. Its first reader was its second too, in another order, and did not know the rules; its healthy excerpts that "
    "stay blocked are a list without its head (--format=noheader) and one GPU of eight",
    "5": "nothing yet",
}


def table() -> Iterator[str]:
    """Each round in a row, and what was mended after it."""
    yield "| round | outputs | faulty caught | of them by FAIL | healthy blocked | job's own fault blocked |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name in MENDED:
        found = Counter((row["label"], row["answer"]) for row in ROWS if row["round"] == name)
        size = {label: sum(found[label, answer] for answer in ANSWERS) for label in LABELS}
        stopped = {label: found[label, "FAIL"] + found[label, "UNKNOWN"] for label in LABELS}
        cells = [
            f"{count} of {size[label]} ({count / size[label]:.1%})"
            for label, count in (("faulty", stopped["faulty"]), ("faulty", found["faulty", "FAIL"]),
                                 ("healthy", stopped["healthy"]), ("job", stopped["job"]))
        ]  # fmt: skip
        yield f"| {name} | {sum(size.values())} | {' | '.join(cells)} |"
    yield ""
    yield from (f"- After round {name}: {what}." for name, what in MENDED.items())
