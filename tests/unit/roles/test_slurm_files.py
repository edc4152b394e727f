"""What the role slurm writes for a fleet, from the hardware table and facts alone."""

import base64

import pytest

from flightline.configure import slurm_plan
from flightline_node.know.expected import known_types, resolve

from .render import Role, facts

P5 = (
    "NodeName=ip-10-0-0-11 NodeAddr=10.0.0.11 CPUs=192 Sockets=2 CoresPerSocket=48 ThreadsPerCore=2 RealMemory=1992294 "
    "Gres=gpu:h100:8 Feature=p5.48xlarge State=UNKNOWN"
)


def fleet(system="Ubuntu 24.04", instance_type="p5.48xlarge", **more):
    """A stack's inventory: hosts are instance ids, of which one did not answer."""
    seen = {"i-0a": "ip-10-0-0-11", "i-0b": "ip-10-0-0-12", "i-0h": "ip-10-0-0-5"}
    hostvars = {
        name: {
            "instance_id": name,
            "instance_type": "m7i.2xlarge" if name == "i-0h" else instance_type,
            "node_address": hostname[3:].replace("-", "."),
            "ec2_private_dns_name": f"{hostname}.eu-west-1.compute.internal",
            "ansible_facts": {} if name == "i-0b" else facts(system, hostname=hostname),
            **more,
        }
        for name, hostname in seen.items()
    }
    return {
        "hostvars": hostvars,
        "groups": {"all": list(seen), "gpu_nodes": ["i-0a", "i-0b"], "slurm_controller": ["i-0h"]},
        "inventory_hostname": "i-0a",
    }


def slurm(system="Ubuntu 24.04", given=None, **more):
    return Role("slurm", system, {**fleet(system, **more), **(given or {})})


def test_a_stack_needs_no_variable_of_its_own():
    lines = slurm().file("slurm.conf.j2").splitlines()
    assert P5 in lines
    assert "SlurmctldHost=ip-10-0-0-5(10.0.0.5)" in lines
    assert any(line.startswith("NodeName=ip-10-0-0-12 NodeAddr=10.0.0.12 CPUs=192") for line in lines)
    assert "PartitionName=gpu Nodes=ip-10-0-0-11,ip-10-0-0-12 Default=YES MaxTime=INFINITE State=UP" in lines
    assert "GresTypes=gpu" in lines
    for setting in (
        "SchedulerParameters=nohold_on_prolog_fail,bf_interval=10",
        "Epilog=/usr/local/libexec/flightline-slurm-epilog",
        "RebootProgram=/usr/sbin/reboot",
        "SlurmdTimeout=30",
        "ReturnToService=0",
        "AuthInfo=cred_expire=50",
        "UnkillableStepProgram=/usr/local/libexec/flightline-slurm-unkillable",
    ):
        assert setting in lines


def test_every_node_writes_the_same_file_also_while_one_is_lost():
    whole = fleet()
    whole["hostvars"]["i-0b"]["ansible_facts"] = facts("Ubuntu 24.04", hostname="ip-10-0-0-12")
    assert slurm().file("slurm.conf.j2") == slurm(given=whole).file("slurm.conf.j2")


@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "none"])
@pytest.mark.parametrize("limited", [["i-0a"], ["i-0h"], ["i-0a", "i-0b"]])
def test_a_limited_run_writes_the_file_of_a_whole_one(instance_type, limited):
    """Host names are what the site chose, which neither EC2 nor the inventory says."""
    whole = fleet(instance_type=instance_type)
    for name, host in (("i-0a", "red"), ("i-0b", "blue"), ("i-0h", "head")):
        measured = {"hostname": host, "processor_nproc": 8, "memtotal_mb": 16000}
        whole["hostvars"][name]["ansible_facts"] = facts("Ubuntu 24.04", **measured)
    before = {name: slurm(given=whole).file(f"{name}.conf.j2") for name in ("slurm", "gres")}
    assert "NodeName=blue " in before["slurm"]
    assert "SlurmctldHost=head(" in before["slurm"]
    part = fleet(instance_type=instance_type)
    for name, variables in part["hostvars"].items():
        variables["ansible_facts"] = whole["hostvars"][name]["ansible_facts"] if name in limited else {}
        if name in limited:
            variables["__slurm_found"] = {"facts": {"files": {"settings": {"text": before["slurm"]}}}}
    part |= {"inventory_hostname": limited[0], **part["hostvars"][limited[0]]}
    assert {name: slurm(given=part).file(f"{name}.conf.j2") for name in before} == before


def test_a_limited_run_of_new_nodes_asks_the_controller():
    part = fleet(instance_type="none")
    for variables in part["hostvars"].values():
        variables["ansible_facts"] = {}
    part["hostvars"]["i-0a"]["ansible_facts"] = facts("Ubuntu 24.04", hostname="red", processor_nproc=4)
    said = "NodeName=blue NodeAddr=10.0.0.12 CPUs=8 RealMemory=15200 State=UNKNOWN\n"
    answers = [{"unreachable": True}, {"content": base64.b64encode(said.encode()).decode()}]
    part["__slurm_settings_others"] = {"results": answers}
    lines = slurm(given=part).file("slurm.conf.j2").splitlines()
    assert said.strip() in lines
    assert slurm(given=part).evaluate("_slurm_unseen | map(attribute='name') | list") == ["blue"]


