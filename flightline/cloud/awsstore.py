"""The run store in DynamoDB, with S3 for what is too large for an item. The same interface as SQLite's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ..record.intake import stored
from ..store.sqlite import LATEST, TOGETHER, ExpectedHost, Past, Record, Run, StoreError
from . import batches, blobs, items
from .clients import Clients, explain, is_aws_error

MOST_FINDINGS_IN_SAVE = 99
"""TransactWriteItems takes 100 items; one is the summary."""
READERS, MOST_SINGLY = 16, 1000
"""Records read at a time one by one; for more of them the whole run is read, in pages of 1 MB."""
RUN_FIELDS = ("run_id", "started_at", "level", "inventory", "finished_at", "verdict")
PAST_FIELDS = ("run_id", "started_at", "host", "verdict", "status")


def run_dict(run: Run) -> dict[str, Any]:
    """A run as items.py takes it."""
    return {**vars(run), "hosts": [vars(host) for host in run.hosts]}


REFUSED = frozenset({"ValidationException", "ItemCollectionSizeLimitExceededException"})
"""What the same request will meet again."""


class StoreRefusedError(StoreError):
    """The store will never take this."""


class AwsStore:
    """Runs in one DynamoDB table. See store.Store for the methods."""

    def __init__(
        self,
        table: str = items.DEFAULT_TABLE,
        bucket: str = "",
        clients: Clients | None = None,
        ttl_days: float = items.TTL_DAYS,
    ) -> None:
        self.table, self.bucket, self.ttl_days = table, bucket, ttl_days
        self.path = f"aws:{table}"
        self.stats = batches.Stats()
        self._clients = clients or Clients()
        self._runs: dict[str, Run] = {}
        self._held: dict[str, dict[str, Mapping[str, Any]]] = {}

    def __enter__(self) -> AwsStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _guard(self, action: str) -> Iterator[Any]:
        """The table's client, with every error of AWS in words."""
        try:
            yield self._clients.get("dynamodb")
        except batches.NotWrittenError as error:
            raise StoreError(
                f"saw {error}; wanted the table to take it; do: it is throttled, raise its capacity or try again later"
            ) from error
        except Exception as error:
            if not is_aws_error(error):
                raise
            kind = StoreRefusedError if batches.error_code(error) in REFUSED else StoreError
            why = explain(error, f"{self.path}: cannot {action}")
            raise kind(f"saw {why}; wanted AWS to do it") from error

    def start(self, run: Run) -> None:
        """Open a run; the run of that id that is there already stays. Another run under that id is refused."""
        item = items.run_item(run_dict(run), self.ttl_days)
        with self._guard("write") as client:
            if not batches.put_new(client, self.table, items.marshal(item)):
                there = self._get(client, run.run_id) or {}
                if (there.get("started_at"), there.get("body")) != (item["started_at"], item["body"]):
                    text = f"{self.path}: saw that {run.run_id} belongs to another run; wanted this one; nothing kept"
                    raise StoreRefusedError(text)
            entry = items.marshal(items.run_entry(run_dict(run), self.ttl_days))
            client.put_item(TableName=self.table, Item=entry)
        self._runs[run.run_id] = run

    def save(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a record and its findings together, or not at all when the run has one for the host."""
        run = self._known(run_id)
        shared = items.shared_instances(run_dict(run))
        made = self._node_items(run, record, shared, {})
        summary, findings = made[-1], made[:-1][:MOST_FINDINGS_IN_SAVE]
        puts: list[dict[str, Any]] = [{"Put": self._put(item)} for item in findings]
        puts.append({"Put": {**self._put(summary), "ConditionExpression": "attribute_not_exists(pk)"}})
        with self._guard("write") as client:
            batches.write_all(client, self.table, map(items.marshal, items.gpu_items(record)))
            try:
                client.transact_write_items(TransactItems=puts)
            except Exception as error:
                if batches.error_code(error) == "TransactionCanceledException" and _exists(error):
                    return False
                raise
        return True

    def save_many(
        self,
        run: Run,
        records: Iterable[Record],
        bundles: Mapping[str, str] | None = None,
        known_gpus: Collection[str] = (),
    ) -> set[str]:
        """Keep a run's records in batches. The run must have been started by this store's owner.

        bundles: host -> where its bundle lies. known_gpus: GPU items that are there already, as `gpu_names` names
        them. Returns those that were written. Repeating it changes nothing: items are functions of the records.
        """
        shared, places, written = items.shared_instances(run_dict(run)), bundles or {}, set[str]()

        def stream() -> Iterator[dict[str, Any]]:
            for record in records:
                for item in items.gpu_items(record):
                    name = gpu_name(item)
                    if name not in known_gpus and name not in written:
                        written.add(name)
                        yield item
                place = places.get(str(record["host"]), "")
                yield from self._node_items(run, record, shared, {"bundle": place})

        with self._guard("write") as client:
            stats = batches.write_all(client, self.table, map(items.marshal, stream()))
        self.stats = stats
        return written

    def finish(self, run_id: str, finished_at: str, verdict: str) -> None:
        """Close a run; the first closing stays."""
        with self._guard("write") as client:
            try:
                client.update_item(
                    TableName=self.table,
                    Key=items.marshal({items.PK: items.run_pk(run_id), items.SK: items.META}),
                    UpdateExpression="SET finished_at = :at, verdict = :verdict",
                    ConditionExpression="finished_at = :open",
                    ExpressionAttributeValues=items.marshal({":at": finished_at, ":verdict": verdict, ":open": ""}),
                )
            except Exception as error:
                if batches.error_code(error) != batches.EXISTS:
                    raise

    def run(self, run_id: str) -> Run:
        """A run by id, or the one started last by its stamp for "latest": several control nodes write here."""
        wanted = run_id
        if run_id == LATEST:
            wanted = next((entry["run_id"] for entry in self._query(items.RUNS, limit=1, newest=True)), "")
        with self._guard("read") as client:
            item = self._get(client, wanted) if wanted else None
        if item is None:
            known = ", ".join(run.run_id for run in self.runs(5)) or "none"
            raise StoreError(f"{self.path}: saw no run {run_id!r}; wanted one of the store, newest runs: {known}")
        return _run(item, tuple(ExpectedHost(**host) for host in items.unpack(item["body"])))

    def runs(self, limit: int = 20) -> list[Run]:
        """The newest runs, newest first."""
        found = []
        for entry in self._query(items.RUNS, limit=limit, newest=True):
            with self._guard("read") as client:
                item = self._get(client, entry["run_id"], RUN_FIELDS)
            if item:
                found.append(_run(item, ()))
        return found

    def records(self, run_id: str) -> Iterator[Record]:
        """Stream the records of a run, in inventory order; packed, they all fit in memory."""
        run = self.run(run_id)
        packed = dict(self._held.get(run.run_id) or self._packed(run.run_id))
        for host in (*(host.host for host in run.hosts), TOGETHER):
            record = self._record(packed.pop(host, None))
            if record:
                yield record

    @contextmanager
    def holding(self, run_id: str) -> Iterator[None]:
        """Read a run's records once for all that is asked of them inside; packed, 10,000 take some 40 MB."""
        self._held[run_id] = self._packed(run_id)
        try:
            yield
        finally:
            self._held.pop(run_id, None)

    def look_again(self, run_id: str, hosts: Collection[str]) -> None:
        """Read these hosts' records anew into what is held: all others are written once and cannot have changed."""
        if len(hosts) > MOST_SINGLY:
            self._held[run_id] = self._packed(run_id)
            return
        with ThreadPoolExecutor(READERS, "records") as pool:
            found = pool.map(lambda host: self._item(run_id, host), sorted(hosts))
            self._held[run_id].update({str(item["host"]): item for item in found if item})

    def _packed(self, run_id: str) -> dict[str, Mapping[str, Any]]:
        found = self._query(items.run_pk(run_id), items.RECORD, fields=("host", "body", "body_at"))
        return {str(item["host"]): item for item in found}

    def answered(self, run_id: str) -> set[str]:
        """Hosts that have a record in a run."""
        if run_id in self._held:
            return set(self._held[run_id])
        found = self._query(items.run_pk(run_id), items.RECORD, fields=("host",))
        return {str(item["host"]) for item in found}

    def save_late_record(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a late record; False when the run already has one for the host."""
        light = run_dict_light(self._known(run_id))
        item = items.late_item(light, record, self.ttl_days)
        if len(item["body"]) > items.MAX_BODY_BYTES:
            item = items.late_item(light, items.shortened(record), self.ttl_days)
        with self._guard("write") as client:
            return batches.put_new(client, self.table, items.marshal(item))

    def late(self, run_id: str) -> list[Record]:
        """The late records of a run, by host."""
        found = self._query(items.run_pk(run_id), items.LATE, fields=("late_host", "body"))
        made = [self._record({**item, "host": item["late_host"]}) for item in found]
        return sorted((record for record in made if record), key=lambda record: str(record["host"]))

    def record(self, run_id: str, host: str) -> Record | None:
        """One host's record in a run."""
        return self._record(self._item(run_id, host))

    def _item(self, run_id: str, host: str) -> dict[str, Any] | None:
        key = items.marshal({items.PK: items.run_pk(run_id), items.SK: items.RECORD + items.part(host)})
        with self._guard("read") as client:
            found = client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")
        return items.unmarshal(found) if found else None

    def history(self, name: str, limit: int = 50) -> list[Past]:
        """Results of a host, instance id, GPU serial or GPU UUID, newest first."""
        found: dict[tuple[str, str], Past] = {}
        for past in self._named(name, limit):
            found.setdefault((past.run_id, past.host), past)
        newest = sorted(found.values(), key=lambda past: past.host)
        return sorted(newest, key=lambda past: past.started_at, reverse=True)[:limit]

    def _named(self, name: str, limit: int) -> Iterator[Past]:
        for index in (items.BY_HOST, items.BY_INSTANCE):
            for item in self._query(name, index=index, limit=limit, newest=True):
                yield self._past(item)
        for owner in self._query(items.gpu_pk(name)):
            host, instance = owner["node_host"], owner["node_instance"]
            index, key = (items.BY_INSTANCE, instance) if instance else (items.BY_HOST, host)
            for item in self._query(key, index=index, limit=limit, newest=True):
                past = self._past(item)
                gpus = past.record.get("gpus") or ()
                if past.host == host and any(name in (gpu.get("serial"), gpu.get("uuid")) for gpu in gpus):
                    yield past

    def alerts(self, scope: str) -> dict[str, dict[str, Any]]:
        """What people have been told in a scope, by alert key."""
        return {item[items.SK]: item for item in self._query(items.alert_pk(scope))}

    def remember(self, scope: str, put: Mapping[str, Mapping[str, Any]], drop: Iterable[str], now: str) -> None:
        """Change what people have been told; repeating it changes nothing."""
        made = [items.alert_item(scope, key, kept, now, self.ttl_days) for key, kept in put.items()]
        with self._guard("write") as client:
            batches.write_all(client, self.table, map(items.marshal, made))
            for key in drop:
                gone = items.marshal({items.PK: items.alert_pk(scope), items.SK: key})
                client.delete_item(TableName=self.table, Key=gone)

    def _node_items(
        self, run: Run, record: Mapping[str, Any], shared: Collection[str], rest: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        made = items.node_items(run_dict_light(run), record, self.ttl_days, shared, **rest)
        if len(made[-1]["body"]) > items.MAX_BODY_BYTES:
            made[-1] = self._elsewhere(run, record, made[-1], rest)
        return made

    def _elsewhere(
        self, run: Run, record: Mapping[str, Any], item: dict[str, Any], rest: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A record too large for an item: whole in S3, or shortened when there is no bucket."""
        if not self.bucket:
            return items.record_item(run_dict_light(run), items.shortened(record), self.ttl_days, **rest)
        key = blobs.run_key(run.run_id, "records", f"{record['host']}.json.zlib")
        with self._guard("keep a large record"):
            return items.without_body(item, blobs.put(self._clients.get("s3"), self.bucket, key, item["body"]))

    def _put(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"TableName": self.table, "Item": items.marshal(item)}

    def _known(self, run_id: str) -> Run:
        if run_id not in self._runs:
            self._runs[run_id] = self.run(run_id)
        return self._runs[run_id]

    def _get(self, client: Any, run_id: str, fields: Sequence[str] = ()) -> dict[str, Any] | None:
        rest = _projection(fields)
        key = items.marshal({items.PK: items.run_pk(run_id), items.SK: items.META})
        answer = client.get_item(TableName=self.table, Key=key, ConsistentRead=True, **rest)
        return items.unmarshal(answer["Item"]) if answer.get("Item") else None

    def _query(
        self,
        key: str,
        prefix: str = "",
        *,
        index: str = "",
        limit: int = 0,
        newest: bool = False,
        fields: Sequence[str] = (),
    ) -> Iterator[dict[str, Any]]:
        """Items of a partition, page by page."""
        request = _request(key, prefix, index, fields) | ({"Limit": limit} if limit else {})
        request["ScanIndexForward"] = not newest
        left = limit or None
        while True:
            with self._guard("read") as client:
                page = client.query(TableName=self.table, **request)
            found = [items.unmarshal(item) for item in page["Items"]]
            yield from found[:left]
            left = None if left is None else left - len(found)
            if not page.get("LastEvaluatedKey") or left == 0:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _record(self, item: Mapping[str, Any] | None) -> Record | None:
        """A summary's record; a damaged one is no result of its host, and costs no other host's."""
        if item is None:
            return None
        body = item.get("body")
        if body is None and item.get("body_at"):
            with self._guard("read a large record"):
                body = blobs.get(self._clients.get("s3"), str(item["body_at"]))
        try:
            return stored(items.unpack(body or b""), str(item.get("host") or ""))
        except ValueError:
            return None

    def _past(self, item: Mapping[str, Any]) -> Past:
        words = {name: str(item.get(name) or "") for name in PAST_FIELDS}
        return Past(**words, instance_id=str(item.get("instance_id") or ""), record=self._record(item) or {})


def gpu_name(item: Mapping[str, Any]) -> str:
    """Which GPU item this is, for those who remember what they have written."""
    return f"{item[items.PK]} {item[items.SK]}"


def run_dict_light(run: Run) -> dict[str, Any]:
    """A run for a node's items, which need no hosts."""
    return {"run_id": run.run_id, "started_at": run.started_at}


def _request(key: str, prefix: str, index: str, fields: Sequence[str]) -> dict[str, Any]:
    """Arguments of `query`."""
    hash_key, range_key = items.INDEXES[index] if index else (items.PK, items.SK)
    only, names, values, condition = _projection(fields), {"#h": hash_key}, {":h": key}, "#h = :h"
    if prefix:
        names["#r"], values[":r"] = range_key, prefix
        condition += " AND begins_with(#r, :r)"
    return {
        **({"IndexName": index} if index else {"ConsistentRead": True}),
        **only,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": {**names, **only.get("ExpressionAttributeNames", {})},
        "ExpressionAttributeValues": items.marshal(values),
    }


def _projection(fields: Sequence[str]) -> dict[str, Any]:
    """Only these attributes; by placeholders, because many plain words (level, status) are reserved."""
    names = {f"#f{number}": name for number, name in enumerate(fields)}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names} if names else {}


def _exists(error: Exception) -> bool:
    reasons = getattr(error, "response", {}).get("CancellationReasons") or []
    return any(reason.get("Code") == "ConditionalCheckFailed" for reason in reasons)


def _run(item: Mapping[str, Any], hosts: tuple[ExpectedHost, ...]) -> Run:
    texts = [str(item.get(name) or "") for name in ("run_id", "started_at", "level", "inventory")]
    return Run(texts[0], texts[1], texts[2], texts[3], hosts, str(item["finished_at"]), str(item["verdict"]))
