"""The node package that goes to S3: built from this checkout, or the one that the stack names."""

import hashlib
from pathlib import Path

from flightline.node_package import contents
from tools.nodepackage import LIBRARY, NodePackage, build, existing

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / ".flightline" / "node-packages"


def mistake(chosen: str) -> str | None:
    """What was wanted of a package that the stack names; None when it is one."""
    try:
        existing(ROOT / chosen)
    except (ValueError, OSError) as error:
        return f"a node package: {error}"
    return None


def package(chosen: str | None) -> NodePackage:
    """The package. chosen: path from the repository's root, None builds it. Raises ValueError or OSError."""
    if chosen is not None:
        return existing(ROOT / chosen)
    # Named by its content: Pulumi reads the file long after it was planned, and an edit must not change it meanwhile.
    checksum = hashlib.sha256(contents(LIBRARY)).hexdigest()
    return build(BUILT / f"flightline-node-{checksum}.pyz")
