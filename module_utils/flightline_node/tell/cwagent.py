"""The CloudWatch agent's configuration for a node, from what its instance type has. Pure.

Names of sections, measurements and limits: CloudWatch user guide, "Manually create or edit the CloudWatch agent
configuration file", "Collect NVIDIA GPU metrics", "Collect EFA metrics" (read 2026-11). EFA metrics cannot carry
a dimension of our own, so what tells clusters apart is the namespace.

Every metric is rolled up by InstanceId: then one query over the fleet sees one time series per node, which keeps
it below the 10,000 metrics that a Metrics Insights query can look at, and a maximum is over all devices of a node.

An agent older than a section refuses the whole file: `efa` is there since 1.300068.0, `journald` since 1.300070.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from ..know.expected import resolve
from .logline import TRAINING_STREAM

DEFAULT_NAMESPACE = "Flightline"
STREAM = "{ip_address}_{instance_id}"
"""Name of a node's log stream. IAM lets a node write under its own address alone (infra/planning/iam/node.py), and who
reads asks EC2 whose that is: an instance id alone could be anybody's claim."""
INTERVAL_S = 60
RECORDS_FILE = "/var/log/flightline/records.jsonl"
BEATS_FILE = "/var/log/flightline/watch.jsonl"
"""The watcher's heartbeats, in CloudWatch's embedded metric format: the log's service makes metrics of them."""
TRAINING_FILES = ("/var/log/flightline/train/*/metrics.jsonl", "/var/log/flightline/train/**/std*.log")
"""Of role training, by job: metrics in the same format, and what each rank printed."""
RUNS_FILES = "/var/log/flightline/train/*/records.jsonl"
"""Of role training, by job: how its runs go, for the storage function."""

GPU = (
    "utilization_gpu",
    "utilization_memory",
    "temperature_gpu",
    "power_draw",
    "memory_used",
    "memory_total",
    "pcie_link_gen_current",
    "pcie_link_width_current",
    "clocks_current_sm",
)
EFA = (
    "efa_rx_bytes",
    "efa_tx_bytes",
    "efa_rx_dropped",
    "efa_rdma_read_wr_err",
    "efa_rdma_write_wr_err",
    "efa_retrans_timeout_events",
    "efa_impaired_remote_conn_events",
    "efa_unresponsive_remote_events",
)
ETHTOOL = (
    "bw_in_allowance_exceeded",
    "bw_out_allowance_exceeded",
    "conntrack_allowance_exceeded",
    "linklocal_allowance_exceeded",
    "pps_allowance_exceeded",
)
HOST: Dict[str, Tuple[str, ...]] = {
    "cpu": ("usage_active", "usage_iowait"),
    "mem": ("used_percent", "available"),
    "swap": ("used_percent",),
    "disk": ("used_percent", "inodes_free"),
    "diskio": ("io_time", "read_bytes", "write_bytes"),
    "net": ("bytes_recv", "bytes_sent", "drop_in", "drop_out", "err_in", "err_out"),
}
WHOLE = ("mem", "swap")
"""Sections without a device. The agent rolls up only what has more dimensions than the roll-up (its source,
plugins/outputs/cloudwatch, ProcessRollup): these have InstanceId alone; dropping the original would leave nothing."""
_NO_DISKS = ("sysfs", "devtmpfs", "tmpfs", "overlay", "squashfs", "autofs", "nsfs", "tracefs")


@dataclass(frozen=True)
class AgentPlan:
    """What an agent is to do. kernel_log: a file with the kernel's messages, or "journald" on systems without one.

    retention_days: what the agent sets its groups to; 0 leaves them as they are, which takes no right to change them.
    per_device: also publish a time series per GPU, disk and EFA device (some 300 per p5 node, which are billed each).
    """

    instance_type: str
    namespace: str = DEFAULT_NAMESPACE
    region: str = ""
    results_log_group: str = "/flightline/results"
    system_log_group: str = "/flightline/system"
    retention_days: int = 90
    mounts: Tuple[str, ...] = ("/",)
    interval_s: int = INTERVAL_S
    per_device: bool = False
    kernel_log: str = "journald"
    records_file: str = RECORDS_FILE
    efa: Optional[bool] = None


