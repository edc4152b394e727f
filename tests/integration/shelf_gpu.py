"""What the GPU roles fetch from vendors, as stand-ins on the test bed's shelf.

Names, versions, paths and options are the vendors'; what the programs do and print is written by hand, for machines
without GPU, EFA and Lustre. Debian's own driver packages are real: one machine of the bed installs those.
"""

import json
import os
import tempfile
from pathlib import Path

from .mirror import Content, Deb, Executable, Mirror, pack, tarball

DRIVER, CUDA, NCCL, DCGM, TOOLKIT = "580.95.05", "13.0", "2.28.3", "4.5.2", "1.18.1-1"
NEWER_NCCL = "2.28.9"
EFA, LIBFABRIC, PLUGIN, EFA_DRIVER = "1.44.0", "2.3.1amzn1.0", "1.17.1", "2.17.3"
AGENT = "1.300071.0"
EFA_SYSTEMS = ("DEBIAN12", "UBUNTU2204", "UBUNTU2404")
REAL_DRIVER_HOST = "gpu-02"
PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
ELF_HEADER = bytes.fromhex("7f454c4602010100") + bytes(56)
"""The first bytes of a 64-bit shared object; nothing loads it here."""
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)


def unit(description: str, program: str) -> str:
    return f"[Unit]\nDescription={description}\n\n[Service]\nExecStart={program}\n\n[Install]\nWantedBy=multi-user.target\n"


def sleeper() -> Executable:
    return Executable("#!/bin/sh\nexec sleep infinity\n")


def service(name: str, description: str, program: str, runs: Executable | None = None) -> dict[str, Content]:
    """A program and the unit that starts it; without `runs` it sleeps."""
    return {program: runs or sleeper(), f"/lib/systemd/system/{name}.service": unit(description, program)}


def smi() -> dict[str, Content]:
    """nvidia-smi where no driver is loaded."""
    return {"/usr/bin/nvidia-smi": Executable(f'#!/bin/sh\necho "{NO_DRIVER}"\nexit 9\n')}


def fabric_manager(driver: str) -> dict[str, Content]:
    said = f'[ "$1" = --version ] && echo "Fabric Manager version is : {driver}" && exit'
    program = Executable(f"#!/bin/sh\n{said}\nexec sleep infinity\n")
    return service("nvidia-fabricmanager", "Fabric Manager", "/usr/bin/nv-fabricmanager", program)


def library(driver: str) -> dict[str, Content]:
    return {f"{LIBRARIES}/libnvidia-ml.so.{driver}": "stand-in\n"}


PERSISTENCED = service("nvidia-persistenced", "Persistence", "/usr/bin/nvidia-persistenced")
IMEX = {
    **service("nvidia-imex", "IMEX", "/usr/bin/nvidia-imex"),
    "/etc/nvidia-imex/config.cfg": "IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n",
}


def driver_debs() -> list[Deb]:
    version = f"{DRIVER}-1"
    return [
        Deb("nvidia-open", version, depends=[f"libnvidia-compute-580 (= {version})"], files=smi()),
        Deb("libnvidia-compute-580", version, files=library(DRIVER)),
        Deb("nvidia-fabricmanager", version, files=fabric_manager(DRIVER)),
        Deb("nvidia-persistenced", version, files=PERSISTENCED),
        # A later driver that the pin must keep out.
        Deb("libnvidia-nscq", version, files={f"{LIBRARIES}/libnvidia-nscq.so.{DRIVER}": "stand-in\n"}),
        Deb("nvlsm", "2025.06.5-1"),
        Deb("libnvsdm", version),
        Deb("nvidia-imex", version, files=IMEX),
        Deb("nvidia-open", "580.105.08-1", files=smi()),
        Deb("libnvidia-compute-580", "580.105.08-1", files=library("580.105.08")),
    ]


