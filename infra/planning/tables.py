"""Keys and indexes of the DynamoDB tables. The results table is what `flightline.cloud.items` writes."""

from collections.abc import Mapping
from dataclasses import dataclass

from flightline.cloud import items


@dataclass(frozen=True)
class Index:
    """A global secondary index; it projects everything."""

    name: str
    hash_key: str
    range_key: str


@dataclass(frozen=True)
class Table:
    """A table; all key attributes are strings."""

    name: str
    hash_key: str
    range_key: str
    ttl: str
    indexes: tuple[Index, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that is part of a key, in a fixed order."""
        keys = {self.hash_key, self.range_key}
        for index in self.indexes:
            keys |= {index.hash_key, index.range_key}
        return tuple(sorted(keys))


def results(name: str) -> Table:
    """Pk RUN#<run>, sk NODE#<instance>#<check> and what else items.py describes."""
    return _table(name, items.INDEXES)


def training(name: str) -> Table:
    """Pk JOB#<job>, sk <start>#<run>."""
    return _table(name, items.TRAINING_INDEXES)


def _table(name: str, indexes: Mapping[str, tuple[str, str]]) -> Table:
    found = tuple(Index(key, *parts) for key, parts in indexes.items())
    return Table(name, items.PK, items.SK, items.TTL, found)
