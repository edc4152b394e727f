"""The real control plane as programs: kube-apiserver and etcd, compiled once from the Go registry's sources.

python -m tests.kubernetes.binaries builds them, or says where they are. control_plane/go.mod pins Kubernetes, its staging
modules at their published versions, and etcd; go.sum holds the checksums.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(__file__).parent / "control_plane"
PROGRAMS = {"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver", "server": "go.etcd.io/etcd/server/v3"}
"""File -> package; the main package of etcd is called server."""
GO_AT_LEAST = (1, 26)
VERSION = re.findall(r"k8s.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text())[0]
STAMP = f"-X k8s.io/component-base/version.gitVersion={VERSION}"
"""A module's build does not know its version, and kubectl wants one of the server."""


def place() -> Path:
    """Where they are kept: another go.mod is another place."""
    pins = hashlib.sha256((MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    base = os.environ.get("FLIGHTLINE_KUBERNETES_BINARIES")
    return Path(base) if base else ROOT / ".flightline" / "kubernetes" / pins


def built() -> bool:
    return all(os.access(place() / name, os.X_OK) for name in PROGRAMS)


def missing() -> str:
    """Why there is no control plane to test against; '' where there is one or it can be built."""
    if not shutil.which("kubectl"):
        return "needs kubectl on the PATH"
    if built():
        return ""
    go = shutil.which("go")
    if not go:
        return "needs Go to build kube-apiserver and etcd"
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    found = tuple(int(part) for part in said.removeprefix("go").split(".")[:2] if part.isdigit())
    return "" if found >= GO_AT_LEAST else f"needs Go {'.'.join(map(str, GO_AT_LEAST))} or newer, saw {said or 'none'}"


def build() -> Path:
    """Compile what is not there: some seven minutes of CPU the first time. Raises CalledProcessError."""
    where = place()
    if not built():
        draft = where.with_name(f"{where.name}.{os.getpid()}")
        draft.mkdir(parents=True, exist_ok=True)
        flags = ["-mod=readonly", "-trimpath", f"-ldflags=-s -w {STAMP}", "-buildvcs=false"]
        env = {**os.environ, "GOFLAGS": "", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        subprocess.run(["go", "build", *flags, "-o", f"{draft}/", *PROGRAMS.values()], cwd=MODULE, env=env, check=True)
        where.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (draft / name).replace(where / name)
        draft.rmdir()
    return where


def main() -> int:
    why = missing()
    if why:
        sys.stderr.write(f"kubernetes: not run: {why}\n")
        return 0
    sys.stdout.write(f"kubernetes: {build()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
