"""The JSON Schemas: of a record from its declaration, of a report the words that are declared elsewhere.

`python -m tools.schemas` writes both; tests compare.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from flightline.record.schema import SCHEMA_FILE, published
from flightline.report import jsonfile
from flightline_node.model import Remedy
from tools.generated import differing, only_check, settled

REPORT_FILE = Path(jsonfile.__file__).with_name("schema.json")
_REMEDIES = re.compile(r'("title": "Remedy",\n.*\n *"enum": )\[.*\]')


def texts() -> dict[Path, str]:
    """Each file with what it should say."""
    words = json.dumps([str(remedy) for remedy in Remedy])
    report = _REMEDIES.sub(rf"\g<1>{words}", REPORT_FILE.read_text(encoding="utf-8"))
    return {SCHEMA_FILE: json.dumps(published(), indent=2) + "\n", REPORT_FILE: report}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check say what is old."""
    check = only_check("schemas", "Write the JSON Schemas of records and reports.", arguments)
    return settled(differing(texts()), check)


if __name__ == "__main__":
    sys.exit(main())
