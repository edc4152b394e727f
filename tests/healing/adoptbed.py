"""Clusters that somebody else configured: a head and two nodes on this machine, each with its own /etc, /usr, /opt, /var.

Real: slurmctld, slurmd and munged of Debian, Ansible. A machine is a mount and a name namespace with overlays, so nothing of
this machine changes. There is no systemd in it. The three slurm.confs are written by hand after published ones, with the
ports, users and plugins of the bed: aws-parallelcluster-cookbook f75d84c (slurm.conf.erb, slurm_parallelcluster.conf,
config_health_check.rb), NVIDIA/deepops 3957a42 (roles/slurm/templates/etc/slurm), mej/nhc 9c4a38c (README, Slurm).
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.beds import ROOT, place_env, program, ran
from tests.healing import slurmbed

OVERLAID = ("/etc", "/usr", "/opt", "/var", "/run")
LOOKED_AT = ("/etc", "/opt/slurm", "/opt/flightline", "/usr/local/sbin", "/usr/local/libexec", "/var/lib/flightline")
OF_THE_BED = ("SlurmctldPort", "SlurmUser", "SlurmdUser", "Auth", "Cred", "State", "SlurmdSpool", "SlurmctldPid", "SlurmdPid",
              "SlurmctldLog", "SlurmdLog", "Proctrack", "TaskPlugin", "KillWait", "MpiDefault")  # fmt: skip
FIT = {
    "flightline_checks": ["sysctl"],
    "instance_type": "none",
    "flightline_expected": {"sysctl": {"kernel.ostype": "Linux"}},
}
"""A check that every machine here passes: this is no place for the others."""
SETUP = """
set -e
mount --make-rprivate /
mkdir -p {place}
mount -t tmpfs tmpfs {place}
for one in {dirs}; do
    mkdir -p {place}$one/up {place}$one/work
    mount -t overlay overlay -o lowerdir=$one,upperdir={place}$one/up,workdir={place}$one/work $one
done
hostname {name}
mkdir -p /opt/slurm
mount --bind {shared} /opt/slurm
echo ready
exec sleep infinity
"""
DIGEST = """
import hashlib, os, sys
for top in sys.argv[1:]:
    for place, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(place, name)
            state = os.lstat(path)
            body = open(path, "rb").read() if os.path.isfile(path) and not os.path.islink(path) else b""
            print(path, oct(state.st_mode), state.st_uid, hashlib.sha256(body).hexdigest()[:16])
