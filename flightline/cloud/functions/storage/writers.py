"""Whose a log stream is: its name has an address, under which IAM lets nobody else write, and EC2 knows whose that is.

The name is that of the CloudWatch agent's configuration (flightline_node/tell/cwagent.py), and the right that of the
nodes' role (infra/planning/iam/node.py). A stream of any other name proves nothing, and what is in it is no evidence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flightline.contract import TAG_CLUSTER

from ..common.errors import InvalidEvent

NAME = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3})_(i-[0-9a-f]{8,17})(?:-training[^:*]*)?")
KNOWN_S = 300
"""So long an address stays known without asking EC2: it is an instance's until that is gone."""


@dataclass(frozen=True)
class Writers:
    """ec2: a client. cluster: whose instances are believed."""

    ec2: Any
    cluster: str
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _known: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)

    def of(self, stream: str) -> str:
        """The instance whose stream it is. Raises InvalidEvent when nothing shows that."""
        named = NAME.fullmatch(stream)
        if named is None:
            raise InvalidEvent(
                f"log stream {stream[:120]!r}: wanted <address>_<instance>, which IAM holds to its writer"
            )
        address, instance = named[1], named[2]
        if self._address(instance) != address:
            raise InvalidEvent(
                f"log stream {stream[:120]!r}: EC2 knows no {instance} of {self.cluster} at {address}; the agent of "
                "another node may have written it"
            )
        return instance

    def _address(self, instance: str) -> str:
        address, until = self._known.get(instance, ("", 0.0))
        if not address or self.clock() > until:
            address = self._asked(instance)
            self._known[instance] = (address, self.clock() + KNOWN_S)
        return address

    def _asked(self, instance: str) -> str:
        """The primary private address, of an instance of the cluster that there is."""
        # As filters: an id that EC2 does not know is an error otherwise.
        filters = [
            {"Name": "instance-id", "Values": [instance]},
            {"Name": f"tag:{TAG_CLUSTER}", "Values": [self.cluster]},
        ]
        found = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return next((str(one.get("PrivateIpAddress") or "") for part in found for one in part["Instances"]), "")
