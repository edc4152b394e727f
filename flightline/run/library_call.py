"""The shell command that calls the node library which a node keeps."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path

import flightline_node
from flightline_node.keep import INSTALLED, key_of, sources

from ..record.outputs import BEGUN, BROKEN_RC, ENDED, NOT_KEPT_RC

# Code is run from the directory: it must be root's, where the role installed it, or the user's own.
# -I and -S: nothing but the library and Python's own.
_SHELL = """\
d={installed}/{key}
if [ ! -d "$d" ] || [ "$(find {installed} "$d" -maxdepth 0 -uid 0 ! -perm /022 2>/dev/null | wc -l)" != 2 ]; then
b=~/.ansible/flightline; d=$b/{key}
[ -O "$b" ] && [ -O "$d" ] && [ -d "$d" ] || exit {not_kept}
fi
py={python}
[ -n "$py" ] || read -r py < "$d/python" || exit {not_kept}
command -v "$py" >/dev/null || exit {not_kept}
t=; command -v timeout >/dev/null && t="timeout --foreground -k 5 {end_s}"
exec $t "$py" -I -S -c {start} "$d" {arguments}"""

# A call lives for seconds: to look for garbage, and at the end to take the interpreter apart, is a tenth of its time.
_START = f"""\
import gc, os, sys
gc.disable()
sys.path.insert(0, sys.argv[1])
mark = "node.%s.pyc" % sys.implementation.cache_tag
if not os.path.exists(os.path.join(sys.argv[1], "flightline_node", "__pycache__", mark)):
    sys.exit({NOT_KEPT_RC})
try:
    from flightline_node.__main__ import main
    import flightline_node.answer
except Exception:
    sys.exit({BROKEN_RC})
status = main(["call", *sys.argv[2:]])
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)"""


@functools.cache
def own_key() -> str:
    """The version of this side's node library, from every file of it: read once in a process."""
    return key_of(sources(Path(flightline_node.__file__).parent))


def command(key: str, arguments: str, end_s: int | str, python: str = "", installed: str = INSTALLED) -> str:
    """A script for /bin/sh. key: the library's version. arguments: of its call, shell words. end_s: when it is ended.

    python: the interpreter; empty takes the one that compiled the library. It exits with NOT_KEPT_RC where the node
    has no such library, with BROKEN_RC where that cannot be started.
    """
    return _SHELL.format(
        key=key,
        installed=shlex.quote(installed),
        not_kept=NOT_KEPT_RC,
        python=shlex.quote(python),
        end_s=end_s,
        start=shlex.quote(_START),
        arguments=arguments,
    )


def script(name: str, key: str, end_s: int | str, installed: str) -> str:
    """A launcher's task for /bin/sh, with what is asked on its standard input: it says who it is and how it ended.

    name: a shell word, by which the launcher knows the node. key, end_s, installed: as for `command`.
    """
    inner = command(key, f"- {name}", end_s, installed=installed)
    return f"echo {BEGUN} {name}; /bin/sh -c {shlex.quote(inner)}; echo {ENDED} $?"
