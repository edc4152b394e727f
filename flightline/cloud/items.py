"""A run's results as DynamoDB items, and back. Pure; of boto3 the types only: the Lambda functions ship this file.

The statuses and their order are the node library's, which is shipped as well.

Table layout (`pk`, `sk`; item attributes are plain, so that the console can read them):

    RUN#<run>       META                    the run: level, inventory, verdict, hosts (packed)
    RUN#<run>       RECORD#<host>           a node's summary and its whole record (packed, or where it lies in S3)
    RUN#<run>       LATE#<host>             the record of a node that answered after it was given up, as above
    RUN#<run>       NODE#<node>#<check>     what a check found wrong on a node; node: instance id, else host
    RUNS            <started_at>#<run>      the runs in order of time
    GPU#<serial>    NODE#<host>#<instance>  who had this GPU (serial or UUID): history across instance replacement
    ALERT#<scope>   <node>#<check>#<device> what people have been told

Every item is a function of the run and the record alone (stamps included), so writing it again changes nothing.
Items travel in the types of the low-level client: `marshal` and `unmarshal`.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from flightline_node import model

from ..record.printable import clip, clip_bytes

Item = dict[str, Any]
"""An item in Python's types: str, int, float, bool, None, bytes, list, dict."""

Attributes = dict[str, dict[str, Any]]
"""The same as the low-level client wants it: {"pk": {"S": "RUN#..."}, ...}."""

DEFAULT_TABLE = "flightline-results"
PK, SK, TTL = "pk", "sk", "expires_at"
BY_HOST, BY_INSTANCE, BY_STATUS = "by_host", "by_instance", "by_status"
INDEXES: Mapping[str, tuple[str, str]] = {
    BY_HOST: ("host", "at"),
    BY_INSTANCE: ("instance_id", "at"),
    BY_STATUS: ("status_day", "at"),
}
"""Global secondary indexes: name -> (hash key, range key), all strings; each projects everything.

by_host and by_instance hold the node summaries. by_status holds what is wrong (summaries and findings), a
partition per status and day: 'FAIL#2026-11-21'.
"""

TRAINING_INDEXES: Mapping[str, tuple[str, str]] = {
    "by_dataset": ("dataset", "at"),
    "by_model": ("model", "at"),
    "by_day": ("day", "at"),
}
"""Of training jobs: by data set, by model and by day ("2026-11-21"); `at` begins with the moment of the start."""

RUNS = "RUNS"
META = "META"
RECORD = "RECORD#"
LATE = "LATE#"
NODE = "NODE#"

TROUBLE = model.BLOCKING | {model.Status.WARN}
NO_SERIAL = frozenset({"", "0", "N/A", "[N/A]", "None", "Unknown"})

MAX_ITEM_BYTES = 400 * 1024
"""DynamoDB's limit for an item, attribute names included."""
MAX_BODY_BYTES = 300 * 1024
"""What a packed record may take of it; a larger one goes to S3."""
MAX_FINDINGS = 32
MAX_FINDINGS_BYTES = 256 * 1024
"""What the findings may take of a check's item: 32 long ones of four-byte characters are more than an item may be."""
MAX_TEXT = 2000
MAX_KEY = 900
"""A sort key may have 1,024 bytes."""
DAY_S = 86_400
EXACT = 10**38
"""DynamoDB keeps 38 digits. Source: its limits."""
TTL_DAYS = 90.0
"""Until results expire, unless a setting says otherwise."""


def table_definition(name: str = DEFAULT_TABLE, indexes: Mapping[str, tuple[str, str]] = INDEXES) -> dict[str, Any]:
    """A table as `create_table` takes it; the infrastructure program declares the same."""
    names = sorted({PK, SK, *(part for keys in indexes.values() for part in keys)})
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": part, "AttributeType": "S"} for part in names],
        "KeySchema": _keys(PK, SK),
        "GlobalSecondaryIndexes": [
            {"IndexName": index, "KeySchema": _keys(*keys), "Projection": {"ProjectionType": "ALL"}}
            for index, keys in indexes.items()
        ],
    }


def _keys(first: str, second: str) -> list[dict[str, str]]:
    return [{"AttributeName": first, "KeyType": "HASH"}, {"AttributeName": second, "KeyType": "RANGE"}]