def cuda_debs() -> list[Deb]:
    compiler = (
        '#!/bin/sh\n[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.88" && exit\n'
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
        'printf "#!/bin/sh\\necho built by a stand-in\\n" > "$out" && chmod 755 "$out"\n'
    )
    return [
        Deb("cuda-nvcc-13-0", "13.0.88-1", files={"/usr/local/cuda/bin/nvcc": Executable(compiler)}),
        Deb("cuda-cudart-dev-13-0", "13.0.96-1", files={"/usr/local/cuda/include/cuda_runtime.h": "/* stand-in */\n"}),
        *nccl_debs(NCCL, CUDA),
    ]


def nccl_debs(nccl: str, cuda: str) -> list[Deb]:
    return [
        Deb("libnccl2", f"{nccl}-1+cuda{cuda}", files={f"{LIBRARIES}/libnccl.so.{nccl}": "stand-in\n"}),
        Deb("libnccl-dev", f"{nccl}-1+cuda{cuda}", files={"/usr/include/nccl.h": nccl_header(nccl)}),
    ]


def nccl_header(nccl: str) -> str:
    numbers = zip(("MAJOR", "MINOR", "PATCH"), nccl.split("."))
    return "".join(f"#define NCCL_{name} {number}\n" for name, number in numbers)


def dcgm_deb() -> Deb:
    tool = {"/usr/bin/dcgmi": Executable('#!/bin/sh\necho "0 GPUs found."\n')}
    files = {**service("nvidia-dcgm", "DCGM", "/usr/bin/nv-hostengine"), **tool}
    return Deb("datacenter-gpu-manager-4-cuda13", f"1:{DCGM}-1", files=files)


def debs_of_other_types() -> list[Deb]:
    """What check mode names for types that no machine is configured as, and nobody installs."""
    drivers = [Deb("cuda-drivers", f"{DRIVER}-1"), Deb("nvidia-open", "595.45.04-1")]
    cuda = [Deb("cuda-nvcc-12-9", "12.9.86-1"), Deb("cuda-cudart-dev-12-9", "12.9.79-1")]
    return [*drivers, *cuda, Deb("datacenter-gpu-manager-4-cuda12", f"1:{DCGM}-1"), *nccl_debs(NCCL, "12.9")]


def toolkit_debs() -> list[Deb]:
    configure = """#!/bin/sh
# Stand-in for nvidia-ctk 1.18.1 runtime configure: for containerd the runtime goes into the drop-in, its import into the file
# that is named; without --drop-in-config into 99-nvidia.toml as well.
drop=/etc/containerd/conf.d/99-nvidia.toml
for word; do case $word in --config=*) file=${word#*=} ;; --runtime=*) engine=${word#*=} ;; --drop-in-config=*) drop=${word#*=} ;; esac; done
mkdir -p "$(dirname "$file")"
if [ "$engine" = docker ]; then
    echo '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}' > "$file"
else
    mkdir -p "$(dirname "$drop")"
    printf 'imports = ["/etc/containerd/conf.d/*.toml"]\\nversion = 2\\n' > "$file"
    printf 'version = 2\\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\\nBinaryName = "/usr/bin/nvidia-container-runtime"\\n' > "$drop"
fi
"""
    base = {
        "/usr/bin/nvidia-ctk": Executable(configure),
        "/usr/bin/nvidia-container-runtime": Executable('#!/bin/sh\nexec runc "$@"\n'),
    }
    names = ("nvidia-container-toolkit", "libnvidia-container-tools", "libnvidia-container1")
    return [Deb(name, TOOLKIT) for name in names] + [Deb("nvidia-container-toolkit-base", TOOLKIT, files=base)]


def lustre_debs() -> list[Deb]:
    mount = '#!/bin/sh\n# Stand-in for mount.lustre: SOURCE DIRECTORY -o OPTIONS; a tmpfs takes the place of the file system.\nexec mount -i -t tmpfs "$1" "$2"\n'
    return [
        Deb(f"lustre-client-modules-{os.uname().release}", "2.15.6-1"),
        Deb("lustre-client-utils", "2.15.6-1", files={"/usr/sbin/mount.lustre": Executable(mount)}),
    ]


def efa_archive() -> bytes:
    """The installer's archive, packed."""
    return tarball(efa_members())


