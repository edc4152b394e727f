"""A directory that scripts/cluster can be run in, with stand-ins for its Python and for Pulumi."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.infra.stacks import ROOT

PYTHON = f"""#!/bin/sh
# ansible-core for the nodes comes from an index, and whether an account is ready from AWS: a test asks neither.
[ "$2" != infra.node_ansible ] || exit 0
[ "$2" != infra.ready ] || exit "${{NOT_READY:-0}}"
exec {sys.executable} "$@"
"""


def lay_out(place: Path, pulumi: str, outputs: Mapping[str, Any]) -> None:
    """This checkout's own files by links. pulumi: text of the stand-in; outputs: what it answers."""
    for name in ("infra", "scripts", "Pulumi.yaml", "Pulumi.dev.yaml"):
        (place / name).symlink_to(ROOT / name)
    for path, text in ((".venv/bin/python", PYTHON), ("bin/pulumi", pulumi)):
        (place / path).parent.mkdir(parents=True)
        (place / path).write_text(text)
        (place / path).chmod(0o755)
    (place / "outputs.json").write_text(json.dumps(outputs))
