"""Incidents, breakers and the lease in the results table of DynamoDB, every write conditional. See ledger.py.

    INCIDENT        <id>       an incident (packed), with its state, host and version
    HEALING         LEASE      who may change something: owner, token, until when
    HEALING         STOP#<group>  a breaker that fell
    HEALING         OPEN#<host>   which incident of a host is open: it has one

A write under the lease is a transaction that also checks the lease's token, so that a remediator that lost it writes
nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...cloud import items
from ...cloud.batches import EXISTS, error_code
from ...cloud.clients import Clients, explain, is_aws_error
from ...store.sqlite import StoreError
from .incident import Incident, from_dict
from .lease import SKEW_S, Lease, LeaseHolder, LeaseLostError
from .ledger import ConflictError

INCIDENT, HEALING, LEASE, STOP, OPEN = "INCIDENT", "HEALING", "LEASE", "STOP#", "OPEN#"
CANCELED = "TransactionCanceledException"


class DynamoLedger:
    """See ledger.Ledger."""

    def __init__(self, table: str = items.DEFAULT_TABLE, clients: Clients | None = None) -> None:
        self.table, self.path = table, f"aws:{table}"
        self._clients = clients or Clients()

    def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _guard(self, action: str) -> Iterator[Any]:
        try:
            yield self._clients.get("dynamodb")
        except Exception as error:
            if not is_aws_error(error):
                raise
            why = explain(error, f"{self.path}: cannot {action} the incidents")
            raise StoreError(f"saw {why}; wanted AWS to do it") from error

    def save(self, incident: Incident, lease: Lease | None) -> Incident:
        """Keep an incident."""
        kept = replace(incident, version=incident.version + 1)
        item = {
            items.PK: INCIDENT,
            items.SK: kept.id,
            "kind": "incident",
            "node_host": kept.host,
            "node_instance": kept.instance_id,
            "state": str(kept.state),
            "opened_at": kept.opened_at,
            "closed_at": kept.closed_at,
            "version": kept.version,
            "keys": sorted({*kept.keys, *kept.serials, kept.host, kept.instance_id} - {""}),
            "body": items.pack(kept.to_dict()),
        }
        new = incident.version == 0
        put: dict[str, Any] = {"TableName": self.table, "Item": items.marshal(item)}
        put["ConditionExpression"] = "attribute_not_exists(pk)" if new else "version = :version"
        if not new:
            put["ExpressionAttributeValues"] = items.marshal({":version": incident.version})
        steps = [*([self._check(lease)] if lease else []), {"Put": put}, *self._only_one(kept)]
        with self._guard("write") as client:
            try:
                client.transact_write_items(TransactItems=steps)
            except Exception as error:
                if error_code(error) != CANCELED:
                    raise
                self._why(error, lease, kept)
        return kept

    def _only_one(self, kept: Incident) -> list[dict[str, Any]]:
        """Holds the host's place for its open incident, and gives up what it holds with its end."""
        place, values = OPEN + kept.host, items.marshal({":id": kept.id})
        about: dict[str, Any] = {"TableName": self.table, "ExpressionAttributeValues": values}
        if kept.is_open:
            item = {items.PK: HEALING, items.SK: place, "kind": "open", "incident": kept.id}
            condition = "attribute_not_exists(pk) OR incident = :id"
            return [{"Put": {**about, "ConditionExpression": condition, "Item": items.marshal(item)}}]
        # The next one's, when people are told of this one after its end.
        mine = self._item(place).get("incident") == kept.id
        return [{"Delete": {**about, "ConditionExpression": "incident = :id", "Key": _key(place)}}] if mine else []

    def _check(self, lease: Lease) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": _key(LEASE),
                "ConditionExpression": "#token = :token AND #owner = :owner",
                "ExpressionAttributeNames": {"#token": "token", "#owner": "owner"},
                "ExpressionAttributeValues": items.marshal({":token": lease.token, ":owner": lease.owner}),
            }
        }

    def _why(self, error: Exception, lease: Lease | None, kept: Incident) -> None:
        """Which condition did not hold, as an error."""
        reasons = getattr(error, "response", {}).get("CancellationReasons") or []
        codes = [str(reason.get("Code") or "") for reason in reasons]
        if lease and codes[:1] == ["ConditionalCheckFailed"]:
            raise _lost(lease) from error
        if kept.is_open and codes[-1:] == ["ConditionalCheckFailed"] and codes.count("ConditionalCheckFailed") == 1:
            raise ConflictError(f"{kept.host} has an open incident already") from error
        if "ConditionalCheckFailed" in codes:
            raise ConflictError(f"incident {kept.id} was changed by somebody else") from error
        raise error

    def incidents(
        self, *, only_open: bool = False, name: str = "", since: str = "", limit: int = 10_000
    ) -> list[Incident]:
        """Incidents, newest first."""
        tests, values = [], dict[str, Any]()
        if only_open:
            tests.append("closed_at = :none")
            values[":none"] = ""
        if name:
            tests.append("contains(#keys, :name)")
            values[":name"] = name
        if since:
            tests.append("(closed_at = :none OR opened_at >= :since)")
            values |= {":none": "", ":since": since}
        request: dict[str, Any] = {"FilterExpression": " AND ".join(tests)} if tests else {}
        if name:
            request["ExpressionAttributeNames"] = {"#keys": "keys"}
        found = [from_dict(items.unpack(item["body"])) for item in self._query(INCIDENT, values, request)]
        return sorted(found, key=lambda one: one.opened_at, reverse=True)[:limit]

    def _query(self, pk: str, values: Mapping[str, Any], more: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        request = {
            "TableName": self.table,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": items.marshal({":pk": pk, **values}),
            "ConsistentRead": True,
            **more,
        }
        with self._guard("read") as client:
            found = [item for page in client.get_paginator("query").paginate(**request) for item in page["Items"]]
        yield from map(items.unmarshal, found)

    def stops(self) -> Mapping[str, str]:
        """Groups whose breaker fell."""
        found = self._query(HEALING, {}, {})
        return {str(item["group"]): str(item["why"]) for item in found if str(item["sk"]).startswith(STOP)}

    def stop(self, group: str, why: str, at: str, lease: Lease | None) -> None:
        """Keep that a breaker fell; without a lease, that a person paused."""
        item = {items.PK: HEALING, items.SK: STOP + group, "kind": "stop", "group": group, "why": why, "stopped_at": at}
        put = {"Put": {"TableName": self.table, "Item": items.marshal(item)}}
        with self._guard("write") as client:
            try:
                client.transact_write_items(TransactItems=[*([self._check(lease)] if lease else []), put])
            except Exception as error:
                if error_code(error) == CANCELED:
                    raise (_lost(lease) if lease else StoreError(f"{self.table}: nothing was kept")) from error
                raise

    def reset(self, group: str) -> bool:
        """Forget a breaker."""
        with self._guard("write") as client:
            gone = client.delete_item(TableName=self.table, Key=_key(STOP + group), ReturnValues="ALL_OLD")
        return bool(gone.get("Attributes"))

    def acquire(self, owner: str, now_s: float, ttl_s: float) -> Lease | None:
        """Take the lease."""
        item = self._item(LEASE)
        token = int(item.get("token") or 0)
        if item.get("owner") and float(item["until_s"]) + SKEW_S > now_s:
            return None
        made = {items.PK: HEALING, items.SK: LEASE, "owner": owner, "token": token + 1, "until_s": now_s + ttl_s}
        condition = "#token = :token AND until_s = :until" if item else "attribute_not_exists(pk)"
        with self._guard("write") as client:
            try:
                wanted = {"ConditionExpression": condition, **_about(item, token)}
                client.put_item(TableName=self.table, Item=items.marshal(made), **wanted)
            except Exception as error:
                if error_code(error) == EXISTS:
                    return None
                raise
        return Lease(owner, token + 1)

    def renew(self, lease: Lease, now_s: float, ttl_s: float) -> None:
        """Keep the lease."""
        self._update(lease, "SET until_s = :until", {":until": now_s + ttl_s}, strict=True)

    def give_up(self, lease: Lease) -> None:
        """Let the next one have it."""
        self._update(lease, "SET #owner = :nobody, until_s = :until", {":nobody": "", ":until": 0}, strict=False)

    def _update(self, lease: Lease, change: str, values: Mapping[str, Any], strict: bool) -> None:
        check = self._check(lease)["ConditionCheck"]
        given = {**check["ExpressionAttributeValues"], **items.marshal(values)}
        with self._guard("write") as client:
            try:
                client.update_item(**{**check, "UpdateExpression": change, "ExpressionAttributeValues": given})
            except Exception as error:
                if error_code(error) != EXISTS:
                    raise
                if strict:
                    raise _lost(lease) from error

    def holder(self) -> LeaseHolder | None:
        """Who has the lease."""
        item = self._item(LEASE)
        known = (str(item["owner"]), int(item["token"]), float(item["until_s"])) if item.get("owner") else None
        return LeaseHolder(*known) if known else None

    def _item(self, sk: str) -> dict[str, Any]:
        with self._guard("read") as client:
            answer = client.get_item(TableName=self.table, Key=_key(sk), ConsistentRead=True)
        return items.unmarshal(answer["Item"]) if answer.get("Item") else {}


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(f"another remediator has the lease now, not {lease.owner}")


def _key(sk: str) -> dict[str, Any]:
    return items.marshal({items.PK: HEALING, items.SK: sk})


def _about(item: Mapping[str, Any], token: int) -> dict[str, Any]:
    if not item:
        return {}
    values = items.marshal({":token": token, ":until": item["until_s"]})
    return {"ExpressionAttributeNames": {"#token": "token"}, "ExpressionAttributeValues": values}


def open_table(spec: str) -> DynamoLedger:
    """The table that `aws` or `aws:TABLE` names."""
    from ...cloud import publish_settings as settings

    configured = settings.publish(settings.from_environment()) or settings.Publish()
    table = spec.partition(":")[2] or configured.table or settings.DEFAULT_TABLE
    return DynamoLedger(table, Clients(configured.region))
