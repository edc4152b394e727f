"""What a program may say to `plan`; made from infra/config/model.py by `python -m tools.stack_settings`."""

from collections.abc import Sequence
from typing import TypedDict

Settings = TypedDict(  # noqa: UP013  # a field on each line would be a page
    "Settings",
    {
        "clusterName": str, "orchestrator": str, "availabilityZones": Sequence[str], "vpcCidr": str,
        "publicSubnetCidrs": Sequence[str], "privateSubnetCidrs": Sequence[str], "natGateways": str,
        "interfaceEndpoints": bool, "packageSource": str, "flowLogs": bool, "vpcId": str, "subnetIds": Sequence[str],
        "publicSubnetId": str, "securityGroupId": str, "routeTableIds": Sequence[str],
        "existingEndpoints": Sequence[str], "gpuInstanceType": str, "gpuNodeCount": int, "gpuNodeMinimum": int,
        "gpuNodeMaximum": int, "efa": str, "capacityType": str, "capacityReservationId": str,
        "capacityOrder": Sequence[str], "capacityChosen": str, "spotInstanceTypes": Sequence[str], "spotZones": int,
        "spotAllocation": str, "spotMaxPriceUsd": str, "spotRebalance": bool, "scaleInProtection": bool,
        "nodeSchedule": Sequence[str], "nodeScheduleTimeZone": str, "gpuIdleHours": int, "gpuIdleScaleIn": bool,
        "drainMinutes": int, "placementGroup": str, "rootVolumeGib": int, "ami": str, "amiPin": str, "amiUser": str,
        "accessMode": str, "sshCidrs": Sequence[str], "sshKeyName": str, "metadataHops": int, "headNode": bool,
        "headInstanceType": str, "headRootVolumeGib": int, "kubernetesVersion": str,
        "kubernetesPublicCidrs": Sequence[str], "kubernetesAdmins": Sequence[str], "kubernetesCharts": str,
        "kubernetesNodeRelease": str, "kubernetesAddOnVersions": Sequence[str], "podsPerNode": int,
        "cpuInstanceType": str, "cpuNodeCount": int, "cpuNodeMaximum": int, "cpuRootVolumeGib": int,
        "eksCluster": str, "fsxSizeGib": int, "fsxThroughput": int, "fsxEfa": bool, "fsxDataRepository": str,
        "fsxRootSquash": str, "fsxNoSquash": Sequence[str], "fsxExport": str, "fsxId": str, "s3Express": bool,
        "keepData": bool, "dataBucket": str, "checkpointsBucket": str, "alertEmails": Sequence[str],
        "alertsTopic": str, "alertsTopicKey": str, "thresholdCpuPercent": int, "thresholdMemoryPercent": int,
        "thresholdDiskPercent": int, "thresholdDiskBusyPercent": int, "thresholdGpuTemperatureC": int,
        "thresholdGpuUtilizationPercent": int, "thresholdGpuMemoryPercent": int, "thresholdGpuPowerW": int,
        "thresholdNetworkErrorsPerMinute": int, "thresholdEfaErrorsPerMinute": int, "thresholdRunCostUsd": int,
        "logRetentionDays": int, "monthlyBudgetUsd": int, "auditTrail": bool, "bootPreflightLevel": str,
        "bootPreflightMinutes": int, "bootFailureLimit": int, "configureAtBoot": bool, "configureMinutes": int,
        "nodePackage": str, "kmsKey": str, "trustedAccounts": Sequence[str], "reserveConcurrency": bool,
        "tags": Sequence[str], "permissionsBoundary": str, "emulatorEndpoint": str,
    },
    total=False,
)  # fmt: skip