"""


class Machine:
    """One of them. shared: what all have at /opt/slurm."""

    def __init__(self, name: str, place: Path, shared: Path) -> None:
        self.name = name
        setup = SETUP.format(name=name, place=place / name, dirs=" ".join(OVERLAID), shared=shared)
        argv = ["unshare", "--mount", "--uts", "sh", "-c", setup]
        self.holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout and self.holder.stdout.readline() == "ready\n"
        self.enter = ["nsenter", "--target", str(self.holder.pid), "--mount", "--uts", "--wd=/"]
        self.python = program(
            place / f"python-{name}", f'#!/bin/sh\nexec {" ".join(self.enter)} /usr/bin/python3 "$@"\n'
        )

    def run(self, *argv: object, **given: object) -> subprocess.CompletedProcess[str]:
        return ran(*self.enter, *argv, **given)

    def write(self, path: str, text: str, mode: str = "644") -> None:
        self.run("sh", "-c", f'mkdir -p "$(dirname {path})" && cat >{path} && chmod {mode} {path}', input=text)

    def read(self, path: str) -> str:
        return self.run("cat", path).stdout

    def digest(self) -> "set[str]":
        """Every file of it, by mode, owner and content."""
        return set(self.run("/usr/bin/python3", "-c", DIGEST, *LOOKED_AT, timeout=60).stdout.splitlines())

    def end(self) -> None:
        self.holder.kill()
        self.holder.wait()


class Cluster(slurmbed.Bed):
    """A cluster of one of the styles: `files` writes it, `conf` is where its slurm.conf is."""

    conf = "/etc/slurm/slurm.conf"
    shares = False

    def up(self) -> None:
        self.shared = self.place / "shared"
        (self.shared / "etc").mkdir(parents=True)
        self.machines = {name: Machine(name, self.place, self.shared) for name in ("head", *self.names)}
        super().up()

    def down(self) -> None:
        super().down()
        for one in self.machines.values():
            one.end()

    @property
    def head(self) -> Machine:
        return self.machines["head"]

    @property
    def env(self):
        return {"SLURM_CONF": self.conf}

    @property
    def config(self) -> Path:
        return self.place / "unused"

    def run(self, *argv, check=True, **given):
        done = self.head.run(*argv, env=self.whole_env, timeout=30, **given)
        assert not check or done.returncode == 0, done
        return done

    def _config(self) -> str:
        for one in (self.head,) if self.shares else self.machines.values():
            self.files(one)
        return ""

    def files(self, one: Machine) -> None:
        raise NotImplementedError

    def _start(self, name, *argv):
        inside = self.machines.get(name, self.head)
        words = [self.conf if word == str(self.config) else word for word in argv]
        super()._start(name, *(inside.enter if name != "munged" else ()), *words)

    @property
    def bed(self) -> str:
        """What the bed needs and no style has: its ports and users, and no control groups."""
        own = [line for line in super()._config().splitlines() if line.startswith(OF_THE_BED)]
        return "\n".join(
            [*own, f"NodeName=n[1-2] NodeHostname=n[1-2] NodeAddr=127.0.0.1 Port=[{self.ports[1]}-{self.ports[2]}]", ""]
        )

    def tells(self, who: str) -> str:
        """A program of the site that says that it ran, and fails where a file says so."""
        log = self.place / f"{who}.log"
        return f"#!/bin/sh\necho $(uname -n) >>{log}\n[ ! -e {self.place}/{who}-fails-$(uname -n) ]\n"

    def ran_on(self, who: str) -> "list[str]":
        log = self.place / f"{who}.log"
        return log.read_text().split() if log.exists() else []

    def settings(self) -> "list[str]":
        """`scontrol show config`, without what changes by itself."""
        lines = self.run("scontrol", "show", "config").stdout.splitlines()
        return [line for line in lines if not line.startswith(("Configuration data", "BOOT_TIME", "NEXT_JOB_ID"))]

    def adopt(self, *words: str) -> subprocess.CompletedProcess[str]:
        """flightline adopt, on the head, as its administrator."""
        hosts = {
            name: {"ansible_connection": "local", "ansible_become": False,
                   "ansible_python_interpreter": str(one.python), **FIT}
            for name, one in self.machines.items() if name != "head"
        }  # fmt: skip
        (self.place / "reach.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        env = place_env(self.place / "store.sqlite", self.place)
        words = ("adopt", "-i", str(self.place / "reach.json"), "--out", str(self.place / "adopted.yml"), *words)
        argv = ["env", "-C", str(ROOT), sys.executable, "-m", "flightline", *words]
        return self.head.run(*argv, env=env, timeout=240)

    def sicken(self, name: str, wanted: str = "Plan 9") -> None:
        """What the site wants of a node is what it has not."""
        settings = json.loads(self.machines[name].read("/etc/flightline/node.json"))
        settings["expected"] = {"sysctl": {"kernel.ostype": wanted}}
        self.machines[name].write("/etc/flightline/node.json", json.dumps(settings))

    def health(self, name: str) -> bool:
        """The health program as Slurm calls it, with no more of an environment."""
        words = ["env", "-i", f"SLURMD_NODENAME={name}", "/usr/local/libexec/flightline-adopt-health"]
        return self.machines[name].run(*words).returncode == 0

    def node(self, name: str) -> "tuple[str, str]":
        said = self.run("sinfo", "-h", "-N", "-n", name, "-o", "%T|%E").stdout.strip().partition("|")
        return said[0].rstrip("*"), said[2].replace("none", "")


class ParallelCluster(Cluster):
    """One directory for all at /opt/slurm, settings in included files, programs in prolog.d; no health program."""

    conf = "/opt/slurm/etc/slurm.conf"
    shares = True

    def files(self, one):
        etc = "/opt/slurm/etc"
        one.write(self.conf, "#\n# CLUSTER SETTINGS\nClusterName=pcluster\nReconfigFlags=KeepPartState\n"
                  f"{self.bed}#\n# PROLOG AND EPILOG\nProlog={etc}/scripts/prolog.d/*\nEpilog={etc}/scripts/epilog.d/*\n"
                  "SchedulerParameters=nohold_on_prolog_fail\nBatchStartTimeout=180\nUnkillableStepTimeout=180\n"
                  "MessageTimeout=60\nReturnToService=1\nSelectType=select/cons_tres\n#\n"
                  "include slurm_parallelcluster.conf\n\ninclude pcluster/custom_slurm_settings_include_file_slurm.conf\n")  # fmt: skip
        one.write(f"{etc}/slurm_parallelcluster.conf", "SlurmctldHost=head(127.0.0.1)\nSelectTypeParameters=CR_CPU\n"
                  f"include {etc}/pcluster/slurm_parallelcluster_queue1_partition.conf\n")  # fmt: skip
        one.write(f"{etc}/pcluster/slurm_parallelcluster_queue1_partition.conf",
                  "PartitionName=queue1 Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")  # fmt: skip
        one.write(f"{etc}/pcluster/custom_slurm_settings_include_file_slurm.conf", "")
        own = f"{etc}/pcluster/.slurm_plugin/scripts"
        for when, name in (("prolog", "90_pcluster_health_check_manager"), ("epilog", "90_pcluster_noop")):
            one.write(f"{own}/{when}.d/{name}", self.tells(when), "755")
            one.run("sh", "-c", f"cd {etc}; mkdir -p scripts/{when}.d; ln -s {own}/{when}.d/{name} scripts/{when}.d/")
        # Stands for the vendor's own build, whose commands know the place of its slurm.conf.
        for tool in ("scontrol", "sinfo"):
            one.write(f"/opt/slurm/bin/{tool}", f'#!/bin/sh\nSLURM_CONF={self.conf} exec /usr/bin/{tool} "$@"\n', "755")


class DeepOps(Cluster):
    """A copy on each machine; prolog.sh runs the programs of prolog.d; no health program."""

    def files(self, one):
        one.write(self.conf, f"ClusterName=deepops\nSlurmctldHost=head(127.0.0.1)\n{self.bed}"
                  'ReturnToService=1\nRebootProgram="/bin/systemctl reboot"\nResumeTimeout=900\nPrologFlags=Alloc,Serial\n'
                  "Prolog=/etc/slurm/prolog.sh\nEpilog=/etc/slurm/epilog.sh\nSlurmctldTimeout=120\nSlurmdTimeout=300\n"
                  "SchedulerType=sched/backfill\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
                  "PartitionName=batch Nodes=ALL Default=YES State=UP OverSubscribe=NO MaxTime=INFINITE")  # fmt: skip  # no line end, as the template leaves it
        for when in ("prolog", "epilog"):
            runs = f'for one in /etc/slurm/{when}.d/*; do "$one"; done'
            one.write(f"/etc/slurm/{when}.sh", f"#!/usr/bin/env bash\nset -e\n{runs}\n", "755")
            one.write(f"/etc/slurm/{when}.d/50-exclusive-gpu", self.tells(when), "755")


class University(Cluster):
    """A copy on each machine, NHC as the health program, a prolog of the site's own with a limit, settings in capitals."""

    def files(self, one):
        one.write(self.conf, f"CLUSTERNAME=uni\nSlurmctldHost=head(127.0.0.1)\n{self.bed}"
                  "PROLOG=/etc/slurm/prolog # of the site\nPrologEpilogTimeout=60\nPrologFlags=Alloc\n"
                  "HealthCheckProgram=/usr/sbin/nhc\nHealthCheckInterval=15\nHealthCheckNodeState=ANY\n"
                  "SchedulerParameters=bf_interval=10,bf_continue\nReturnToService=0\nSelectType=select/cons_tres\n"
                  "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")  # fmt: skip
        one.write("/etc/slurm/prolog", self.tells("prolog"), "755")
        one.write("/usr/sbin/nhc", self.tells("nhc"), "755")


class Configless(University):
    """The same, but that nodes get their settings from the controller."""

    def files(self, one):
        super().files(one)
        one.run("sed", "-i", "2i SlurmctldParameters=enable_configless", self.conf)
        if one is not self.head:
            one.run(
                "sh",
                "-c",
                f"rm {self.conf}; mkdir -p /run/munge; ln -s {self.place}/munge.socket /run/munge/munge.socket.2",
            )

    def _start(self, name, *argv):
        served = ["env", "-u", "SLURM_CONF", "slurmd", "-D", "--conf-server", f"127.0.0.1:{self.ports[0]}", "-N", name]
        super()._start(name, *(served if argv[0] == "slurmd" else argv))


class Plain(Cluster):
    """Hosts without a scheduler."""

    def up(self):
        (self.place / "shared").mkdir(parents=True)
        self.machines = {name: Machine(name, self.place, self.place / "shared") for name in ("head", *self.names)}

    def settings(self):
        return []
