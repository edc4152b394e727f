"""sysctl -a, or files of sysctl.d's form."""

from __future__ import annotations

from typing import Dict, List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("sysctl.txt",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{values{key: value}, errors[]}: values with runs of white space as one space, keys with dots.

    errors holds sysctl's own complaints ('sysctl: permission denied on key ...').
    """
    found: Dict[str, str] = {}
    errors: List[str] = []
    for line in v.lines(t.only(files)):
        key, equals, value = line.partition("=")
        key = key.strip().lstrip("-")
        if line.startswith("sysctl: "):
            errors += [line] if len(errors) < v.MAX_NOTED else []
        elif equals and key and not key.startswith(("#", ";")) and " " not in key:
            found[_dotted(key)] = " ".join(value.split())
    if not found:
        raise ParseError("no 'key = value' line: not sysctl's output")
    return {"values": found, "errors": errors}


def _dotted(key: str) -> str:
    """net/ipv4/conf/eth0.1/rp_filter is sysctl.d's other spelling: the first separator tells which."""
    first = next((char for char in key if char in "./"), ".")
    return key if first == "." else key.translate(str.maketrans("./", "/."))
