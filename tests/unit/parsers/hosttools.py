"""What tests of the host parsers share: parse a fixture or a text by the parser's name."""

from typing import Any

from flightline_node.read.parsers import PARSERS
from tests.harness import sample


def parse(parser: str, *outputs: str | bytes) -> dict[str, Any]:
    """Facts of outputs given in the order of the parser's files."""
    files = {
        name: text.encode() if isinstance(text, str) else text
        for name, text in zip(PARSERS[parser].files, outputs, strict=False)
    }
    return PARSERS[parser].parse(files)


def read(parser: str, *paths: str) -> dict[str, Any]:
    """Facts of fixtures given in the order of the parser's files."""
    return parse(parser, *map(sample, paths))
