"""What is here: the platform by its documented marks, Slurm by its own commands."""

from __future__ import annotations

import glob
import os
import re
import shutil
from pathlib import Path
from typing import Dict, Mapping, NamedTuple, Tuple

from ..ask.runner import SYSTEM_PATHS
from ..model import SettingsError
from ..watch.slurm import CONFIGURATIONS
from ..watch.tool import run

PARALLELCLUSTER, PCS, HYPERPOD = "AWS ParallelCluster", "AWS PCS", "SageMaker HyperPod"
MARKS: Mapping[str, Tuple[str, ...]] = {
    PARALLELCLUSTER: ("/etc/parallelcluster", "/opt/slurm/etc/pcluster"),
    PCS: ("/opt/aws/pcs",),
    HYPERPOD: ("/opt/ml/config/resource_config.json",),
}
"""Sources: aws-parallelcluster-cookbook (clusterstatusmgtd.py, config_health_check.rb); PCS user guide, custom AMIs;
SageMaker HyperPod developer guide, lifecycle scripts."""
MORE_PATHS = ("/opt/slurm/bin", "/usr/local/bin", "/opt/aws/pcs/scheduler/slurm-*/bin")
KUBELET = "/var/lib/kubelet/config.yaml"
SLURM, KUBERNETES, PLAIN = "slurm", "kubernetes", ""
CONFIGLESS = "/run/slurm/conf"
"""Where slurmd keeps what its controller handed out. Source: Slurm, Configless Slurm Operation."""
SCONTROL_S = 15.0
_LINE = re.compile(r"^(\S+)\s*= ?(.*)$", re.MULTILINE)


class Found(NamedTuple):
    """A machine. conf: the slurm.conf that Slurm reads here. bin: where its commands are. names: this machine's own."""

    platform: str
    scheduler: str
    names: Tuple[str, ...]
    conf: str = ""
    bin: str = ""
    version: str = ""
    controllers: Tuple[str, ...] = ()

    @property
    def controls(self) -> bool:
        """Is this a machine of slurmctld?"""
        return bool({*self.names} & {*self.controllers})

    @property
    def handed_out(self) -> bool:
        """Is its slurm.conf a copy that the controller gave?"""
        return self.conf.startswith(CONFIGLESS)

    @property
    def text(self) -> str:
        """For a person."""
        what = {SLURM: f"Slurm {self.version} ({self.conf})", KUBERNETES: "Kubernetes"}.get(
            self.scheduler, "no scheduler"
        )
        return f"{what}{', ' + self.platform if self.platform else ''}"


def look() -> Found:
    """Raises SettingsError where Slurm is here and does not answer."""
    name = os.uname().nodename
    names = (name, name.partition(".")[0])
    platform = next((one for one, marks in MARKS.items() if any(map(os.path.exists, marks))), "")
    path = os.pathsep.join([*(place for more in MORE_PATHS for place in sorted(glob.glob(more))), SYSTEM_PATHS])
    scontrol = shutil.which("scontrol", path=path)
    named = os.environ.get("SLURM_CONF", "")
    if not scontrol or not (named or any(map(os.path.exists, CONFIGURATIONS)) or platform):
        return Found(platform, KUBERNETES if os.path.exists(KUBELET) else PLAIN, names)
    said = run([scontrol, "show", "config"], path, SCONTROL_S)
    if said.status != 0:
        raise SettingsError(
            f"scontrol show config: saw {said.text.strip()[:200] or 'no answer'}; wanted Slurm's settings; "
            "do: adopt when slurmctld answers, on a machine that reaches it"
        )
    settings = values(said.text)
    hosts = (value.partition("(")[0] for key, value in settings.items() if key.startswith("SlurmctldHost"))
    # The controller says where its own is: a node that was handed it has another.
    places = (named, settings.get("SLURM_CONF", CONFIGURATIONS[0]), f"{CONFIGLESS}/slurm.conf")
    conf = next((one for one in places if one and os.path.exists(one)), "")
    if not conf:
        raise SettingsError(f"saw no slurm.conf at {', '.join(filter(None, places))}, wanted the one that Slurm reads")
    return Found(
        platform, SLURM, names, conf, str(Path(scontrol).parent), settings.get("SLURM_VERSION", ""), tuple(hosts)
    )


def values(shown: str) -> Dict[str, str]:
    """What `scontrol show config` prints, without what is not set."""
    found = {key: value.strip() for key, value in _LINE.findall(shown)}
    return {key: value for key, value in found.items() if value not in ("(null)", "")}
