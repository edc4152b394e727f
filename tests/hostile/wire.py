"""Generated answers as nodes of the real playbook, with what each should come to."""

from __future__ import annotations

import json
from typing import Any

from .generator import CHECKS as MADE
from .generator import Case, good
from .ground import CHECKS, answer
from .oracle import of_text


def planned(case: Case, host: str) -> dict[str, Any]:
    """The node's plan: its text, and whether that is go."""
    text = case.text or json.dumps(case.answer)
    for made, asked in zip(MADE, CHECKS, strict=True):
        text = text.replace(f'"check": "{made}"', f'"check": "{asked}"')
    text = text.replace('"instance_id": "i-0"', '"instance_id": ""').replace('"uuid": "GPU-1"', f'"uuid": "{host}"')
    text = text.replace('"serial": "S-1"', f'"serial": "{host}"')
    line = answer(text, host)
    record = line.partition('"record": ')[2][:-2].replace("{CALL}", "call")
    identity = {"host": host, "instance_type": good()["instance_type"], "level": "quick", "call_id": "call"}
    return {"text": line, "go": of_text(record, CHECKS, **identity)}
