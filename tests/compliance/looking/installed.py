"""The files that a role writes whole, and what each would be if the role wrote it now.

What root runs, or reads to decide what runs, is compared byte by byte. Files that a role edits in place (chrony.conf)
or that depend on what other hosts answered (ssh_known_hosts, slurm.conf) have tests of their own.
"""

import difflib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tools import nodepackage

from . import say
from .ask import Asked
from .expected import ROOT, Site

SECRET = re.compile(
    r"(AKIA|ASIA)[A-Z0-9]{16}|aws_secret_access_key *[=:] *[^ ]|-----BEGIN [A-Z ]*PRIVATE KEY|xox[abp]-[0-9]"
    r"|hooks[.]slack[.]com/services/T"
)
LINE = 160
"""Characters shown of a line that differs."""
DIFFERS = f"look who changed it, then {say.CONFIGURE}"
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

    def __str__(self) -> str:
        return self.path


SYSTEMD, HOST = "/etc/systemd/system", "/opt/flightline/host/flightline_host"
WRITTEN = {
    "base": {
        "/etc/security/limits.d/90-flightline.conf": "limits.conf.j2",
        "/etc/systemd/system.conf.d/90-flightline.conf": "system.conf.j2",
        "/etc/systemd/journald.conf.d/90-flightline.conf": "journald.conf.j2",
        "/etc/ssh/sshd_config.d/00-flightline.conf": "sshd.conf.j2",
        "/etc/sysctl.d/90-flightline.conf": "sysctl.conf.j2",
        "/etc/tmpfiles.d/flightline-governor.conf": "governor.conf.j2",
        "/etc/apt/apt.conf.d/60flightline": "unattended-upgrades.j2",
    },
    "nvidia_driver": {
        "/etc/modprobe.d/flightline-nvidia.conf": "modprobe.j2",
        "/etc/modules-load.d/flightline-nvidia.conf": "modules-load.j2",
        f"{SYSTEMD}/nvidia-persistenced.service.d/flightline.conf": "persistenced.conf.j2",
        "/etc/nvidia-imex/nodes_config.cfg": "imex-nodes.j2",
    },
    "dcgm": {"/etc/apt/preferences.d/flightline-dcgm": "preferences.j2"},
    "efa": {"/etc/modules-load.d/flightline-efa.conf": "modules.j2"},
    "lustre_client": {
        "/etc/modprobe.d/flightline-lustre.conf": "modprobe.j2",
        "/usr/local/bin/flightline-preload": "flightline-preload.j2",
    },
    "cluster_ssh": {"/usr/local/libexec/flightline-mpi-launch": "mpi-launch.j2"},
    "flightline_node": {
        "/usr/local/sbin/flightline-check": "flightline-check.j2",
        "/usr/local/sbin/flightline-boot": "roles/flightline_node/files/flightline-boot",
        f"{SYSTEMD}/flightline-boot.service": "roles/flightline_node/files/flightline-boot.service",
        "/etc/default/flightline-boot": "flightline-boot.j2",
        "/etc/logrotate.d/flightline": "logrotate.j2",
    },
    "flightline_notice": {
        "/usr/local/bin/flightline-notice": "flightline-notice.j2",
        f"{SYSTEMD}/flightline-notice.service": "flightline-notice.service.j2",
    },
    "training": {
        "/usr/local/bin/flightline-train": "flightline-train.j2",
        f"{SYSTEMD}/flightline-train@.service": "flightline-train@.service.j2",
        "/etc/flightline/flightline-train.sbatch": "flightline-train.sbatch.j2",
        "/etc/logrotate.d/flightline-train": "logrotate.j2",
    },
    "flightline_remediate": {
        f"{SYSTEMD}/flightline-remediate.service": "flightline-remediate.service.j2",
        "/etc/flightline/remediate.env": "remediate.env.j2",
        "/usr/local/bin/flightline": "flightline.j2",
    },
    "flightline_watch": {
        f"{SYSTEMD}/flightline-watch.service": "flightline-watch.service.j2",
        f"{SYSTEMD}/flightline-train@.service.d/50-flightline-quarantine.conf": "quarantine.conf.j2",
    },
    "instance_store": {
        f"{SYSTEMD}/flightline-instance-store.service": "flightline-instance-store.service.j2",
        **{f"{HOST}/{name}": f"module_utils/flightline_host/{name}" for name in HOST_CODE},
    },
    "slurm": {
        f"/usr/local/libexec/flightline-slurm-{name}": f"flightline-slurm-{name}.j2"
        for name in ("prolog", "epilog", "health", "unkillable")
    },
}
"""Role -> path -> what it is made of: a template of the role's, or a file of this checkout by its path."""
PROGRAMS = ("/usr/local/bin/", "/usr/local/sbin/", "/usr/local/libexec/")
MODES = {"/etc/ssh/sshd_config.d/00-flightline.conf": 0o600, "/etc/flightline/flightline-train.sbatch": 0o755}
"""Of files that are neither programs' nor like all settings."""
FAMILIES = {"/etc/apt/apt.conf.d/60flightline": APT, "/etc/apt/preferences.d/flightline-dcgm": APT}
WHEN = {
    "/etc/modules-load.d/flightline-nvidia.conf": "_nvidia_driver_modules | length > 0",
    f"{SYSTEMD}/nvidia-persistenced.service.d/flightline.conf": (
        "nvidia_driver_persistenced | bool and ansible_facts.distribution == 'Ubuntu'"
    ),
    "/etc/nvidia-imex/nodes_config.cfg": "nvidia_driver_imex_service | bool",
    f"{SYSTEMD}/flightline-remediate.service": "flightline_remediate_enabled | bool",
}
"""As the task's own condition, of the role's variables."""


