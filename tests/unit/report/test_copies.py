"""What is to be copied: right for Ansible and Slurm, and harmless in a shell whatever a host is called."""

import shlex
import subprocess

import pytest

from flightline.report.copies import of_hosts, slurm_list

HOSTILE = [
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a' ; touch pwned ; '", 'a" && touch pwned', "a\ntouch pwned", "-oProxyCommand=x",
    "--extra-vars=x", "@/etc/passwd", "!all", "all:&b", "~.*", "a[0]", "a,b", "*", "", " ", "\u202egpu", "gpu\x1b[31m", "gpu-\u0661",
]  # fmt: skip


def test_the_hosts_as_ansible_and_slurm_want_them():
    found = of_hosts(["gpu-003", "gpu-004", "gpu-007", "head"], "flightline r1 no-go")
    assert found.limit == "--limit gpu-003,gpu-004,gpu-007,head"
    assert found.drain == "scontrol update NodeName='gpu-[003-004,007],head' State=DRAIN Reason='flightline r1 no-go'"
    assert (found.hosts, found.unnamed) == ("gpu-003 gpu-004 gpu-007 head", 0)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_in_no_command_and_is_counted(name):
    found = of_hosts([name, "gpu-1"], "r1")
    assert (found.limit, found.hosts, found.unnamed) == ("--limit gpu-1", "gpu-1", 1)
    assert "gpu-1 " in found.drain and (not name.strip() or name not in found.drain)


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_shell_runs_nothing_of_a_hostile_reason(tmp_path, reason):
    line = of_hosts(["gpu-1"], reason).drain
    script = f"scontrol() {{ printf '%s\\n' \"$@\"; }}; {line}"
    done = subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [word.partition("=")[0] for word in done.stdout.splitlines()] == ["update", "NodeName", "State", "Reason"]
    assert list(tmp_path.iterdir()) == [] and len(shlex.split(line)) == 5


def test_only_hostile_names_make_no_command():
    found = of_hosts(HOSTILE, "r1")
    assert (found.limit, found.drain, found.hosts, found.unnamed) == ("", "", "", len(HOSTILE))


@pytest.mark.parametrize(
    ("hosts", "wanted"),
    [
        (["gpu-9", "gpu-10"], "gpu-[9-10]"),
        (["ip-10-0-0-7.ec2.internal", "ip-10-0-0-9.ec2.internal"], "ip-10-0-0-[7,9].ec2.internal"),
        (["10.0.0.5", "10.0.0.6"], "10.0.0.[5-6]"),
        (["a", "b"], "a,b"),
        (["gpu-1"], "gpu-1"),
    ],
)
def test_slurm_s_host_list(hosts, wanted):
    assert slurm_list(hosts) == wanted
