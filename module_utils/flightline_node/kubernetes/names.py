"""Names on a Node. flightline/contract.py has those that the control side shares; a test holds them equal."""

from __future__ import annotations

STARTUP_TAINT = "flightline/unproven"
FAULT_TAINT = "flightline/unclean"
EFFECT = "NoSchedule"
CONDITION = "FlightlineReady"
VERDICT_LABEL = "flightline/verdict"
LEVEL_LABEL = "flightline/level"
STANDING = "flightline/standing"
"""Annotation: what stands of the node, as JSON (standing.py)."""
RELEASE = "flightline/release"
"""Annotation, written by who has proven a remedy: JSON with run and judged_at."""
COMPONENT = "flightline-node"
EVENTS_NAMESPACE = "default"
"""Where Events of objects without a namespace are kept (Kubernetes, Event v1)."""

NODE_ENV = "FLIGHTLINE_NODE"
"""The Node's name, from the downward API: a host name is not always the Node's."""
SERVER_ENV = "FLIGHTLINE_KUBERNETES_SERVER"
"""https://host:port in place of the pod's service environment."""
ACCESS_ENV = "FLIGHTLINE_KUBERNETES_ACCESS"
"""Directory of token and ca.crt in place of the pod's own."""
