"""The files that a role writes whole, and what each would be if the role wrote it now.

What root runs, or reads to decide what runs, is compared byte by byte. Files that a role edits in place (chrony.conf)
or that depend on what other hosts answered (ssh_known_hosts, slurm.conf) have tests of their own.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tools import nodepackage

from . import say
from .ask import Asked
from .expected import ROOT, Site

HOST_CODE = ("__init__.py", "host.py", "outcome.py", "system/__init__.py", "system/instance_store.py")
EVERYWHERE, APT = "", "Debian"


@dataclass(frozen=True)
class Installed:
    """One file. `template` of the role's folder; `copy` a path in this checkout."""

    role: str
    path: str
    template: str = ""
    copy: str = ""
    mode: int = 0o644
    family: str = EVERYWHERE
    when: str = "true"
    """As the task's own condition, of the role's variables."""

    def __str__(self) -> str:
        return self.path


PROGRAM = 0o755
FILES = (
    Installed("base", "/etc/security/limits.d/90-flightline.conf", "limits.conf.j2"),
    Installed("base", "/etc/systemd/system.conf.d/90-flightline.conf", "system.conf.j2"),
    Installed("base", "/etc/systemd/journald.conf.d/90-flightline.conf", "journald.conf.j2"),
    Installed("base", "/etc/ssh/sshd_config.d/00-flightline.conf", "sshd.conf.j2", mode=0o600),
    Installed("base", "/etc/sysctl.d/90-flightline.conf", "sysctl.conf.j2"),
    Installed("base", "/etc/tmpfiles.d/flightline-governor.conf", "governor.conf.j2"),
    Installed("base", "/etc/apt/apt.conf.d/60flightline", "unattended-upgrades.j2", family=APT),
    Installed("nvidia_driver", "/etc/modprobe.d/flightline-nvidia.conf", "modprobe.j2"),
    Installed(
        "nvidia_driver",
        "/etc/modules-load.d/flightline-nvidia.conf",
        "modules-load.j2",
        when="_nvidia_driver_modules | length > 0",
    ),
    Installed(
        "nvidia_driver",
        "/etc/systemd/system/nvidia-persistenced.service.d/flightline.conf",
        "persistenced.conf.j2",
        when="nvidia_driver_persistenced | bool and ansible_facts.distribution == 'Ubuntu'",
    ),
    Installed(
        "nvidia_driver",
        "/etc/nvidia-imex/nodes_config.cfg",
        "imex-nodes.j2",
        when="nvidia_driver_imex_service | bool",
    ),
    Installed("dcgm", "/etc/apt/preferences.d/flightline-dcgm", "preferences.j2", family=APT),
    Installed("efa", "/etc/modules-load.d/flightline-efa.conf", "modules.j2"),
    Installed("lustre_client", "/etc/modprobe.d/flightline-lustre.conf", "modprobe.j2"),
    Installed(
        "lustre_client",
        "/usr/local/bin/flightline-preload",
        copy="roles/lustre_client/files/flightline_preload.py",
        mode=PROGRAM,
    ),
    Installed("cluster_ssh", "/usr/local/libexec/flightline-mpi-launch", "mpi-launch.j2", mode=PROGRAM),
    Installed("flightline_node", "/usr/local/sbin/flightline-check", "flightline-check.j2", mode=PROGRAM),
    Installed(
        "flightline_node",
        "/usr/local/sbin/flightline-boot",
        copy="roles/flightline_node/files/flightline-boot",
        mode=PROGRAM,
    ),
    Installed(
        "flightline_node",
        "/etc/systemd/system/flightline-boot.service",
        copy="roles/flightline_node/files/flightline-boot.service",
    ),
    Installed("flightline_node", "/etc/default/flightline-boot", "flightline-boot.j2"),
    Installed("flightline_node", "/etc/logrotate.d/flightline", "logrotate.j2"),
    Installed(
        "flightline_notice",
        "/usr/local/bin/flightline-notice",
        copy="roles/flightline_notice/files/flightline_notice.py",
        mode=PROGRAM,
    ),
    Installed("flightline_notice", "/etc/systemd/system/flightline-notice.service", "flightline-notice.service.j2"),
    Installed(
        "training",
        "/usr/local/bin/flightline-train",
        copy="roles/training/files/flightline_train.py",
        mode=0o755,
    ),
    Installed("training", "/etc/systemd/system/flightline-train@.service", "flightline-train@.service.j2"),
    Installed("training", "/etc/flightline/flightline-train.sbatch", "flightline-train.sbatch.j2", mode=0o755),
    Installed("training", "/etc/logrotate.d/flightline-train", "logrotate.j2"),
    Installed(
        "flightline_remediate",
        "/etc/systemd/system/flightline-remediate.service",
        "flightline-remediate.service.j2",
        when="flightline_remediate_enabled | bool",
    ),
    Installed("flightline_remediate", "/etc/flightline/remediate.env", "remediate.env.j2"),
    Installed("flightline_remediate", "/usr/local/bin/flightline", "flightline.j2", mode=PROGRAM),
    Installed("flightline_watch", "/etc/systemd/system/flightline-watch.service", "flightline-watch.service.j2"),
    Installed(
        "flightline_watch",
        "/etc/systemd/system/flightline-train@.service.d/50-flightline-quarantine.conf",
        "quarantine.conf.j2",
    ),
    Installed(
        "instance_store",
        "/etc/systemd/system/flightline-instance-store.service",
        "flightline-instance-store.service.j2",
    ),
    *(
        Installed(
            "instance_store",
            f"/opt/flightline/host/flightline_host/{name}",
            copy=f"module_utils/flightline_host/{name}",
        )
        for name in HOST_CODE
    ),
    *(
        Installed("slurm", f"/usr/local/libexec/flightline-slurm-{name}", f"flightline-slurm-{name}.j2", mode=PROGRAM)
        for name in ("prolog", "epilog", "health", "unkillable")
    ),
)
ELSEWHERE = {
    "cluster_ssh/addresses.j2": "a part of ssh_config.j2",
    "cluster_ssh/known_hosts.j2": "test_cluster_ssh.py asks the hosts for their keys",
    "cluster_ssh/ssh_config.j2": "test_cluster_ssh.py asks ssh -G",
    "base/system-lines.j2": "a part of system.conf.j2",
    "base/time-servers.j2": "test_base.py asks chronyd and chronyc",
    "lustre_client/automount.j2": "test_lustre_client.py, per mount",
    "lustre_client/lnet.conf.j2": "test_lustre_client.py asks lnetctl",
    "lustre_client/mount.j2": "test_lustre_client.py, per mount",
    "nvidia_driver/preferences.j2": "test_nvidia_driver.py asks apt-cache policy",
    "package_repository/sources.j2": "test_host.py asks apt; test_nvidia_driver.py reads NVIDIA's",
    "slurm/cgroup.conf.j2": "test_slurm.py compares with the controller's",
    "slurm/gres.conf.j2": "test_slurm.py compares with the controller's",
    "slurm/slurmdbd.conf.j2": "only with slurm_accounting; slurmdbd refuses a file that others can read",
    "slurm/topology.conf.j2": "only with slurm_topology; slurmctld refuses a tree that does not hold every node",
    "slurm/slurm.conf.j2": "test_slurm.py compares with the controller's",
}
"""Templates that are looked at in another way."""


