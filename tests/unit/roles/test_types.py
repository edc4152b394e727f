"""With no variable but an instance type, on every system: what the roles would install fits the type, and nothing refuses.

Computed, not run: no vendor is asked. Names and minimum versions are the vendors' (docs/hosts.md says from where).
"""

import pytest
import yaml

from flightline import stack
from flightline.configure.node_software import software
from flightline_host.version import reaches
from flightline_node.know.expected import known_types
from tools.roledocs import ROLES

from .render import SYSTEMS, Role, tasks

TYPES = ("none", *known_types())
GPU_TYPES = [name for name in known_types() if software(name)["gpu"]]
ROLE_NAMES = ("nvidia_driver", "efa", "cuda_nccl", "dcgm", "container_toolkit", "instance_store")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", ROLE_NAMES)
def test_no_precondition_refuses_a_type(name, system):
    asserts = [task for task in tasks(name) if "ansible.builtin.assert" in task and "loop" not in task]
    mine = [task for task in asserts if "__" not in str(task["ansible.builtin.assert"]["that"]) or "vars" in task]
    assert mine
    for instance_type in GPU_TYPES:
        for task in mine:
            role = Role(name, system, {"instance_type": instance_type})
            role.variables |= {key: _trusted(value) for key, value in (task.get("vars") or {}).items()}
            that = task["ansible.builtin.assert"]["that"]
            for claim in that if isinstance(that, list) else [that]:
                assert role.evaluate(str(claim)) is True, (instance_type, task["name"])


def _trusted(value):
    from ansible.template import trust_as_template

    return trust_as_template(value)


@pytest.mark.parametrize("instance_type", GPU_TYPES)
def test_versions_reach_the_types_minimum(instance_type):
    found = software(instance_type)
    role = Role("cuda_nccl", "Ubuntu 24.04", {"instance_type": instance_type})
    assert reaches(role["nvidia_driver_version"], found["driver_minimum"] or "0")
    assert reaches(role["cuda_nccl_cuda_version"], found["cuda_minimum"] or "0")
    assert reaches(role["cuda_nccl_nccl_version"], found["nccl_minimum"] or "0")
    assert reaches(role["efa_version"], found["efa_installer_minimum"] or "0")
    assert found["architecture"]


def together(instance_type, system, **given):
    return Role("nvidia_driver", system, {"instance_type": instance_type, **given})["_nvidia_driver_together"]


@pytest.mark.parametrize(
    ("instance_type", "system", "has", "lacks"),
    [
        ("p5.48xlarge", "Ubuntu 22.04",
         ["linux-headers-6.8.0-1040-aws", "nvidia-open=580.95.05*", "nvidia-fabricmanager=580.95.05*",
          "libnvidia-nscq"], ["nvlsm", "nvidia-persistenced", "nvidia-open-580=580.95.05*"]),
        ("p5.48xlarge", "Debian 12", ["nvidia-open=580.95.05*", "nvidia-persistenced"], ["nvlsm"]),
        ("p6-b200.48xlarge", "Ubuntu 24.04",
         ["nvlsm", "libnvsdm", "infiniband-diags", "linux-modules-extra-6.14.0-1015-aws"], ["libnvidia-nscq"]),
        ("p6-b300.48xlarge", "Amazon 2023",
         ["kernel6.12-devel-6.12.46-66.121.amzn2023.x86_64",
          "kernel6.12-modules-extra-6.12.46-66.121.amzn2023.x86_64", "nvidia-open-580.95.05*"],
         ["kernel-devel-6.12.46-66.121.amzn2023.x86_64"]),
        ("p6e-gb200.36xlarge", "Ubuntu 24.04", ["nvidia-imex=580.95.05*"],
         ["nvlsm", "nvidia-fabricmanager=580.95.05*"]),
        ("p3dn.24xlarge", "Debian 12", ["cuda-drivers=580.95.05*"], ["nvidia-open=580.95.05*"]),
        ("g7.48xlarge", "Ubuntu 24.04", ["nvidia-open=595*", "nvidia-persistenced"], ["nvidia-fabricmanager=595*"]),
        ("g5.xlarge", "Debian 12", ["nvidia-open=580.95.05*"], ["nvidia-fabricmanager=580.95.05*", "nvidia-imex"]),
    ],
)  # fmt: skip
def test_packages_of_the_driver(instance_type, system, has, lacks):
    found = together(instance_type, system)
    assert set(has) <= set(found), found
    assert not set(lacks) & set(found), found


def test_ubuntus_own_packages_bring_the_modules_of_the_aws_kernel():
    found = together("p5.48xlarge", "Ubuntu 24.04", nvidia_driver_source="distribution", nvidia_driver_version="580")
    assert found[:3] == [
        "nvidia-headless-no-dkms-580-server-open=580*",
        "nvidia-utils-580-server=580*",
        "linux-modules-nvidia-580-server-open-aws",
    ]
    assert not [name for name in found if name.startswith("linux-headers")]


def test_the_stream_of_amazon_linux_names_branch_and_flavour():
    role = Role("nvidia_driver", "Amazon 2023", {"instance_type": "p5.48xlarge"})
    assert role["_nvidia_driver_stream"] == "580-open"
    old = Role("nvidia_driver", "Amazon 2023", {"instance_type": "p3dn.24xlarge"})
    assert old["_nvidia_driver_stream"] == "580-dkms"


def test_headers_of_amazons_first_kernel_have_no_number():
    role = Role("nvidia_driver", "Amazon 2023", {"instance_type": "p5.48xlarge"})
    role.variables["ansible_facts"]["kernel"] = "6.1.148-173.267.amzn2023.x86_64"
    assert role["_nvidia_driver_headers"] == "kernel-devel-6.1.148-173.267.amzn2023.x86_64"


