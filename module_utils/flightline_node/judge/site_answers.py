"""What the reader of a site's program wrote (ask/site_program.py), as facts."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Mapping

from ..model import Check, Facts, ParseError
from ..names import SITE
from ..read.parsers import Parser
from .site_checks import SiteCheck


def parsers(checks: Iterable[Check]) -> Dict[str, Parser]:
    """How the answers of the programs among some checks are read."""
    programs = [check.program for check in checks if isinstance(check, SiteCheck) and check.program]
    return {SITE + one.name: Parser(SITE + one.name, (one.file,), answer_of) for one in programs}


def answer_of(files: Mapping[str, Any]) -> Facts:
    """What the reader of a program wrote (ask/site_program.py): the parser of each. Raises ParseError."""
    (data,) = (files[name] for name in files)
    try:
        found = json.loads(bytes(data))
    except ValueError as error:
        raise ParseError(f"no answer of the program: {error}") from error
    if not isinstance(found, dict):
        raise ParseError("no answer of the program")
    return found
