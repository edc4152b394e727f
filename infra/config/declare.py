"""How a setting of a stack is declared: once, as a field of a section in `infra.config.model`.

From the declaration follow its check and the words of its refusal (`infra.config.values`), its entry in Pulumi.yaml
and its row in docs/settings.md (`python -m tools.stack_settings`; a test compares).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

STRING = "string"
INTEGER = "integer"
BOOLEAN = "boolean"
ARRAY = "array"
"""What Pulumi's project file knows, so tags are an array of "Key=Value"."""

Value = str | int | bool | tuple[str, ...]
SHOWN_SECRET = "[secret]"  # noqa: S105  # what is shown instead of one
_KEY = "key"

WANTED = {
    STRING: "text",
    INTEGER: "a whole number",
    BOOLEAN: "true or false",
    ARRAY: 'a list of text, such as ["one", "two"]',
}


@dataclass(frozen=True)
class Key:
    """One configuration key. The default's type is the key's type.

    choices: the values there are. within: the lowest and the highest number. pattern: what text must match as a whole;
    wanted: the same in words; of a list both hold for each item. optional: empty text is no value. derived: the
    section's file works the field out.
    variable: of the role that it reaches; without one it ends in resources. aliases: its earlier names
    (docs/stability.md).
    """

    name: str
    default: Value
    description: str
    choices: tuple[str, ...] | tuple[int, ...] = ()
    within: tuple[int, int] | None = None
    unit: str = ""
    pattern: str = ""
    wanted: str = ""
    optional: bool = False
    derived: bool = False
    secret: bool = False
    variable: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The stack's output by which it reaches its role: logRetentionDays is log_retention_days."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def kind(self) -> str:
        """Type in Pulumi.yaml."""
        if isinstance(self.default, bool):
            return BOOLEAN
        if isinstance(self.default, int):
            return INTEGER
        return STRING if isinstance(self.default, str) else ARRAY

    @property
    def accepted(self) -> str:
        """What may stand there, in words; empty when only its type is told."""
        if self.wanted:
            return self.wanted
        if self.choices:
            said = f"one of {', '.join(map(str, self.choices))}"
        else:
            said = "{} to {}".format(*self.within) if self.within else ""
        return f"{said} {self.unit}".strip() if said else ""

    def admits(self, value: Value) -> bool:
        """Whether a value of the key's type is one that the declaration accepts."""
        if self.optional and value == "":
            return True
        if isinstance(value, tuple):
            return not self.pattern or all(re.fullmatch(self.pattern, one) for one in value)
        if self.choices and value not in self.choices:
            return False
        if self.within is not None and not self.within[0] <= int(str(value)) <= self.within[1]:
            return False
        return not self.pattern or re.fullmatch(self.pattern, str(value)) is not None

    def parse(self, raw: Any) -> Value:
        """The value of what the stack says, else the default. Raises ValueError with what was wanted."""
        if raw is None:
            return self.default
        value = _PARSERS[self.kind](raw)
        if value is None:
            raise ValueError(WANTED[self.kind])
        return value


def setting(name: str, default: Value, description: str, **rule: Any) -> Any:
    """A field that is the key's value; see `Key` for the rule."""
    key = Key(name, default, description, **rule)
    return field(default=None if key.optional and default == "" else default, metadata={_KEY: key})


def percent(name: str, default: int, description: str, least: int = 1) -> Any:
    """A share in percent."""
    return setting(name, default, description, within=(least, 100), unit="percent")


def gib(name: str, default: int, description: str, least: int) -> Any:
    """The size of a gp3 volume; EC2 takes no larger one."""
    return setting(name, default, description, within=(least, 16384), unit="GiB")


def usd(name: str, default: int, description: str, what: str) -> Any:
    """An amount of whole US dollars above which something happens. what: there is none of it at 0."""
    unit = f"US dollars; 0 is no {what}"
    return setting(name, default, description, within=(0, 1_000_000_000), unit=unit)


def existing(name: str, what: str, pattern: str, example: str) -> Any:
    """The id or name of something that is there already."""
    said = "ARN" if example.startswith("arn:") else "Id" if "-0123" in example else "Name"
    wanted = f"{said.lower() if said != 'ARN' else said} such as {example}, or nothing"
    return setting(name, "", f"{said} of {what}.", optional=True, pattern=pattern, wanted=wanted)


def existing_id(name: str, what: str, prefix: str) -> Any:
    """The id of something in EC2 that is there already."""
    return existing(name, what, prefix + r"-([0-9a-f]{8}|[0-9a-f]{17})", f"{prefix}-0123456789abcdef0")


def derived(name: str, default: Value, description: str, *, initially: Any = MISSING, **rule: Any) -> Any:
    """A field that its section's file works out of the key's value. initially: its value where it says nothing."""
    metadata = {_KEY: Key(name, default, description, derived=True, **rule)}
    # A webhook must not get into a log with its settings.
    return field(default=initially, metadata=metadata, repr=not rule.get("secret"))


def declared(section: type) -> dict[str, Key]:
    """Field -> key of one section, without the sections inside it."""
    return {part.name: part.metadata[_KEY] for part in fields(section) if _KEY in part.metadata}


def inside(section: type) -> Iterator[tuple[str, type]]:
    """Field -> section of those that lie directly in a section."""
    for name, kind in get_type_hints(section).items():
        yield from ((name, one) for one in (kind, *get_args(kind)) if isinstance(one, type) and is_dataclass(one))


def sections(outer: type) -> Iterator[type]:
    """A section and all those in it."""
    yield outer
    for _, one in inside(outer):
        yield from sections(one)


def keys(section: type) -> Iterator[Key]:
    """Every key of a section and of those in it, in the order of their fields."""
    own, below = declared(section), list(inside(section))
    for part in fields(section):
        if part.name in own:
            yield own[part.name]
        for name, one in below:
            if name == part.name:
                yield from keys(one)


def reaching(section: Any) -> Iterator[tuple[str, Any]]:
    """(output, value) of the settings in a section, and in those inside it, that reach a role."""
    for name, key in declared(type(section)).items():
        if key.variable:
            value = getattr(section, name)
            yield key.output, "" if value is None else list(value) if isinstance(value, tuple) else value
    for name, _ in inside(type(section)):
        if is_dataclass(value := getattr(section, name)):
            yield from reaching(value)


def _string(raw: Any) -> str | None:
    return raw.strip() if isinstance(raw, str) else None


def _integer(raw: Any) -> int | None:
    return int(raw) if re.fullmatch(r"-?\d{1,12}", str(raw)) else None


def _boolean(raw: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(raw).lower())


def _array(raw: Any) -> tuple[str, ...] | None:
    try:
        items = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        return None
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        return None
    return tuple(item.strip() for item in items)


_PARSERS: Mapping[str, Callable[[Any], Value | None]] = {
    STRING: _string,
    INTEGER: _integer,
    BOOLEAN: _boolean,
    ARRAY: _array,
}