def _file(role: str, path: str, source: str) -> Installed:
    made = {"copy": source} if "/" in source else {"template": source}
    mode = MODES.get(path, 0o755 if path.startswith(PROGRAMS) else 0o644)
    return Installed(role, path, **made, mode=mode, family=FAMILIES.get(path, EVERYWHERE), when=WHEN.get(path, "true"))


FILES = tuple(_file(role, path, source) for role, files in WRITTEN.items() for path, source in files.items())
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
    "slurm/cgroup.conf.j2": "test_slurm.py compares with the record of host_state",
    "slurm/gres.conf.j2": "test_slurm.py compares with the record of host_state",
    "slurm/not-go.sh.j2": "a part of the hooks",
    "slurm/slurmdbd.conf.j2": "only with slurm_accounting; slurmdbd refuses a file that others can read",
    "slurm/topology.conf.j2": "test_slurm.py compares with the record of host_state",
    "slurm/slurm.conf.j2": "test_slurm.py compares with the record of host_state",
}
"""Templates that are looked at in another way."""


def of(role: str) -> list[Installed]:
    """The files of a role."""
    return [entry for entry in FILES if entry.role == role]


def paths() -> set[str]:
    """Every path that a role may write: none of these is a stranger's."""
    return {entry.path for entry in FILES} | {"/etc/apt/preferences.d/flightline-adopted"}


def digest(text: str | bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def wanted_text(entry: Installed, site: Site, host: str, facts: Mapping[str, str]) -> str:
    """What the role would write."""
    if entry.copy:
        return (ROOT / entry.copy).read_text()
    return site.rendered(host, entry.role, entry.template, facts)


@lru_cache(maxsize=4)
def package_sha256(given: str) -> str:
    """The digest of the node package: the site's file, or what this checkout builds."""
    if given:
        return digest(Path(given).read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        return digest(nodepackage.build(Path(scratch) / "flightline-node.pyz").path.read_bytes())


def compare(ask: Asked, path: str, sha256: str, mode: int, text: str | None = None) -> None:
    """A finding unless the file is root's, has this mode and content, and can be changed by a role and nobody else.

    text: what its content should be; the lines that differ are then named.
    """
    file = ask.file(path)
    if text is not None and file["sha256"] != sha256:
        rows = difflib.unified_diff(ask.text(path).splitlines(), text.splitlines(), lineterm="", n=0)
        lines = [row for row in rows if not row.startswith(("---", "+++", "@@"))] or ["only in its line ends"]
        shown = [row[:LINE] if not SECRET.search(row) else f"{row[0]} a line with a key or password" for row in lines]
        say.none(f"{path} differs (- there, + of the role)", shown, "what the role writes", DIFFERS)
    say.same(f"{path} has SHA-256", file["sha256"], sha256, DIFFERS)
    say.same(f"{path} has owner and mode", (file["uid"], oct(file["mode"])), (0, oct(mode)))
    say.none(f"{path} has an access list", file["attributes"], "none", f"setfacl -b {path}")
    say.holds(
        not file["fixed"], f"{path} is immutable or append-only", "a file that a role can write", f"chattr -ia {path}"
    )


def roots_alone(ask: Asked, path: str) -> None:
    """A finding when others than root may change the file or directory."""
    file = ask.file(path)
    seen = f"{path}: user {file['uid']}, mode {oct(file['mode'])}"
    say.holds((file["uid"], file["mode"] & 0o022) == (0, 0), seen, "root's alone")


def unaltered(
    ask: Asked, packages: Iterable[str], whose: str, do: str = "reinstall the package", but: str = "/etc/"
) -> None:
    """A finding that names files of packages which are gone or changed. but: where the site's own changes stand."""
    found = [path for path in ask.altered(packages) if not (but and path.startswith(but))]
    say.none(f"not as {whose} brought them", found, "unchanged files", do)


def agrees(seen: Mapping[str, Any], wanted: Any, path: str, what: str = "the inventory's settings") -> None:
    """A finding that names each setting in which a file of JSON is not what its role would write."""
    say.none(f"{path} has", differences(seen, json.loads(json.dumps(wanted))), what, say.CONFIGURE)


def differences(seen: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What differs between two settings, key by key."""
    keys = sorted({*seen, *wanted})
    return [
        f"{key}: {json.dumps(seen.get(key))}, wanted {json.dumps(wanted.get(key))}"
        for key in keys
        if seen.get(key) != wanted.get(key)
    ]