def part(text: object) -> str:
    """Text as a part of a key: '#' separates parts, so it cannot be in one."""
    return clip_bytes(str(text).replace("%", "%25").replace("#", "%23"), MAX_KEY)


def run_pk(run_id: str) -> str:
    """Partition of a run."""
    return f"RUN#{part(run_id)}"


def gpu_pk(name: str) -> str:
    """Partition of a GPU, by serial or UUID."""
    return f"GPU#{part(name)}"


def alert_pk(scope: str) -> str:
    """Partition of what people have been told in a scope (a fleet)."""
    return f"ALERT#{part(scope)}"


def expiry(stamp: str, days: float) -> int:
    """When an item of that moment may go, in seconds since 1970; 0 is never. From the run's stamp, not from now."""
    return int(datetime.fromisoformat(stamp).timestamp() + days * DAY_S) if days > 0 else 0


def run_item(run: Mapping[str, Any], ttl_days: float) -> Item:
    """The run's header. run: run_id, started_at, level, inventory, hosts (list of host, instance_type, instance_id)."""
    return _with_ttl(
        {
            PK: run_pk(run["run_id"]),
            SK: META,
            "kind": "run",
            "run_id": run["run_id"],
            "started_at": run["started_at"],
            "finished_at": "",
            "verdict": "",
            "level": run.get("level", ""),
            "inventory": run.get("inventory", ""),
            "nodes": len(run.get("hosts") or ()),
            "body": pack([dict(host) for host in run.get("hosts") or ()]),
        },
        run,
        ttl_days,
    )


def run_entry(run: Mapping[str, Any], ttl_days: float) -> Item:
    """The run's place in the order of time."""
    sk = f"{run['started_at']}#{part(run['run_id'])}"
    return _with_ttl({PK: RUNS, SK: sk, "kind": "entry", "run_id": run["run_id"]}, run, ttl_days)


def shared_instances(run: Mapping[str, Any]) -> frozenset[str]:
    """Instance ids that several hosts of a run claim: a mistake that must not make them overwrite each other."""
    seen: set[str] = set()
    twice: set[str] = set()
    for host in run.get("hosts") or ():
        instance = str(host.get("instance_id") or "")
        (twice if instance in seen else seen).add(instance)
    return frozenset(twice - {""})


def node_name(record: Mapping[str, Any], shared: Collection[str] = ()) -> str:
    """What a node is called in keys: its instance id, else its host name; both when the id is not its alone."""
    instance, host = str(record.get("instance_id") or ""), str(record["host"])
    return f"{instance}@{host}" if instance in shared else instance or host


def worst(findings: Iterable[Mapping[str, Any]]) -> str:
    """The worst status of findings; a word that no version knows is UNKNOWN, none at all is SKIP."""
    return str(model.worst(model.as_status(finding.get("status")) for finding in findings))


def _worst_first(finding: Mapping[str, Any]) -> int:
    return -model.RANK[model.as_status(finding.get("status"))]


def record_item(run: Mapping[str, Any], record: Mapping[str, Any], ttl_days: float, **rest: Any) -> Item:
    """A node's summary with its whole record packed in `body`. rest: more attributes, such as `bundle`.

    When `body` is longer than MAX_BODY_BYTES, put it elsewhere and use `without_body`.
    """
    findings = record.get("findings") or []
    status = worst(findings)
    item: Item = {
        PK: run_pk(run["run_id"]),
        SK: RECORD + part(record["host"]),
        "kind": "node",
        "run_id": run["run_id"],
        "started_at": run["started_at"],
        "measured_at": str(record.get("started_at") or ""),
        "at": at(run),
        "host": str(record["host"]),
        "instance_id": str(record.get("instance_id") or ""),
        "instance_type": str(record.get("instance_type") or ""),
        "verdict": str(record.get("verdict") or ""),
        "status": status,
        "wrong": _wrong(findings),
        "body": pack(record),
        **{name: value for name, value in rest.items() if value},
    }
    if status in TROUBLE:
        item["status_day"] = status_day(status, run["started_at"])
    if not item["instance_id"]:
        del item["instance_id"]  # an index key cannot be empty
    return _with_ttl(item, run, ttl_days)


def late_item(run: Mapping[str, Any], record: Mapping[str, Any], ttl_days: float) -> Item:
    """The record of a node that was given up; in no index, so that no history takes it for the run's verdict of it."""
    made = record_item(run, record, ttl_days)
    kept = (PK, "run_id", "started_at", "measured_at", "verdict", "status", "body", TTL)
    named = {"late_host": str(record["host"]), "kind": "late"}
    return {**{name: made[name] for name in kept if name in made}, SK: LATE + part(record["host"]), **named}


