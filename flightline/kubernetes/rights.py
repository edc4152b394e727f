"""Who may do what. The agent: over its own Node alone, and there only what is Flightline's.

RBAC cannot say "its own": a ValidatingAdmissionPolicy does, by the node that the agent's token is bound to
(authentication.kubernetes.io/node-name, Kubernetes 1.32 and newer: Service accounts, "Schema for service account
private claims"). A token without that claim changes nothing.

Everybody: a pod with GPUs comes by the scheduler and tolerates no taint of Flightline's, or the gate would be none.
"""

from __future__ import annotations

from typing import Any

from ..contract import KUBE_AGENT, KUBE_CONDITION, KUBE_CONTROL, KUBE_GPU_LABEL, KUBE_GPU_RESOURCE, KUBE_NAMESPACE
from .objects import Manifest, manifest

RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
AGENT_USER = f"system:serviceaccount:{KUBE_NAMESPACE}:{KUBE_AGENT}"
UNGATED_LABEL = "flightline/any-node"
"""On a namespace whose pods with GPUs may land on nodes that are not proven, such as one for debugging."""
_NVIDIA = KUBE_GPU_RESOURCE.partition("/")[0] + "/"
_NODE_CLAIM = "authentication.kubernetes.io/node-name"
_OWN = f"request.userInfo.?extra[?'{_NODE_CLAIM}'].orValue(['']).size() == 1 ? " \
    f"request.userInfo.?extra[?'{_NODE_CLAIM}'].orValue([''])[0] : ''"  # fmt: skip
_OURS = "startsWith('flightline/')"


def manifests() -> list[Manifest]:
    """Service accounts, roles, bindings, and the policies that make them narrower."""
    return [
        manifest("v1", "ServiceAccount", KUBE_AGENT, {"automountServiceAccountToken": False}),
        manifest("v1", "ServiceAccount", KUBE_CONTROL, {"automountServiceAccountToken": False}),
        *_agent(),
        *_control(),
        *_policy("nodes", _NODE_RULES, _node_validations()),
        *_policy("events", _EVENT_RULES, _event_validations()),
        *_gate(),
    ]


def _rule(groups: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [groups], "resources": resources, "verbs": verbs}


def binding(kind: str, name: str, account: str, namespace: str | None) -> Manifest:
    """A role given to a service account of Flightline's namespace."""
    body = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": KUBE_NAMESPACE}],
    }
    return manifest(RBAC, f"{kind}Binding", name, body, namespace)


def _agent() -> list[Manifest]:
    nodes = [_rule("", ["nodes"], ["get", "list", "patch"]), _rule("", ["nodes/status"], ["patch"])]
    events = [_rule("", ["events"], ["create"])]
    return [
        manifest(RBAC, "ClusterRole", KUBE_AGENT, {"rules": nodes}, None),
        binding("ClusterRole", KUBE_AGENT, KUBE_AGENT, None),
        # Events of a Node are kept in the namespace default.
        manifest(RBAC, "Role", KUBE_AGENT, {"rules": events}, "default"),
        binding("Role", KUBE_AGENT, KUBE_AGENT, "default"),
    ]


def _control() -> list[Manifest]:
    rules = [
        _rule("", ["nodes"], ["get", "list", "watch", "patch"]),
        _rule("", ["pods"], ["get", "list", "watch"]),
        _rule("", ["pods/eviction"], ["create"]),
        _rule("policy", ["poddisruptionbudgets"], ["get", "list"]),
        _rule("", ["events"], ["create"]),
    ]
    return [
        manifest(RBAC, "ClusterRole", KUBE_CONTROL, {"rules": rules}, None),
        binding("ClusterRole", KUBE_CONTROL, KUBE_CONTROL, None),
    ]


_NODE_RULES = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes", "nodes/status"]}
]
_EVENT_RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]}]


def _policy(what: str, rules: list[dict[str, Any]], validations: list[dict[str, Any]]) -> list[Manifest]:
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "the-agent", "expression": f"request.userInfo.username == '{AGENT_USER}'"}],
        "variables": [{"name": "own", "expression": _OWN}],
        "validations": validations,
    }
    return _bound(f"{KUBE_AGENT}-{what}", spec)


