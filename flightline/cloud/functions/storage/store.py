"""Write node results to DynamoDB, once each, in few requests.

What is there already is found with one read per hundred records. The rest of a record is written before its
summary, and the summary with a condition: a record that has a summary is complete, and a retry changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flightline.cloud import batches, blobs, items

from ..common.errors import TryAgain
from .records import NodeResult

READ_BATCH = 100
"""BatchGetItem's limit. Source: AWS API reference."""
REFUSED = "ValidationException"
LOG_ID = "log_id"


@dataclass
class Stored:
    """What became of the records. refused: those that DynamoDB will never take, with its reason."""

    stored: list[NodeResult]
    duplicate: list[NodeResult]
    conflicting: list[NodeResult]
    refused: list[tuple[NodeResult, str]]
    calls: int = 0


@dataclass(frozen=True)
class ResultStore:
    """client: DynamoDB. s3, bucket: where a record goes that is too large for an item.

    looks_first: read who has which GPU before it is written; for whole fleets, which are judged again and again: a read
    costs a fifth of a write.
    """

    client: Any
    table: str
    s3: Any
    bucket: str
    ttl_days: float = items.TTL_DAYS
    looks_first: bool = False

    def save(self, results: Sequence[NodeResult]) -> Stored:
        """Store records. Raises TryAgain when the table is too busy: what was written is found by the next try."""
        outcome = Stored([], [], [], [])
        fresh = self._sort_out(results, outcome)
        try:
            self._write(fresh, outcome)
        except batches.NotWrittenError as error:
            raise TryAgain(str(error)) from error
        except Exception as error:
            if batches.throttled(error):
                raise TryAgain(f"{self.table}: {batches.error_code(error)}") from error
            if batches.error_code(error) != REFUSED:
                raise
            self._write_one_by_one(fresh, outcome)
        return outcome

    def _sort_out(self, results: Sequence[NodeResult], outcome: Stored) -> list[NodeResult]:
        unique: dict[tuple[str, str], NodeResult] = {}
        for result in results:
            key = _key_of(result)
            if key not in unique:
                unique[key] = result
            elif unique[key].id == result.id:
                outcome.duplicate.append(result)
            else:
                outcome.conflicting.append(result)
        known = self._known(list(unique), outcome)
        fresh = []
        for key, result in unique.items():
            if key not in known:
                fresh.append(result)
            else:
                (outcome.duplicate if known[key] == result.id else outcome.conflicting).append(result)
        return fresh

    def _known(self, keys: Sequence[tuple[str, str]], outcome: Stored) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for start in range(0, len(keys), READ_BATCH):
            wanted = [items.marshal({items.PK: pk, items.SK: sk}) for pk, sk in keys[start : start + READ_BATCH]]
            request: Any = {
                self.table: {"Keys": wanted, "ConsistentRead": True, "ProjectionExpression": f"pk, sk, {LOG_ID}"}
            }
            for attempt in range(batches.MAX_ATTEMPTS):
                answer = self.client.batch_get_item(RequestItems=request)
                outcome.calls += 1
                for raw in answer.get("Responses", {}).get(self.table, []):
                    item = items.unmarshal(raw)
                    found[item[items.PK], item[items.SK]] = str(item.get(LOG_ID) or "")
                request = answer.get("UnprocessedKeys")
                if not request:
                    break
                batches.RetryPolicy().wait(attempt)
            else:
                raise TryAgain(f"{self.table}: keys left unprocessed")
        return found

    def _write(self, results: Sequence[NodeResult], outcome: Stored) -> None:
        rest = [item for result in results for item in self._findings(result)]
        rest += self._gpus(results, outcome)
        rest += self._headers(results, outcome)
        outcome.calls += batches.write_all(self.client, self.table, map(items.marshal, rest)).calls
        for result in results:
            new = batches.put_new(self.client, self.table, items.marshal(self._summary(result)))
            outcome.calls += 1
            # Not new: another invocation with the same event was faster, and wrote the same.
            (outcome.stored if new else outcome.duplicate).append(result)

    def _write_one_by_one(self, results: Sequence[NodeResult], outcome: Stored) -> None:
        """One record that DynamoDB refuses must not cost the others."""
        done = {id(result) for result in (*outcome.stored, *outcome.duplicate)}
        for result in results:
            if id(result) in done:
                continue
            try:
                self._write([result], outcome)
            except Exception as error:
                if batches.error_code(error) != REFUSED:
                    raise
                outcome.refused.append((result, str(error)))

    def _findings(self, result: NodeResult) -> list[items.Item]:
        return items.finding_items(result.run, result.record, self.ttl_days)

    def _gpus(self, results: Sequence[NodeResult], outcome: Stored) -> list[items.Item]:
        """Who has which GPU; it does not expire, so what is there stays."""
        made = {(item[items.PK], item[items.SK]): item for result in results for item in items.gpu_items(result.record)}
        known = self._known(list(made), outcome) if self.looks_first else {}
        return [item for key, item in made.items() if key not in known]

    def _headers(self, results: Sequence[NodeResult], outcome: Stored) -> list[items.Item]:
        """Headers of runs that have none: a node that judged itself is a run of its own. A control node's stays."""
        runs = {items.run_pk(result.run_id): result for result in results}
        known = self._known([(pk, items.META) for pk in runs], outcome)
        return [
            items.run_item(result.run, self.ttl_days) | {"verdict": result.record["verdict"], "finished_at": result.at}
            for pk, result in runs.items()
            if (pk, items.META) not in known
        ]

    def _summary(self, result: NodeResult) -> items.Item:
        item = items.record_item(result.run, result.record, self.ttl_days, **{LOG_ID: result.id})
        body = item["body"]
        if len(body) <= items.MAX_BODY_BYTES:
            return item
        key = blobs.run_key(result.run_id, "records", f"{result.host}.json.zlib")
        return items.without_body(item, blobs.put(self.s3, self.bucket, key, body))


def _key_of(result: NodeResult) -> tuple[str, str]:
    return items.run_pk(result.run_id), items.RECORD + items.part(result.host)
