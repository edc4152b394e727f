"""A real kube-apiserver over a real etcd, on ports of their own; scheduler, controllers and kwok where a test wants them."""

import base64
import contextlib
import json
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.beds import free_port, ran

from . import binaries

WAIT_S = float(os.environ.get("FLIGHTLINE_WAIT_S", "180"))


HOOKS = "config/components/webhook/manifests.yaml"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def made(kind: str, name: str, namespace: str = "", api: str = "v1", **rest: Any) -> dict[str, Any]:
    """An object of the API; `metadata` of the rest is more of it."""
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, **rest, "metadata": {"name": name, **where, **rest.get("metadata", {})}}


@dataclass
class Cluster:
    """One control plane in a directory."""

    place: Path
    more: tuple[str, ...] = ()
    """Flags of kube-apiserver."""
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        return self.place / "certs" / "apiserver.crt"

    def up(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        (self.place / "sa.key").write_bytes(pem)
        (self.place / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        self._etcd, peer, self.port = free_port(), free_port(), free_port()
        self._start(
            "etcd", "server", f"--data-dir={self.place}/etcd", f"--listen-client-urls=http://127.0.0.1:{self._etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{self._etcd}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}", f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync", "--log-level=warn",
        )  # fmt: skip
        self.api_up()
        (self.place / "kubeconfig").write_text(json.dumps(self._kubeconfig()))

    def api_up(self) -> None:
        self._start(
            "apiserver", "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd}", "--bind-address=127.0.0.1",
            f"--secure-port={self.port}", f"--cert-dir={self.place}/certs", f"--token-auth-file={self.place}/tokens.csv",
            "--service-account-issuer=https://flightline.test", f"--service-account-key-file={self.place}/sa.key",
            f"--service-account-signing-key-file={self.place}/sa.key", "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--allow-privileged=true", *self.more,
        )  # fmt: skip
        self.until(self._ready, "the API server is ready")

    def controllers(self, which: str = "*") -> None:
        """The controller manager; it works for a thousand nodes as for three."""
        self._start(
            "controllers", "kube-controller-manager", *self._client, f"--controllers={which}", "--kube-api-qps=200",
            "--kube-api-burst=400", f"--service-account-private-key-file={self.place}/sa.key", f"--root-ca-file={self.authority}",
        )  # fmt: skip

    def scheduler(self) -> None:
        self._start("scheduler", "kube-scheduler", *self._client)

    def kwok(self) -> None:
        """In kubelet's place on every Node: ready, its lease renewed, pods running until they are deleted."""
        config = f"--config={binaries.place() / binaries.STAGES}"
        lease = "--node-lease-duration-seconds=40"
        self._start("kwok", "kwok", f"--kubeconfig={self.place}/kubeconfig", config, "--manage-all-nodes=true", lease)

    def jobset(self) -> None:
        """JobSet's controller, its webhooks asked on this machine with the API server's certificate."""
        own, port = self.place / "jobset", free_port()
        own.mkdir()
        for name, made in (("tls.crt", "apiserver.crt"), ("tls.key", "apiserver.key")):
            (own / name).write_bytes((self.place / "certs" / made).read_bytes())
        settings = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
            "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
            "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(own)},
            "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
        }  # fmt: skip
        (own / "settings.yaml").write_text(json.dumps(settings))
        self._start("jobset", "jobset", f"--kubeconfig={self.place}/kubeconfig", f"--config={own}/settings.yaml")
        hooks = list(yaml.safe_load_all((binaries.sources(binaries.JOBSET) / HOOKS).read_text()))
        trusted = base64.b64encode(self.authority.read_bytes()).decode()
        for one in (hook for found in hooks if found for hook in found["webhooks"]):
            path = one["clientConfig"]["service"]["path"]
            one["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": trusted}
        self.until(lambda: _listens(port), "JobSet's webhooks answer")
        self.apply(*[found for found in hooks if found])

    @property
    def _client(self) -> tuple[str, ...]:
        return f"--kubeconfig={self.place}/kubeconfig", "--leader-elect=false", "--secure-port=0"

    def api_down(self) -> None:
        self._stop("apiserver")

    def down(self) -> None:
        for name in reversed(list(self._running)):
            self._stop(name)

    def kubectl(self, *words: str, given: str | None = None, check: bool = True) -> str:
        """What kubectl prints; both streams where it may fail."""
        done = ran(*self.client, *words, input=given, timeout=WAIT_S)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.returncode}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def apply(self, *objects: dict[str, Any]) -> str:
        """Server-side and strictly: an unknown or doubled field is an error."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return self.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", given=text)

    def ask(self, method: str, path: str, body: Any = None, token: str = "", kind: str = "application/json") -> Any:
        """One request, by default an administrator's. Raises urllib.error.HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30, context=self._trust()) as answer:
            return json.loads(answer.read())

    def merge(self, path: str, body: Any) -> Any:
        """Change an object by what is given of it; None takes away."""
        return self.ask("PATCH", path, body, kind="application/merge-patch+json")

    def merge_node(self, name: str, **body: Any) -> Any:
        """The same of a Node."""
        return self.merge(f"/api/v1/nodes/{name}", body)

    def say_status(self, path: str, status: dict[str, Any]) -> Any:
        """What only kubelet or a controller would say of an object."""
        return self.ask("PATCH", f"{path}/status", {"status": status}, kind="application/strategic-merge-patch+json")

    def create(self, given: Any, *words: str) -> str:
        """What `kubectl create` says of an object, also where it refuses it."""
        return self.kubectl("create", *words, "-f", "-", given=json.dumps(given), check=False)

    @property
    def client(self) -> tuple[str, ...]:
        """kubectl's words for an administrator."""
        return "kubectl", f"--kubeconfig={self.place}/kubeconfig", f"--cache-dir={self.place}/cache"

    def node(self, name: str) -> dict[str, Any]:
        return self.ask("GET", f"/api/v1/nodes/{name}")

    def until(self, seen: Any, what: str, most_s: float = WAIT_S) -> Any:
        """Wait until seen() is true; its value."""
        end = time.monotonic() + most_s
        while time.monotonic() < end:
            ended = [name for name, one in self._running.items() if one.poll() is not None]
            if ended:
                raise AssertionError(f"{ended[0]} ended: {(self.place / f'{ended[0]}.log').read_text()[-2000:]}")
            found = seen()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited {most_s:g} s and it never was so: {what}")

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def _ready(self) -> bool:
        with contextlib.suppress(OSError, ssl.SSLError):
            request = urllib.request.Request(f"{self.server}/readyz", headers={"Authorization": f"Bearer {self.token}"})
            with urllib.request.urlopen(request, timeout=5, context=self._trust()) as answer:
                return answer.status == 200
        return False

    def _kubeconfig(self) -> dict[str, Any]:
        named = {"name": "test", "context": {"cluster": "test", "user": "admin"}}
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": [named],
            "clusters": [{"name": "test", "cluster": {"server": self.server, "certificate-authority": str(self.authority)}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
        }  # fmt: skip

    def _start(self, name: str, program: str, *words: str) -> None:
        argv, env = [str(binaries.place() / program), *words], {"PATH": os.environ["PATH"], "HOME": str(self.place)}
        with (self.place / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)

    def _stop(self, name: str) -> None:
        one = self._running.pop(name)
        one.terminate()
        try:
            one.wait(30)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


@contextlib.contextmanager
def cluster(place: Path, *more: str) -> Iterator[Cluster]:
    """A control plane, and nothing left of it."""
    one = Cluster(place, more)
    try:
        one.up()
        yield one
    finally:
        one.down()
