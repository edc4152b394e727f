"""A node's answer, however it came: printable words of somebody else's, and the one gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightline_node import bounds
from flightline_node.judge.must import table_of
from flightline_node.model import LEVELS, Site
from flightline_node.read import strictjson
from flightline_node.settings import resolve_settings

from . import intake
from .intake import Asked
from .printable import printable


def asked_of(given: Mapping[str, Any], begun: float = 0.0) -> Asked:
    """What the gate wants of an answer, from the module's arguments. begun: see Asked. Raises SettingsError."""
    expected, settings = resolve_settings({**given, "thresholds": {}})
    reached = LEVELS.index(settings.level)
    due = [check for check in settings.checks if LEVELS.index(check.level) <= reached]
    return Asked(
        host=given["host"],
        instance_id=given["instance_id"],
        instance_type=given["instance_type"],
        level=settings.level,
        call_id=given["call_id"],
        checks=frozenset(check.id for check in due),
        skipped=frozenset(check.id for check in settings.skipped),
        table=table_of(due, settings.skipped, Site(expected, settings.options, settings.level)),
        waivers=settings.waivers,
        begun=begun,
    )


def most_bytes(with_bundle: bool) -> int:
    """What a node may answer, with what is printed around it."""
    return bounds.MAX_RECORD_BYTES + bounds.MAX_CHATTER_BYTES + (bounds.MAX_BUNDLE_TEXT if with_bundle else 0)


def said(text: str) -> str:
    """What somebody else says, printable and short."""
    return " ".join(printable(text[: 4 * bounds.SAID_CHARS]).split())[: bounds.SAID_CHARS] or "nothing"


def answer_in(line: str) -> dict[str, Any]:
    """The answer in the line that the node library prints."""
    try:
        found = strictjson.loads(line)["flightline_call"]
    except (ValueError, KeyError, TypeError) as error:
        return {"failed": True, "msg": f"its answer was refused: {said(str(error))}; it began: {intake.first(line)}"}
    return found if isinstance(found, dict) else {"failed": True, "msg": f"it answered {intake.first(found)}"}


def admitted(answer: dict[str, Any], asked: Asked, with_bundle: bool) -> dict[str, Any]:
    """The task's result: made anew, so that nothing but what is named here gets any further."""
    if answer.get("failed") or "record" not in answer:
        texts = (answer.get(key) for key in ("msg", "module_stderr", "module_stdout", "exception"))
        return {
            "failed": True,
            "msg": next((said(text) for text in texts if text and isinstance(text, str)), "no record"),
        }
    try:
        record = intake.admit(answer["record"], asked)
    except intake.AnswerRefusedError as error:
        return {"failed": True, "msg": str(error)}
    result = {"changed": False, "verdict": record["verdict"], "record": record}
    bundle = answer.get("bundle")
    if with_bundle and bundle and not intake.is_go(record):
        if isinstance(bundle, str) and len(bundle) <= bounds.MAX_BUNDLE_TEXT:
            result["bundle"] = bundle
        else:
            result["bundle_refused"] = (
                f"its bundle was left out: saw {intake.first(bundle)}, wanted at most "
                f"{bounds.MAX_BUNDLE_TEXT} characters"
            )
    return result
