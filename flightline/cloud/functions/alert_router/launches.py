"""A limit to boots without a go: at it, the group launches no more nodes until a person lets it.

Each failing boot costs a launch and the minutes of a preflight; in a capacity block the same host comes back again.
The boots of the last hours are items of the results table, `pk=BOOTS#<cluster>`, `sk=<instance>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from flightline.cloud import batches, items
from flightline.tell.digest import Alert

CHECK = "launches_stopped"
WINDOW = timedelta(hours=6)
KEEP = timedelta(days=2)


@dataclass(frozen=True)
class Launches:
    """dynamodb, autoscaling: clients. group: the Auto Scaling group. limit: failing boots in WINDOW; 0 is no limit."""

    dynamodb: Any
    autoscaling: Any
    table: str
    cluster: str
    group: str
    limit: int

    def failed(self, instance_id: str, at: str) -> Alert | None:
        """Count a boot without a go, once; at the limit stop launching. Returns what people must be told of that."""
        if not self.limit or not self.group:
            return None
        moment = datetime.fromisoformat(at)
        self._count(instance_id, at, moment)
        rows = self._rows()
        if stop := str(rows[instance_id].get("stopped") or ""):
            # Told again, for the last time may have died before anybody was told.
            return self._alert([key for key, row in rows.items() if row.get("stopped") == stop], stop)
        since = (moment - WINDOW).isoformat()
        counted = [key for key, row in rows.items() if not row.get("stopped") and str(row["at"]) >= since]
        if len(counted) < self.limit:
            return None
        self.stop()
        self._start_anew(counted, at)
        return self._alert(counted, at)

    def stopped_since(self, began: str) -> bool:
        """Whether launches were stopped after a launch had begun: that it succeeds does not mean that they go on."""
        return any(str(row.get("stopped") or "") >= began for row in self._rows().values() if row.get("stopped"))

    def stop(self) -> None:
        """Launch no more nodes; those that run stay. Asked for again it changes nothing."""
        self.autoscaling.suspend_processes(AutoScalingGroupName=self.group, ScalingProcesses=["Launch"])

    def _count(self, instance_id: str, at: str, moment: datetime) -> None:
        ttl = int((moment + KEEP).timestamp())
        item = {items.PK: self._pk, items.SK: instance_id, "at": at, items.TTL: ttl}
        # Once: the outcome and the group's own event tell of the same boot.
        batches.put_new(self.dynamodb, self.table, items.marshal(item))

    def _rows(self) -> dict[str, items.Item]:
        """Boots without a go by instance. The partition is small: it grows by the limit and then waits for a person."""
        found = batches.partition(self.dynamodb, self.table, self._pk)
        return {str(row[items.SK]): row for row in found}

    def _start_anew(self, counted: list[str], at: str) -> None:
        """A person who lets launches go on gets the whole limit again."""
        for instance_id in counted:
            request = {
                "TableName": self.table,
                "Key": items.marshal({items.PK: self._pk, items.SK: instance_id}),
                "UpdateExpression": "SET stopped = :at",
                "ExpressionAttributeValues": items.marshal({":at": at}),
            }
            self.dynamodb.update_item(**request)

    def _alert(self, counted: list[str], at: str) -> Alert:
        hours = int(WINDOW.total_seconds() // 3600)
        resume = f"aws autoscaling resume-processes --auto-scaling-group-name {self.group} --scaling-processes Launch"
        return Alert(
            node=self.cluster,
            check=CHECK,
            status="FAIL",
            message=f"{self.group} launches no more nodes: boots without a go on {', '.join(sorted(counted))}",
            # A later stop is another trouble: it must be told although this one is known.
            device=f"stop of {at}",
            measured=f"{len(counted)} boots without a go in {hours} h",
            expected=f"fewer than {self.limit}",
            remedy="INVESTIGATE",
            remedy_text=f"mend what their records name, then let launches go on: {resume}",
            at=at,
        )

    @property
    def _pk(self) -> str:
        return f"BOOTS#{items.part(self.cluster)}"
