"""/proc/modules or lsmod."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("modules.txt",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{names{module: size in bytes}}; module names with underscores, as the kernel prints them."""
    names: Dict[str, Optional[int]] = {}
    for line in v.lines(t.only(files)):
        words = line.split()
        # Both forms begin "name size use-count", where a kernel that unloads no modules counts nothing and prints "-"
        # (kernel/module/procfs.c); the header of lsmod has no number.
        if len(words) >= 3 and words[1].isdecimal() and (words[2] == "-" or words[2].lstrip("-").isdecimal()):
            names[words[0].replace("-", "_")] = v.integer(words[1])
    if not names:
        raise ParseError("no 'name size count' line: not /proc/modules or lsmod")
    return {"names": names}