def efa_members(driver: str = EFA_DRIVER) -> dict[str, Content]:
    """The installer's archive; the stand-in installer leaves what the real one leaves."""
    names = [f"libfabric1-aws_{LIBFABRIC}_amd64", f"libnccl-ofi_{PLUGIN}-1_amd64", f"efa_{driver}-1.amzn1_amd64"]
    installer = f"""#!/bin/sh
set -eu
mkdir -p /opt/amazon/efa/bin /opt/amazon/ofi-nccl/lib /opt/amazon/openmpi/include
printf '#!/bin/sh\\necho "fi_getinfo: -61"; exit 61\\n' > /opt/amazon/efa/bin/fi_info
chmod 755 /opt/amazon/efa/bin/fi_info
dpkg --install "$(dirname "$0")"/DEBS/DEBIAN12/x86_64/libnccl-ofi_*.deb
echo stand-in > /opt/amazon/openmpi/include/mpi.h
echo "$*" > /opt/amazon/efa/arguments
printf '# EFA installer version: {EFA}\\n# Debug packages installed: no\\n# Packages installed:\\n{" ".join(names)}\\n' > /opt/amazon/efa_installed_packages
"""
    packages: dict[str, Content] = {
        f"aws-efa-installer/DEBS/{system}/x86_64/{name}.deb": "" for system in EFA_SYSTEMS for name in names
    }
    with tempfile.TemporaryDirectory() as scratch:
        plugin = Deb("libnccl-ofi", f"{PLUGIN}-1", files={"/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": ELF_HEADER})
        for system in EFA_SYSTEMS:
            name = f"aws-efa-installer/DEBS/{system}/x86_64/{names[1]}.deb"
            packages[name] = pack(plugin, Path(scratch)).read_bytes()
    return {"aws-efa-installer/efa_installer.sh": Executable(installer), **packages}


def tests_members() -> dict[str, str | Executable]:
    """nccl-tests with a makefile that asks the compiler as the real one does."""
    names = " ".join(f"build/{name}" for name in PROGRAMS)
    makefile = f"all: {names}\nbuild/%: Makefile\n\tmkdir -p build\n\t$(CUDA_HOME)/bin/nvcc $(NVCC_GENCODE) -o $@ $<\n"
    return {"Makefile": makefile}


def agent_schema() -> str:
    """The agent's schema in small: its sections and their closed lists, by hand after the agent's documentation."""
    section = {"type": "object", "minProperties": 1, "additionalProperties": True}
    names = ("cpu", "mem", "swap", "disk", "diskio", "net", "ethtool", "nvidia_gpu", "efa", "netstat", "processes")

    def closed(properties: dict) -> dict[str, object]:
        return {"type": "object", "properties": properties, "additionalProperties": False}

    metrics = {
        "namespace": {"type": "string", "minLength": 1, "maxLength": 255},
        "append_dimensions": {"type": "object"},
        "aggregation_dimensions": {"type": "array"},
        "force_flush_interval": {"type": "integer", "minimum": 1},
        "metrics_collected": closed(dict.fromkeys(names, section)),
    }
    top: dict[str, object] = {name: {"type": "object"} for name in ("agent", "logs", "traces")}
    top["metrics"] = {**closed(metrics), "required": ["metrics_collected"]}
    return json.dumps({"$schema": "http://json-schema.org/draft-04/schema#", **closed(top)})


def agent_deb() -> Deb:
    home = "/opt/aws/amazon-cloudwatch-agent"
    control = f"""#!/bin/sh
# Stand-in for the agent's control program: fetch-config and status.
set -eu
action=; config=
while [ $# -gt 0 ]; do case $1 in -a) action=$2; shift ;; -c) config=${{2#file:}}; shift ;; esac; shift; done
case $action in
fetch-config)
    if grep -q refused-by-the-agent "$config"; then echo "Configuration validation second phase failed"; exit 1; fi
    mkdir -p {home}/etc/amazon-cloudwatch-agent.d
    cp "$config" "{home}/etc/amazon-cloudwatch-agent.d/file_$(basename "$config")"
    systemctl restart amazon-cloudwatch-agent ;;
status)
    if systemctl is-active --quiet amazon-cloudwatch-agent; then
        echo '{{"status": "running", "configstatus": "configured", "version": "{AGENT}"}}'
    else
        echo '{{"status": "stopped", "configstatus": "not configured", "version": "{AGENT}"}}'
    fi ;;
esac
"""
    files = {
        **service("amazon-cloudwatch-agent", "CloudWatch agent", f"{home}/bin/amazon-cloudwatch-agent"),
        f"{home}/bin/amazon-cloudwatch-agent-ctl": Executable(control),
        f"{home}/bin/CWAGENT_VERSION": f"{AGENT}\n",
        f"{home}/doc/amazon-cloudwatch-agent-schema.json": agent_schema(),
    }
    return Deb("amazon-cloudwatch-agent", f"{AGENT}-1", files=files)


