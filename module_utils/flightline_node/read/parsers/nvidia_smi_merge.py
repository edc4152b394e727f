"""Several outputs of nvidia-smi in one file (a loop with -l, a document per GPU with -i): the worst of each GPU counts.

A fault that shows in one of them is not made good by a later one, and a GPU that one of them lists is there. What is
worse follows from the value: an error text, then a flag that is set, then the larger counter; of lanes, memory and
power limits the smaller.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ...model import Facts
from .nvidia_messages import is_error_value

MAX_DOCUMENTS = 256
"""A loop that ran longer is read from its end."""
_LESS_IS_WORSE = frozenset({"width", "width_max", "gen_max", "memory_total_mib", "limit_w", "temperature_tlimit_c"})
"""Not the generation in use: an idle GPU lowers it, and another document may have the draw of a load."""
_FINE = frozenset({"none", "enabled", "completed", "success", "default", "healthy", "full", "false", "no", "n/a", ""})
_IDENTITY = frozenset({"index", "uuid", "serial", "pci_bus_id", "name", "minor_number"})


def merge(documents: List[Facts]) -> Facts:
    """One output of many, in the order in which the GPUs were first listed."""
    found: Dict[Tuple[str, str], Facts] = {}
    for document in documents:
        for gpu in document.get("gpus", []):
            key = _key(gpu)
            found[key] = _worse(found[key], gpu, "") if key in found else gpu
    listed = [{**gpu, "index": index} for index, gpu in enumerate(found.values())]
    merged: Facts = {**documents[-1], "gpus": listed, "errors": [], "warnings": []}
    attached = [d["attached_gpus"] for d in documents if isinstance(d.get("attached_gpus"), int)]
    if attached:
        merged["attached_gpus"] = min(attached)
    if attached and min(attached) < max(attached):
        text = f"a GPU is lost: {max(attached)} attached GPUs in one document, {min(attached)} in another"
        merged["errors"].append({"pci_bus_id": None, "text": text})
    whole = len(listed) >= max(attached, default=0)
    for document in documents:
        for error in document.get("errors", []):
            # One document per GPU lists one of many each: all of them together are whole.
            partial = "attached GPUs are " in str(error.get("text"))
            if error not in merged["errors"] and not (partial and whole):
                merged["errors"].append(error)
        merged["warnings"] += [text for text in document.get("warnings", []) if text not in merged["warnings"]]
    return merged


def _key(gpu: Facts) -> Tuple[str, str]:
    for name in ("pci_bus_id", "uuid"):
        value = gpu.get(name)
        if isinstance(value, str) and not is_error_value(value):
            return name, value.lower()
    return "index", str(gpu.get("index"))


def _worse(one: Any, other: Any, name: str) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = list(dict.fromkeys([*one, *other]))
        return {
            key: _worse(one[key], other[key], key) if key in one and key in other else one.get(key, other.get(key))
            for key in keys
        }
    if one == other or other is None or (name in _IDENTITY and _is_value(one)):
        return one
    if one is None or (name in _IDENTITY and _is_value(other)):
        return other
    if isinstance(one, list) and isinstance(other, list):
        return one + [item for item in other if item not in one]
    return _worse_value(one, other, name)


def _is_value(value: Any) -> bool:
    return value is not None and not (isinstance(value, str) and is_error_value(value))


def _worse_value(one: Any, other: Any, name: str) -> Any:
    for value in (one, other):
        if isinstance(value, str) and is_error_value(value):
            return value
    if isinstance(one, bool) and isinstance(other, bool):
        return one or other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return min(one, other) if name in _LESS_IS_WORSE else max(one, other)
    return one if str(other).strip().lower() in _FINE else other
