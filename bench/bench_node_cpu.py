"""CPU time of the node library for `quick` on one simulated node, the probed tools left out (wanted: at most 0.3 s).

The figure is the CPU time of a fresh interpreter less that of one that does nothing; children (the tools)
are not counted. The first run of a version on a node compiles the library, later runs find it compiled.
"""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

from bench.common import ROOT, place, recorded

_RUN = """
import sys
from flightline_node import node, settings
from flightline_node.ask.runner import Node
from flightline_node.know import expected
record = node.run(Node(sys.argv[1] + "/root", (sys.argv[1] + "/tools",)), expected.resolve("p5.48xlarge"),
                  settings.build(), node.Identity("gpu-01"))
assert record["verdict"] == "go", [f for f in record["findings"] if f["status"] not in ("PASS", "SKIP", "INFO")]
"""
_REPORT = "\nimport resource; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"


def _sources(path: Path) -> Path:
    """The library as one zip of sources, as Ansible sends it: compiled anew by every run that keeps no copy."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted((ROOT / "module_utils").rglob("*.py")):
            archive.write(source, source.relative_to(ROOT / "module_utils"))
    return path


def _kept(path: Path) -> Path:
    """The library as module_utils/flightline_node/keep.py keeps it on a node after the first run."""
    shutil.copytree(ROOT / "module_utils" / "flightline_node", path / "flightline_node")
    compileall.compile_dir(path, quiet=2)
    return path


def _cpu_s(code: str, demo: Path, library: Path) -> float:
    env = {**os.environ, "PYTHONPATH": str(library)}
    command = [sys.executable, "-S", "-c", code + _REPORT, str(demo)]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return float(output.split()[-1])


def main() -> None:
    """Print the medians of several runs."""
    with place() as directory:
        demo = directory / "gpu-01"
        recorded(demo)
        sources, kept = _sources(directory / "library.zip"), _kept(directory / "kept")
        nothing = statistics.median(_cpu_s("pass", demo, kept) for _ in range(5))
        first = statistics.median(_cpu_s(_RUN, demo, sources) for _ in range(5)) - nothing
        later = statistics.median(_cpu_s(_RUN, demo, kept) for _ in range(9)) - nothing
    print(f"node library, quick: {later:.3f} s of CPU; a version's first run, which compiles it: {first:.3f} s")


if __name__ == "__main__":
    main()
