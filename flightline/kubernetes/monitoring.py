"""What Prometheus rings for and Grafana shows: the agent's own metrics beside DCGM exporter's, as plain files.

Rules are Prometheus' own format, and a PrometheusRule for its operator; the agent's pods are found by their annotations
or by the PodMonitor.
"""

from __future__ import annotations

import json
from typing import Any

from ..contract import KUBE_AGENT, KUBE_NAMESPACE
from .objects import Manifest, manifest

MONITORING = "monitoring.coreos.com/v1"
STALE_S = 1800
"""Six of the agent's intervals: a node that nobody has judged for so long is not known to be good."""

_RULES: tuple[tuple[str, str, str, str, str], ...] = (
    ("FlightlineNodeUnclean", 'flightline_standing{verdict="no-go"} == 1', "0m", "warning",
     "{{ $labels.node }} takes no new pods: its last verdict is no-go"),
    ("FlightlineNodeUnproven", 'flightline_standing{verdict="unproven"} == 1', "30m", "warning",
     "{{ $labels.node }} was not proven within half an hour"),
    ("FlightlineNodeNotJudged", f"time() - flightline_judged_timestamp_seconds > {STALE_S}", "5m", "warning",
     "{{ $labels.node }} was not judged for half an hour"),
    ("FlightlineAgentGone", f'up{{job=~".*{KUBE_AGENT}.*"}} == 0', "10m", "critical",
     "{{ $labels.instance }} has an agent that does not answer"),
    ("FlightlineManyUnclean",
     'sum(flightline_standing{verdict="no-go"}) > 1 and '
     'sum(flightline_standing{verdict="no-go"}) > count(flightline_ready) / 3',
     "0m", "critical", "more than a third of the nodes is no-go at once: look for one cause before repairing nodes"),
    ("EfaUnhealthy", 'flightline_findings{check=~"efa.*"} > 0', "0m", "warning",
     "{{ $labels.node }}: {{ $labels.check }} blocks: its ranks would be slow or would not connect"),
    ("FlightlineNodeOutLong", 'kube_node_annotations{annotation_flightline_cordon!=""}', "4h", "warning",
     "{{ $labels.node }} is cordoned for hours: {{ $labels.annotation_flightline_cordon }}"),
    ("GpuXid", "DCGM_FI_DEV_XID_ERRORS > 0", "0m", "warning",
     "{{ $labels.Hostname }} GPU {{ $labels.gpu }}: Xid {{ $value }}"),
    ("GpuHot", "DCGM_FI_DEV_GPU_TEMP > 85", "5m", "warning",
     "{{ $labels.Hostname }} GPU {{ $labels.gpu }} has {{ $value }} degrees Celsius"),
)  # fmt: skip
_PANELS: tuple[tuple[str, str, str], ...] = (
    ("Nodes by standing", "sum by (verdict) (flightline_standing)", "{{verdict}}"),
    ("Findings that block", "sum by (check) (flightline_findings)", "{{check}}"),
    ("Seconds since judged", "time() - flightline_judged_timestamp_seconds", "{{node}}"),
    ("Duration of a judgement, s", "flightline_judgement_seconds", "{{node}}"),
    ("API errors a second", "rate(flightline_api_errors_total[5m])", "{{node}}"),
    ("GPU utilization, %", "avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL)", "{{Hostname}}"),
    ("GPU temperature, degrees Celsius", "max by (Hostname) (DCGM_FI_DEV_GPU_TEMP)", "{{Hostname}}"),
    ("GPU power, W", "sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE)", "{{Hostname}}"),
    ("Xid errors", "DCGM_FI_DEV_XID_ERRORS > 0", "{{Hostname}} {{gpu}}"),
    ("Nodes that became no-go in a day",
     'sum(changes(flightline_standing{verdict="no-go"}[1d])) / 2', "no-go"),
    ("Cordoned by Flightline, and why",
     'kube_node_annotations{annotation_flightline_cordon!=""}', "{{node}}: {{annotation_flightline_cordon}}"),
    ("EFA findings that block", 'sum by (node, check) (flightline_findings{check=~"efa.*"})', "{{node}} {{check}}"),
    ("EFA receive, bytes a second", "rate(node_infiniband_port_data_received_bytes_total[5m])",
     "{{instance}} {{device}}"),
)  # fmt: skip
HEIGHT, WIDTH, COLUMNS = 8, 12, 24
"""Of a panel, in Grafana's grid of 24 columns."""


def rules() -> dict[str, Any]:
    """A rules file of Prometheus."""
    found = [
        {
            "alert": name,
            "expr": expression,
            "for": pending,
            "labels": {"severity": severity},
            "annotations": {"summary": summary},
        }
        for name, expression, pending, severity, summary in _RULES
    ]
    return {"groups": [{"name": "flightline", "rules": found}]}


def dashboard() -> dict[str, Any]:
    """A dashboard of Grafana, its data source chosen when it is looked at."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "targets": [{"refId": "A", "expr": expression, "legendFormat": legend, "datasource": source}],
            "gridPos": {
                "h": HEIGHT,
                "w": WIDTH,
                "x": number * WIDTH % COLUMNS,
                "y": number * WIDTH // COLUMNS * HEIGHT,
            },
        }
        for number, (title, expression, legend) in enumerate(_PANELS)
    ]
    return {
        "uid": "flightline-kubernetes",
        "title": "Flightline on Kubernetes",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    }


def manifests() -> list[Manifest]:
    """For kube-prometheus-stack: its operator finds rules and pods, its Grafana the labelled ConfigMap."""
    node = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    monitor = {
        "jobLabel": "app.kubernetes.io/name",
        "namespaceSelector": {"matchNames": [KUBE_NAMESPACE]},
        "selector": {"matchLabels": {"app.kubernetes.io/name": KUBE_AGENT}},
        "podMetricsEndpoints": [{"port": "metrics", "interval": "30s", "relabelings": [node]}],
    }
    text = json.dumps(dashboard(), indent=1, sort_keys=True)
    return [
        manifest(
            "v1", "ConfigMap", "flightline-dashboard", {"data": {"flightline.json": text}},
            labels={"grafana_dashboard": "1"},
        ),
        manifest(MONITORING, "PodMonitor", KUBE_AGENT, {"spec": monitor}),
        manifest(MONITORING, "PrometheusRule", "flightline", {"spec": rules()}),
    ]  # fmt: skip
