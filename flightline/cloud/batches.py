"""Writes to DynamoDB that nothing is lost in: batches of 25, what a table leaves unprocessed is sent again.

Throttled requests are botocore's to repeat (clients.py); an unprocessed item is no error to it.
Standard library only (the client is an argument): the Lambda functions ship this file. BatchWriteItem knows no
conditions, so batches are for items that are the same however often they are written (see items.py) in a
partition that a conditional write has claimed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BATCH = 25
MAX_ATTEMPTS = 10
BASE_DELAY_S = 0.05
MAX_DELAY_S = 5.0

THROTTLED = frozenset(
    {
        "ConditionalRequestConflict",
        "InternalServerError",
        "InternalFailure",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
    }
)
"""Errors that the same request may not meet some minutes later; botocore has repeated it by then."""
EXISTS = "ConditionalCheckFailedException"

Attributes = Mapping[str, Mapping[str, Any]]


class NotWrittenError(RuntimeError):
    """Some items were refused to the end. left: those items, in their order."""

    def __init__(self, message: str, left: Sequence[Attributes]) -> None:
        super().__init__(message)
        self.left = list(left)


@dataclass
class Stats:
    """What writing took. calls: batch requests made. retries: those of them for what was left unprocessed."""

    items: int = 0
    calls: int = 0
    retries: int = 0


@dataclass(frozen=True)
class RetryPolicy:
    """How long to go on. The wait before attempt n is random up to base * 2^n, at most max_delay_s."""

    attempts: int = MAX_ATTEMPTS
    base_s: float = BASE_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def wait(self, attempt: int) -> None:
        """Wait before another attempt; the first attempt is number 0."""
        limit = min(self.base_s * 2**attempt, self.max_delay_s)
        self.sleep(limit * self.jitter())


def error_code(error: BaseException) -> str:
    """The code of an AWS error ('ThrottlingException'); '' for anything else."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, Mapping) else ""


def throttled(error: BaseException) -> bool:
    """May the same request succeed later?"""
    response = getattr(error, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if isinstance(response, Mapping) else 0
    return error_code(error) in THROTTLED or int(status or 0) >= 500


def put_new(client: Any, table: str, item: Attributes) -> bool:
    """Write an item unless its key is taken; False when it is (what is there stays)."""
    try:
        client.put_item(TableName=table, Item=item, ConditionExpression="attribute_not_exists(pk)")
    except Exception as error:
        if error_code(error) == EXISTS:
            return False
        raise
    return True


def write_all(client: Any, table: str, items: Iterable[Attributes], retry: RetryPolicy | None = None) -> Stats:
    """Write items, 25 to a request. Raises NotWrittenError when the table refuses some to the end.

    An error that a retry cannot mend (access denied, no such table, a network that is gone) is raised as it is.
    """
    retry = retry or RetryPolicy()
    stats = Stats()
    batch: dict[tuple[str, str], Attributes] = {}
    for item in items:
        key = (str(item["pk"]["S"]), str(item["sk"]["S"]))
        batch.setdefault(key, item)  # the same key twice in one request is an error; the first stays
        if len(batch) == BATCH:
            _write(client, table, list(batch.values()), retry, stats)
            batch.clear()
    if batch:
        _write(client, table, list(batch.values()), retry, stats)
    return stats


def _write(client: Any, table: str, items: list[Attributes], retry: RetryPolicy, stats: Stats) -> None:
    """One batch until nothing of it is left."""
    stats.items += len(items)
    requests: list[Any] = [{"PutRequest": {"Item": item}} for item in items]
    for attempt in range(retry.attempts):
        if attempt:
            stats.retries += 1
            retry.wait(attempt - 1)
        stats.calls += 1
        try:
            answer = client.batch_write_item(RequestItems={table: requests})
        except Exception as error:
            if not throttled(error):
                raise
            raise NotWrittenError(
                f"{table}: {len(requests)} items not written ({error_code(error)})", _items(requests)
            ) from error
        requests = list((answer.get("UnprocessedItems") or {}).get(table) or [])
        if not requests:
            return
    text = f"{table}: {len(requests)} items not written: left unprocessed {retry.attempts} times"
    raise NotWrittenError(text, _items(requests))


def _items(requests: Iterable[Mapping[str, Any]]) -> list[Attributes]:
    return [request["PutRequest"]["Item"] for request in requests]
