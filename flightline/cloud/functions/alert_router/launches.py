"""A limit to boots without a go: past it, the group launches no more nodes until a person lets it.

Each failing boot costs a launch and the minutes of a preflight; in a capacity block the same host comes back again.
How many are too many is a question of share (share.py). What boots came to is in the results table,
`pk=BOOTS#<cluster>`: `sk=<instance>` for each without a go, and `sk=served#<minute>` counts those with one by the
group's own events, which no node can send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from flightline.cloud import batches, items
from flightline.tell.digest import Alert

from . import share
from .nodes import KnownNode

CHECK = "launches_stopped"
WINDOW = timedelta(hours=6)
KEEP = timedelta(days=2)
SERVED = "served#"
OUTLIVES = 1.25
"""A node that still boots at so many times the age at which others failed has come past what ended them."""
CLOUDS = ("Server.", "Client.InternalError", "Client.VolumeLimitExceeded", "Client.InvalidSnapshot")
"""How reasons of a state begin that say nothing of image or node: spot taken back, no capacity, a launch that failed
before the node ran. Source: EC2 API reference, StateReason."""


@dataclass(frozen=True)
class Launches:
    """dynamodb, autoscaling: clients. group: the Auto Scaling group. floor: the fewest boots without a go that stop it.

    peers: the group's running instances by EC2.
    """

    dynamodb: Any
    autoscaling: Any
    table: str
    cluster: str
    group: str
    floor: int
    peers: Callable[[], Sequence[KnownNode]]

    def failed(self, instance_id: str, at: str, known: KnownNode | None) -> Alert | None:
        """Count a boot without a go, once; past the limit stop launching. Returns what people must be told of that."""
        if not self.floor or not self.group or (known is not None and known.reason.startswith(CLOUDS)):
            return None
        moment = datetime.fromisoformat(at)
        self._count(instance_id, at, moment, known)
        rows = self._rows()
        if stop := str(rows[instance_id].get("stopped") or ""):
            # Told again, for the last time may have died before anybody was told.
            same = [key for key, row in rows.items() if row.get("stopped") == stop]
            return self._alert(same, int(rows[instance_id].get("beside") or 0), stop)
        found = share.run(_ends(rows, (moment - WINDOW).isoformat()))
        if not found.stops(self.floor) or not found.after(served=self._outlived(found, rows, moment)).stops(self.floor):
            return None
        self.stop()
        self._start_anew(found, at)
        return self._alert(list(found.who), found.served, at)

    def served(self, at: str) -> None:
        """Count a boot that the group let into service."""
        moment = datetime.fromisoformat(at)
        request = {
            "TableName": self.table,
            "Key": items.marshal({items.PK: self._pk, items.SK: f"{SERVED}{at[:16]}"}),
            "UpdateExpression": "SET #at = :at, #ttl = :ttl ADD boots :one",
            "ExpressionAttributeNames": {"#at": "at", "#ttl": items.TTL},
            "ExpressionAttributeValues": items.marshal({":at": at, ":ttl": _ttl(moment), ":one": 1}),
        }
        self.dynamodb.update_item(**request)

    def stopped_since(self, began: str) -> bool:
        """Whether launches were stopped after a launch had begun: that it succeeds does not mean that they go on."""
        return any(str(row.get("stopped") or "") >= began for row in self._rows().values() if row.get("stopped"))

    def stop(self) -> None:
        """Launch no more nodes; those that run stay. Asked for again it changes nothing."""
        self.autoscaling.suspend_processes(AutoScalingGroupName=self.group, ScalingProcesses=["Launch"])

    def _count(self, instance_id: str, at: str, moment: datetime, known: KnownNode | None) -> None:
        item = {items.PK: self._pk, items.SK: instance_id, "at": at, items.TTL: _ttl(moment)}
        if known is not None:
            item["launched_s"] = int(known.launched_s)
        # Once: the outcome and the group's own event tell of the same boot.
        batches.put_new(self.dynamodb, self.table, items.marshal(item))

    def _rows(self) -> dict[str, items.Item]:
        """Boots without a go by instance, and minutes. The partition is small: launches end, or wait for a person."""
        found = batches.partition(self.dynamodb, self.table, self._pk)
        return {str(row[items.SK]): row for row in found}

    def _outlived(self, found: share.Run, rows: Mapping[str, items.Item], moment: datetime) -> int:
        """Nodes that boot still, launched with those that failed, and are older than those had become.

        Failures that take less time than a go come before the goes of their launch.
        """
        now = moment.timestamp()
        began = {who: float(rows[who]["launched_s"]) for who in found.who if rows[who].get("launched_s")}
        ages = [datetime.fromisoformat(str(rows[who]["at"])).timestamp() - at for who, at in began.items()]
        if not ages:
            return 0
        before, since = now - OUTLIVES * median(ages), min(began.values())
        older = [one for one in self.peers() if since <= one.launched_s <= before and one.instance_id not in rows]
        return max(0, len(older) - found.served)

    def _start_anew(self, found: share.Run, at: str) -> None:
        """A person who lets launches go on gets the whole limit again."""
        for instance_id in found.who:
            request = {
                "TableName": self.table,
                "Key": items.marshal({items.PK: self._pk, items.SK: instance_id}),
                "UpdateExpression": "SET stopped = :at, beside = :served",
                "ExpressionAttributeValues": items.marshal({":at": at, ":served": found.served}),
            }
            self.dynamodb.update_item(**request)

    def _alert(self, counted: list[str], served: int, at: str) -> Alert:
        hours = int(WINDOW.total_seconds() // 3600)
        resume = f"aws autoscaling resume-processes --auto-scaling-group-name {self.group} --scaling-processes Launch"
        return Alert(
            node=self.cluster,
            check=CHECK,
            status="FAIL",
            message=f"{self.group} launches no more nodes: boots without a go on {', '.join(sorted(counted))}",
            # A later stop is another trouble: it must be told although this one is known.
            device=f"stop of {at}",
            measured=f"{len(counted)} boots without a go in {hours} h, {served} with one beside them",
            expected=f"fewer than {self.floor}, or no more than {share.HEALTHY:.0%} bad nodes explain",
            remedy="INVESTIGATE",
            remedy_text=f"mend what their records name, then let launches go on: {resume}",
            at=at,
        )

    @property
    def _pk(self) -> str:
        return f"BOOTS#{items.part(self.cluster)}"


def _ends(rows: Mapping[str, items.Item], since: str) -> list[share.Ends]:
    """Boots since a moment that belong to no stop yet, by the minute in which they ended."""
    late = {key: row for key, row in rows.items() if not row.get("stopped") and str(row["at"]) >= since}
    return [
        share.Ends(str(row["at"])[:16], served=int(row["boots"]))
        if key.startswith(SERVED)
        else share.Ends(str(row["at"])[:16], (key,))
        for key, row in late.items()
    ]


def _ttl(moment: datetime) -> int:
    return int((moment + KEEP).timestamp())
