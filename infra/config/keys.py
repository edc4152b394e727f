"""Every configuration key of a stack: name, type, default. Pulumi.yaml repeats them and describes them.

Pulumi's project file knows string, integer, boolean and array, so tags are an array of "Key=Value".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

STRING = "string"
INTEGER = "integer"
BOOLEAN = "boolean"
ARRAY = "array"

Value = str | int | bool | tuple[str, ...]
SHOWN_SECRET = "[secret]"  # noqa: S105  # what is shown instead of one


@dataclass(frozen=True)
class Key:
    """One key. The default's type is the key's type."""

    name: str
    default: Value
    secret: bool = False

    @property
    def kind(self) -> str:
        """Type in Pulumi.yaml."""
        if isinstance(self.default, bool):
            return BOOLEAN
        if isinstance(self.default, int):
            return INTEGER
        return STRING if isinstance(self.default, str) else ARRAY


KEYS: tuple[Key, ...] = (
    Key("clusterName", "flightline"),
    Key("orchestrator", "none"),
    Key("availabilityZone", ""),
    Key("vpcCidr", "10.0.0.0/16"),
    Key("publicSubnetCidrs", ("10.0.1.0/24", "10.0.2.0/24")),
    Key("privateSubnetCidrs", ("10.0.101.0/24", "10.0.102.0/24")),
    Key("natGateways", "one"),
    Key("interfaceEndpoints", False),
    Key("packageSource", "internet"),
    Key("flowLogs", True),
    Key("gpuInstanceType", "g6.xlarge"),
    Key("gpuNodeCount", 1),
    Key("gpuNodeMinimum", 0),
    Key("gpuNodeMaximum", 0),
    Key("efa", "auto"),
    Key("capacityType", "on-demand"),
    Key("capacityReservationId", ""),
    Key("spotInstanceTypes", ()),
    Key("spotZones", 1),
    Key("spotAllocation", "price-capacity-optimized"),
    Key("spotMaxPriceUsd", ""),
    Key("spotRebalance", False),
    Key("scaleInProtection", False),
    Key("nodeSchedule", ()),
    Key("nodeScheduleTimeZone", "UTC"),
    Key("placementGroup", "auto"),
    Key("ami", ""),
    Key("amiPin", ""),
    Key("amiUser", ""),
    Key("rootVolumeGib", 200),
    Key("accessMode", "ssm"),
    Key("sshCidrs", ()),
    Key("sshKeyName", ""),
    Key("headNode", False),
    Key("headInstanceType", "m7i.xlarge"),
    Key("headRootVolumeGib", 100),
    Key("fsxSizeGib", 0),
    Key("fsxThroughput", 250),
    Key("fsxEfa", False),
    Key("fsxDataRepository", ""),
    Key("fsxExport", "none"),
    Key("s3Express", False),
    Key("keepData", True),
    Key("alertEmails", ()),
    Key("slackWebhook", "", secret=True),
    Key("thresholdCpuPercent", 95),
    Key("thresholdMemoryPercent", 90),
    Key("thresholdDiskPercent", 85),
    Key("thresholdDiskBusyPercent", 95),
    Key("thresholdGpuTemperatureC", 85),
    Key("thresholdGpuUtilizationPercent", 10),
    Key("thresholdGpuMemoryPercent", 98),
    Key("thresholdGpuPowerW", 0),
    Key("thresholdNetworkErrorsPerMinute", 100),
    Key("thresholdEfaErrorsPerMinute", 100),
    Key("gpuIdleHours", 0),
    Key("gpuIdleScaleIn", False),
    Key("logRetentionDays", 30),
    Key("monthlyBudgetUsd", 0),
    Key("auditTrail", False),
    Key("bootPreflightLevel", "quick"),
    Key("bootPreflightMinutes", 20),
    Key("bootFailureLimit", 5),
    Key("configureAtBoot", True),
    Key("configureMinutes", 30),
    Key("nodePackage", ""),
    Key("tags", ()),
    Key("permissionsBoundary", ""),
    Key("emulatorEndpoint", ""),
)
BY_NAME: Mapping[str, Key] = MappingProxyType({key.name: key for key in KEYS})

_WANTED = {
    STRING: "text",
    INTEGER: "a whole number",
    BOOLEAN: "true or false",
    ARRAY: 'a list of text, such as ["one", "two"]',
}


def parse(key: Key, raw: Any) -> Value:
    """The value of what the stack says; the default when it says nothing. Raises ValueError with what was wanted."""
    if raw is None:
        return key.default
    value = {STRING: _string, INTEGER: _integer, BOOLEAN: _boolean, ARRAY: _array}[key.kind](raw)
    if value is None:
        raise ValueError(_WANTED[key.kind])
    return value


def _string(raw: Any) -> str | None:
    return raw.strip() if isinstance(raw, str) else None


def _integer(raw: Any) -> int | None:
    return int(raw) if re.fullmatch(r"-?\d{1,12}", str(raw)) else None


def _boolean(raw: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(raw).lower())


def _array(raw: Any) -> tuple[str, ...] | None:
    try:
        items = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        return None
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        return None
    return tuple(item.strip() for item in items)
