"""What /sys and /proc hold on a healthy simulated node, for the readers of several small files."""

from __future__ import annotations

from typing import Dict, Tuple

from . import neuron
from .hardware import UPTIME_S, Machine

PRIMARY, SECOND = "ens5", "ens6"
_PF_KTHREAD = 0x00200040
_TICKS_PER_S = 100
_ALLOWANCES = ("bw_in", "bw_out", "pps", "conntrack", "linklocal")
# Number, name, state, parent, flags, seconds after boot.
_PROCESSES = (
    (1, "systemd", "S", 0, 0x400100, 1),
    (2, "kthreadd", "S", 0, 0x208040, 1),
    (31, "kworker/0:1-events", "D", 2, _PF_KTHREAD, 1),
    (1204, "chronyd", "S", 1, 0x400140, 8),
    (1288, "amazon-ssm-agen", "S", 1, 0x400100, 9),
    (1391, "nvidia-persiste", "S", 1, 0x400140, 12),
    (1402, "sshd", "S", 1, 0x400100, 12),
)


def stat(pid: int, name: str, state: str, parent: int, flags: int, started_s: int) -> str:
    """/proc/<pid>/stat, the fields that nobody here reads at zero."""
    used = f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 {flags} "
    return used + f"{'0 ' * 12}{started_s * _TICKS_PER_S} {'0 ' * 29}0\n"


def stuck(name: str, age_s: int) -> Dict[str, str]:
    """Files of a process that waits in the kernel and does not move."""
    pid = 21003
    base = f"root/proc/{pid}"
    return {
        f"{base}/stat": stat(pid, name, "D", 1, 0x400000, UPTIME_S - age_s),
        f"{base}/status": "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n",
        f"{base}/wchan": "rwsem_down_read_slowpath",
    }


def ports(device: str) -> Dict[str, str]:
    """Files of an EFA device's port."""
    base = f"root/sys/class/infiniband/{device}"
    return {
        f"{base}/ports/1/state": "4: ACTIVE\n",
        f"{base}/ports/1/phys_state": "5: LinkUp\n",
        f"{base}/ports/1/rate": "100 Gb/sec (4X EDR)\n",
        f"{base}/device/p2p": "NVIDIA\n",
    }


def interfaces(machine: Machine) -> Tuple[str, ...]:
    """ENA interfaces: types with several network cards are launched with a second one here."""
    return (PRIMARY, SECOND) if machine.efa_count > 1 else (PRIMARY,)


def files(machine: Machine) -> Dict[str, str]:
    """Network interfaces, the default route, processes, CPU frequency and, on bare metal, memory controllers."""
    found = neuron.files(machine) if machine.neuron else {"root/sys/module/nvidia/taint": "OE\n"}
    arm = machine.expected.arch == "arm64"
    found["root/sys/devices/system/clocksource/clocksource0/current_clocksource"] = (
        "arch_sys_counter\n" if arm else "tsc\n"
    )
    for name in interfaces(machine):
        found[f"root/sys/class/net/{name}/mtu"] = "9001\n"
        found[f"root/sys/class/net/{name}/operstate"] = "up\n"
    found["root/proc/net/route"] = (
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        f"{PRIMARY}\t00000000\t0100000A\t0003\t0\t0\t512\t00000000\t0\t0\t0\n"
    )
    found.update((f"root/proc/{process[0]}/stat", stat(*process)) for process in _PROCESSES)
    for policy in range(machine.vcpus if machine.expected.os_power_states else 0):
        base = f"root/sys/devices/system/cpu/cpufreq/policy{policy}"
        found[f"{base}/scaling_driver"] = "intel_pstate\n"
        found[f"{base}/scaling_governor"] = "performance\n"
    for controller in range(2 if machine.expected.instance_type.endswith(".metal") else 0):
        base = f"root/sys/devices/system/edac/mc/mc{controller}"
        found.update({f"{base}/mc_name": "Skylake Socket#0 IMC#0\n", f"{base}/ue_count": "0\n"})
        found.update({f"{base}/ce_count": "0\n", f"{base}/seconds_since_reset": f"{UPTIME_S}\n"})
    return found


def ethtool(machine: Machine) -> str:
    """`ethtool -S` of the primary interface after a quiet boot."""
    del machine
    rows = ["tx_timeout: 0", "suspend: 0", "resume: 0", "wd_expired: 0", "interface_up: 1", "interface_down: 0"]
    rows += [f"{name}_allowance_exceeded: 0" for name in _ALLOWANCES]
    rows += ["conntrack_allowance_available: 5242880"]
    rows += [f"queue_{queue}_{way}_bytes: {1000 + queue}" for queue in range(2) for way in ("tx", "rx")]
    return "NIC statistics:\n" + "".join(f"     {row}\n" for row in rows)
