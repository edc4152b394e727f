"""The real control plane as programs, and kwok in kubelet's place, compiled once from the Go registry's sources.

python -m tests.kubernetes.binaries builds them, or says where they are. control_plane/go.mod pins Kubernetes, its staging
modules at their published versions, and etcd; go.sum holds the checksums. kwok and JobSet's controller are built each by
its own go.mod: their pins are other ones than the API server's.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(__file__).parent / "control_plane"
PROGRAMS = {
    **{
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    },
    "server": "go.etcd.io/etcd/server/v3",
}
"""File -> package; the main package of etcd is called server."""
KWOK, JOBSET = "sigs.k8s.io/kwok@v0.8.0", "sigs.k8s.io/jobset@v0.11.1"
OTHERS = {"kwok": (KWOK, "./cmd/kwok"), "jobset": (JOBSET, ".")}
"""File -> module and its package."""
LIFE = "node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready"
"""What kwok plays, of its own stages: nodes are ready and stay so, pods run and do not end by themselves."""
_STAGE = """\
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {{name: pod-{name}}}
spec:
  resourceRef: {{apiGroup: v1, kind: Pod}}
  selector:
    matchExpressions:
    - {{key: .metadata.deletionTimestamp, operator: Exists}}
    - {{key: .status.phase, operator: In, values: [{phases}]}}
  next: {{{after}}}
"""
_ENDED = _STAGE.format(name="end", phases="Pending, Running", after='statusTemplate: "phase: Failed"')
ENDS = f"\n{_ENDED}{_STAGE.format(name='delete', phases='Failed, Succeeded', after='delete: true')}"
"""As kubelet ends a pod that is deleted: it has failed first. kwok's own stage leaves it running, and a Job would wait for it."""
STAGES = "kwok.yaml"
ENV = {**os.environ, "GOFLAGS": "", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
GO_AT_LEAST = (1, 26)
VERSION = re.findall(r"k8s.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text())[0]
STAMP = f"-X k8s.io/component-base/version.gitVersion={VERSION}"
"""A module's build does not know its version, and kubectl wants one of the server."""


def place() -> Path:
    """Where they are kept: another go.mod is another place."""
    given = (MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes() + repr((OTHERS, LIFE, ENDS)).encode()
    pins = hashlib.sha256(given).hexdigest()[:12]
    base = os.environ.get("FLIGHTLINE_KUBERNETES_BINARIES")
    return Path(base) if base else ROOT / ".flightline" / "kubernetes" / pins


def built() -> bool:
    return all(os.access(place() / name, os.X_OK) for name in (*PROGRAMS, *OTHERS)) and (place() / STAGES).exists()


def missing() -> str:
    """Why there is no control plane to test against; '' where there is one or it can be built."""
    if not shutil.which("kubectl"):
        return "needs kubectl on the PATH"
    if built():
        return ""
    go = shutil.which("go")
    if not go:
        return "needs Go to build Kubernetes' control plane, etcd, kwok and JobSet"
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    found = tuple(int(part) for part in said.removeprefix("go").split(".")[:2] if part.isdigit())
    return "" if found >= GO_AT_LEAST else f"needs Go {'.'.join(map(str, GO_AT_LEAST))} or newer, saw {said or 'none'}"


def sources(at: str) -> Path:
    """A module's files, of the Go registry. Raises CalledProcessError, with what Go said as its output."""
    got = subprocess.run(["go", "mod", "download", "-json", at], capture_output=True, text=True, check=True, env=ENV)
    return Path(json.loads(got.stdout)["Dir"])


def build() -> Path:
    """Compile what is not there: some ten minutes of CPU the first time. Raises CalledProcessError."""
    where = place()
    if not built():
        draft = where.with_name(f"{where.name}.{os.getpid()}")
        draft.mkdir(parents=True, exist_ok=True)
        flags = ["-mod=readonly", "-trimpath", f"-ldflags=-s -w {STAMP}", "-buildvcs=false"]
        kubernetes = ["-o", f"{draft.resolve()}/", *PROGRAMS.values()]
        subprocess.run(["go", "build", *flags, *kubernetes], cwd=MODULE, env=ENV, check=True)
        for name, (at, package) in OTHERS.items():
            built_at = ["-o", str(draft.resolve() / name), package]
            subprocess.run(["go", "build", *flags, *built_at], cwd=sources(at), env=ENV, check=True)
        stages = sources(KWOK) / "kustomize" / "stage"
        (draft / STAGES).write_text("\n---\n".join((stages / f"{one}.yaml").read_text() for one in LIFE) + ENDS)
        where.mkdir(parents=True, exist_ok=True)
        for one in draft.iterdir():
            one.replace(where / one.name)
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
