"""The API server is away, slow, throttles, or refuses the token: the agent goes on, says so, and tells it later."""

import base64
import json
import time
import urllib.error

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from flightline import contract
from tests.healing.fleet import ready
from tests.served import Answering, Serving

from . import fleet
from .cluster import cluster
from .fleet import KubeNode


@pytest.fixture(scope="module")
def own_plane(plane, tmp_path_factory):
    """Of its own: these tests stop it."""
    with cluster(tmp_path_factory.mktemp("bad-api")) as one:
        fleet.install(one)
        yield one


@pytest.fixture
def node(own_plane, tmp_path, request):
    made = KubeNode(own_plane, fleet.named(request.node.name), tmp_path)
    yield made
    made.down()


def test_a_fault_while_the_api_server_is_down_taints_when_it_is_back(own_plane, node):
    node.register().watch()
    ready([node.watched])
    own_plane.api_down()
    node.watched.say(fleet.XID)
    own_plane.until(lambda: (node.watched.marker() or {}).get("scheduler", {}).get("reason"), "it was tried")
    assert node.watched.marker()["scheduler"]["state"] == "pending"
    own_plane.api_up()
    own_plane.until(lambda: contract.KUBE_FAULT_TAINT in node.taints(), "tainted after all")


def test_the_agent_survives_a_restart_of_the_api_server(own_plane, node):
    node.register()
    node.join(every_s=1)
    own_plane.until(lambda: not node.taints(), "proven")
    own_plane.api_down()
    own_plane.until(lambda: "no answer of" in node.said(), "it says so")
    node.judged_by("gpu_count", instance_type="p5.48xlarge")
    own_plane.api_up()
    own_plane.until(lambda: contract.KUBE_FAULT_TAINT in node.taints(), "what was found meanwhile is told")
    own_plane.until(lambda: "answers again" in node.said(), "and that it answers again")
    assert "Traceback" not in node.said()


def test_an_expired_token_is_said_and_the_next_one_taken(own_plane, node):
    node.register()
    good = (node.place / "access" / "token").read_text()
    node.renew(expired(own_plane, good))
    node.join()
    own_plane.until(lambda: "401 Unauthorized" in node.said(), "it says so")
    assert node.taints() == {contract.KUBE_STARTUP_TAINT}
    node.renew(good)
    own_plane.until(lambda: not node.taints(), "proven with the renewed token")


def expired(plane, token):
    """The same token two hours older: it ended an hour ago. Signed with the API server's own key."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims |= {name: claims[name] - 7200 for name in ("iat", "nbf", "exp")}
    assert claims["exp"] < time.time()
    signed = f"{head}.{_coded(json.dumps(claims).encode())}"
    key = serialization.load_pem_private_key((plane.place / "sa.key").read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return f"{signed}.{_coded(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _coded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_a_pod_on_another_node_cannot_speak_for_this_one(own_plane, node):
    node.register()
    fleet.register(own_plane, "elsewhere")
    node.renew(fleet.token(own_plane, "elsewhere"))
    node.join()
    own_plane.until(lambda: "its own Node alone" in node.said(), "it is refused, and said")
    assert node.taints() == {contract.KUBE_STARTUP_TAINT}


CUT = 0
"""No status: the connection is closed without an answer."""


@pytest.mark.parametrize(("status", "word"), [(429, "429"), (410, "410"), (503, "503"), (CUT, "no answer of")])
def test_an_answer_that_puts_it_off_is_asked_again(own_plane, node, tmp_path, status, word):
    """A proxy before the real API server gives this answer a few times."""
    node.register()
    with between(own_plane, status, 3) as before:
        node.watched.env["FLIGHTLINE_KUBERNETES_SERVER"] = f"https://127.0.0.1:{before.port}"
        node.join()
        own_plane.until(lambda: not node.taints(), "proven all the same")
    assert word in node.said() and "Traceback" not in node.said()


def between(plane, status, times):
    """A server that refuses so many requests with a status, then hands everything on."""
    left = [times]

    class Handler(Answering):
        def handle_any(self):
            body = self.given()
            if left[0] > 0:
                left[0] -= 1
                if status == CUT:
                    self.close_connection = True
                    return None
                return self.say(status, json.dumps({"message": "made by the test"}).encode(), {"Retry-After": "1"})
            token = self.headers["Authorization"].removeprefix("Bearer ")
            try:
                kind = self.headers.get("Content-Type") or "application/json"
                found = plane.ask(self.command, self.path, json.loads(body) if body else None, token, kind)
                return self.say(200, json.dumps(found).encode())
            except urllib.error.HTTPError as error:
                return self.say(error.code, error.read())

        do_GET = do_PATCH = do_POST = handle_any

    certs = plane.place / "certs"
    return Serving(Handler, certs / "apiserver.crt", certs / "apiserver.key")
