"""docs/runbook.md: what to do for each check's finding, from the check's own texts.

`python -m flightline.runbook` writes the page; a test compares the two. The first command is that of the probe whose
output the check reads, unless FIRST names a better one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flightline_node.checks import CHECKS
from flightline_node.model import Check
from flightline_node.parsers import PARSERS
from flightline_node.probes import PROBES, Probe

from .fleet_checks import FLEET_CHECKS

PAGE = Path(__file__).parents[1] / "docs" / "runbook.md"

FIRST: Mapping[str, str] = {
    "compute_mode": "nvidia-smi --query-gpu=index,compute_mode --format=csv",
    "cpu_governor": "grep -H . /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "cuda_version": "nvidia-smi --query-gpu=driver_version --format=csv; ldconfig -p | grep libcuda",
    "dcgm_diag": "dcgmi diag -r 2 -j",
    "efa_loopback": "FI_EFA_ENABLE_SHM_TRANSFER=0 fi_pingpong -p efa -e rdm -d DEVICE-rdm -c & "
    "FI_EFA_ENABLE_SHM_TRANSFER=0 fi_pingpong -p efa -e rdm -d DEVICE-rdm -c localhost",
    "fs_io": "df -h; dmesg | tail",
    "gpu_bandwidth": "nvbandwidth -t host_to_device_memcpy_ce device_to_device_memcpy_read_ce",
    "gpu_load": "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",
    "driver_version": "cat /proc/driver/nvidia/version",
    "ecc_corrected": "nvidia-smi -q -d ECC",
    "ecc_mode": "nvidia-smi -q -d ECC",
    "ecc_sram_threshold": "nvidia-smi -q -d ECC",
    "ecc_uncorrected": "nvidia-smi -q -d ECC,ROW_REMAPPER",
    "edac": "grep -H . /sys/devices/system/edac/mc/mc*/[cu]e_count",
    "efa_count": "fi_info -p efa -t FI_EP_RDM; lspci -d 1d0f:",
    "efa_counters": "grep -H . /sys/class/infiniband/rdmap*/ports/1/hw_counters/*",
    "efa_ports": "grep -H . /sys/class/infiniband/rdmap*/ports/1/*state",
    "efa_provider": "fi_info -p efa -t FI_EP_RDM",
    "ena_allowance": "ethtool -S ens5 | grep allowance",
    "fabric_manager": "systemctl status nvidia-fabricmanager; tail -50 /var/log/fabricmanager.log",
    "fabric_state": "nvidia-smi -q | grep -A8 -w Fabric; systemctl status nvidia-fabricmanager",
    "fio_disk": "fio --readonly --rw=read --bs=1M --direct=1 --runtime=20 --name=read --filename=/dev/nvme1n1",
    "gpu_clocks": "nvidia-smi -q -d CLOCK,PERFORMANCE",
    "gpu_count": "nvidia-smi -L; lspci -d 10de:",
    "gpu_lost": "journalctl -k -b | grep -i nvrm; lspci -d 10de:",
    "gpu_processes": "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    "gpu_temperature": "nvidia-smi -q -d TEMPERATURE",
    "gpu_vbios": "nvidia-smi --query-gpu=index,vbios_version --format=csv",
    "instance_identity": "ec2-metadata --instance-type --instance-id --availability-zone",
    "kernel_errors": "journalctl -k -b -p warning",
    "lustre": "lfs check all; journalctl -k -b | grep -i lustre",
    "maintenance": "aws ec2 describe-instance-status --instance-ids ID",
    "memory_repair": "nvidia-smi -q | grep -i repair",
    "mig_mode": "nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv",
    "mtu": "ip -br link; ip -d link show",
    "nccl_busbw": "all_reduce_perf -b 1G -e 8G -f 2 -g 8 -c 1",
    "nccl_correctness": "all_reduce_perf -b 1G -e 8G -f 2 -g 8 -c 1",
    "nccl_transport": "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET on the job, then look for NET/",
    "numa_affinity": "nvidia-smi topo -m",
    "nvlink_errors": "nvidia-smi nvlink -e",
    "pcie_aer": "journalctl -k -b | grep -i aer",
    "pcie_gen": "nvidia-smi --query-gpu=pcie.link.gen.gpucurrent,pcie.link.gen.max --format=csv",
    "pcie_replays": "nvidia-smi -q | grep -i replay",
    "pcie_width": "nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.width.max --format=csv",
    "peer_memory": "lsmod | grep -E 'efa_nv_peermem|nvidia_peermem'; uname -r",
    "persistence_mode": "systemctl status nvidia-persistenced",
    "power_limit": "nvidia-smi -q -d POWER",
    "recovery_action": "nvidia-smi -q | grep -i 'recovery action'",
    "retired_pages": "nvidia-smi -q -d PAGE_RETIREMENT",
    "row_remap": "nvidia-smi -q -d ROW_REMAPPER",
    "row_remap_histogram": "nvidia-smi -q -d ROW_REMAPPER",
    "stuck_processes": "ps -eo pid,stat,etimes,wchan:32,comm | grep ' D'",
    "sxid": "journalctl -k -b | grep SXid",
    "throttle": "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
    "xid": "journalctl -k -b | grep Xid",
}
"""Better first commands than the probe's own; keep it short."""

