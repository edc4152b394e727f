"""Records that came in several log lines, perhaps in several invocations: parts wait in the table for the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flightline.cloud import batches, items
from flightline_node.tell.logline import Piece, join

KEEP_S = 3 * 86_400


@dataclass(frozen=True)
class Parts:
    """client: DynamoDB. Parts lie under `pk=PART#<record>` and expire by themselves."""

    client: Any
    table: str
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def add(self, pieces: Sequence[Piece]) -> Mapping[str, Any] | None:
        """Keep pieces of one record; the record when it is complete now, else None. Raises LineError.

        Every invocation writes before it reads, and reads consistently: of two that bring the last parts at the
        same time, at least one sees all of them.
        """
        if len({piece.part for piece in pieces}) == pieces[0].parts:
            return join(pieces)
        expires = int(self.clock()) + KEEP_S
        batches.write_all(self.client, self.table, [items.marshal(_item(piece, expires)) for piece in pieces])
        known = [*pieces, *self._stored(pieces[0])]
        return join(known) if len({piece.part for piece in known}) == pieces[0].parts else None

    def _stored(self, like: Piece) -> list[Piece]:
        found = batches.partition(self.client, self.table, _pk(like))
        return [like._replace(part=int(item["part"]), data=str(item["data"])) for item in found]


def _item(piece: Piece, expires: int) -> items.Item:
    return {
        items.PK: _pk(piece),
        items.SK: f"{piece.part:05d}",
        "part": piece.part,
        "data": piece.data,
        items.TTL: expires,
    }


def _pk(piece: Piece) -> str:
    return f"PART#{piece.parts}#{items.part(piece.id)}"
