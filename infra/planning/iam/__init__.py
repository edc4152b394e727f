"""IAM policy documents, one per purpose. Resources are planned names, so every document is known before `up`."""

from infra.planning.iam.control import head_policies, operator_policies
from infra.planning.iam.functions import function_policies
from infra.planning.iam.kubernetes import kubernetes_policies
from infra.planning.iam.node import node_policies
from infra.planning.iam.resources import flow_log_policy, pod_trust, tls_only, trust
from infra.planning.iam.statements import Document

__all__ = [
    "Document",
    "flow_log_policy",
    "function_policies",
    "head_policies",
    "kubernetes_policies",
    "node_policies",
    "operator_policies",
    "pod_trust",
    "tls_only",
    "trust",
]
