"""Every setting of a stack, declared once, and the frozen sections they make up. Units are in the names.

A field made by `setting` is its key's value, by `derived` it is worked out in the section's file; `Values.section` reads
the former, checked. After a change: `python -m tools.stack_settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from infra.config.declare import Key, derived, existing, existing_id, gib, keys, percent, setting, usd
from infra.planning import fsx as fsx_plan
from infra.planning.instance_types import CAPACITIES
from infra.planning.lifecycle import MOST_MIN

NAT_ONE, NAT_PER_AZ, NAT_NONE = "one", "per-az", "none"
NO_EXPORT = "none"
EKS = "eks"
OWN_BUCKET = "data"
OWN_KEY = "own"
AMI_ID = r"ami-([0-9a-f]{8}|[0-9a-f]{17})"
MOST_IDLE_HOURS = 24
"""An alarm with periods under an hour looks at one day at most (CloudWatch API, PutMetricAlarm, 2026)."""

BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
CPU_TYPE = {"pattern": r"[a-z][a-z0-9-]*\.(metal(-\d+xl)?|[a-z0-9]+)", "wanted": "an EC2 type such as m7i.xlarge"}
ZONE = r"(?:[a-z]{2}(?:-[a-z]+)+-\d(?:-[a-z]+-\d)?[a-z]|[a-z]{3,5}\d(?:-[a-z]+\d)?-az\d+)"
LOOPBACK = r"https?://(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|\[::1\]):\d{2,5}/?"


@dataclass(frozen=True)
class ZoneSettings:
    """The availability zones of the subnets, two or more. The first one holds FSx, S3 Express and the head node.

    names: "us-east-1a"; ids: "use1-az4", in the same order. nodes: which of them GPU nodes are launched into.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    nodes: tuple[int, ...] = (0,)

    @property
    def gpu_names(self) -> tuple[str, ...]:
        """Names of the zones that GPU nodes are launched into."""
        return tuple(self.names[number] for number in self.nodes)

    @property
    def gpu_name(self) -> str:
        """The first of them."""
        return self.gpu_names[0]

    @property
    def home_id(self) -> str:
        """Id of the zone that holds the data of one zone."""
        return self.ids[0]


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """VPC, subnets and the ways out of it."""

    zones: ZoneSettings = derived(
        "availabilityZones",
        (),
        "Zones of nodes and subnets, names or ids, the preferred first. What must be together (EFA, placement group) is in one.",
        pattern=ZONE,
        wanted="zone names such as us-east-1a, or zone ids such as use1-az4, or none",
        aliases=("availabilityZone",),
    )
    vpc_cidr: str = setting("vpcCidr", "10.0.0.0/16", "Address block of the VPC, private, /16 to /28.")
    public_cidrs: tuple[str, ...] = setting(
        "publicSubnetCidrs",
        ("10.0.1.0/24", "10.0.2.0/24"),
        "Public blocks, one for each availability zone and two at least (NAT gateways).",
    )
    private_cidrs: tuple[str, ...] = setting(
        "privateSubnetCidrs",
        ("10.0.101.0/24", "10.0.102.0/24"),
        "Private blocks, one for each availability zone and two at least; GPU nodes are in those of their zones.",
    )
    nat: str = setting(
        "natGateways",
        NAT_ONE,
        "NAT gateways: one, per-az or none (then interfaceEndpoints must be true).",
        choices=(NAT_ONE, NAT_PER_AZ, NAT_NONE),
    )
    interface_endpoints: bool = setting(
        "interfaceEndpoints",
        False,
        "Interface endpoints in the VPC for every AWS service that the nodes and the head node call.",
    )
    package_source: str = setting(
        "packageSource",
        "internet",
        "Where the roles get packages: internet, image (ami has them all) or mirror (repositories inside your network).",
        choices=("internet", "image", "mirror"),
        variable="package_repository_source",
    )
    flow_logs: bool = setting("flowLogs", True, "VPC flow logs of refused traffic.")
    vpc_id: str | None = existing_id("vpcId", "a VPC; empty makes one", "vpc")
    subnet_ids: tuple[str, ...] = setting(
        "subnetIds",
        (),
        "Private subnets of vpcId with a way out, one for each of availabilityZones in their order.",
    )
    public_subnet_id: str | None = existing_id("publicSubnetId", "a public subnet of vpcId, for SSH", "subnet")
    security_group_id: str | None = existing_id("securityGroupId", "the nodes' group in vpcId; empty makes one", "sg")
    route_table_ids: tuple[str, ...] = setting(
        "routeTableIds", (), "Route tables of vpcId that get gateway endpoints (S3, DynamoDB); empty makes none."
    )
    existing_endpoints: tuple[str, ...] = setting(
        "existingEndpoints", (), "Services whose endpoints vpcId has already, such as s3: they are not made again."
    )


