"""Which pods have the node's GPUs, by kubelet's own checkpoint of its device manager: no right in the API is needed.

Source: kubernetes, pkg/kubelet/cm/devicemanager/checkpoint: {"Data": {"PodDeviceEntries": [{PodUID, ResourceName,
DeviceIDs}]}}. It is no promised interface: what cannot be read is no permission, and only the deeper tests wait for it.
"""

from __future__ import annotations

import json
from pathlib import Path

CHECKPOINT = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
PODS = "var/lib/kubelet/pods"
ACCELERATORS = ("nvidia.com/", "aws.amazon.com/neuron")
"""Resources of the NVIDIA and Neuron device plugins; a MIG slice is one too."""


def why_not_idle(root: str = "/") -> str:
    """Which pods hold accelerators, or why that is not known; '' where none does.

    An entry outlives its pod until kubelet hands out the next device: a pod whose directory is gone holds nothing.
    """
    path = Path(root, CHECKPOINT)
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["Data"]["PodDeviceEntries"] or []
        holders = sorted({str(one["PodUID"]) for one in entries if str(one["ResourceName"]).startswith(ACCELERATORS)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{path} cannot be read ({error}), so it is not known which pods have GPUs"
    running = [uid for uid in holders if Path(root, PODS, uid).exists()]
    more = f" and {len(running) - 1} more" if len(running) > 1 else ""
    return f"pod {running[0]}{more} has GPUs" if running else ""
