"""What the operating system's tools and files say on a healthy simulated node (Amazon Linux 2023)."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from . import neuron
from .hardware import BOOTED, EFA_DRIVER, EFA_INSTALLER, HOSTNAME, NCCL, OFI_NCCL, UPTIME_S, Machine, ranges

_ROOT_KIB = 209703916
FIRST_NVME_BUS = 0xE0
_LIBFABRIC = "203.10"
_NVSWITCHES = {
    "Ampere": (6, "GA100 [A100 NVSwitch] [10de:1af1] (rev a1)"),
    "Hopper": (4, "GH100 [H100 NVSwitch] [10de:22a3] (rev a1)"),
}
_SHM = "/dev/shm"  # noqa: S108 (a line of a stored output)


def kernel_log(machine: Machine) -> str:
    """`journalctl -k -b 0 -o short-iso`: the messages of a healthy boot, benign NVRM lines included."""
    gpu = machine.gpu_pci()
    lines = [
        f"Linux version {machine.kernel} (mockbuild@ip-10-0-0-1) (gcc (GCC) 11.5.0) #1 SMP PREEMPT_DYNAMIC",
        "Command line: BOOT_IMAGE=(hd0,gpt1)/boot/vmlinuz root=UUID=00000000-0000-0000-0000-000000000001 ro",
        f"DMI: Amazon EC2 {machine.expected.instance_type}/, BIOS 1.0 10/16/2017",
        "Hypervisor detected: KVM",
        f"smpboot: Allowing {machine.vcpus} CPUs, 0 hotplug CPUs",
        "EXT4-fs (dm-0): mounted filesystem with ordered data mode. Quota mode: none.",
        "XFS (nvme0n1p1): Mounting V5 Filesystem",
        "ena 0000:00:05.0: Elastic Network Adapter (ENA) found at mem c0000000, mac addr 02:00:00:00:00:01",
        f"efa: Elastic Fabric Adapter (EFA) v{EFA_DRIVER}g",
        *_driver_lines(machine, gpu),
    ]
    if machine.switched and not machine.bridged:
        lines += [
            f"nvidia-nvswitch{index}: open (major=509)"
            for index in range(_NVSWITCHES.get(machine.gpu.architecture, (0,))[0])
        ]
    return "".join(f"{stamp(index)} {HOSTNAME} kernel: {line}\n" for index, line in enumerate(lines))


def _driver_lines(machine: Machine, gpu: List[str]) -> List[str]:
    """What the accelerators' driver says when it starts."""
    if machine.neuron:
        return [f"Neuron Driver Started with Version:{neuron.DRIVER}-0123456789abcdef"]
    return [
        f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {machine.driver}  Release Build",
        f"nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver for x86_64  {machine.driver}",
        *(f"nvidia {pci}: enabling device (0000 -> 0002)" for pci in gpu),
        *(f"[drm] Initialized nvidia-drm 0.0.0 for {pci} on minor {index}" for index, pci in enumerate(gpu)),
        "nvidia-uvm: Loaded the UVM driver, major device number 510.",
        "systemd[1]: Started NVIDIA Persistence Daemon.",
    ]


def stamp(second: int) -> str:
    """Give the short-iso stamp of a message, counted in seconds from boot."""
    return f"{BOOTED}:{second % 60:02d}+0000"


def lspci(machine: Machine) -> str:
    """`lspci -D -nn`."""
    lines = [
        "0000:00:00.0 Host bridge [0600]: Intel Corporation 440FX - 82441FX PMC [Natoma] [8086:1237]",
        "0000:00:01.0 ISA bridge [0601]: Intel Corporation 82371SB PIIX3 ISA [Natoma/Triton II] [8086:7000]",
        "0000:00:03.0 VGA compatible controller [0300]: Amazon.com, Inc. Device [1d0f:1111]",
        "0000:00:04.0 Non-Volatile memory controller [0108]: Amazon.com, Inc. NVMe EBS Controller [1d0f:8061]",
        "0000:00:05.0 Ethernet controller [0200]: Amazon.com, Inc. Elastic Network Adapter (ENA) [1d0f:ec20]",
    ]
    by_generation = {"Volta": "efa0", "Turing": "efa0", "Ampere": "efa0", "Hopper": "efa1", "Ada Lovelace": "efa1"}
    efa = machine.expected.efa_device or by_generation.get(machine.gpu.architecture, "efa3")
    adapter = "Ethernet controller [0200]: Amazon.com, Inc. Elastic Fabric Adapter (EFA)"
    lines += [f"{pci} {adapter} [1d0f:{efa}]" for pci in machine.efa_pci()]
    controller = (
        f"3D controller [0302]: NVIDIA Corporation {machine.gpu.lspci} [10de:{machine.gpu.pci_id.lower()}] (rev a1)"
    )
    lines += [f"{pci} {controller}" for pci in machine.gpu_pci()]
    lines += neuron.lspci(machine)
    store = "Non-Volatile memory controller [0108]: Amazon.com, Inc. NVMe SSD Controller [1d0f:cd01]"
    lines += [f"0000:{FIRST_NVME_BUS + index:02x}:00.0 {store}" for index in range(machine.expected.nvme_count or 0)]
    if machine.bridged:
        bridge = "Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]"
        lines += [f"0000:{0xD0 + index:02x}:00.0 {bridge}" for index in range(2)]
    elif machine.switched:
        count, name = _NVSWITCHES.get(machine.gpu.architecture, (0, ""))
        lines += [f"0000:{0xD0 + index:02x}:00.0 Bridge [0680]: NVIDIA Corporation {name}" for index in range(count)]
    return "\n".join(sorted(lines)) + "\n"