@dataclass(frozen=True)
class Way:
    """One way to buy instances. reservation_id, zone: of a reservation or capacity block, else None."""

    kind: str
    reservation_id: str | None = None
    zone: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.reservation_id, self.zone)))


@dataclass(frozen=True, kw_only=True)
class CapacitySettings:
    """How instances are bought. reservation_id: of a reservation or capacity block, else None.

    ways: those of capacityOrder, kind and reservation_id being of the one in use; empty without an order. zone: where
    that one is. then_on_demand: a launch that finds the reservation full buys on demand.
    """

    kind: str = setting(
        "capacityType",
        "on-demand",
        "How instances are bought: on-demand, spot, reservation or capacity-block.",
        choices=CAPACITIES,
    )
    reservation_id: str | None = derived(
        "capacityReservationId", "", "Id (cr-...) of the reservation or capacity block."
    )
    ways: tuple[Way, ...] = derived(
        "capacityOrder",
        (),
        'Ways to buy in the order in which `make up` tries them, such as ["reservation cr-... us-east-1a", "on-demand"].',
        initially=(),
    )
    chosen: str = derived(
        "capacityChosen",
        "",
        "The way of capacityOrder that is in use; `make up` writes it. Without it the first.",
        initially="",
    )
    zone: str | None = None
    then_on_demand: bool = False


@dataclass(frozen=True, kw_only=True)
class SpotSettings:
    """What spot capacity is chosen from. types: beside the nodes' own."""

    types: tuple[str, ...] = setting(
        "spotInstanceTypes",
        (),
        "Further types that spot nodes may have; as many GPUs, and with EFA the same interfaces, as gpuInstanceType.",
    )
    zones: int = setting(
        "spotZones",
        1,
        "Zones of spot nodes where availabilityZones names none: 1, or 2 for jobs without EFA and placement group.",
        within=(1, 2),
        unit="availability zones",
    )
    # Without lowest-price, which AWS advises against: it is interrupted most (EC2 Auto Scaling guide, "Allocation
    # strategies", 2026).
    allocation: str = setting(
        "spotAllocation",
        "price-capacity-optimized",
        "How one of several types or zones is chosen: price-capacity-optimized or capacity-optimized.",
        choices=("price-capacity-optimized", "capacity-optimized"),
    )
    max_price_usd_per_hour: str | None = setting(
        "spotMaxPriceUsd",
        "",
        "Most that a spot instance may cost in US dollars an hour; empty is its on-demand price.",
        optional=True,
        pattern=r"\d{1,4}(\.\d{1,4})?",
        wanted="US dollars for an instance and hour, such as 12.5",
    )
    rebalance: bool = setting(
        "spotRebalance",
        False,
        "Replace a spot node when AWS sees that it may be interrupted; ends nodes that a job may still use.",
    )

    @property
    def mixed(self) -> bool:
        """Whether there is something to choose from, which a mixed instances policy does."""
        return bool(self.types) or self.zones > 1


@dataclass(frozen=True)
class Scheduled:
    """A number of nodes from a time on. cron: five fields."""

    cron: str
    count: int


