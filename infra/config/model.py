"""The settings of one stack, validated and frozen. Units are in the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Zones:
    """The two availability zones of the subnets. The first one holds the GPU nodes, FSx and S3 Express.

    names: "us-east-1a"; ids: "use1-az4", in the same order.
    """

    names: tuple[str, str]
    ids: tuple[str, str]

    @property
    def gpu_name(self) -> str:
        """Name of the zone that holds the GPU nodes."""
        return self.names[0]

    @property
    def gpu_id(self) -> str:
        """Id of the zone that holds the GPU nodes."""
        return self.ids[0]


@dataclass(frozen=True)
class Network:
    """VPC, subnets and the ways out of it. nat: "one", "per-az" or "none"."""

    zones: Zones
    vpc_cidr: str
    public_cidrs: tuple[str, ...]
    private_cidrs: tuple[str, ...]
    nat: str
    interface_endpoints: bool
    flow_logs: bool


@dataclass(frozen=True)
class Capacity:
    """How instances are bought. kind: "on-demand", "spot", "reservation" or "capacity-block".

    reservation_id: "cr-..." for the last two, else None.
    """

    kind: str
    reservation_id: str | None


@dataclass(frozen=True)
class Spot:
    """What spot capacity is chosen from. types: beside the nodes' own; zones: 1 or 2.

    max_price_usd_per_hour: for an instance; None is its on-demand price, EC2's own limit.
    """

    types: tuple[str, ...] = ()
    zones: int = 1
    allocation: str = "price-capacity-optimized"
    max_price_usd_per_hour: str | None = None
    rebalance: bool = False

    @property
    def mixed(self) -> bool:
        """Whether there is something to choose from, which a mixed instances policy does."""
        return bool(self.types) or self.zones > 1


@dataclass(frozen=True)
class Scheduled:
    """A number of nodes from a time on. cron: five fields."""

    cron: str
    count: int


@dataclass(frozen=True)
class Scaling:
    """protect: the group ends no node by itself when it shrinks. time_zone: of the schedule, an IANA name.

    idle_hours: without a busy GPU, after which an alarm rings; 0 is none. idle_scale_in: the group then goes to its
    minimum.
    """

    protect: bool = False
    schedule: tuple[Scheduled, ...] = ()
    time_zone: str = "UTC"
    idle_hours: int = 0
    idle_scale_in: bool = False

    @property
    def led_elsewhere(self) -> bool:
        """Whether something else than the stack decides how many nodes are wanted."""
        return bool(self.schedule) or self.idle_scale_in


@dataclass(frozen=True)
class Nodes:
    """The GPU nodes. efa: interfaces of kind EFA are planned (planning.efa.interfaces says which).

    placement_group: name of an existing group, or None. create_placement_group: the stack makes a cluster group.
    """

    instance_type: str
    count: int
    minimum: int
    maximum: int
    capacity: Capacity
    efa: bool
    create_placement_group: bool
    placement_group: str | None
    root_volume_gib: int
    spot: Spot = Spot()
    scaling: Scaling = Scaling()

    @property
    def types(self) -> tuple[str, ...]:
        """Every type that a node may have, the wanted one first."""
        return (self.instance_type, *self.spot.types)


@dataclass(frozen=True)
class Image:
    """The nodes' AMI: exactly one of ami_id and ssm_parameter is set. user: its login name.

    pin: the id that nodes keep, whatever the parameter names by now; None takes the newest.
    """

    ami_id: str | None
    ssm_parameter: str | None
    user: str
    architecture: str
    pin: str | None = None


@dataclass(frozen=True)
class Access:
    """How people and Ansible reach the nodes. mode: "ssm" or "ssh" (then CIDRs and a key pair are set)."""

    mode: str
    ssh_cidrs: tuple[str, ...]
    ssh_key_name: str | None


@dataclass(frozen=True)
class Head:
    """The head node: Slurm controller and control node."""

    enabled: bool
    instance_type: str
    root_volume_gib: int


@dataclass(frozen=True)
class Fsx:
    """FSx for Lustre, persistent 2 SSD. None in Storage.fsx means no file system.

    data_repository: an s3:// URL, "data" for the stack's own data bucket, or None.
    export_events: what is written back to it; empty for import only.
    """

    size_gib: int
    throughput_mb_s_per_tib: int
    efa: bool
    data_repository: str | None
    export_events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Storage:
    """Buckets and file systems. keep_data: protected, retained and guarded against deletion."""

    fsx: Fsx | None
    s3_express: bool
    keep_data: bool


@dataclass(frozen=True)
class Notifications:
    """Who is told. slack_webhook is what pulumi.Config.get_secret returned (an Output), never plain text; or None."""

    emails: tuple[str, ...]
    slack_webhook: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Thresholds:
    """Alarm thresholds. gpu_utilization_percent alarms below, all others above; 0 W or 0 percent of use: no alarm."""

    cpu_percent: int
    memory_percent: int
    disk_percent: int
    disk_busy_percent: int
    gpu_temperature_c: int
    gpu_utilization_percent: int
    gpu_memory_percent: int
    gpu_power_w: int
    network_errors_per_minute: int
    efa_errors_per_minute: int


@dataclass(frozen=True)
class Monitoring:
    """Thresholds and how long logs are kept."""

    thresholds: Thresholds
    log_retention_days: int


@dataclass(frozen=True)
class Boot:
    """The boot preflight. An instance enters service only after it said go within time_limit_minutes.

    package: path of a node package (a zipapp) made elsewhere, or None: it is built from this checkout.
    configure: a node applies the roles to itself before that preflight, within configure_minutes.
    failures: boots without a go in six hours after which no node is launched any more; 0 is no limit.
    """

    level: str
    time_limit_minutes: int
    package: str | None
    failures: int
    configure: bool
    configure_minutes: int


@dataclass(frozen=True)
class Budget:
    """Monthly budget in whole US dollars; 0 means no budget and no cost-anomaly alarm."""

    monthly_usd: int

    @property
    def enabled(self) -> bool:
        """Whether the stack asked for one."""
        return self.monthly_usd > 0


@dataclass(frozen=True)
class Settings:
    """Everything a stack decides. region: "us-east-1". emulator_endpoint: a loopback URL or None."""

    cluster_name: str
    region: str
    orchestrator: str
    network: Network
    nodes: Nodes
    image: Image
    access: Access
    head: Head
    storage: Storage
    notifications: Notifications
    monitoring: Monitoring
    boot: Boot
    budget: Budget
    audit_trail: bool
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    permissions_boundary: str | None = None
    emulator_endpoint: str | None = None
