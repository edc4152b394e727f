"""The EKS cluster: its version, who reaches it, its nodes without a GPU, and which other settings it has no use for."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from infra.config.declare import declared
from infra.config.model import EKS, NAT_NONE, ImageSettings, KubernetesSettings, NodesSettings, ZoneSettings
from infra.config.values import Values
from infra.planning import kubernetes, subnets
from infra.planning.instance_types import NetworkFacts

WIDEST_PUBLIC_PREFIX = 16
"""As of SSH: a wider public block is nobody's office."""

MOST_PUBLIC_BLOCKS = 40
"""Public access ranges of a cluster (service quota L-93A74D60, which cannot be raised)."""

MOST_TYPES = 20
"""Instance types of a managed node group (EKS user guide, "Customize managed nodes with launch templates")."""

ADD_ON_VERSION = r"v\d+(\.\d+){1,2}-eksbuild\.\d+"
"""As `aws eks describe-addon-versions` lists them."""

PRINCIPAL = r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/[\w+=,.@/-]{1,512}"

_IMAGE = "nothing with orchestrator eks, whose nodes run EKS' own image: kubernetesNodeRelease chooses its release"
_BOOT = "its default with orchestrator eks: nodes are judged by the agent on them, under a taint, and not at their boot"
_GROUP = "its default with orchestrator eks: the node group decides it"
_HEAD = "its default with orchestrator eks: EKS is the control plane, there is no head node"
_SSH = "its default with orchestrator eks: kubectl, and Session Manager where a node itself is to be seen"

WITHOUT_MEANING: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ami", "amiPin", "amiUser", "packageSource"), _IMAGE),
        **dict.fromkeys(
            (
                *("bootPreflightLevel", "bootPreflightMinutes", "bootFailureLimit"),
                *("configureAtBoot", "configureMinutes", "nodePackage"),
            ),
            _BOOT,
        ),
        **dict.fromkeys(
            (
                *("spotAllocation", "spotMaxPriceUsd", "spotRebalance"),
                *("scaleInProtection", "nodeSchedule", "nodeScheduleTimeZone", "gpuIdleHours", "gpuIdleScaleIn"),
                "drainMinutes",
            ),
            _GROUP,
        ),
        **dict.fromkeys(("headNode", "headInstanceType", "headRootVolumeGib"), _HEAD),
        **dict.fromkeys(("accessMode", "sshCidrs", "sshKeyName"), _SSH),
    }
)
"""Keys that a Kubernetes stack does not read, and why: a setting without effect is a promise that is not kept."""


def read(values: Values, known: NetworkFacts | None) -> KubernetesSettings:
    """The cluster's settings; its defaults where nodes are no Kubernetes nodes."""
    if values.text("orchestrator") != EKS:
        for key in declared(KubernetesSettings).values():
            if values.changed(key.name):
                values.refuse(key.name, f"nothing with orchestrator {values.text('orchestrator')}, or eks there")
        return KubernetesSettings()
    for name, why in WITHOUT_MEANING.items():
        if values.changed(name):
            values.refuse(name, why)
    given = KubernetesSettings(charts=_charts(values), **values.section(KubernetesSettings))
    _nodes(values, known)
    _reached_by(values, given)
    if given.cpu_count > given.cpu_maximum and not values.refused("cpuNodeCount", "cpuNodeMaximum"):
        values.refuse("cpuNodeMaximum", f"cpuNodeCount ({given.cpu_count}) or more")
    _pinned(values, given)
    release = given.node_release or given.version
    if not release.startswith(given.version) and not values.refused("kubernetesNodeRelease", "kubernetesVersion"):
        values.refuse("kubernetesNodeRelease", f"a release for kubernetesVersion, {given.version}, or nothing")
    return given


def _pinned(values: Values, given: KubernetesSettings) -> None:
    """Versions of add-ons; whether EKS has them for the cluster's version is its to say."""
    seen: set[str] = set()
    for pin in given.add_on_versions:
        name, _, version = pin.partition("=")
        if name not in kubernetes.ADD_ON_NAMES:
            values.refuse(
                "kubernetesAddOnVersions", f"NAME=VERSION with one of {', '.join(kubernetes.ADD_ON_NAMES)}", pin
            )
        elif not re.fullmatch(ADD_ON_VERSION, version):
            values.refuse("kubernetesAddOnVersions", "a version such as vpc-cni=v1.20.4-eksbuild.2", pin)
        elif name in seen:
            values.refuse("kubernetesAddOnVersions", "each add-on once", pin)
        seen.add(name)