@dataclass(frozen=True, kw_only=True)
class ScalingSettings:
    """How the group shrinks and grows by itself. idle_hours: without a busy GPU, after which an alarm rings."""

    protect: bool = setting("scaleInProtection", False, "Nodes that the group must not end by itself when it shrinks.")
    schedule: tuple[Scheduled, ...] = derived(
        "nodeSchedule",
        (),
        'Nodes wanted at times, each "cron = count", for example "0 20 * * MON-FRI = 0".',
        initially=(),
    )
    time_zone: str = setting("nodeScheduleTimeZone", "UTC", "Time zone of nodeSchedule, a name of the IANA database.")
    idle_hours: int = setting(
        "gpuIdleHours",
        0,
        "Ring when no GPU of the cluster was above thresholdGpuUtilizationPercent for so many hours, 1 to 24; 0 is never.",
        within=(0, MOST_IDLE_HOURS),
        unit="hours; 0 is no alarm",
    )
    idle_scale_in: bool = setting("gpuIdleScaleIn", False, "Go down to gpuNodeMinimum nodes when that rings.")
    drain_minutes: int = setting(
        "drainMinutes",
        30,
        "Minutes that jobs may keep a node which the group ends, after they were told to save; 0 ends it at once.",
        within=(0, MOST_MIN),
        unit="minutes",
        variable="flightline_notice_drain_minutes",
    )

    @property
    def led_elsewhere(self) -> bool:
        """Whether something else than the stack decides how many nodes are wanted."""
        return bool(self.schedule) or self.idle_scale_in


@dataclass(frozen=True, kw_only=True)
class NodesSettings:
    """The GPU nodes. efa: interfaces of kind EFA are planned (planning.efa.interfaces says which).

    placement_group: name of an existing group, or None. create_placement_group: the stack makes a cluster group.
    together: why all nodes are in one zone; empty where they need not be.
    """

    instance_type: str = setting("gpuInstanceType", "g6.xlarge", "EC2 type of the GPU nodes, for example p5.48xlarge.")
    count: int = setting("gpuNodeCount", 1, "GPU nodes wanted now.")
    minimum: int = setting("gpuNodeMinimum", 0, "Fewest GPU nodes the group may have.")
    maximum: int = derived("gpuNodeMaximum", 0, "Most GPU nodes the group may have; 0 is as many as gpuNodeCount.")
    efa: bool = derived(
        "efa",
        "auto",
        "EFA interfaces: auto (where the type has them), on (refused where it has none) or off.",
        choices=("auto", "on", "off"),
    )
    capacity: CapacitySettings
    spot: SpotSettings = SpotSettings()
    scaling: ScalingSettings = ScalingSettings()
    together: str = ""
    create_placement_group: bool
    placement_group: str | None = derived(
        "placementGroup",
        "auto",
        "Cluster placement group: auto, cluster (made by the stack), none, or the name of an existing one.",
    )
    root_volume_gib: int = gib("rootVolumeGib", 200, "Root volume of a GPU node in GiB, encrypted gp3.", 100)

    @property
    def types(self) -> tuple[str, ...]:
        """Every type that a node may have, the wanted one first."""
        return (self.instance_type, *self.spot.types)


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """The nodes' AMI: exactly one of ami_id and ssm_parameter is set. user: its login name.

    pin: the id that nodes keep, whatever the parameter names by now; None takes the newest.
    """

    ami_id: str | None = derived(
        "ami",
        "",
        "Image id or SSM parameter of one; empty is the AWS Deep Learning AMI (Neuron AMI for Trainium and Inferentia).",
    )
    ssm_parameter: str | None
    architecture: str
    pin: str | None = derived(
        "amiPin",
        "",
        "Image id that nodes keep although the SSM parameter names a newer one; `make up` writes it. Remove it to renew.",
        initially=None,
        optional=True,
        pattern=AMI_ID,
        wanted="an image id (ami-0123456789abcdef0), or nothing for the newest",
    )
    user: str = derived(
        "amiUser",
        "",
        "Login name of the image; empty is ubuntu, or ec2-user for an Amazon Linux parameter.",
        optional=True,
        pattern=r"[a-z_][a-z0-9_-]{0,31}",
        wanted="a login name such as ubuntu or ec2-user",
    )


