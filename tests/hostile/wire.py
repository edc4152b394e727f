"""Generated answers as nodes of the real playbook, with what each should come to."""

import json
from typing import Any

from flightline.record.answers import asked_of
from flightline_node.inputs import defaults

from .bed import CHECKS, answer
from .generator import CHECKS as MADE
from .generator import START, TYPE, Case, good
from .oracle import of_text

TABLE = asked_of({**defaults(), "instance_type": TYPE, "checks": CHECKS}).table


def planned(case: Case, host: str) -> dict[str, Any]:
    """The node's plan: its text, and whether that is go."""
    text = case.text or json.dumps(case.answer)
    for made, asked in zip(MADE, CHECKS, strict=True):
        text = text.replace(f'"check": "{made}"', f'"check": "{asked}"')
    text = text.replace('"instance_id": "i-0"', '"instance_id": ""')
    text = text.replace('"uuid": "GPU-', f'"uuid": "{host}-').replace('"serial": "S-', f'"serial": "{host}-')
    line = answer(text, host)
    record = line.partition('"record": ')[2][:-2].replace("{CALL}", "call").replace("{NOW}", START)
    identity = {"host": host, "instance_type": good()["instance_type"], "level": "quick", "call_id": "call"}
    return {"text": line, "go": of_text(record, TABLE, **identity)}