def test_peer_memory_is_by_dma_buf_with_the_open_module():
    assert {
        tuple(software(name)["efa_modules"]) for name in GPU_TYPES if software(name)["kernel_module"] == "open"
    } == {("efa",)}


@pytest.mark.parametrize("instance_type", GPU_TYPES)
def test_modules_of_the_switches_management_are_loaded_where_nvlsm_runs(instance_type):
    """nvidia-fabricmanager-start.sh finds the switches of B200 and B300 by ib_umad, and mlx5_ib has to be there for it."""
    role = Role("nvidia_driver", "Ubuntu 24.04", {"instance_type": instance_type, "groups": {}, "hostvars": {}})
    lines = [line for line in role.file("modules-load.j2").splitlines() if not line.startswith("#")]
    assert lines == (["mlx5_ib", "ib_umad"] if instance_type.startswith(("p6-b200", "p6-b300")) else [])


def test_gdrcopy_comes_where_rdma_reads_the_gpu():
    wants = {name for name in known_types() if software(name)["gdrcopy"]}
    assert {"p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge"} <= wants
    assert not {"g5.xlarge", "p3dn.24xlarge", "trn1.32xlarge"} & wants


def test_dnf_locks_the_running_kernel_under_both_of_amazons_names():
    lock = next(task for task in tasks("base") if "community.general.dnf_versionlock" in task)
    given = lock["community.general.dnf_versionlock"]["name"]
    running = Role("base", "Amazon 2023").variables["ansible_facts"]["kernel"]
    assert [name.replace("{{ ansible_facts.kernel }}", running) for name in given] == [
        f"kernel-{running}",
        f"kernel[0-9]*-{running}",
    ]


@pytest.mark.parametrize("name", ["libnccl2", "libnccl-dev", "datacenter-gpu-manager-4-cuda13", "linux-image-aws"])
def test_upgrades_leave_nccl_dcgm_and_kernel(name):
    held = Role("base", "Ubuntu 24.04")["base_held_packages"]
    assert any(name.startswith(prefix) for prefix in held)


def applied(play):
    return [task for task in play["tasks"] if "block" in task]


@pytest.mark.parametrize("instance_type", TYPES)
def test_a_type_gets_only_roles_for_what_it_has(instance_type):
    """g5.xlarge has no EFA, inf2 no disks, trn1 no GPU: a role that asks for what is not there would fail the node."""
    play = yaml.safe_load((ROLES.parent / "playbooks/site.yml").read_text())[-1]
    runs = {}
    for entry in applied(play):
        role = Role("base", "Ubuntu 24.04", {"instance_type": instance_type}, groups={"slurm_controller": []})
        role.variables |= {
            "refused": [],
            "group_names": [entry["vars"]["flightline_role"]],
            "has": _trusted(play["vars"]["has"]),
        }
        runs[entry["vars"]["flightline_role"]] = role.evaluate(entry["when"])
    found = software(instance_type)
    assert runs["efa"] is found["efa"]
    assert runs["instance_store"] is found["nvme"]
    assert runs["nvidia_driver"] is runs["dcgm"] is runs["cuda_nccl"] is not found["neuron"]
    assert runs["base"] is runs["flightline_node"] is True
    assert runs["slurm"] is False


def test_slurm_runs_where_the_stack_has_a_controller():
    play = yaml.safe_load((ROLES.parent / "playbooks/site.yml").read_text())[-1]
    entry = next(entry for entry in applied(play) if entry["vars"]["flightline_role"] == "slurm")
    for groups, wanted in (({"slurm_controller": []}, False), ({"slurm_controller": ["head"]}, True)):
        role = Role("slurm", "Ubuntu 24.04", {"group_names": ["slurm"], "groups": groups})
        assert role.evaluate(entry["when"]) is wanted


def test_huge_pages_are_left_to_efa_unless_asked_for():
    assert "nr_hugepages" not in Role("base", "Ubuntu 24.04").file("sysctl.conf.j2")
    assert "vm.nr_hugepages = 64" in Role("base", "Ubuntu 24.04", {"base_hugepages": "64"}).file("sysctl.conf.j2")


@pytest.mark.parametrize(
    ("user", "orchestrator", "wanted"), [("ec2-user", "slurm", 1), ("ec2-user", "none", 0), ("ubuntu", "slurm", 0)]
)
def test_slurm_on_amazon_linux_is_refused_before_any_node_is_touched(user, orchestrator, wanted):
    found = stack.configure_mistakes({"node_user": user, "orchestrator": orchestrator})
    assert len(found) == wanted
    assert all("no Slurm" in text and "do" not in text.split()[:1] for text in found)


def test_configure_asks_for_what_the_roles_cannot_do():
    site = yaml.safe_load((ROLES.parent / "playbooks/site.yml").read_text())
    assert site[0]["vars"]["flightline_configures"] is True


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_images_driver_stays_an_images_when_another_role_adds_the_repository(system):
    """What says that a driver is ours is written by the driver's own installation and by nothing else."""
    mark = Role("nvidia_driver", system)["_nvidia_driver_mark"]
    assert "sources.list.d" not in mark
    assert "yum.repos.d" not in mark
    written = [task for task in tasks("nvidia_driver") if "_nvidia_driver_mark" in str(task)]
    assert {task["name"] for task in written} == {
        "Look for this role's own mark and for packages",
        "Keep the driver at its version",
    }