@dataclass(frozen=True, kw_only=True)
class AccessSettings:
    """How people and Ansible reach the nodes. With ssh, CIDRs and a key pair are set."""

    mode: str = setting(
        "accessMode",
        "ssm",
        "How nodes are reached: ssm (no open port) or ssh (sshCidrs and sshKeyName).",
        choices=("ssm", "ssh"),
    )
    ssh_cidrs: tuple[str, ...] = setting("sshCidrs", (), "Blocks that may connect by SSH; never the world.")
    ssh_key_name: str | None = setting("sshKeyName", "", "Name of an EC2 key pair for SSH.", optional=True)
    metadata_hops: int = setting(
        "metadataHops",
        1,
        "Hop limit of the metadata service: 1 keeps containers with a network of their own from the node's role, 2 lets them.",
        within=(1, 2),
        unit="hops",
    )


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """The head node: Slurm controller and control node."""

    enabled: bool = derived("headNode", False, "A head node (Slurm controller, control node) beside the GPU nodes.")
    instance_type: str = setting("headInstanceType", "m7i.xlarge", "EC2 type of the head node.", **CPU_TYPE)
    root_volume_gib: int = gib("headRootVolumeGib", 100, "Root volume of the head node in GiB, encrypted gp3.", 30)


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """The cluster of orchestrator eks, and the nodes without a GPU that run its own pods. Of no meaning with another."""

    # Of the versions that the EKS-optimized images of June 2026 are for (awslabs/amazon-eks-ami, v20260610) those whose
    # standard support lasts into 2027: 1.35 until 27 March, by EKS' calendar; of 1.36 no date was found, nor of newer.
    version: str = setting(
        "kubernetesVersion",
        "1.36",
        "Kubernetes version of the EKS cluster; one step up at a time, and never down.",
        choices=("1.35", "1.36"),
    )
    public_cidrs: tuple[str, ...] = setting(
        "kubernetesPublicCidrs",
        (),
        "Public blocks that may reach the cluster's API from outside the VPC; empty leaves it the private endpoint only.",
    )
    admins: tuple[str, ...] = setting(
        "kubernetesAdmins",
        (),
        "ARNs of the IAM roles and users that administer the cluster, the one that runs `make up` among them.",
    )
    charts: bool = derived(
        "kubernetesCharts",
        "auto",
        "Device plugins, DCGM exporter and kube-prometheus-stack by Helm: auto (where kubernetesPublicCidrs is set), on or off.",
        initially=False,
        choices=("auto", "on", "off"),
    )
    node_release: str | None = setting(
        "kubernetesNodeRelease",
        "",
        "Release of the EKS-optimized images; empty is the newest when a node group is made, which it then keeps.",
        optional=True,
        pattern=r"1\.\d{2}\.\d{1,2}-20\d{6}",
        wanted="a release such as 1.36.1-20260610, or nothing",
    )
    add_on_versions: tuple[str, ...] = setting(
        "kubernetesAddOnVersions",
        (),
        "Pinned versions of EKS add-ons, NAME=VERSION; of one that is not named EKS takes its default when it is made.",
    )
    pods_per_node: int = setting(
        "podsPerNode",
        30,
        "Most pods on a node; each takes an address of the node's subnet.",
        within=(10, 110),
        unit="pods",
    )
    cpu_instance_type: str = setting(
        "cpuInstanceType",
        "m7i.xlarge",
        "EC2 type of the nodes without a GPU, which run the cluster's own pods.",
        **CPU_TYPE,
    )
    cpu_count: int = setting(
        "cpuNodeCount", 2, "Nodes without a GPU wanted now, spread over both zones.", within=(1, 100), unit="nodes"
    )
    cpu_maximum: int = setting(
        "cpuNodeMaximum", 4, "Most nodes without a GPU the group may have.", within=(1, 100), unit="nodes"
    )
    cpu_root_volume_gib: int = gib(
        "cpuRootVolumeGib", 100, "Root volume of a node without a GPU in GiB, encrypted gp3.", 30
    )
    cluster: str | None = existing(
        "eksCluster", "an EKS cluster in vpcId; empty makes one", r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", "training"
    )


