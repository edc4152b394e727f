"""A node's answer, however it came: printable words of somebody else's, and the one gate."""

from __future__ import annotations

from typing import Any

from flightline_node import bounds
from flightline_node.read import strictjson

from ..record import intake
from ..record.words import printable


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


def admitted(answer: dict[str, Any], asked: intake.Asked, with_bundle: bool) -> dict[str, Any]:
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
