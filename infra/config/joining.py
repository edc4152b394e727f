"""What the stack joins instead of making it: the settings that belong together, and those that then mean nothing."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from infra.config.declare import declared
from infra.config.model import NO_EXPORT, NetworkSettings, StackSettings
from infra.config.values import Values
from infra.planning import endpoints, joining

SUBNET_ID, TABLE_ID = r"subnet-([0-9a-f]{8}|[0-9a-f]{17})", r"rtb-([0-9a-f]{8}|[0-9a-f]{17})"
WITHOUT_MEANING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "vpcId": ("vpcCidr", "publicSubnetCidrs", "privateSubnetCidrs", "natGateways", "flowLogs"),
        "fsxId": ("fsxSizeGib", "fsxThroughput", "fsxDataRepository", "fsxExport", "fsxRootSquash", "fsxNoSquash"),
        "eksCluster": (
            *("kubernetesAdmins", "kubernetesPublicCidrs", "kubernetesCharts", "kubernetesAddOnVersions"),
            *("cpuInstanceType", "cpuNodeCount", "cpuNodeMaximum", "cpuRootVolumeGib"),
        ),
    }
)
"""What is joined -> the keys that say how it would be made."""


def check(values: Values, settings: StackSettings, network_is_given: bool) -> None:
    """Refuse what is missing beside something joined, and what contradicts it."""
    network = settings.network
    _ids(values, network)
    for field, _, wanted in joining.network_mistakes(network, settings):
        values.refuse(declared(NetworkSettings)[field].name, wanted)
    for name, keys in WITHOUT_MEANING.items():
        for key in keys if values.text(name) else ():
            if values.changed(key):
                values.refuse(key, f"its default with {name}, whose owner decides it")
    for name in ("securityGroupId", "fsxId", "eksCluster"):
        if values.text(name) and not network.vpc_id and not network_is_given:
            values.refuse(name, "nothing, or vpcId as well: it lies in a VPC that is there")
    if settings.storage.data_bucket and values.text("fsxExport") != NO_EXPORT:
        values.refuse("fsxExport", f"{NO_EXPORT} with dataBucket: no other bucket than the stack's own is written to")
    if bool(settings.notifications.topic) != bool(settings.notifications.topic_key):
        missing = "alertsTopicKey" if settings.notifications.topic else "alertsTopic"
        values.refuse(
            missing, "alertsTopic and alertsTopicKey together, or neither: nodes publish with the topic's key"
        )


def _ids(values: Values, network: NetworkSettings) -> None:
    for key, given, pattern, example in (
        ("subnetIds", network.subnet_ids, SUBNET_ID, "subnet-0123456789abcdef0"),
        ("routeTableIds", network.route_table_ids, TABLE_ID, "rtb-0123456789abcdef0"),
    ):
        for item in given:
            if not re.fullmatch(pattern, item):
                values.refuse(key, f"ids such as {example}", item)
        if len(set(given)) < len(given):
            values.refuse(key, "each id once")
    for service in network.existing_endpoints:
        if service not in endpoints.EVERY:
            values.refuse("existingEndpoints", f"services of {', '.join(endpoints.EVERY)}", service)
