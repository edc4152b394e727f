"""Flightline's components for a Pulumi program of one's own. docs/infra.md begins with such a program."""

from flightline_pulumi.plan import plan
from flightline_pulumi.settings import Settings
from infra.cluster import GpuCluster, GpuClusterArgs
from infra.components.base import ClusterPlan
from infra.components.fabric import Fabric, FabricArgs
from infra.components.file_system import FileSystem, FileSystemArgs
from infra.components.gpu_nodes import GpuNodes, GpuNodesArgs
from infra.components.kubernetes_cluster import KubernetesCluster as EksCluster
from infra.components.network import Network, NetworkArgs
from infra.components.notifications import Notifications as Alerts
from infra.components.storage import Storage as Results

__all__ = [
    "Alerts", "ClusterPlan", "EksCluster", "Fabric", "FabricArgs", "FileSystem", "FileSystemArgs", "GpuCluster",
    "GpuClusterArgs", "GpuNodes", "GpuNodesArgs", "Network", "NetworkArgs", "Results", "Settings", "plan",
]  # fmt: skip
