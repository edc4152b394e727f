"""How many facts that a person read in an output the parsers read alike.

`python -m tests.corpus.facts FILE...`: each line of a file is {"text": the output, "facts": {...}}, with "file" (the name
that a bundle has for it) or "kind" (the command) where the text alone does not say what it is. Prints every fact that is
read otherwise, the keys that nothing here compares (not counted), and the share that agrees. Exit status 1 below 99.5 %.

Keys are taken as they come; values are compared strictly: an Xid by code and address, a version letter by letter. Each
part of a list or mapping is a fact of its own. The texts of strangers stay outside this repository.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from flightline_node.judge.kernel_history import pci_key
from flightline_node.read.facts import FactBook
from flightline_node.read.kinds import KINDS, FileKind, kind_of
from tests.harness import InMemory

WANTED = 0.995
Read = Mapping[str, Any]
"""What every parser read of a text, by the parser's name."""


def _kind(item: Mapping[str, Any]) -> FileKind | None:
    kind = str(item.get("kind", "")).lower()
    named = [one for one in KINDS if kind.startswith(one.what.lower().removeprefix("a "))]
    return max(named, key=lambda one: len(one.what)) if named else kind_of(item["text"].encode())


def read(item: Mapping[str, Any]) -> Read:
    """The facts of all parsers."""
    text, found = (item["text"] + "\n").encode(), _kind(item)
    file = str(item.get("file") or (found.file if found else "nccl-debug.log"))
    return FactBook(InMemory({file.replace("<collective>", "all_reduce"): text})).read_all()


def _gpus(read: Read) -> list[dict[str, Any]]:
    return [gpu for name in ("nvidia_smi", "nvlink") for gpu in read.get(name, {}).get("gpus", [])]


def _runs(read: Read, key: str) -> list[Any]:
    return [run[key] for run in read.get("nccl_tests", {}).get("runs", []) if key in run]


def _codes(read: Read, name: str) -> list[Any]:
    events = read.get("kernel", {}).get(name, [])
    return [(event["code"], pci_key(event.get("pci"))) for event in events] + [event["code"] for event in events]


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word in a value, with the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _paths(one, f"{path}.{key}")
    elif isinstance(value, list):
        for one in value:
            yield from _paths(one, path)
    elif value is not None:
        yield path, value


def _of_gpus(path: str) -> Callable[[Read], list[Any]]:
    """Values of each GPU alone and as (GPU, value): every one below keys in which the pattern stands."""
    return lambda read: [one for gpu in _gpus(read) for one in _named(gpu, path)]


def _named(gpu: Mapping[str, Any], path: str) -> Iterator[Any]:
    for key, value in _paths(gpu):
        if re.search(path, key):
            yield from () if isinstance(value, bool) else (value,)
            yield from ((name, value) for name in (gpu.get("index"), pci_key(gpu.get("pci_bus_id")), gpu.get("uuid")))


def _of(*places: str) -> Callable[[Read], list[Any]]:
    """Values at `parser.key`."""
    split = [place.partition(".") for place in places]
    return lambda read: [one for name, _, key in split for _, one in _paths(read.get(name, {}).get(key))]


def _number_of_gpus(read: Read) -> list[Any]:
    smi, kernel = read.get("nvidia_smi", {}), read.get("kernel", {})
    lists = [smi.get("gpus"), read.get("nvlink", {}).get("gpus"), read.get("nvidia_smi_topo", {}).get("gpus")]
    matrices = [test.get("matrix") or [[]] for test in read.get("nvbandwidth", {}).get("tests", [])]
    lists += [max(matrix, matrix[0], key=len) for matrix in matrices]  # each GPU's own copy is one row
    counts = [len(one) for one in (*lists, kernel.get("gpu_uuids")) if one]
    counts += [*_runs(read, "ranks"), *_of("nccl_debug.ranks", "nccl_debug.gpus", "lspci.nvidia_gpus")(read)]
    return [*counts, smi.get("attached_gpus")]