def without_body(item: Mapping[str, Any], place: str) -> Item:
    """The summary when its record lies in S3 (place: s3://bucket/key)."""
    return {**{name: value for name, value in item.items() if name != "body"}, "body_at": place}


def finding_items(
    run: Mapping[str, Any], record: Mapping[str, Any], ttl_days: float, shared: Collection[str] = ()
) -> list[Item]:
    """What is wrong with a node, an item per check: bounded, because the whole is in the record."""
    per_check: dict[str, list[Mapping[str, Any]]] = {}
    for finding in record.get("findings") or []:
        if worst([finding]) in TROUBLE:
            per_check.setdefault(str(finding.get("check")), []).append(finding)
    node = node_name(record, shared)
    return [_finding_item(run, record, ttl_days, node, check, found) for check, found in per_check.items()]


def _finding_item(
    run: Mapping[str, Any],
    record: Mapping[str, Any],
    ttl_days: float,
    node: str,
    check: str,
    found: list[Mapping[str, Any]],
) -> Item:
    ordered = sorted(found, key=_worst_first)
    status, kept = worst(found), _fitting(ordered)
    item: Item = {
        PK: run_pk(run["run_id"]),
        SK: f"{NODE}{part(node)}#{part(check)}",
        "kind": "finding",
        "run_id": run["run_id"],
        "started_at": run["started_at"],
        "at": at(run),
        "node": node,
        "node_host": str(record["host"]),  # not `host`: findings are not in the index of the nodes
        "check": check,
        "status": status,
        "status_day": status_day(status, run["started_at"]),
        "message": clip(str(ordered[0].get("message") or ""), MAX_TEXT),
        "remedy": str(ordered[0].get("remedy") or "NONE"),
        "findings": kept,
        "more": len(ordered) - len(kept),
    }
    return _with_ttl(item, run, ttl_days)


