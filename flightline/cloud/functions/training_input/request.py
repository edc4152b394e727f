"""What may be asked for: the request to start a training run. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.errors import InvalidEvent
from ..common.training import NAME

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
JOB = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/=+ -]{1,512}")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
VALUE = re.compile(r"[A-Za-z0-9_./:=,@+ -]{0,256}")
MODES = ("list", "presign", "stage")
MAX_NODES = 5000
MAX_PARAMETERS = 50
MAX_PARAMETER_BYTES = 6_000
"""As JSON; base64 makes 8,000 of them, and the SSM document takes 8,192 characters."""
MAX_OBJECTS: Mapping[str, int] = {"list": 250_000, "presign": 20_000, "stage": 20_000}
"""By mode, what 512 MiB and two minutes are enough for: 250,000 rows take 210 MB, signing takes 0.4 ms each."""
KEYS = frozenset({"request_id", "job", "dataset", "model", "data", "nodes", "parameters", "max_result_age_hours"})


@dataclass(frozen=True)
class StagingRequest:
    """A checked request. instance_ids: empty for every running GPU node of the cluster.

    need: nodes without which it does not start; those that are not go are left out, more are spares. 0: all.

    mode: "list" writes the keys into the manifest, "presign" adds a link to each, "stage" copies the objects first.
    """

    request_id: str
    job: str
    dataset: str
    model: str
    prefix: str
    mode: str = "list"
    suffixes: tuple[str, ...] = ()
    instance_ids: tuple[str, ...] = ()
    need: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)
    max_result_age_hours: float = 24.0


def read(raw: object) -> StagingRequest:
    """Check a request. Raises InvalidEvent that names everything wrong with it."""
    if not isinstance(raw, Mapping):
        raise InvalidEvent(f"a {type(raw).__name__}, wanted an object")
    data, nodes, parameters = (_object(raw, key) for key in ("data", "nodes", "parameters"))
    wrong = [
        *_unknown(raw),
        *_word(raw, "request_id", REQUEST_ID, "8 to 64 letters, digits, _ and -"),
        *_word(raw, "job", JOB, "1 to 63 lower-case letters, digits and -"),
        *_word(raw, "dataset", NAME, "letters, digits and ._/- (1 to 128)"),
        *_word(raw, "model", NAME, "letters, digits and ._/- (1 to 128)"),
        *_data_problems(data),
        *_node_problems(nodes),
        *_parameter_problems(parameters),
        *_age_problems(raw.get("max_result_age_hours", 24)),
    ]
    if wrong:
        raise InvalidEvent("; ".join(wrong))
    return StagingRequest(
        raw["request_id"],
        raw["job"],
        raw["dataset"],
        raw["model"],
        data["prefix"],
        data.get("mode", "list"),
        tuple(data.get("suffixes") or ()),
        tuple(dict.fromkeys(nodes.get("instance_ids") or ())),
        int(nodes.get("need", 0)),
        {name: str(value) for name, value in parameters.items()},
        float(raw.get("max_result_age_hours", 24)),
    )


def _object(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _unknown(raw: Mapping[str, Any]) -> list[str]:
    unknown = sorted(set(map(str, raw)) - KEYS)
    return [f"unknown keys {', '.join(unknown)[:200]}: known are {', '.join(sorted(KEYS))}"] if unknown else []


def _word(raw: Mapping[str, Any], key: str, pattern: re.Pattern[str], wanted: str) -> list[str]:
    value = raw.get(key)
    good = isinstance(value, str) and pattern.fullmatch(value)
    return [] if good else [f"{key} {str(value)[:60]!r}: wanted {wanted}"]


def _data_problems(data: Mapping[str, Any]) -> list[str]:
    prefix, mode, suffixes = data.get("prefix"), data.get("mode", "list"), data.get("suffixes") or []
    wrong = []
    if not (isinstance(prefix, str) and PREFIX.fullmatch(prefix)) or prefix.startswith("/") or ".." in prefix:
        wrong.append(f"data.prefix {str(prefix)[:60]!r}: wanted a key prefix in the data bucket")
    if mode not in MODES:
        wrong.append(f"data.mode {mode!r}: wanted one of {', '.join(MODES)}")
    if not (isinstance(suffixes, list) and all(isinstance(item, str) and 0 < len(item) <= 32 for item in suffixes)):
        wrong.append("data.suffixes: wanted a list of endings such as .parquet")
    return wrong


def _node_problems(nodes: Mapping[str, Any]) -> list[str]:
    ids, everyone, need = nodes.get("instance_ids"), nodes.get("all", False), nodes.get("need", 1)
    if isinstance(need, bool) or not isinstance(need, int) or not 1 <= need <= MAX_NODES:
        return [f"nodes.need {need!r}: wanted 1 to {MAX_NODES}, the nodes that the run cannot do without"]
    if everyone is True and not ids:
        return []
    if everyone or not isinstance(ids, list) or not 0 < len(ids) <= MAX_NODES:
        return [f'nodes: wanted {{"all": true}} or {{"instance_ids": [...]}} with 1 to {MAX_NODES} ids']
    wrong = [str(item)[:30] for item in ids if not (isinstance(item, str) and INSTANCE.fullmatch(item))]
    return [f"nodes.instance_ids: {', '.join(wrong[:5])} are no instance ids"] if wrong else []


def _parameter_problems(parameters: Mapping[str, Any]) -> list[str]:
    if len(parameters) > MAX_PARAMETERS:
        return [f"{len(parameters)} parameters: at most {MAX_PARAMETERS}"]
    size = len(json.dumps({str(name): str(value) for name, value in parameters.items()}))
    if size > MAX_PARAMETER_BYTES:
        return [f"parameters of {size:,} bytes: at most {MAX_PARAMETER_BYTES:,}; put more into a file of the data"]
    wrong = [str(name)[:60] for name, value in parameters.items() if not _is_parameter(name, value)]
    return (
        [f"parameters {', '.join(wrong[:5])}: wanted plain names and values without shell characters"] if wrong else []
    )


def _is_parameter(name: object, value: object) -> bool:
    plain = isinstance(value, (str, int, float)) and VALUE.fullmatch(str(value))
    return isinstance(name, str) and bool(PARAMETER.fullmatch(name)) and bool(plain)


def _age_problems(hours: object) -> list[str]:
    good = isinstance(hours, (int, float)) and not isinstance(hours, bool) and 0 < hours <= 24 * 365
    return [] if good else [f"max_result_age_hours {hours!r}: wanted a number of hours above 0"]
