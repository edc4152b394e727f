"""neuron-packages.txt: `name version` of the installed aws-neuronx packages, by dpkg-query or rpm."""

from __future__ import annotations

import re
from typing import Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("neuron-packages.txt",)
LATER = True

_LINE = re.compile(r"(aws-neuron[a-z0-9-]{0,40})[ \t]+(?:\d+:)?([0-9][\w.+~:-]{0,60})(?:[ \t]+([a-z-]{1,24}))?\s*$")
_NONE = re.compile(r"no packages found|is not installed|no path found", re.I)


def parse(files: Mapping[str, Data]) -> Facts:
    """{packages{name: version}}: the third word of a line, dpkg's state, must be `installed` where there is one."""
    packages: Dict[str, str] = {}
    seen, none = False, False
    for line in v.lines(t.only(files)):
        match = _LINE.match(line.strip())
        none = none or bool(_NONE.search(line))
        if match:
            seen = True
            if match.group(3) in (None, "installed"):
                packages[match.group(1)] = match.group(2)
    if not seen and not none:
        raise ParseError("no line 'aws-neuronx-... VERSION' in it: not the list of the Neuron packages")
    return {"packages": packages}