def fi_info(machine: Machine) -> str:
    """`fi_info -p efa -t FI_EP_RDM`; libfabric 2 lists each device under two fabrics."""
    return "".join(
        f"provider: efa\n    fabric: {fabric}\n    domain: {device}-rdm\n    version: {_LIBFABRIC}\n"
        "    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
        for fabric in ("efa-direct", "efa")
        for device in machine.efa_devices()
    )


_COUNTED = {"completed_cmds": 130, "submitted_cmds": 130, "keep_alive_rcvd": 5401, "lifespan": 12}
_UNUSED = """
alloc_pd_err alloc_ucontext_err cmds_err create_ah_err create_cq_err create_qp_err mmap_err no_completion_cmds
rdma_read_bytes rdma_read_resp_bytes rdma_read_wr_err rdma_read_wrs rdma_write_bytes rdma_write_recv_bytes
rdma_write_wr_err rdma_write_wrs recv_bytes recv_wrs reg_mr_err rx_bytes rx_drops rx_pkts send_bytes send_wrs tx_bytes
tx_pkts retrans_bytes retrans_pkts retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events
"""


def efa_counters() -> Dict[str, str]:
    """Give the hw_counters files of a device that has carried no job yet."""
    return {**dict.fromkeys(_UNUSED.split(), "0\n"), **{name: f"{count}\n" for name, count in _COUNTED.items()}}


def numactl(machine: Machine) -> str:
    """`numactl --hardware`."""
    nodes = machine.numa_nodes
    each_mib = (machine.expected.memory_mib or 0) * 98 // 100 // nodes
    lines = [f"available: {nodes} nodes (0-{nodes - 1})" if nodes > 1 else "available: 1 nodes (0)"]
    for node in range(nodes):
        cpus = [cpu for low, high in machine.node_cpus(node) for cpu in range(low, high + 1)]
        lines.append(f"node {node} cpus: {' '.join(map(str, cpus))}")
        lines += [f"node {node} size: {each_mib} MB", f"node {node} free: {each_mib * 96 // 100} MB"]
    lines.append("node distances:")
    lines.append("node   " + "".join(f"{node:3d} " for node in range(nodes)))
    for node in range(nodes):
        lines.append(f"{node:3d}:  " + "".join(f"{10 if node == other else 32:3d} " for other in range(nodes)))
    return "\n".join(lines) + "\n"


def _scratch_kib(machine: Machine) -> int:
    expected = machine.expected
    return (expected.nvme_count or 0) * (expected.nvme_gb or 0) * 10**9 // 1024 * 98 // 100


