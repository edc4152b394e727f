"""A stack's values while they are being checked, and the mistakes found so far."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from flightline_node.names import earlier
from infra.config.declare import ARRAY, SHOWN_SECRET, Value, declared
from infra.config.errors import Mistake
from infra.config.model import BY_NAME, EARLIER, KEYS


def today(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The values under today's names of their keys. Beside today's own an earlier name stays, an unknown key."""
    return {name if EARLIER.get(name) in raw else EARLIER.get(name, name): _listed(name, raw) for name in raw}


def _listed(name: str, raw: Mapping[str, Any]) -> Any:
    """A value; of one that is a list by now its only item."""
    value, key = raw[name], BY_NAME.get(EARLIER.get(name, ""))
    one = key is not None and key.kind == ARRAY and isinstance(value, str)
    return [value] * bool(value) if one else value


def warnings(raw: Mapping[str, Any]) -> list[str]:
    """What to say to a stack that uses earlier names."""
    return [earlier(name, EARLIER[name]) for name in raw if name in EARLIER]


_ORDER = {key.name: position for position, key in enumerate(KEYS)}


class Values:
    """Typed access to the values. A key whose value is refused answers with its default, so that checking can go on."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw = today(raw)
        self._values: dict[str, Value] = {}
        self._mistakes: list[Mistake] = []
        for name in sorted(set(raw) - set(BY_NAME)):
            near = get_close_matches(name, BY_NAME, n=1)
            hint = f"a key of Pulumi.yaml; did you mean {near[0]}?" if near else "a key of Pulumi.yaml"
            self._mistakes.append(Mistake(name, "an unknown key", hint))
        for key in KEYS:
            try:
                self._values[key.name] = key.parse(raw.get(key.name))
            except ValueError as error:
                self._values[key.name] = key.default
                self.refuse(key.name, str(error))

    def text(self, name: str) -> str:
        """A string key's value."""
        return str(self._values[name])

    def number(self, name: str) -> int:
        """An integer key's value."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def flag(self, name: str) -> bool:
        """A boolean key's value."""
        return bool(self._values[name])

    def items(self, name: str) -> tuple[str, ...]:
        """An array key's value."""
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def changed(self, name: str) -> bool:
        """Whether a key has another value than its default."""
        return self._values[name] != BY_NAME[name].default

    def refuse(self, name: str, wanted: str, item: str | None = None) -> None:
        """Note a mistake; item: the part of the value that is wrong. A key of another namespace has no value here."""
        key = BY_NAME.get(name)
        if key is not None and key.secret:
            shown = SHOWN_SECRET
        else:
            shown = repr(self._raw.get(name, key.default if key else None) if item is None else item)
        mistake = Mistake(name, shown, wanted)
        if mistake not in self._mistakes:
            self._mistakes.append(mistake)

    def refused(self, *names: str) -> bool:
        """Whether any of these keys already has a mistake: what is derived from them is not worth checking."""
        return any(mistake.key in names for mistake in self._mistakes)

    def checked(self, name: str) -> Any:
        """A key's value, refused when its declaration does not admit it; None for no value where that is allowed."""
        key, value = BY_NAME[name], self._values[name]
        if not key.admits(value):
            self.refuse(name, key.accepted)
        return None if key.optional and value == "" else value

    def section(self, section: type) -> dict[str, Any]:
        """Field -> checked value of a section's settings, without what its file derives."""
        return {field: self.checked(key.name) for field, key in declared(section).items() if not key.derived}

    @property
    def mistakes(self) -> list[Mistake]:
        """Every mistake, in the order of the keys."""
        return sorted(self._mistakes, key=lambda mistake: _ORDER.get(mistake.key, -1))
