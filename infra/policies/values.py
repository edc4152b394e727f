"""Reading properties that may be absent, unknown, or a boolean spelled as text."""

from typing import Any, Iterator, List

from .model import UNKNOWN, Answer, Broken, Props, Unsure


def look(props: Any, path: str) -> Any:
    """The value at a dotted path: None where absent, UNKNOWN where it, or what holds it, is unknown."""
    value = props
    for key in path.split("."):
        if value is UNKNOWN or value is None:
            return value
        value = value.get(key) if hasattr(value, "get") else None
    return value


def items(props: Props, path: str) -> List[Any]:
    """The list at a path; an unknown list is a list of one unknown, an absent one is empty."""
    value = look(props, path)
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def truth(value: Any) -> Any:
    """True, False, None or UNKNOWN; the provider spells some booleans as text."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value


def require(holder: Any, path: str, wanted: Any) -> Iterator[Answer]:
    """Nothing when the value at the path is as wanted."""
    seen = look(holder, path)
    if seen is UNKNOWN:
        yield Unsure(f"{path} is known only during the update; {_shown(wanted)} is wanted")
        return
    same = truth(seen) is wanted if isinstance(wanted, bool) else seen == wanted
    if not same:
        yield Broken(f"{path} is {_shown(seen)}; {_shown(wanted)} is wanted")


def require_some(holder: Any, path: str, wanted: str) -> Iterator[Answer]:
    """Nothing when the path has a value, known or not: an unknown one is still a reference to something."""
    seen = look(holder, path)
    if seen is None or seen == "" or seen == 0:
        yield Broken(f"{path} is {_shown(seen)}; {wanted} is wanted")


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else repr(value)
