"""The JSON Schemas: of a record from its declaration, of a report the words that are declared elsewhere.

`python -m tools.schemas` writes both; tests compare.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flightline.record.schema import SCHEMA_FILE, published
from flightline.report import jsonfile
from flightline_node.model import Remedy
from tools.generated import generate

REPORT_FILE = Path(jsonfile.__file__).with_name("schema.json")
LINE = 100
_REMEDIES = re.compile(r'("title": "Remedy",\n.*\n *"enum": )\[.*\]')


def texts() -> dict[Path, str]:
    """Each file with what it should say."""
    words = json.dumps([str(remedy) for remedy in Remedy])
    report = _REMEDIES.sub(rf"\g<1>{words}", REPORT_FILE.read_text(encoding="utf-8"))
    return {SCHEMA_FILE: laid_out(published()) + "\n", REPORT_FILE: report}


def laid_out(value: Any, depth: int = 0) -> str:
    """JSON in which what fits on a line stands on one, as in the report's schema."""
    line = json.dumps(value)
    if depth and (not isinstance(value, (dict, list)) or 2 * depth + len(line) < LINE):
        return line
    inner, outer = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(laid_out(item, depth + 1) for item in value)}{outer}]"
    members = (f"{json.dumps(key)}: {laid_out(item, depth + 1)}" for key, item in value.items())
    return f"{{{inner}{f',{inner}'.join(members)}{outer}}}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check say what is old."""
    return generate("schemas", "Write the JSON Schemas of records and reports.", arguments, texts)


if __name__ == "__main__":
    sys.exit(main())