def df(machine: Machine) -> str:
    """`df -kP -l`."""
    memory_kib = (machine.expected.memory_mib or 0) * 1024
    rows = [
        ("devtmpfs", 4096, 0, "/dev"),
        ("tmpfs", memory_kib // 2, 0, _SHM),
        ("tmpfs", memory_kib // 5, 21436, "/run"),
        ("/dev/nvme0n1p1", _ROOT_KIB, 52428800, "/"),
        ("/dev/nvme0n1p128", 10202, 1318, "/boot/efi"),
    ]
    head = "Filesystem                     1024-blocks      Used   Available Capacity Mounted on\n"
    return head + _table(machine, rows, (_scratch_kib(machine), 28), (11, 7))


def _table(
    machine: Machine, rows: List[Tuple[str, int, int, str]], scratch: Tuple[int, int], wide: Tuple[int, int]
) -> str:
    """Rows of df: name, total, used, mount. scratch: total and used of the instance store, where there is one."""
    store = [("/dev/mapper/vg.01-lv_ephemeral", *scratch, "/opt/dlami/nvme")] if _scratch_kib(machine) else []
    return "".join(
        f"{name:<30} {total:>{wide[0]}} {used:>9} {total - used:>11} {-(-used * 100 // total):>{wide[1]}}% {mount}\n"
        for name, total, used, mount in (*rows, *store)
    )


def df_inodes(machine: Machine) -> str:
    """`df -iP -l`; a FAT file system has no inodes."""
    rows = [
        ("devtmpfs", 67108864, 1400, "/dev"),
        ("tmpfs", 268435456, 1, _SHM),
        ("tmpfs", 819200, 1900, "/run"),
        ("/dev/nvme0n1p1", 104855536, 812345, "/"),
    ]
    head = "Filesystem                         Inodes     IUsed       IFree IUse% Mounted on\n"
    fat = f"{'/dev/nvme0n1p128':<30} {0:>10} {0:>9} {0:>11} {'-':>5} /boot/efi\n"
    return head + _table(machine, rows, (_scratch_kib(machine) // 16, 11), (10, 4)) + fat


def mounts(machine: Machine) -> str:
    """/proc/mounts."""
    lines = [
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
        "sysfs /sys sysfs rw,seclabel,nosuid,nodev,noexec,relatime 0 0",
        "devtmpfs /dev devtmpfs rw,seclabel,nosuid,size=4096k,mode=755 0 0",
        "tmpfs /dev/shm tmpfs rw,seclabel,nosuid,nodev 0 0",
        "tmpfs /run tmpfs rw,seclabel,nosuid,nodev,mode=755 0 0",
        "cgroup2 /sys/fs/cgroup cgroup2 rw,seclabel,nosuid,nodev,noexec,relatime 0 0",
        "/dev/nvme0n1p1 / xfs rw,seclabel,noatime,attr2,inode64,logbufs=8,logbsize=32k,noquota 0 0",
        "/dev/nvme0n1p128 /boot/efi vfat rw,noatime,fmask=0077,dmask=0077,errors=remount-ro 0 0",
    ]
    if _scratch_kib(machine):
        lines.append("/dev/mapper/vg.01-lv_ephemeral /opt/dlami/nvme ext4 rw,seclabel,noatime 0 0")
    return "\n".join(lines) + "\n"


def meminfo(machine: Machine) -> str:
    """/proc/meminfo of an idle node; the kernel keeps a little of what the type has."""
    total = (machine.expected.memory_mib or 0) * 1024 * 97 // 100
    rows = {
        "MemTotal": total,
        "MemFree": total * 94 // 100,
        "MemAvailable": total * 95 // 100,
        "Buffers": 2112,
        "Cached": 3187452,
        "SwapCached": 0,
        "SwapTotal": 0,
        "SwapFree": 0,
        "Dirty": 120,
        "HardwareCorrupted": 0,
    }
    text = "".join(f"{name + ':':<16}{value:>12} kB\n" for name, value in rows.items())
    pages = "".join(
        f"{name + ':':<16}{0:>12}\n"
        for name in ("HugePages_Total", "HugePages_Free", "HugePages_Rsvd", "HugePages_Surp")
    )
    return text + pages + f"{'Hugepagesize:':<16}{2048:>12} kB\n"


def loadavg(machine: Machine) -> str:
    """/proc/loadavg of an idle node."""
    return f"0.42 0.31 0.18 1/{machine.vcpus * 9 + 200} 21874\n"


def uptime(machine: Machine) -> str:
    """/proc/uptime: seconds since boot, seconds idle over all CPUs."""
    return f"{UPTIME_S}.25 {UPTIME_S * machine.vcpus * 99 // 100}.80\n"


def lscpu(machine: Machine) -> str:
    """`lscpu -J` (util-linux 2.37: fields nested by theme)."""
    cores, sockets = machine.vcpus // machine.threads, machine.numa_nodes
    vendor = ("ARM", "Neoverse-V2") if machine.arm else ("AuthenticAMD", "AMD EPYC 7R13 Processor")
    nodes = [_field(f"NUMA node{n} CPU(s):", ranges(machine.node_cpus(n))) for n in range(machine.numa_nodes)]
    model = [
        _field("Thread(s) per core:", str(machine.threads)),
        _field("Core(s) per socket:", str(max(cores // sockets, 1))),
        _field("Socket(s):", str(sockets)),
    ]
    tree = [
        _field("Architecture:", "aarch64" if machine.arm else "x86_64", [_field("Byte Order:", "Little Endian")]),
        _field("CPU(s):", str(machine.vcpus), [_field("On-line CPU(s) list:", f"0-{machine.vcpus - 1}")]),
        _field("Vendor ID:", vendor[0], [_field("Model name:", vendor[1], model)]),
        _field("NUMA:", None, [_field("NUMA node(s):", str(machine.numa_nodes)), *nodes]),
    ]
    return json.dumps({"lscpu": tree}, indent=3) + "\n"


def _field(name: str, data: Any, children: Any = ()) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"field": name, "data": data}
    return {**entry, "children": list(children)} if children else entry


def lsblk(machine: Machine) -> str:
    """`lsblk -J -b`: the EBS root volume, then the instance store's disks in one logical volume."""
    root = _disk("nvme0n1", 214748364800, "Amazon Elastic Block Store", "vol00demo00000000000")
    root["children"] = [
        _part("nvme0n1p1", "part", _ROOT_KIB * 1024, "/", "xfs"),
        _part("nvme0n1p128", "part", 10485760, "/boot/efi", "vfat"),
    ]
    size = (machine.expected.nvme_gb or 0) * 10**9
    disks = [root]
    for index in range(machine.expected.nvme_count or 0):
        disk = _disk(f"nvme{index + 1}n1", size, "Amazon EC2 NVMe Instance Storage", f"AWS00DEMO{index:011d}")
        disk["fstype"] = "LVM2_member"
        disk["children"] = [_part("vg.01-lv_ephemeral", "lvm", _scratch_kib(machine) * 1024, "/opt/dlami/nvme", "ext4")]
        disks.append(disk)
    return json.dumps({"blockdevices": disks}, indent=3) + "\n"


def _disk(name: str, size: int, model: str, serial: str) -> Dict[str, Any]:
    return {
        "name": name, "type": "disk", "size": size, "model": model, "serial": serial,
        "mountpoint": None, "fstype": None, "rota": False,
    }  # fmt: skip


def _part(name: str, kind: str, size: int, mount: str, fstype: str) -> Dict[str, Any]:
    held = {"type": kind, "model": None, "serial": None, "mountpoint": mount, "fstype": fstype}
    return {**_disk(name, size, "", ""), **held}


def chrony(machine: Machine) -> str:
    """`chronyc -n tracking` against the Amazon Time Sync Service."""
    del machine
    return """Reference ID    : A9FEA97B (169.254.169.123)
Stratum         : 4
Ref time (UTC)  : Fri Nov 20 09:29:44 2026
System time     : 0.000001923 seconds fast of NTP time
Last offset     : +0.000000853 seconds
RMS offset      : 0.000004113 seconds
Frequency       : 11.982 ppm slow
Residual freq   : +0.001 ppm
Skew            : 0.017 ppm
Root delay      : 0.000261548 seconds
Root dispersion : 0.000141823 seconds
Update interval : 16.0 seconds
Leap status     : Normal
"""


def sysctl(machine: Machine) -> str:
    """`sysctl -a`, the part that a training node's set-up is about."""
    return f"""fs.file-max = 9223372036854775807
fs.nr_open = 1048576
kernel.numa_balancing = 0
kernel.osrelease = {machine.kernel}
kernel.panic = 10
kernel.pid_max = 4194304
net.core.rmem_max = 212992
net.core.somaxconn = 4096
net.core.wmem_max = 212992
net.ipv4.ip_local_port_range = 32768\t60999
net.ipv4.tcp_rmem = 4096\t131072\t6291456
vm.max_map_count = 262144
vm.nr_hugepages = 0
vm.overcommit_memory = 1
vm.swappiness = 60
vm.zone_reclaim_mode = 0
"""


_NVIDIA_MODULES = (
    ("nvidia_uvm", 1900544, 2, "-"),
    ("nvidia_drm", 126976, 0, "-"),
    ("nvidia_modeset", 1642496, 1, "nvidia_drm,"),
    ("nvidia", 14114816, 61, "nvidia_uvm,nvidia_modeset,"),
    ("gdrdrv", 36864, 0, "-"),
)


def modules(machine: Machine) -> str:
    """/proc/modules."""
    rows = [("neuron", 380928, 0, "-")] if machine.neuron else list(_NVIDIA_MODULES)
    rows.append(("ena", 188416, 0, "-"))
    if machine.efa_count:
        rows += [] if machine.neuron else [("efa_nv_peermem", 16384, 0, "-")]
        rows.append(("efa", 131072, 0, "-"))
        rows += [("ib_uverbs", 200704, 1, "efa,"), ("ib_core", 507904, 2, "efa,ib_uverbs,")]
    if machine.bridged:
        rows += [("mlx5_ib", 466944, 0, "-"), ("mlx5_core", 2285568, 1, "mlx5_ib,"), ("ib_umad", 45056, 0, "-")]
    rows += [("nvme", 69632, 9, "-"), ("nvme_core", 208896, 10, "nvme,")]
    return "".join(f"{name} {size} {users} {by} Live 0x0000000000000000 (OE)\n" for name, size, users, by in rows)


def limits(machine: Machine) -> str:
    """/proc/self/limits as root, locked memory unlimited as the EFA installer sets it."""
    del machine
    rows = [
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max data size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "unlimited", "unlimited", "bytes"),
        ("Max resident set", "unlimited", "unlimited", "bytes"),
        ("Max processes", "8254464", "8254464", "processes"),
        ("Max open files", "65536", "524288", "files"),
        ("Max locked memory", "unlimited", "unlimited", "bytes"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
        ("Max file locks", "unlimited", "unlimited", "locks"),
        ("Max pending signals", "8254464", "8254464", "signals"),
        ("Max msgqueue size", "819200", "819200", "bytes"),
        ("Max nice priority", "0", "0", ""),
        ("Max realtime priority", "0", "0", ""),
        ("Max realtime timeout", "unlimited", "unlimited", "us"),
    ]
    head = f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} {'Units':<10}\n"
    return head + "".join(f"{name:<25} {soft:<20} {hard:<20} {unit:<10}\n" for name, soft, hard, unit in rows)


def services(machine: Machine) -> str:
    """`systemctl list-units --all --type=service --output=json`."""
    running = [
        ("amazon-ssm-agent.service", "amazon-ssm-agent"),
        ("chronyd.service", "NTP client/server"),
        ("dbus-broker.service", "D-Bus System Message Bus"),
        ("sshd.service", "OpenSSH server daemon"),
        ("systemd-journald.service", "Journal Service"),
    ]
    if not machine.neuron:
        running.append(("nvidia-persistenced.service", "NVIDIA Persistence Daemon"))
    if machine.switched:
        running.append(("nvidia-fabricmanager.service", "NVIDIA fabric manager service"))
    if machine.bridged:
        running.append(("nvlsm.service", "NVIDIA NVLink Subnet Manager"))
    fields = ("unit", "load", "active", "sub", "description")
    units = [dict(zip(fields, (unit, "loaded", "active", "running", what))) for unit, what in running]
    units.append(dict(zip(fields, ("auditd.service", "not-found", "inactive", "dead", "auditd.service"))))
    return json.dumps(sorted(units, key=lambda unit: unit["unit"])) + "\n"


def efa_packages(machine: Machine) -> str:
    """/opt/amazon/efa_installed_packages."""
    del machine
    return (
        f"# EFA installer version: {EFA_INSTALLER}\n# Debug packages installed: no\n# Packages installed:\n"
        f"efa-config-1.18-1.amzn2023.noarch efa-profile-1.7-1.amzn2023.noarch efa-{EFA_DRIVER}-1.amzn2023.x86_64 "
        f"libfabric-aws-2.3.1amzn1.0-1.amzn2023.x86_64 libnccl-ofi-{OFI_NCCL}-1.amzn2023.x86_64\n"
    )


def imds(machine: Machine) -> str:
    """Give the instance metadata that flightline_node.ask.metadata reads on a simulated node; null is a 404."""
    return json.dumps(
        {
            "available": True,
            "meta-data/instance-type": machine.expected.instance_type,
            "meta-data/instance-id": "@INSTANCE@",
            "meta-data/instance-life-cycle": "on-demand",
            "meta-data/placement/availability-zone": "us-east-1a",
            "meta-data/placement/availability-zone-id": "use1-az1",
            "meta-data/placement/group-name": "demo",
            "meta-data/placement/partition-number": None,
            "meta-data/events/maintenance/scheduled": "[]",
            "meta-data/events/recommendations/rebalance": None,
            "meta-data/spot/instance-action": None,
        },
        indent=1,
    )


def os_release(machine: Machine) -> str:
    """/etc/os-release."""
    del machine
    return 'NAME="Amazon Linux"\nVERSION="2023"\nID="amzn"\nVERSION_ID="2023"\nPRETTY_NAME="Amazon Linux 2023"\n'


def nccl_files(version: str = NCCL) -> List[str]:
    """Where Amazon's deep learning image keeps NCCL; the reader goes by the file's name alone."""
    return [f"usr/local/cuda/lib/libnccl.so.{version}"]