def config(plan: AgentPlan) -> Dict[str, Any]:
    """The agent's JSON as a dictionary. Raises SettingsError for an instance type that nobody knows."""
    agent: Dict[str, Any] = {"metrics_collection_interval": plan.interval_s, "omit_hostname": True}
    if plan.region:
        agent["region"] = plan.region
    return {
        "agent": agent,
        "metrics": {
            "namespace": plan.namespace,
            "append_dimensions": {"InstanceId": "${aws:InstanceId}"},
            "aggregation_dimensions": [["InstanceId"]],
            "force_flush_interval": plan.interval_s,
            "metrics_collected": _collected(plan),
        },
        "logs": {
            "force_flush_interval": 5,
            "log_stream_name": STREAM,
            "logs_collected": _logs(plan),
        },
    }


def _collected(plan: AgentPlan) -> Dict[str, Any]:
    expected = resolve(plan.instance_type)
    sections = {name: _section(name, measures, plan) for name, measures in HOST.items()}
    sections["cpu"]["totalcpu"] = True
    sections["disk"].update(resources=list(plan.mounts), ignore_file_system_types=list(_NO_DISKS), drop_device=True)
    sections["diskio"]["resources"] = ["*"]
    sections["net"]["resources"] = ["*"]
    sections["ethtool"] = {"interface_include": ["*"], "metrics_include": list(ETHTOOL)}
    if expected.has_nvidia_gpu:
        sections["nvidia_gpu"] = _section("nvidia_smi", GPU, plan)
    if plan.efa if plan.efa is not None else expected.efa_count:
        sections["efa"] = _section("", EFA, plan)
    return sections


def _section(prefix: str, measures: Tuple[str, ...], plan: AgentPlan) -> Dict[str, Any]:
    """drop_original_metrics has the names as they are published: the plugin's name in front."""
    section: Dict[str, Any] = {"measurement": list(measures), "metrics_collection_interval": plan.interval_s}
    if not plan.per_device and prefix not in WHOLE:
        section["drop_original_metrics"] = [f"{prefix}_{name}" if prefix else name for name in measures]
    return section


def _logs(plan: AgentPlan) -> Dict[str, Any]:
    files: List[Dict[str, Any]] = [
        _file(plan.records_file, plan.results_log_group, plan),
        _file(BEATS_FILE, plan.system_log_group, plan),
        # Each file has a stream of its own; without it the agent follows the newest that matches.
        *({**_file(path, plan.system_log_group, plan), "publish_multi_logs": True} for path in TRAINING_FILES),
        {**_file(RUNS_FILES, plan.results_log_group, plan), "publish_multi_logs": True,
         "log_stream_name": STREAM + TRAINING_STREAM},
    ]  # fmt: skip
    collected: Dict[str, Any] = {"files": {"collect_list": files}}
    if plan.kernel_log == "journald":
        kernel = {
            "log_group_name": plan.system_log_group,
            "log_stream_name": STREAM,
            **_retention(plan),
            "matches": [{"_TRANSPORT": "kernel"}],
        }
        collected["journald"] = {"collect_list": [kernel]}
    else:
        files.append(_file(plan.kernel_log, plan.system_log_group, plan))
    return collected


def _file(path: str, group: str, plan: AgentPlan) -> Dict[str, Any]:
    return {
        "file_path": path,
        "log_group_name": group,
        "log_stream_name": STREAM,
        **_retention(plan),
    }


def _retention(plan: AgentPlan) -> Dict[str, int]:
    return {"retention_in_days": plan.retention_days} if plan.retention_days else {}
