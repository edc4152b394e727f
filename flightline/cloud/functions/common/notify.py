"""Tell people once: what is new or due again, and what has recovered, in one message per call and channel.

What people know is in the results table (`pk=ALERT#<scope>`), so a repeated event is quiet. The voice is that of
the control side (flightline/tell); what each channel was told is a claim of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flightline.cloud import batches, items
from flightline.tell.channel import DeliveryError
from flightline.tell.digest import Alert, Digest, DigestPlan, plan
from flightline.tell.voice import Voice

from .claims import BUSY, IS_DONE, Claims
from .errors import TryAgain
from .log import say
from .stamps import is_ahead

RENOTIFY_S = 6 * 3600
MOST_QUERIES = 25


@dataclass(frozen=True)
class NoticeContext:
    """What a call is about. now: when it happened (stamps.utc), the same however often the event comes.

    facts: more lines for the message, asked for only when one is sent.
    """

    title: str
    now: str
    run_id: str = ""
    facts: Callable[[Sequence[Alert]], Sequence[str]] = lambda alerts: ()


@dataclass(frozen=True)
class Notifier:
    """Tells people of one cluster. client: DynamoDB. lost: counts a message nobody will get. link: the dashboard."""

    client: Any
    table: str
    scope: str
    claims: Claims
    voice: Voice
    lost: Callable[[], object] = lambda: None
    renotify_s: float = RENOTIFY_S
    ttl_days: float = items.TTL_DAYS
    link: str = ""

    def tell(self, alerts: Sequence[Alert], healthy: Collection[tuple[str, str]], notice: NoticeContext) -> int:
        """Send what is to be sent; returns how many troubles and recoveries were told."""
        nodes = sorted({alert.node for alert in alerts} | {node for node, _ in healthy})
        known = {key: self._sane(item) for key, item in self._known(nodes).items()}
        # Events can come out of order: what people were told of a later moment stays.
        later = {key for key, item in known.items() if str(item.get("notified_at") or "") > notice.now}
        current = {key: item for key, item in known.items() if key not in later}
        made = plan(current, [a for a in alerts if a.key not in later], healthy, notice.now, self.renotify_s)
        told = len(made.tell) + len(made.recovered)
        if told:
            self._send(made, notice)
            self._remember(made, notice.now)
        return told

    def _sane(self, item: items.Item) -> items.Item:
        """An item whose moment has not come yet is one without: else nobody would hear of its check until then."""
        try:
            ahead = is_ahead(str(item.get("notified_at")), self.claims.clock())
        except (ValueError, TypeError):
            ahead = True
        return {**item, "notified_at": ""} if ahead else item

    def nodes_with(self, check: str) -> set[str]:
        """Nodes of which people were told that this check is wrong."""
        return {str(item.get("node")) for _, item in self._query("") if item.get("check") == check}

    def announce(self, notice: NoticeContext) -> None:
        """Send a message about no trouble (a test); it is not remembered."""
        self._send(DigestPlan(), notice)

    def _send(self, made: DigestPlan, notice: NoticeContext) -> None:
        digest = Digest(
            notice.title,
            tuple(made.tell),
            tuple(made.recovered),
            len(made.quiet),
            notice.run_id,
            tuple(notice.facts(made.tell)),
            self.link,
            "Dashboard",
            f"aws:{self.table}",
            self.scope,
        )
        outcome = self.voice.tell(digest, _Claimed(self.claims, f"{notice.now}:{digest.key}"))
        for name, why in outcome.refused.items():
            say("not told", channel=name, why=why)
            self.lost()
        if outcome.waits:
            raise TryAgain("; ".join(outcome.waits.values()))

    def _known(self, nodes: Sequence[str]) -> dict[str, items.Item]:
        """The ALERT items by sort key: of some nodes, or of all when that is fewer requests."""
        if len(nodes) > MOST_QUERIES:
            return dict(self._query(""))
        return {sk: item for node in nodes for sk, item in self._query(Alert(node, "", "", "").key.split("#")[0] + "#")}

    def _query(self, start: str) -> Iterable[tuple[str, items.Item]]:
        condition, values = "pk = :pk", {":pk": items.alert_pk(self.scope)}
        if start:
            condition, values = condition + " AND begins_with(sk, :sk)", {**values, ":sk": start}
        request = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": items.marshal(values),
            "ConsistentRead": True,
        }
        while True:
            page = self.client.query(**request)
            for found in page.get("Items", []):
                item = items.unmarshal(found)
                yield str(item[items.SK]), item
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _remember(self, made: DigestPlan, now: str) -> None:
        pk = items.alert_pk(self.scope)
        puts = [items.alert_item(self.scope, sk, item, now, self.ttl_days) for sk, item in made.put.items()]
        batches.write_all(self.client, self.table, map(items.marshal, puts))
        for sk in made.drop:
            key = items.marshal({items.PK: pk, items.SK: sk})
            self.client.delete_item(TableName=self.table, Key=key)


@dataclass(frozen=True)
class _Claimed:
    """What was told of one message: a claim by channel."""

    claims: Claims
    message: str

    def begin(self, channel: str) -> bool:
        state = self.claims.take(self._key(channel))
        if state == BUSY:
            raise DeliveryError("another invocation is sending this message", later=True)
        return state != IS_DONE

    def sent(self, channel: str, thread: str) -> None:
        self.claims.done(self._key(channel))

    def not_sent(self, channel: str) -> None:
        self.claims.release(self._key(channel))

    def _key(self, channel: str) -> str:
        return f"tell:{channel}:{self.message}"
