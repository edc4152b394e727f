"""From the labels in families/*.yml to cases. The shapes a label can have are in `expand`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from flightline.demo.hardware import GPUS
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import known_types, resolve
from flightline_node.model import BLOCKING, Remedy, SettingsError, Status

from .material import STAMPS, Files, build

FAMILIES = Path(__file__).parent / "families"
SOURCES = ("recorded", "hand-written", "simulated")
_KEYS = frozenset({"id", "instance_type", "expected", "files", "expects", "may", "verdict", "source", "driver", "why"})


@dataclass(frozen=True)
class Case:
    """One case and its right answer.

    expects: check -> (status, remedy or None) for every check that must not be PASS, INFO or SKIP.
    may: checks in which the same fault can show too; they count neither for nor against.
    driver: the driver or tool generation whose format the files have. why: where the label comes from.
    """

    id: str
    family: str
    instance_type: str
    expected: Mapping[str, Any]
    files: Mapping[str, Any]
    expects: Mapping[str, tuple[Status, Remedy | None]]
    may: frozenset[str]
    verdict: str
    source: str
    driver: str = ""
    why: str = field(default="", compare=False)

    def material(self) -> Files:
        """The files of the bundle."""
        return build(self.files)


def _answers(given: Mapping[str, list[str]]) -> dict[str, tuple[Status, Remedy | None]]:
    return {check: (Status(words[0]), Remedy(words[1]) if len(words) > 1 else None) for check, words in given.items()}


def _may(names: list[str]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        tagged = [check.id for check in CHECKS.values() if name[4:] in (*check.tags, "any")]
        found.update(tagged if name.startswith("tag:") else [name])
    return frozenset(found)


def _case(family: str, given: Mapping[str, Any]) -> Case:
    expects = _answers(given.get("expects", {}))
    implied = "no-go" if any(status in BLOCKING for status, _ in expects.values()) else "go"
    name = f"{family}/{given['id']}"
    unknown = (set(expects) | _may(given.get("may", []))) - set(CHECKS)
    if unknown or set(given) - _KEYS or given["source"] not in SOURCES:
        raise SettingsError(f"{name}: unknown check or key: {sorted(unknown) or sorted(set(given) - _KEYS)}")
    return Case(
        name,
        family,
        given["instance_type"],
        given.get("expected", {}),
        given["files"],
        expects,
        _may(given.get("may", [])) - set(expects),
        given.get("verdict", implied),
        given["source"],
        str(given.get("driver", "")),
        given.get("why", ""),
    )


def _on_bases(given: Mapping[str, Any], bases: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`across: [base, ...]`: the same edit on several bases; `across: all` is every base."""
    rest = {key: value for key, value in given.items() if key not in ("across", "edit")}
    for name in bases if given["across"] == "all" else given["across"]:
        base = bases[name]
        files = {**base["files"], **({"edit": given["edit"]} if "edit" in given else {})}
        yield {**base, **rest, "files": files, "id": f"{given['id']}@{name}"}


def _log_lines(given: Mapping[str, Any], shapes: list[str]) -> Iterator[dict[str, Any]]:
    """`codes: [...]`: a kernel log for each code; stamps and line shapes take turns, the first code has every stamp."""
    rest = {key: value for key, value in given.items() if key not in ("codes", "text")}
    for number, code in enumerate(given["codes"]):
        for turn, stamp in enumerate(STAMPS):
            if number and turn != number % len(STAMPS):
                continue
            shape = shapes[(number + turn) % len(shapes)]
            line = shape.format(code=code, text=given.get("text", "Ch 00000008, intr 00000000"))
            files = {"kernel": {"lines": [line], "stamp": stamp}}
            yield {**rest, "files": files, "id": f"{given['id']}-{code}@{stamp}"}


def _labels(cases: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """`each: {id: what differs}`: a label for each; a message of the kernel, or a list of them, is its log."""
    for label in cases:
        rest = {key: value for key, value in label.items() if key != "each"}
        for name, own in label.get("each", {rest.get("id"): {}}).items():
            lines = [own] if isinstance(own, str) else own
            yield {**rest, "id": name, **(own if isinstance(own, dict) else {"files": {"kernel": {"lines": lines}}})}


def expand(document: Mapping[str, Any]) -> Iterator[Case]:
    """Every case of a family. `common` fills what a label leaves out."""
    family = document["family"]
    for label in _labels(document["cases"]):
        given = {**document.get("common", {}), **label}
        many: Iterator[dict[str, Any]] = iter([given])
        if "across" in given:
            many = _on_bases(given, document["bases"])
        elif "codes" in given:
            many = _log_lines(given, document["shapes"])
        elif "types" in given:
            types = simulated() if given["types"] == "simulated" else given["types"]
            given.pop("types")
            many = ({**given, "id": name, "instance_type": name, "files": {"demo": name}} for name in types)
        for one in many:
            yield _case(family, one)


def simulated() -> list[str]:
    """Every NVIDIA type of the table that the demo fleet can simulate: a new row is a new case."""
    found = [name for name in known_types() if resolve(name).has_nvidia_gpu]
    return [name for name in found if (resolve(name).gpu_model or "") in GPUS]


def load() -> list[Case]:
    """Every case of every family. Raises SettingsError for a label that cannot be understood."""
    cases: list[Case] = []
    for path in sorted(FAMILIES.glob("*.yml")):
        cases += expand(yaml.safe_load(path.read_text(encoding="utf-8")))
    names = [case.id for case in cases]
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if twice:
        raise SettingsError(f"labelled twice: {', '.join(sorted(twice))}")
    return cases