def _nodes(values: Values, known: NetworkFacts | None) -> None:
    if known is not None and known.accelerator != "nvidia_gpu":
        values.refuse("gpuInstanceType", "a type with NVIDIA GPUs: nodes of the cluster run EKS' NVIDIA image")
    if len(values.items("spotInstanceTypes")) >= MOST_TYPES:
        values.refuse("spotInstanceTypes", f"at most {MOST_TYPES - 1} types beside gpuInstanceType, in a node group")


def _reached_by(values: Values, given: KubernetesSettings) -> None:
    """Who may ask the cluster's API, and from where."""
    if not given.admins and not given.cluster:
        values.refuse(
            "kubernetesAdmins",
            'the roles or users that administer it, such as ["arn:aws:iam::123456789012:role/ml-platform"], the one '
            "that runs `make up` among them: nobody else gets in",
        )
    for position, arn in enumerate(given.admins):
        if not re.fullmatch(PRINCIPAL, arn):
            values.refuse("kubernetesAdmins", "the ARN of an IAM role or user, not of a session or an account", arn)
        elif arn in given.admins[:position]:
            values.refuse("kubernetesAdmins", "each ARN once", arn)
    if len(given.public_cidrs) > MOST_PUBLIC_BLOCKS:
        values.refuse("kubernetesPublicCidrs", f"at most {MOST_PUBLIC_BLOCKS} blocks")
    for block in given.public_cidrs:
        wanted = _public(block)
        if wanted:
            values.refuse("kubernetesPublicCidrs", wanted, block)


def _charts(values: Values) -> bool:
    """Whether the stack installs the charts: auto where it is seen that it reaches the API, and nodes the images."""
    choice, no_nat = values.checked("kubernetesCharts"), values.text("natGateways") == NAT_NONE
    if choice == "on" and no_nat:
        values.refuse(
            "kubernetesCharts", "auto or off, or natGateways one: without NAT the charts' images never reach the nodes"
        )
    return choice == "on" or (choice == "auto" and bool(values.items("kubernetesPublicCidrs")) and not no_nat)


def _public(text: str) -> str | None:
    """What was wanted of a block that may reach the public endpoint, None when it is right."""
    try:
        block = subnets.parse(text)
    except ValueError as error:
        return str(error)
    if subnets.private(block):
        return "a public block: EKS refuses private ones, which reach the private endpoint"
    if block.prefixlen < WIDEST_PUBLIC_PREFIX:
        return f"a block no wider than /{WIDEST_PUBLIC_PREFIX}; the API is never open to the world"
    return None


def image(known: NetworkFacts | None) -> ImageSettings:
    """EKS finds the image by its release; nothing is asked for here."""
    return ImageSettings(
        ami_id=None, ssm_parameter=None, user="ec2-user", architecture=known.architecture if known else "x86_64"
    )


def room(values: Values, nodes: NodesSettings, given: KubernetesSettings, zones: ZoneSettings) -> None:
    """Refuse a private subnet without an address for every pod that the nodes in it may hold."""
    read_from = ("privateSubnetCidrs", "vpcCidr", "gpuNodeCount", "gpuNodeMaximum", "podsPerNode", "cpuNodeMaximum")
    if values.refused(*read_from):
        return
    each = kubernetes.addresses_of_node(given.pods_per_node)
    for number, block in enumerate(values.items("privateSubnetCidrs")):
        gpu = nodes.maximum if number in zones.nodes else 0
        wanted = kubernetes.addresses(gpu + given.cpu_maximum, given.pods_per_node)
        if subnets.addresses(block) < wanted:
            why = f"{gpu} GPU nodes and {given.cpu_maximum} others with {each} each (podsPerNode), and what serves them"
            values.refuse("privateSubnetCidrs", f"a {subnets.nth(number)} block with {wanted} addresses: {why}", block)