@pytest.mark.parametrize(
    "text", ["", "NodeName=DEFAULT", "NodeName=a NodeAddr=10.0.0.12 CPUs=many RealMemory=\n", "\x00("]
)
def test_a_strange_file_knows_nothing(text):
    assert all(host.cpus == host.memory_mib == 0 for host in slurm_plan.known(text).values())


def test_gpus_have_a_type_and_the_cores_of_their_socket():
    assert slurm().file("gres.conf.j2").splitlines()[1:3] == [
        "NodeName=ip-10-0-0-11 Name=gpu Type=h100 File=/dev/nvidia[0-3] Cores=0-47",
        "NodeName=ip-10-0-0-11 Name=gpu Type=h100 File=/dev/nvidia[4-7] Cores=48-95",
    ]


@pytest.mark.parametrize(
    ("system", "proctrack", "tasks"),
    [
        ("Ubuntu 22.04", "proctrack/linuxproc", "task/affinity"),
        ("Ubuntu 24.04", "proctrack/cgroup", "task/affinity,task/cgroup"),
        ("Debian 12", "proctrack/cgroup", "task/affinity,task/cgroup"),
    ],
)
def test_control_groups_only_where_the_distributions_slurm_has_version_2(system, proctrack, tasks):
    lines = slurm(system).file("slurm.conf.j2").splitlines()
    assert f"ProctrackType={proctrack}" in lines
    assert f"TaskPlugin={tasks}" in lines


def test_scripts_name_the_node_as_slurm_does():
    for script in ("health", "prolog", "epilog"):
        assert "ip-10-0-0-11" in slurm().file(f"flightline-slurm-{script}.j2")
        assert "hostname -s" not in slurm().file(f"flightline-slurm-{script}.j2")


@pytest.mark.parametrize(("mode", "returns"), [(None, True), ("advise", True), ("act", False)])
def test_the_health_check_returns_nodes_where_no_remediator_does(mode, returns):
    given = fleet()
    given["hostvars"]["i-0h"] |= {"flightline_remediate_mode": mode} if mode else {}
    assert (
        "--returns" in slurm(given={**given, "slurm_controller": "i-0h"}).file("flightline-slurm-health.j2")
    ) is returns
    assert "--returns" not in slurm().file("flightline-slurm-prolog.j2") + slurm().file("flightline-slurm-epilog.j2")


def test_accounts_are_kept_only_when_asked_for():
    assert "Accounting" not in slurm().file("slurm.conf.j2")
    lines = slurm(given={"slurm_accounting": "true"}).file("slurm.conf.j2").splitlines()
    assert "AccountingStorageType=accounting_storage/slurmdbd" in lines
    assert "AccountingStorageTRES=gres/gpu" in lines
    assert "JobAcctGatherType=jobacct_gather/cgroup" in lines


def test_topology_is_what_ec2_says():
    instances = [
        {"InstanceId": "i-0a", "NetworkNodes": ["nn-1", "nn-2", "nn-4"]},
        {"InstanceId": "i-0b", "NetworkNodes": ["nn-1", "nn-3", "nn-5"]},
        {"InstanceId": "i-other", "NetworkNodes": ["nn-1", "nn-3", "nn-6"]},
    ]
    given = {"slurm_topology": instances}
    assert "TopologyPlugin=topology/tree" in slurm(given=given).file("slurm.conf.j2")
    assert slurm(given=given).file("topology.conf.j2").splitlines()[1:] == [
        "SwitchName=nn-4 Nodes=ip-10-0-0-11",
        "SwitchName=nn-5 Nodes=ip-10-0-0-12",
        "SwitchName=nn-1 Switches=nn-2,nn-3",
        "SwitchName=nn-2 Switches=nn-4",
        "SwitchName=nn-3 Switches=nn-5",
    ]


def test_a_node_of_no_known_type_is_what_its_facts_say():
    measured = {"hostname": "gpu-01", "processor_nproc": 2, "memtotal_mb": 4000}
    (worker,) = slurm_plan.workers(["gpu-01"], {"gpu-01": {"instance_type": "none", "ansible_facts": measured}})
    assert worker.line() == "NodeName=gpu-01 NodeAddr=gpu-01 CPUs=2 RealMemory=3800 State=UNKNOWN"
    assert worker.gres() == []


@pytest.mark.parametrize("name", known_types())
def test_every_type_has_a_line_that_adds_up(name):
    (worker,) = slurm_plan.workers(["n"], {"n": {"instance_type": name}})
    expected = resolve(name, {})
    assert worker.cpus == expected.vcpus
    assert 0 < worker.memory_mib < (expected.memory_mib or 0)
    assert worker.sockets * worker.cores_per_socket * worker.threads_per_core in (0, worker.cpus)
    assert worker.gpus == (expected.gpu_count if expected.has_nvidia_gpu else 0)
    assert all(" " not in part for part in (worker.gpu_type, worker.name))


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("H100-SXM5-80GB", "h100"),
        ("A10G", "a10g"),
        ("RTX PRO 6000 Blackwell Server", "rtx_pro_6000"),
        ("B200 (GB200 superchip)", "gb200"),
        ("L4 (fractional)", "l4"),
    ],
)
def test_gpu_type(model, wanted):
    assert slurm_plan.gpu_type(model) == wanted