@dataclass(frozen=True, kw_only=True)
class FsxSettings:
    """FSx for Lustre, persistent 2 SSD. None in StorageSettings.fsx means no file system.

    data_repository: an s3:// URL, OWN_BUCKET, or None. export_events: what is written back to it; empty: import only.
    """

    size_gib: int = setting("fsxSizeGib", 0, "Size of FSx for Lustre (persistent 2, SSD) in GiB; 0 is no file system.")
    throughput_mb_s_per_tib: int = setting(
        "fsxThroughput",
        250,
        "Throughput of FSx in MB/s per TiB: 125, 250, 500 or 1000.",
        choices=fsx_plan.THROUGHPUTS_MB_S_PER_TIB,
        unit="MB/s per TiB",
    )
    efa: bool = setting(
        "fsxEfa",
        False,
        "EFA between nodes and FSx; sizes then start at 38400, 19200, 9600 or 4800 GiB by throughput.",
    )
    data_repository: str | None = setting(
        "fsxDataRepository",
        "",
        "What FSx imports from: data (the stack's own bucket), s3://bucket/prefix, or empty.",
        optional=True,
        pattern=OWN_BUCKET + r"|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s]*)?",
        wanted=f"{OWN_BUCKET} (the stack's own bucket), s3://bucket/prefix, or nothing",
    )
    root_squash: str | None = setting(
        "fsxRootSquash",
        "",
        "UID:GID that root of a node is on FSx, such as 65534:65534; empty leaves it root.",
        optional=True,
        pattern=r"\d{1,10}:\d{1,10}",
        wanted="UID:GID such as 65534:65534, or nothing",
    )
    no_squash: tuple[str, ...] = setting(
        "fsxNoSquash",
        (),
        "Clients whose root stays root on FSx, as Lustre NIDs: 10.0.101.7@tcp or 10.0.101.[1-9]@tcp.",
    )
    export_events: tuple[str, ...] = derived(
        "fsxExport",
        NO_EXPORT,
        "What FSx writes back to the stack's own data bucket by itself: none, new or new-and-changed files; never deletions.",
        initially=(),
        choices=tuple(fsx_plan.EXPORT_EVENTS),
    )
    file_system_id: str | None = existing(
        "fsxId",
        "FSx for Lustre in vpcId; empty makes what fsxSizeGib says",
        r"fs-[0-9a-f]{8,17}",
        "fs-0123456789abcdef0",
    )


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """Buckets and file systems. keep_data: protected, retained and guarded against deletion."""

    fsx: FsxSettings | None
    s3_express: bool = setting(
        "s3Express", False, "An S3 Express One Zone bucket in the zone of the GPU nodes; not every zone has it."
    )
    keep_data: bool = setting(
        "keepData", True, "Data outlives the stack: protected, retained and guarded against deletion."
    )
    data_bucket: str | None = existing("dataBucket", "the bucket of training data; empty makes one", BUCKET, "my-data")
    checkpoints_bucket: str | None = existing(
        "checkpointsBucket", "the bucket of checkpoints; empty makes one", BUCKET, "my-checkpoints"
    )