def _gate() -> list[Manifest]:
    """A toleration of everything is common in copied manifests, and a pod that names its node passes every taint."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
    containers = "(object.spec.containers + object.spec.?initContainers.orValue([]))"
    gpus = f"c.?resources.?limits.orValue({{}}).exists(k, k.startsWith('{_NVIDIA}'))"
    tolerations = "spec.?tolerations.orValue([])"
    harmless = f"!(t.?effect.orValue('') in ['', 'NoSchedule']) || (t.?key.orValue('') != '' && !t.key.{_OURS})"
    before = f"oldObject != null && t in oldObject.{tolerations}"
    spec = {
        "matchConstraints": {
            "resourceRules": [pods],
            "namespaceSelector": {"matchExpressions": [{"key": UNGATED_LABEL, "operator": "DoesNotExist"}]},
        },
        "matchConditions": [{"name": "has-gpus", "expression": f"{containers}.exists(c, {gpus})"}],
        "validations": [
            _must(
                f"object.{tolerations}.all(t, {harmless} || ({before}))",
                "a pod with GPUs must not tolerate flightline/... nor every taint: name the keys that it needs",
            ),
            _must(
                "oldObject != null || !has(object.spec.nodeName)",
                "a pod with GPUs must come by the scheduler: use a nodeSelector, not nodeName",
            ),
        ],
    }
    return _bound("flightline-gpu-pods", spec)


def _bound(name: str, spec: dict[str, Any]) -> list[Manifest]:
    spec = {"failurePolicy": "Fail", **spec}
    bound = {"spec": {"policyName": name, "validationActions": ["Deny"]}}
    return [
        manifest(ADMISSION, "ValidatingAdmissionPolicy", name, {"spec": spec}, None),
        manifest(ADMISSION, "ValidatingAdmissionPolicyBinding", name, bound, None),
    ]


def _must(expression: str, message: str) -> dict[str, Any]:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _same(path: str) -> str:
    """An optional field of old and new object is the same."""
    return f"object.?{path} == oldObject.?{path}"


def _others(kind: str) -> str:
    """Entries of a map of the metadata that are not Flightline's are the same in both."""
    now, before = (f"{one}.metadata.?{kind}.orValue({{}})" for one in ("object", "oldObject"))
    return (
        f"{now}.all(k, k.{_OURS} || (k in {before} && {before}[k] == {now}[k])) && "
        f"{before}.all(k, k.{_OURS} || k in {now})"
    )


def _node_validations() -> list[dict[str, Any]]:
    taints, conditions = "spec.?taints.orValue([])", "status.?conditions.orValue([])"
    foreign = f"filter(t, !t.key.{_OURS})"
    other = f"filter(c, c.type != '{KUBE_CONDITION}')"
    gpu = f"metadata.?labels[?'{KUBE_GPU_LABEL}']"
    fixed = " && ".join(_same(f"spec.?{name}") for name in ("unschedulable", "providerID", "podCIDR", "podCIDRs"))
    measured = " && ".join(
        _same(f"status.?{name}")
        for name in ("capacity", "allocatable", "addresses", "nodeInfo", "images", "daemonEndpoints", "volumesAttached")
    )
    own = "variables.own != '' && object.metadata.name == variables.own"
    return [
        _must(own, "the agent's token is bound to another node; it may change its own Node alone"),
        _must(f"object.{taints}.{foreign} == oldObject.{taints}.{foreign}", "other taints than flightline/... stay"),
        _must(fixed, "cordon, provider id and pod networks are not the agent's"),
        _must(_others("labels"), "other labels than flightline/... stay"),
        _must(f"object.{gpu} == oldObject.{gpu}", f"{KUBE_GPU_LABEL} is the node group's"),
        _must(_others("annotations"), "other annotations than flightline/... stay"),
        _must(f"{_same('metadata.?finalizers')} && {_same('metadata.?ownerReferences')}", "finalizers and owners stay"),
        _must(
            f"object.{conditions}.{other} == oldObject.{conditions}.{other}",
            f"other conditions than {KUBE_CONDITION} stay",
        ),
        _must(measured, "what kubelet reports stays"),
    ]


def _event_validations() -> list[dict[str, Any]]:
    about = "object.involvedObject.?kind.orValue('') == 'Node'"
    own = "variables.own != '' && object.involvedObject.?name.orValue('') == variables.own"
    return [_must(f"{about} && {own}", "the agent tells Events of its own Node alone")]