READERS: Mapping[str, str] = {
    "imds": "ec2-metadata --all",
    "versions": "uname -r; cat /opt/amazon/efa_installed_packages",
    "limits": "ulimit -l; grep -r memlock /etc/security",
}

_HEAD = """\
# Runbook

One heading per check id. Written from the checks' own texts by `python -m flightline.runbook`; edit there.

A finding names its remedy. What each means on EC2:

| remedy | do |
|---|---|
| RESTART_APP | Stop and start the job. The node is good. |
| RESET_GPU | Drain, stop what uses the GPU, `nvidia-smi --gpu-reset -i N`; with NVSwitch reset all GPUs, or reboot. |
| REBOOT | Drain, reboot, run the preflight again. The same finding after a reboot: replace. |
| REPLACE | Drain and replace the instance; keep its bundle for the support case. |
| UPDATE_SOFTWARE | Install the versions of the site's image and run the preflight again. |
| FIX_CONFIG | Correct the setting (usually in the image or the inventory) and run the preflight again. |
| CONTACT_SUPPORT | Open a case with AWS, with the bundle and the kernel log. |
| INVESTIGATE | The finding alone does not name the culprit: read its evidence and start with the command below. |

UNKNOWN blocks like FAIL: mend what kept the tool from answering, then measure again. To go on all the same, write a
waiver (docs/checks.md).
"""


def _command(probe: Probe) -> str:
    if probe.reader:
        return READERS.get(probe.reader, "")
    words = [part.replace("{root}", "") for part in probe.commands[0]]
    return " ".join(words) if words[:2] != ["sh", "-c"] else ""


def first_command(check: Check) -> str:
    """The first command to run; a check of a file that no simple command writes has its collection instead."""
    if check.id in FIRST:
        return FIRST[check.id]
    reads = [name for name in (*check.needs, *check.needs_any) if name in PARSERS]
    files = [file for name in reads for file in PARSERS[name].files]
    commands = [_command(probe) for file in files for probe in PROBES if probe.file == file]
    return next((command for command in commands if command), f"flightline collect --out DIR --level {check.level}")


def when_to_replace(check: Check) -> str:
    """Whether the check's remedy ever ends in another instance."""
    if "replace" in check.remedy.lower():
        return "when the line above says so, or the finding's remedy is REPLACE."
    return "not for this finding alone."


def _entry(check: Check) -> Iterator[str]:
    yield f"## {check.id}"
    yield ""
    yield f"{check.title}. {check.why}"
    yield ""
    yield f"- First: `{first_command(check)}`"
    yield f"- Do: {check.remedy}"
    yield f"- Replace: {when_to_replace(check)}"
    yield ""


def render(checks: Iterable[Check]) -> str:
    """The whole page: the node's checks by id, then those of the fleet."""
    lines = [_HEAD]
    for check in sorted(checks, key=lambda check: check.id):
        lines += _entry(check)
    lines += ["# Checks of the fleet", ""]
    for name, fleet in sorted(FLEET_CHECKS.items()):
        lines += [f"## {name}", "", f"{fleet.title}. {fleet.why}", "", f"- Do: {fleet.remedy}", ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(CHECKS.values()), encoding="utf-8")