@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """Who is told. slack_webhook is what pulumi.Config.get_secret returned (an Output), never plain text; or None."""

    emails: tuple[str, ...] = setting("alertEmails", (), "Addresses subscribed to alerts.")
    slack_webhook: Any = derived(
        "slackWebhook",
        "",
        "Slack incoming webhook, https://hooks.slack.com/services/...; set it with --secret.",
        initially=None,
        secret=True,
    )
    topic: str | None = existing(
        "alertsTopic", "an alerts topic of this account and region; empty makes one", r"[A-Za-z0-9_-]{1,256}", "alerts"
    )
    topic_key: str | None = existing(
        "alertsTopicKey",
        "the key of alertsTopic",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[0-9a-f-]{36}",
        "arn:aws:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
    )

    @property
    def slack(self) -> bool:
        """Whether messages go to Slack as well."""
        return self.slack_webhook is not None


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Alarm thresholds. gpu_utilization_percent alarms below, all others above; 0 W, percent of use or US dollars: no alarm."""

    cpu_percent: int = percent("thresholdCpuPercent", 95, "Alarm when CPU use is above, in percent.")
    memory_percent: int = percent("thresholdMemoryPercent", 90, "Alarm when memory use is above, in percent.")
    disk_percent: int = percent("thresholdDiskPercent", 85, "Alarm when disk use is above, in percent.")
    disk_busy_percent: int = percent(
        "thresholdDiskBusyPercent", 95, "Alarm when a disk is busy for more of the time, in percent."
    )
    gpu_temperature_c: int = setting(
        "thresholdGpuTemperatureC",
        85,
        "Alarm when a GPU is hotter, in degrees Celsius.",
        within=(40, 110),
        unit="degrees Celsius",
    )
    gpu_utilization_percent: int = percent(
        "thresholdGpuUtilizationPercent", 10, "Alarm when GPU use stays below, in percent; 0 is no alarm.", least=0
    )
    gpu_memory_percent: int = percent(
        "thresholdGpuMemoryPercent", 98, "Alarm when GPU memory use is above, in percent."
    )
    gpu_power_w: int = setting(
        "thresholdGpuPowerW",
        0,
        "Alarm when a GPU draws more, in watts; 0 is none, for a GPU at its limit works, and the limit is the board's.",
        within=(0, 3000),
        unit="watts",
    )
    network_errors_per_minute: int = setting(
        "thresholdNetworkErrorsPerMinute",
        100,
        "Alarm when a node has more network errors and drops in a minute.",
        within=(1, 1_000_000),
    )
    efa_errors_per_minute: int = setting(
        "thresholdEfaErrorsPerMinute",
        100,
        "Alarm when a node has more EFA errors and time-outs in a minute.",
        within=(1, 1_000_000),
    )
    run_cost_usd: int = usd(
        "thresholdRunCostUsd", 10_000, "Alarm when a training run has cost more, in US dollars; 0 is none.", "alarm"
    )


@dataclass(frozen=True, kw_only=True)
class MonitoringSettings:
    """Thresholds and how long logs are kept."""

    thresholds: Thresholds
    log_retention_days: int = setting(
        "logRetentionDays",
        30,
        "Days that every log group keeps its lines; one of the values CloudWatch Logs takes.",
        variable="cloudwatch_agent_log_retention_days",
    )


@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    """Monthly budget in whole US dollars; 0 means no budget and no cost-anomaly alarm."""

    monthly_usd: int = usd(
        "monthlyBudgetUsd", 0, "Monthly budget in US dollars, with a cost-anomaly alarm; 0 is none.", "budget"
    )

    @property
    def enabled(self) -> bool:
        """Whether the stack asked for one."""
        return self.monthly_usd > 0


@dataclass(frozen=True, kw_only=True)
class BootSettings:
    """The boot preflight. An instance enters service only after it said go within time_limit_minutes.

    package: path of a node package (a zipapp) made elsewhere, or None: it is built from this checkout.
    configure: a node applies the roles to itself before that preflight, within configure_minutes.
    failures: the fewest boots without a go that stop launches, where bad nodes do not explain them; 0 is no limit.
    """

    level: str = setting(
        "bootPreflightLevel",
        "quick",
        "Preflight before service: quick, or standard where the image already has DCGM and nccl-tests (else no node gets in).",
        choices=("quick", "standard"),
        wanted="quick or standard; a deep run lasts hours, start it from the control node",
    )
    time_limit_minutes: int = setting(
        "bootPreflightMinutes",
        20,
        "Time limit of that preflight in minutes; an instance without a verdict by then is replaced.",
        within=(10, MOST_MIN),
        unit="minutes",
    )
    failures: int = setting(
        "bootFailureLimit",
        5,
        "Boots without a go in six hours that stop launches until you say so, if 2 % bad nodes do not explain them; 0: no limit.",
        within=(0, 1000),
        unit="boots",
    )
    configure: bool = setting(
        "configureAtBoot",
        True,
        "A node applies the roles to itself before its boot preflight; false leaves that to `make configure`.",
    )
    configure_minutes: int = setting(
        "configureMinutes",
        30,
        f"Time limit of the roles at boot in minutes; with bootPreflightMinutes {MOST_MIN} at most.",
        within=(5, MOST_MIN - 10),
        unit="minutes",
    )
    package: str | None = setting(
        "nodePackage",
        "",
        "Path of a node package (zipapp) made elsewhere; empty builds it from this checkout.",
        optional=True,
    )

    @property
    def minutes(self) -> int:
        """What a first boot may take, from the node's start to its verdict."""
        return self.time_limit_minutes + (self.configure_minutes if self.configure else 0)


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """Everything a stack decides. region: "us-east-1". emulator_endpoint: a loopback URL or None."""

    cluster_name: str = setting(
        "clusterName",
        "flightline",
        "Name of the cluster; every physical name is derived from it. Small letters, digits, single hyphens.",
        pattern=r"(?!sthree-|amzn-)[a-z](?:-?[a-z0-9])+",
        wanted="small letters, digits and single hyphens, from a letter, three or more; not sthree- or amzn-, which S3 keeps",
    )
    region: str
    orchestrator: str = derived(
        "orchestrator",
        "none",
        "What schedules jobs: none, slurm (brings a head node) or eks (Kubernetes: a cluster and node groups).",
        choices=("none", "slurm", EKS),
    )
    network: NetworkSettings
    nodes: NodesSettings
    image: ImageSettings
    access: AccessSettings
    head: HeadSettings
    kubernetes: KubernetesSettings
    storage: StorageSettings
    notifications: NotificationSettings
    monitoring: MonitoringSettings
    budget: BudgetSettings
    audit_trail: bool = setting(
        "auditTrail", False, "A CloudTrail of the account's management events and of the data buckets."
    )
    boot: BootSettings
    kms_key: str | None = setting(
        "kmsKey",
        "",
        f"Key of all that the stack stores: {OWN_KEY} (the stack makes one) or a KMS key's ARN; empty is AWS' own keys.",
        optional=True,
        pattern=OWN_KEY + r"|arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]{1,64}",
        wanted=f"{OWN_KEY}, the ARN of a key (not of an alias), or nothing",
    )
    trusted_accounts: tuple[str, ...] = setting(
        "trustedAccounts",
        (),
        "AWS accounts beside the stack's own whose resources its VPC endpoints let nodes write to.",
    )
    reserve_concurrency: bool = setting(
        "reserveConcurrency",
        False,
        "Reserve for router and verdict what their queues may keep busy (30 invocations; AWS keeps 100 for all others).",
    )
    tags: Mapping[str, str] = derived("tags", (), 'Tags of every resource, each "Key=Value".')
    permissions_boundary: str | None = setting(
        "permissionsBoundary",
        "",
        "ARN of the policy that bounds every role of the stack.",
        optional=True,
        pattern=r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]{1,512}",
        wanted="a policy's ARN: arn:aws:iam::123456789012:policy/name",
    )
    emulator_endpoint: str | None = derived(
        "emulatorEndpoint",
        "",
        "Loopback URL of an AWS emulator, for the local stack only.",
        initially=None,
        optional=True,
        pattern=LOOPBACK,
        wanted="nothing, or a loopback URL: http://127.0.0.1:5000",
    )

    @property
    def on_kubernetes(self) -> bool:
        """Whether nodes are those of an EKS cluster."""
        return self.orchestrator == EKS


KEYS: tuple[Key, ...] = tuple(keys(StackSettings))
EARLIER: Mapping[str, str] = MappingProxyType({alias: key.name for key in KEYS for alias in key.aliases})
"""Earlier name of a key -> today's."""
BY_NAME: Mapping[str, Key] = MappingProxyType({key.name: key for key in KEYS})
