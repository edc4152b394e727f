"""How to ask a node: one entry per probe. To add a probe, add an entry here.

A probe writes one file of the bundle. Commands are looked up on the node's tool path;
`{root}` is the node's file-system root ("/" but for simulated nodes). Alternatives are
tried in order until one is installed and succeeds. Readers are functions of readers.py,
run in a process of their own like every command, because a read can hang as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

from ..model import LEVELS

QUICK_DEADLINE_S = 8.0
"""A quick run has a budget of 10 s per node; one hung tool must leave room to report it."""


@dataclass(frozen=True)
class Probe:
    """One question to a node. `exclusive` probes need the GPUs to themselves and run alone.

    only: the kind of accelerator (as the instance types' table has it) whose nodes are asked; "" for every node.
    script_of: the tool that a script asks and waits for; of other commands it is the first word.
    """

    id: str
    file: str
    commands: Tuple[Tuple[str, ...], ...] = ()
    reader: str = ""
    deadline_s: float = QUICK_DEADLINE_S
    level: str = "quick"
    exclusive: bool = False
    ok_rcs: Tuple[int, ...] = (0,)
    only: str = ""
    script_of: str = ""

    @property
    def tool(self) -> str:
        """The tool that it asks, which may be the one that does not answer."""
        return self.script_of or (self.commands[0][0] if self.commands else "")


NVIDIA, NEURON = "nvidia_gpu", "neuron"


def _smi(probe_id: str, file: str, *arguments: str) -> Probe:
    return Probe(probe_id, file, (("nvidia-smi", *arguments),), only=NVIDIA)


def _cat(probe_id: str, file: str, path: str) -> Probe:
    return Probe(probe_id, file, (("cat", "{root}" + path),))


DCGM_RCS = (0, 226, 205)
"""dcgmi's exit status when it ran and found something (DCGM_ST_NVVS_ERROR, ..._ISOLATE_ERROR): the results are good."""


def _dcgm(probe_id: str, run_level: str, deadline_s: float, level: str) -> Probe:
    command = ("dcgmi", "diag", "-r", run_level, "-j")
    return Probe(
        probe_id, "dcgm-diag.json", (command,), "", deadline_s, level, exclusive=True, ok_rcs=DCGM_RCS, only=NVIDIA
    )


_NCCL_SCRIPT = """\
for d in {root}/usr/local/cuda-*/efa/test-cuda-*; do PATH=$PATH:$d; done
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/opt/nccl/build/lib:/usr/local/cuda/lib64:/opt/amazon/openmpi/lib
n=$(nvidia-smi -L | grep -c '^GPU ')
[ "$n" -gt 0 ] || { echo 'nvidia-smi -L lists no GPU' >&2; exit 1; }
exec %s_perf -b 8 -e %s -f 2 -g "$n" -n %d -w 5 -c 1"""
"""The AWS deep learning AMI keeps nccl-tests beside each CUDA; nccl-tests lowers -e to what the GPU's memory holds."""


def _nccl(
    collective: str, level: str = "standard", most: str = "8G", iterations: int = 20, deadline_s: float = 600
) -> Probe:
    script = _NCCL_SCRIPT % (collective, most, iterations)
    suffix = "" if level == "standard" else "-" + level
    return Probe(
        f"nccl-{collective}{suffix}",
        f"nccl-{collective}.log",
        (("sh", "-c", script),),
        deadline_s=deadline_s,
        level=level,
        exclusive=True,
        only=NVIDIA,
    )


_NVBANDWIDTH_SCRIPT = """\
for d in {root}/opt/nvbandwidth {root}/usr/libexec/datacenter-gpu-manager-4/plugins/cuda*; do PATH=$PATH:$d; done
exec nvbandwidth %s -t host_to_device_memcpy_ce device_to_host_memcpy_ce \
  device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce"""
"""DCGM 4 brings nvbandwidth for its own test of that name, outside of the PATH."""


def _nvbandwidth(probe_id: str, arguments: str, deadline_s: float, level: str) -> Probe:
    # Versions before 0.4 know no -j and print text: so does the second command.
    scripts = tuple(("sh", "-c", _NVBANDWIDTH_SCRIPT % (kind + arguments)) for kind in ("-j ", ""))
    return Probe(probe_id, "nvbandwidth.json", scripts, "", deadline_s, level, exclusive=True, only=NVIDIA)


_NEURON_MONITOR_SCRIPT = """\
command -v neuron-monitor >/dev/null || { echo 'neuron-monitor is not installed' >&2; exit 127; }
settings=$(mktemp) || exit 1
trap 'rm -f "$settings"' EXIT
echo '{"period":"1s","neuron_runtimes":[{"tag_filter":".*","metrics":[{"type":"execution_stats"}]}],
"system_metrics":[{"type":"neuron_hw_counters"}]}' > "$settings"
report=$(timeout 6 neuron-monitor -c "$settings" | head -n 1)
[ -n "$report" ] || { echo 'neuron-monitor printed no report' >&2; exit 1; }
printf '%s\\n' "$report"
"""
"""neuron-monitor streams a report a period until it is ended, a line each: the first will do."""

_NCCOM_SCRIPT = """\
n=$(neuron-ls -j | grep -o '"nc_count": *[0-9]*' | awk -F: '{n += $2} END {print n + 0}')
[ "$n" -gt 0 ] || { echo 'neuron-ls lists no NeuronCore' >&2; exit 1; }
for operation in allr allg; do
  set -- -r "$n" -b 32MB -e %s -f 2 -n %d -d bf16 --check --non-interactive "$operation"
  echo "# nccom-test $*"
  timeout %d nccom-test "$@" 2>&1
  echo "# exit $?"
done"""
"""Over all NeuronCores of the node, with the data checked."""


def _nccom(probe_id: str, most: str, iterations: int, deadline_s: float, level: str) -> Probe:
    script = _NCCOM_SCRIPT % (most, iterations, deadline_s // 2)
    command = ("sh", "-c", script)
    return Probe(probe_id, "nccom-test.txt", (command,), "", deadline_s, level, exclusive=True, only=NEURON)


_EFA_SCRIPT = """\
export FI_EFA_ENABLE_SHM_TRANSFER=0
found=$(fi_info -p efa -t FI_EP_RDM 2>&1) || { echo "$found" >&2; exit 1; }
port=47600
loop() {
  domain=$1 tool=$2 listen=$3 connect=$4; shift 4
  echo "# $tool $domain"
  timeout 60 "$tool" "$@" "$listen$port" >/dev/null 2>&1 & server=$!
  hex=$(printf ':%%04X 00000000:0000 0A' $port); tries=0
  while kill -0 $server 2>/dev/null && [ $tries -lt 250 ] && ! grep -qs "$hex" {root}/proc/net/tcp; do
    sleep 0.02; tries=$((tries + 1))
  done
  timeout 60 "$tool" "$@" "$connect$port" localhost 2>&1
  echo "# exit $?"
  kill $server 2>/dev/null; wait $server 2>/dev/null; port=$((port + 1))
}
for d in $(printf '%%s\\n' "$found" | sed -n 's/^ *domain: *//p' | sort -u); do
  loop "$d" fi_pingpong -B -P -p efa -e rdm -d "$d" -I %d -S all -c
  [ %d -eq 0 ] || ! command -v fi_rdm_bw >/dev/null || loop "$d" fi_rdm_bw -E= -E= -p efa -d "$d" -S 1048576 -I %d
done"""
"""Between two processes of a node libfabric would use shared memory instead of the device: that is switched off.

Each device sends to itself. fi_pingpong comes with libfabric, fi_rdm_bw with fabtests (-E: addresses over TCP).
"""


def _efa_loopback(probe_id: str, iterations: int, bandwidth: int, deadline_s: float, level: str) -> Probe:
    script = _EFA_SCRIPT % (iterations, bandwidth, bandwidth)
    return Probe(
        probe_id, "efa-loopback.txt", (("sh", "-c", script),), deadline_s=deadline_s, level=level, exclusive=True
    )


_FIO_SCRIPT = """\
set --
for m in {root}/sys/block/nvme*/device/model; do
  grep -q 'Instance Storage' "$m" 2>/dev/null || continue
  d=${m%/device/model}; d=${d##*/}
  set -- "$@" "--name=$d" "--filename=/dev/$d"
done
[ $# -gt 0 ] || { echo 'no instance-store disk' >&2; exit 1; }
exec fio --readonly --output-format=json --rw=read --bs=1M --iodepth=32 --ioengine=libaio --direct=1 \
  --time_based --runtime=20 --size=100% "$@\""""
"""Reads every instance-store disk, all at once; --readonly makes fio refuse to write whatever it is asked."""

_ETHTOOL_SCRIPT = """\
while read -r interface destination rest; do
  [ "$destination" = 00000000 ] && exec ethtool -S "$interface"
done < {root}/proc/net/route
echo 'no IPv4 default route' >&2; exit 1"""
"""The interface of the default route is the primary one: EC2 counts its allowances on each."""

_IMEX_SCRIPT = """\
command -v nvidia-imex-ctl >/dev/null || { echo 'nvidia-imex-ctl: not installed'; exit 0; }
nvidia-imex-ctl -q 2>&1; nvidia-imex-ctl -N -j 2>&1; exit 0"""
"""Says in its output what is wrong: a node outside of a rack is not asked for more."""

_CONF_COMPUTE_SCRIPT = "nvidia-smi conf-compute -q 2>&1 || nvidia-smi conf-compute -f 2>&1; exit 0"
"""Drivers before 550 know only -f, older ones neither."""

_DCGM_HEALTH_SCRIPT = """\
command -v dcgmi >/dev/null || { echo 'dcgmi: not installed'; exit 0; }
dcgmi health -c -j 2>&1; exit 0"""
"""Reads what was watched; it sets no watch, for that would change the node."""

_FABRIC_LOG_SCRIPT = """\
for f in {root}/var/log/fabricmanager.log {root}/var/log/nvlsm.log; do
  [ -r "$f" ] && { echo "# ${f##*/}"; tail -c 262144 "$f"; }
done
echo '# end'"""

PROBES: Tuple[Probe, ...] = (
    _smi("nvidia-smi", "nvidia-smi.xml", "-q", "-x"),
    _smi("nvidia-smi-topo", "nvidia-smi-topo.txt", "topo", "-m"),
    _smi("nvlink-status", "nvlink-status.txt", "nvlink", "-s"),
    _smi("nvlink-errors", "nvlink-errors.txt", "nvlink", "-e"),
    # Without a device neuron-ls says why on stderr.
    Probe("neuron-ls", "neuron-ls.json", (("sh", "-c", "exec neuron-ls -j 2>&1"),), only=NEURON, script_of="neuron-ls"),
    Probe("neuron-monitor", "neuron-monitor.json", (("sh", "-c", _NEURON_MONITOR_SCRIPT),), only=NEURON),
    Probe("neuron-sysfs", "neuron-sysfs.json", reader="neuron_sysfs", only=NEURON),
    Probe(
        "neuron-packages",
        "neuron-packages.txt",
        (
            ("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\\n", "aws-neuronx-*"),
            ("rpm", "-qa", "--qf", "%{NAME} %{VERSION} installed\\n", "aws-neuronx-*"),
        ),
        only=NEURON,
    ),
    Probe(
        "conf-compute", "conf-compute.txt", (("sh", "-c", _CONF_COMPUTE_SCRIPT),), only=NVIDIA, script_of="nvidia-smi"
    ),
    Probe("dcgm-health", "dcgm-health.json", (("sh", "-c", _DCGM_HEALTH_SCRIPT),), only=NVIDIA),
    Probe("imex", "imex.json", (("sh", "-c", _IMEX_SCRIPT),), only=NVIDIA),
    Probe("fabric-log", "fabric-log.txt", (("sh", "-c", _FABRIC_LOG_SCRIPT),), only=NVIDIA),
    Probe(
        "kernel-log",
        "kernel.log",
        (("journalctl", "-k", "-b", "0", "-o", "short-iso", "--no-pager", "-q"), ("dmesg",)),
    ),
    # Without an endpoint fi_info says why on stderr ("fi_getinfo: -61 ...") and exits with that number.
    Probe("fi-info", "fi-info.txt", (("sh", "-c", "exec fi_info -p efa -t FI_EP_RDM 2>&1"),)),
    Probe("efa-counters", "efa-counters.json", reader="efa_counters"),
    Probe("sysfs", "sysfs.json", reader="sysfs"),
    Probe("processes", "processes.json", reader="processes"),
    Probe("nvme-smart", "nvme-smart.json", reader="nvme_smart"),
    # Only where the inventory names endpoints: see node.py.
    Probe("s3", "s3.json", reader="s3"),
    Probe("ethtool", "ethtool.txt", (("sh", "-c", _ETHTOOL_SCRIPT),)),
    Probe("lspci", "lspci.txt", (("lspci", "-D", "-nn"),)),
    Probe("numactl", "numactl.txt", (("numactl", "--hardware"),)),
    # df exits with 1 when any one mount refuses to be looked at; the others are still measured.
    Probe("df", "df.txt", (("df", "-kP", "-l"),), ok_rcs=(0, 1)),
    Probe("df-inodes", "df-inodes.txt", (("df", "-iP", "-l"),), ok_rcs=(0, 1)),
    _cat("meminfo", "meminfo.txt", "/proc/meminfo"),
    Probe("cpuinfo", "cpuinfo.json", (("lscpu", "-J"),)),
    _cat("loadavg", "loadavg.txt", "/proc/loadavg"),
    _cat("uptime", "uptime.txt", "/proc/uptime"),
    Probe("lsblk", "lsblk.json", (("lsblk", "-J", "-b", "-o", "NAME,TYPE,SIZE,MODEL,SERIAL,MOUNTPOINT,FSTYPE,ROTA"),)),
    # Where neither daemon answers, timedated still tells whether the kernel's clock is in step.
    Probe(
        "chrony",
        "chrony.txt",
        (("chronyc", "-n", "tracking"), ("timedatectl", "timesync-status"), ("timedatectl", "show")),
    ),
    Probe("sysctl", "sysctl.txt", (("sysctl", "-a", "--ignore"),), ok_rcs=(0, 1, 255)),
    _cat("modules", "modules.txt", "/proc/modules"),
    _cat("mounts", "mounts.txt", "/proc/mounts"),
    Probe("limits", "limits.txt", reader="limits"),
    Probe(
        "services",
        "services.json",
        (("systemctl", "list-units", "--all", "--type=service", "--output=json", "--no-pager"),),
    ),
    Probe("versions", "versions.json", reader="versions"),
    Probe("imds", "imds.json", reader="imds", deadline_s=5.0),
    # Level 2 took up to 10.5 minutes on eight-GPU nodes, level 3 about 15 (NVIDIA) and more.
    _dcgm("dcgm-diag", "2", 1200, "standard"),
    _dcgm("dcgm-diag-deep", "3", 3600, "deep"),
    _efa_loopback("efa-loopback", 100, 0, 600, "standard"),
    _efa_loopback("efa-loopback-deep", 1000, 1000, 1800, "deep"),
    Probe("fs-io", "fs-io.json", reader="fs_io", deadline_s=300, level="standard", exclusive=True),
    Probe("fs-io-deep", "fs-io.json", reader="fs_io_deep", deadline_s=1800, level="deep", exclusive=True),
    _nvbandwidth("nvbandwidth", "", 300, "standard"),
    _nvbandwidth("nvbandwidth-deep", "-b 1024 -i 5", 1200, "deep"),
    Probe("gpu-load", "gpu-load.json", (), "gpu_load", 240, "standard", exclusive=True, only=NVIDIA),
    Probe("gpu-load-deep", "gpu-load.json", (), "gpu_load_deep", 600, "deep", exclusive=True, only=NVIDIA),
    Probe("fio", "fio.json", (("sh", "-c", _FIO_SCRIPT),), deadline_s=120, level="deep", exclusive=True),
    _nccl("all_reduce"),
    _nccl("all_gather"),
    _nccl("reduce_scatter"),
    _nccl("alltoall"),
    _nccl("all_reduce", "deep", "16G", 100, 1800),
    _nccl("all_gather", "deep", "16G", 100, 1800),
    _nccl("reduce_scatter", "deep", "16G", 100, 1800),
    _nccl("alltoall", "deep", "16G", 100, 1800),
    _nccom("nccom-test", "1GB", 20, 600, "standard"),
    _nccom("nccom-test-deep", "4GB", 100, 1800, "deep"),
)

BY_ID: Dict[str, Probe] = {probe.id: probe for probe in PROBES}


def plan(level: str, accelerator: str = NVIDIA) -> Tuple[Probe, ...]:
    """The probes of a level: its own and those of the levels below it; of the others' accelerators none.

    A deeper probe that writes the same file takes the place of the shallower one.
    """
    wanted = LEVELS[: LEVELS.index(level) + 1]
    chosen = [probe for probe in PROBES if probe.level in wanted and probe.only in ("", accelerator)]
    deepest = {probe.file: probe.id for probe in sorted(chosen, key=lambda probe: LEVELS.index(probe.level))}
    return tuple(probe for probe in chosen if deepest[probe.file] == probe.id)