READERS: Mapping[str, Callable[[Read], list[Any]]] = {
    "xid": lambda read: _codes(read, "xids"),
    "sxid": lambda read: _codes(read, "sxids"),
    "falleno": lambda read: [pci_key(event.get("pci")) for event in read.get("kernel", {}).get("fallen_off_bus", [])],
    "driver": _of("nvidia_smi.driver_version", "kernel.driver_version", "nvbandwidth.driver_version", "dcgm_diag.driver_version"),
    "cudaver": _of("nvidia_smi.cuda_version", "nccl_debug.nccl_cuda_version"),
    "gpucount": _number_of_gpus,
    "gpus": _number_of_gpus,
    "busbwavg": lambda read: [*_runs(read, "avg_busbw_gb_s"), *_of("nccom_test.runs")(read)],
    "avgbusbw": lambda read: _runs(read, "avg_busbw_gb_s"),
    "busbw": lambda read: [
        one for sizes in _runs(read, "sizes") for size in sizes for key in ("busbw_gb_s", "in_place_gb_s")
        for one in (size[key], (size["bytes"], size[key]))
    ] + _of("nccom_test.runs")(read),
    "ranks": lambda read: [*_runs(read, "ranks"), read.get("nccl_debug", {}).get("ranks")],
    "ncclver": _of("nccl_debug.nccl_version", "nccl_tests.nccl_version"),
    "ofiver": _of("nccl_debug.ofi_plugin_version"),
    "eccuncorrected": _of_gpus("ecc.*uncorr"),
    "ecccorrected": _of_gpus("ecc.*(?<!un)corr"),
    "remappedrowspending": _of_gpus("remap.pending"),
    "remappedrowsfail": _of_gpus("remap.failure"),
    "remappedrowsuncorr": _of_gpus("remap.*uncorr"),
    "remappedrows": _of_gpus("remap"),
    "remappedrowscorr": _of_gpus("remap.*(?<!un)corr"),
    "pciewidth": _of_gpus("pcie.*width"),
    "nvlinkinactive": _of_gpus("inactive"),
    "nvlinklinks": _of_gpus("[.]links$"),
    "nvlinkerrors": _of_gpus("[.]errors"),
    "efa": lambda read: [len(read["fi_info"]["devices"])] if "fi_info" in read else _of("lspci.efa", "nccl_debug.nics")(read),
    "provider": lambda read: [*_of("nccl_debug.provider")(read), *(["efa"] if read.get("fi_info", {}).get("devices") else [])],
    "neurondevices": lambda read: [len(read["neuron_ls"]["devices"])] if "neuron_ls" in read else [],
    "neuroncores": lambda read: [device.get("cores") for device in read.get("neuron_ls", {}).get("devices", [])],
}  # fmt: skip
"""By the beginning of a key without anything but letters: every value that would be that fact."""
_OTHERS = re.compile(r"reachable|reported|configured|died|faulty|bound|expected")
"""Keys that begin as one of these and are what another tool says of itself or of a failure."""


def _parts(key: str, value: Any) -> Iterator[Any]:
    """The single facts in a value: an Xid is one with its address, a mapping has one for each GPU."""
    if isinstance(value, Mapping) and {"code", "value"} & set(value):
        number = value.get("code", value.get("value"))
        where = value.get("device", value.get("pci", value.get("size")))
        yield number if where is None else (number, where) if "xid" in key else (where, number)
    elif isinstance(value, Mapping):
        yield from ((name, part) for name, one in value.items() for _, part in _paths(one))
    elif isinstance(value, list) and len(value) == 2 and {type(one) for one in value} == {int, str}:
        yield tuple(value)
    elif isinstance(value, list) and value:
        for one in value:
            yield from _parts(key, one)
    else:
        yield value


def _plain(value: Any) -> Any:
    """As both sides write it: a GPU by its number or address, yes as true, a number as such."""
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    if not isinstance(value, str):
        return value
    word = value.strip()
    link = re.fullmatch(r"gpu[ _#-]?(\d{1,4})[ ,:/-]+link[ _#-]?(\d{1,3})", word, re.IGNORECASE)
    if link:
        return (int(link.group(1)), int(link.group(2)))
    gpu = re.fullmatch(r"(?:gpu)?[ _#-]?(\d{1,4})", word, re.IGNORECASE)
    if gpu or word.lower() in ("yes", "no", "true", "false"):
        return int(gpu.group(1)) if gpu else word.lower() in ("yes", "true")
    if re.fullmatch(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?", word):
        return pci_key(word)
    return word


def compare(item: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool | None]]:
    """(key, fact, does it agree) for each fact; None where nothing here reads such a fact."""
    seen = read(item)
    given = item["facts"]
    if isinstance(given, list):  # one entry a fact: {"fact": key, "value": ..., "device": ...}
        pairs = [(one["fact"], {k: v for k, v in one.items() if k != "fact"}) for one in given]
    else:
        pairs = list(given.items())
    for name, value in pairs:
        key = re.sub(r"[^a-z]", "", name.lower())
        reader = next(
            (READERS[known] for known in sorted(READERS, key=len, reverse=True) if key.startswith(known)), None
        )
        if _OTHERS.search(key) or (_kind(item) is None and "file" not in item):
            reader = None
        found = {_plain(one) for one in reader(seen)} if reader else set()
        for part in _parts(key, value):
            yield name, part, _agrees(_plain(part), found) if reader else None


def _agrees(part: Any, found: set[Any]) -> bool:
    """Is it among the values? A list of GPUs alone names those that have some; an empty one says that none has."""
    some = {one[0] for one in found if isinstance(one, tuple) and one[1] not in (0, False)}
    return not some if part == [] else part in found or part in some


def main(files: list[str]) -> int:
    """Print what differs and the share that agrees; 0 where that is what is wanted."""
    right = total = 0
    unknown: Counter[str] = Counter()
    for path in files:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            for name, part, agrees in compare(item) if item.get("facts") else ():
                unknown[name] += agrees is None
                total += agrees is not None
                right += bool(agrees)
                if agrees is False:
                    sys.stdout.write(f"{item.get('id', '?')}: {name}: {part}\n")
    others = ", ".join(f"{name} {count}" for name, count in unknown.most_common() if count)
    sys.stdout.write(f"not compared: {others or 'nothing'}\n{right} of {total} facts read alike")
    sys.stdout.write(f" ({right / total:.1%})\n" if total else "\n")
    return 0 if total and right / total >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
