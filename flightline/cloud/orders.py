"""What a run that needs no control node was asked: written before the nodes are, read by the function that judges it.

It lies where no node may write, so it says which nodes there are, what each was asked, and until when.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..store.sqlite import ExpectedHost, Record, Run
from . import blobs

SCHEMA = "flightline-asked/2"
NAME = "asked.json.zlib"
MOST_BYTES = 64 << 20
"""Unpacked; 10,000 nodes take 3 MB."""


@dataclass(frozen=True)
class Order:
    """deadline_s: from the moment at which the order was written, by the clock of the bucket.

    how: what is said of a node that gives no answer. calls: what nodes are asked, alike ones once. nodes: instance id
    -> (which of calls, host, the id of its call). rows: what was known of hosts before anybody was asked.
    """

    run: Run
    deadline_s: int
    how: str
    calls: Sequence[Mapping[str, Any]]
    nodes: Mapping[str, tuple[int, str, str]]
    rows: Sequence[Record] = field(default_factory=list)

    def params(self, name: str) -> dict[str, Any]:
        """What a node was asked, by its instance id."""
        number, host, call_id = self.nodes[name]
        return {**self.calls[number], "host": host, "instance_id": name, "call_id": call_id}

    def expected(self) -> dict[str, ExpectedHost]:
        """The run's hosts by name."""
        return {host.host: host for host in self.run.hosts}


def key_of(run_id: str) -> str:
    """Where a run's order lies in the results bucket."""
    return blobs.run_key(run_id, NAME)


def pack(order: Order) -> bytes:
    """The order as it is kept."""
    made = {"schema": SCHEMA, **{name: getattr(order, name) for name in _FIELDS}, "run": asdict(order.run)}
    return zlib.compress(json.dumps(made, separators=(",", ":"), default=str).encode(), 6)


def unpack(body: bytes) -> Order:
    """The order in what was kept. Raises ValueError for what is none."""
    try:
        unpacker = zlib.decompressobj()
        made = json.loads(unpacker.decompress(body, MOST_BYTES))
        if made["schema"] != SCHEMA or not unpacker.eof:
            raise ValueError(f"saw {made['schema']!r}, wanted a whole {SCHEMA}")
        run = Run(**{**made["run"], "hosts": tuple(ExpectedHost(**host) for host in made["run"]["hosts"])})
        nodes = {name: (int(number), str(host), str(call)) for name, (number, host, call) in made["nodes"].items()}
        return Order(run, int(made["deadline_s"]), str(made["how"]), made["calls"], nodes, made["rows"])
    except (zlib.error, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a run's order: {type(error).__name__}: {error}") from error


_FIELDS = ("deadline_s", "how", "calls", "nodes", "rows")