def of(role: str) -> list[Installed]:
    """The files of a role."""
    return [entry for entry in FILES if entry.role == role]


def paths() -> set[str]:
    """Every path that a role may write: none of these is a stranger's."""
    return {entry.path for entry in FILES}


def digest(text: str | bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def wanted_sha256(entry: Installed, site: Site, host: str, facts: Mapping[str, str]) -> str:
    """The digest of what the role would write."""
    if entry.copy:
        return digest((ROOT / entry.copy).read_bytes())
    return digest(site.rendered(host, entry.role, entry.template, facts))


@lru_cache(maxsize=4)
def package_sha256(given: str) -> str:
    """The digest of the node package: the site's file, or what this checkout builds."""
    if given:
        return digest(Path(given).read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        return digest(nodepackage.build(Path(scratch) / "flightline-node.pyz").path.read_bytes())


def compare(ask: Asked, path: str, sha256: str, mode: int) -> None:
    """A finding unless the file is root's, has this mode and content, and can be changed by a role and nobody else."""
    file = ask.file(path)
    say.same(f"{path} has SHA-256", file["sha256"], sha256, f"look who changed it, then {say.CONFIGURE}")
    say.same(f"{path} has owner and mode", (file["uid"], oct(file["mode"])), (0, oct(mode)))
    say.none(f"{path} has an access list", file["attributes"], "none", f"setfacl -b {path}")
    say.holds(
        not file["fixed"], f"{path} is immutable or append-only", "a file that a role can write", f"chattr -ia {path}"
    )


def differences(seen: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What differs between two settings, key by key."""
    keys = sorted({*seen, *wanted})
    return [
        f"{key}: {json.dumps(seen.get(key))}, wanted {json.dumps(wanted.get(key))}"
        for key in keys
        if seen.get(key) != wanted.get(key)
    ]