def _fitting(findings: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The first findings, each bounded, as many as an item can hold."""
    kept: list[Item] = []
    room = MAX_FINDINGS_BYTES
    for finding in map(_bounded, findings):
        room -= _size(finding)
        if room < 0 or len(kept) == MAX_FINDINGS:
            break
        kept.append(finding)
    return kept


def gpu_items(record: Mapping[str, Any]) -> list[Item]:
    """Who has these GPUs: an item per serial and UUID. The same in every run: written once, and it does not expire."""
    host, instance = str(record["host"]), str(record.get("instance_id") or "")
    names = {str(gpu.get(key) or "") for gpu in record.get("gpus") or () for key in ("serial", "uuid")} - NO_SERIAL
    sk = f"{NODE}{part(host)}#{part(instance)}"
    # Not `host` and `instance_id`: these items belong in no index.
    return [
        {PK: gpu_pk(name), SK: sk, "kind": "gpu", "gpu": name, "node_host": host, "node_instance": instance}
        for name in sorted(names)
    ]


def node_items(
    run: Mapping[str, Any], record: Mapping[str, Any], ttl_days: float, shared: Collection[str] = (), **rest: Any
) -> list[Item]:
    """Everything of one node in one run: findings first, so that a summary that is there has its findings."""
    return [*finding_items(run, record, ttl_days, shared), record_item(run, record, ttl_days, **rest)]


def alert_item(scope: str, key: str, kept: Mapping[str, Any], now: str, ttl_days: float) -> Item:
    """What people have been told about one trouble. kept: as messages.plan() gives it in `put`."""
    return _with_ttl({PK: alert_pk(scope), SK: key, **kept}, {"started_at": now}, ttl_days)


def at(run: Mapping[str, Any]) -> str:
    """Range key of the indexes: by time, then by run."""
    return f"{run['started_at']}#{run['run_id']}"


def status_day(status: str, stamp: str) -> str:
    """Partition of by_status; a day's worth, so that no partition grows hot or without end."""
    return f"{status}#{stamp[:10]}"


def pack(value: Any) -> bytes:
    """JSON, compressed; the same bytes for the same value."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), default=str).encode(), 6)


def unpack(body: bytes) -> Any:
    """What `pack` packed. Raises ValueError for anything else."""
    try:
        return json.loads(zlib.decompress(bytes(body)))
    except zlib.error as error:
        raise ValueError(f"not a packed record: {error}") from error


def shortened(record: Mapping[str, Any]) -> Item:
    """A record that is too large and has no other place, made to fit: what is wrong first, the rest left out.

    What is left out can only be better than what is kept, so the record's verdict stays what it was.
    """
    findings = sorted(record.get("findings") or [], key=_worst_first)
    kept = {key: value for key, value in record.items() if key not in ("measures", "probes", "findings")}
    for most in (120, 30, 8):
        made = {
            **kept,
            "measures": {},
            "findings": [_bounded(finding) for finding in findings[:most]],
            "shortened": f"too large for the store: {max(len(findings) - most, 0)} findings and all measures left out",
        }
        if len(pack(made)) <= MAX_BODY_BYTES:
            return made
    return {**{key: kept[key] for key in _IDENTITY if key in kept}, "findings": made["findings"][:1]}


_IDENTITY = ("schema", "host", "instance_id", "instance_type", "level", "verdict", "started_at", "seconds")


def _wrong(findings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Check -> status of what is wrong: why, at a glance."""
    wrong: dict[str, str] = {}
    for finding in findings:
        status, check = model.as_status(finding.get("status")), str(finding.get("check"))
        if status in TROUBLE and model.RANK[status] > model.RANK[model.as_status(wrong.get(check, model.Status.SKIP))]:
            wrong[check] = str(status)
    return dict(sorted(wrong.items(), key=lambda pair: (-model.RANK[model.as_status(pair[1])], pair[0]))[:100])


def _bounded(finding: Mapping[str, Any]) -> Item:
    evidence = finding.get("evidence") or []
    short = {key: _bounded_value(value) for key, value in finding.items() if key != "evidence"}
    return {**short, "evidence": [clip(str(line), 300) for line in evidence[:8]]} if evidence else short


def _bounded_value(value: Any) -> Any:
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return value if len(text) <= MAX_TEXT else clip(text, MAX_TEXT)


def _with_ttl(item: Item, run: Mapping[str, Any], ttl_days: float) -> Item:
    expires = expiry(run["started_at"], ttl_days)
    return {**item, TTL: expires} if expires else item


def marshal(item: Mapping[str, Any]) -> Attributes:
    """An item as the low-level client sends it."""
    serialize, _ = _converters()
    return {name: serialize(_storable(value)) for name, value in item.items()}


def unmarshal(attributes: Mapping[str, Mapping[str, Any]]) -> Item:
    """An item as the low-level client returned it."""
    _, deserialize = _converters()
    return {name: _plain(deserialize(value)) for name, value in attributes.items()}


@functools.cache
def _converters() -> tuple[Callable[[Any], dict[str, Any]], Callable[[Any], Any]]:
    """boto3's own, imported with the first item: what only reads names of this file needs no boto3."""
    from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

    return TypeSerializer().serialize, TypeDeserializer().deserialize


def _storable(value: Any) -> Any:
    """A value as boto3 takes it. What DynamoDB's numbers cannot hold (NaN, 39 digits and more) becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, Mapping):
        return {str(name): _storable(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(part) for part in value]
    return str(value).encode("utf-8", "replace").decode()  # a lone surrogate cannot travel


def _number(value: int | float | Decimal) -> int | Decimal | str:
    """boto3 refuses float, and what it would have to round."""
    if isinstance(value, int) and abs(value) < EXACT:
        return value
    number = Decimal(repr(value) if isinstance(value, float) else value)
    serialize, _ = _converters()
    try:
        serialize(number)
    except (ArithmeticError, TypeError):
        return repr(value) if isinstance(value, float) else str(value)
    return number


def _plain(value: Any) -> Any:
    """A value in Python's types: boto3 gives Decimal for every number and its own type for bytes."""
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return bytes(value) if type(value).__name__ == "Binary" else value


def size(item: Mapping[str, Any]) -> int:
    """Bytes of an item as DynamoDB counts them: names, UTF-8 text, raw binary, an overhead per element."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Any) -> int:
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, (int, float, Decimal)):
        return 21
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    if isinstance(value, Mapping):
        return 3 + sum(1 + len(str(name).encode()) + _size(part) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return 3 + sum(1 + _size(part) for part in value)
    return len(str(value).encode("utf-8", "replace"))
