"""Do a thing once per event id, although events come more than once and a function can die at any point.

A claim is an item of the results table: `pk=EVENT#<id>`, `sk=EVENT`. It is taken with a conditional write for a
lease, and marked done after the work. Work that died leaves a lease that runs out, so it is done by a later
delivery: an alert may come twice then, and never not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flightline.cloud import batches, items

DONE, WORKING = "done", "working"
LEASE_S = 120
"""Longer than any invocation takes: the functions' time limit is below it."""
KEEP_S = 14 * 86_400
"""Longer than any source delivers again: SQS keeps messages for at most 14 days."""

MINE, IS_DONE, BUSY = "mine", "done", "busy"


@dataclass(frozen=True)
class Claims:
    """Claims in one table. client: a low-level DynamoDB client. clock: seconds since 1970."""

    client: Any
    table: str
    lease_s: int = LEASE_S
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def take(self, key: str) -> str:
        """MINE: do the work, then `done`. IS_DONE: it was done. BUSY: another invocation is at it."""
        now = int(self.clock())
        item = {**_key(key), "state": WORKING, "lease_until": now + self.lease_s, items.TTL: now + KEEP_S}
        request = {
            "TableName": self.table,
            "Item": items.marshal(item),
            "ConditionExpression": "attribute_not_exists(pk) OR (#state = :working AND lease_until < :now)",
            "ExpressionAttributeNames": {"#state": "state"},
            "ExpressionAttributeValues": items.marshal({":working": WORKING, ":now": now}),
        }
        try:
            self.client.put_item(**request)
        except Exception as error:
            if batches.error_code(error) != batches.EXISTS:
                raise
            return IS_DONE if self._state(key) == DONE else BUSY
        return MINE

    def done(self, key: str, **result: Any) -> None:
        """The work is done; result: what a repeated event is answered."""
        now = int(self.clock())
        item = items.marshal({**_key(key), "state": DONE, "result": result, items.TTL: now + KEEP_S})
        self.client.put_item(TableName=self.table, Item=item)

    def release(self, key: str) -> None:
        """Give a claim back after work that failed, so that the next delivery need not wait for the lease."""
        self.client.delete_item(TableName=self.table, Key=items.marshal(_key(key)))

    def result(self, key: str) -> dict[str, Any]:
        """What `done` was told; empty when there is nothing."""
        found = self._get(key).get("result")
        return dict(found) if isinstance(found, dict) else {}

    def _state(self, key: str) -> str:
        return str(self._get(key).get("state", WORKING))

    def _get(self, key: str) -> items.Item:
        request = {"TableName": self.table, "Key": items.marshal(_key(key)), "ConsistentRead": True}
        answer = self.client.get_item(**request)
        return items.unmarshal(answer.get("Item") or {})


def _key(key: str) -> dict[str, str]:
    return {items.PK: f"EVENT#{items.part(key)}", items.SK: "EVENT"}
