"""What a policy judges and what it may answer."""

from dataclasses import dataclass, field
from typing import Any, Callable, FrozenSet, Iterator, Mapping, Tuple, Union

Props = Mapping[str, Any]
"""Properties under the names that the engine uses (camelCase)."""


class Unknown:
    """A value that the engine learns only during the update."""

    def __repr__(self) -> str:
        return "<known after the update>"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Registered:
    """One resource as the engine is told about it."""

    type_: str
    name: str
    props: Props
    protect: bool = False
    retain: bool = False
    secret_props: FrozenSet[str] = frozenset()
    """Top-level properties that are, or contain, a Pulumi secret; their values stand open in `props`."""

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"{self.name} ({self.type_})"


@dataclass(frozen=True)
class PolicyContext:
    """What the stack settles about its policies."""

    keep_data: bool = True
    required_tags: FrozenSet[str] = frozenset()


@dataclass(frozen=True)
class Broken:
    """The rule is broken: what was seen and what is wanted."""

    text: str


@dataclass(frozen=True)
class Unsure:
    """The rule cannot be judged yet, because a value is known only during the update."""

    text: str


Answer = Union[Broken, Unsure]


@dataclass(frozen=True)
class Rule:
    """A policy over single resources, and, where it needs to see all of them together, over the stack."""

    id: str
    why: str
    check: Callable[[Registered, PolicyContext], Iterator[Answer]]
    check_stack: Callable[[Tuple[Registered, ...]], Iterator[Tuple[Registered, Answer]]] = field(
        default=lambda resources: iter(())
    )


@dataclass(frozen=True)
class PolicyFinding:
    """A rule's answer about one resource."""

    rule: str
    resource: str
    answer: Answer

    def __str__(self) -> str:
        return f"[{self.rule}] {self.resource}: {self.answer.text}"