def stock(mirror: Mirror) -> dict[str, object]:
    """Put everything on the shelf; returns the variables that point the roles at it."""
    for deb in (*driver_debs(), *cuda_debs(), dcgm_deb(), *toolkit_debs(), *lustre_debs()):
        mirror.add_deb(deb)
    with tempfile.TemporaryDirectory() as scratch:
        agent = pack(agent_deb(), Path(scratch)).read_bytes()
    mirror.add_file("amazon-cloudwatch-agent.deb", agent)
    sums = {
        "efa_sha256": mirror.add_tarball(f"aws-efa-installer-{EFA}.tar.gz", efa_members()),
        "cuda_nccl_tests_commit": mirror.add_git("nccl-tests.git", tests_members()),
    }
    mirror.close()
    return {**sums, **repositories(mirror.fingerprint), **driver(), **others(mirror.fingerprint)}


def repositories(fingerprint: str) -> dict[str, object]:
    """Every repository of the roles is the one signed shelf."""
    found: dict[str, object] = {}
    for role in ("nvidia_repository", "container_toolkit", "lustre_client"):
        name = role if role == "nvidia_repository" else f"{role}_repository"
        found |= {f"{name}_url": "{url}/apt", f"{name}_suites": "bookworm", f"{name}_components": ["main"]}
        found |= {f"{role}_key_url": "{url}/key.asc", f"{role}_key_fingerprint": fingerprint}
    return found


def driver() -> dict[str, object]:
    """The vendor's driver everywhere but on one machine, which has Debian's real packages."""
    real = f"inventory_hostname == '{REAL_DRIVER_HOST}'"
    return {
        "nvidia_driver_state": "packages",
        "nvidia_driver_kernel_headers": False,
        "nvidia_driver_source": "{{ 'distribution' if " + real + " else 'vendor' }}",
        "nvidia_driver_version": "{{ '535' if " + real + " else '" + DRIVER + "' }}",
        "nvidia_driver_packages": "{{ ['nvidia-smi', 'libcuda1'] if " + real + " else [] }}",
        "nvidia_driver_fabric_manager": "{{ not (" + real + ") }}",
        "nvidia_driver_persistenced": "{{ not (" + real + ") }}",
    }


def others(fingerprint: str) -> dict[str, object]:
    """What else differs from a GPU node: no Lustre modules, nothing that would send metrics to AWS."""
    return {
        "cuda_nccl_architecture": "90",
        "cuda_nccl_tests_repository": "{url}/files/nccl-tests.git",
        "cuda_nccl_jobs": 1,
        "efa_url": "{url}/files/aws-efa-installer-" + EFA + ".tar.gz",
        "efa_key_url": "{url}/key.asc",
        "efa_key_fingerprint": fingerprint,
        "lustre_client_lnet": False,
        # A container has no /dev/autofs.
        "lustre_client_automount": False,
        "lustre_client_port": 3142,
        "lustre_client_mounts": [{"dns_name": "mirror", "mount_name": "fsx", "path": "/fsx"}],
        "cloudwatch_agent_package_url": "{url}/files/amazon-cloudwatch-agent.deb",
        "cloudwatch_agent_key_url": "{url}/key.asc",
        "cloudwatch_agent_key_fingerprint": fingerprint,
        "cloudwatch_agent_instance_type": "p5.48xlarge",
    }
