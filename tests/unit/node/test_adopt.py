"""Adoption, its pure parts: somebody else's slurm.conf comes back to the byte, and hooks keep to Slurm's time."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightline_node.adopt import found, plan, slurm_conf
from flightline_node.adopt.program import text
from flightline_node.model import SettingsError
from tests.unit.made import program

TEXTS = {name: text(name) for name in plan.FILES}
LINES = st.sampled_from(
    ["Prolog=/a\n", "  prolog = /b # x\n", "SchedulerParameters=a,b=1\r\n", "# Prolog=/c\n", "\n", "NodeName=n[1-2] CPUs=1\n",
     "# \x85Prolog=/d\n", "HealthCheckInterval=5\n", slurm_conf.MARK[:-2] + "\n", "include x\n", "ende"]
)  # fmt: skip
SETTINGS = {"Prolog": "/ours", "HealthCheckProgram": "/too", "SchedulerParameters": "a,b=1,nohold_on_prolog_fail"}


@given(st.lists(LINES).map("".join), st.sampled_from(["", "\n"]), st.booleans())
def test_a_file_comes_back_to_the_byte_and_a_second_time_changes_nothing(lines, end, main):
    whole = lines + end
    ours = slurm_conf.with_settings(whole, SETTINGS, main)
    assert slurm_conf.without(ours) == whole
    assert slurm_conf.with_settings(slurm_conf.without(ours), SETTINGS, main) == ours
    active = [line for line in ours.split("\n") if line.lstrip().lower().startswith(("prolog=", "prolog ="))]
    assert active == (["Prolog=/ours"] if main else [])


def test_what_a_person_wrote_after_the_adoption_stays():
    ours = slurm_conf.with_settings("Prolog=/a", SETTINGS, True)
    assert slurm_conf.without(ours + "NodeName=n3\n") == "Prolog=/a\nNodeName=n3\n"


@pytest.mark.parametrize("line", ["Prolog=/a Epilog=/b", "SchedulerParameters=a,\\"])
def test_a_line_that_cannot_be_put_aside_is_refused(tmp_path, line):
    path = tmp_path / "slurm.conf"
    path.write_text(f"{line}\nb\n")
    with pytest.raises(SettingsError, match="line 1"):
        slurm_conf.read(str(path))


def test_the_last_value_of_all_files_counts(tmp_path):
    main = tmp_path / "slurm.conf"
    main.write_text("ClusterName=c\nProlog=/a\ninclude %c.conf\ninclude missing.conf\n")
    (tmp_path / "c.conf").write_text('PROLOG=/b # ours\nSchedulerParameters="x"\n')
    read = slurm_conf.read(str(main))
    assert (read.values["Prolog"], read.values["SchedulerParameters"]) == ("/b", "x") and len(read.files) == 2


HERE = found.Found("", found.SLURM, ("n1",), "/etc/slurm/slurm.conf", "/usr/bin", "22.05.8", ("head",))


def conf(**values):
    return slurm_conf.SlurmConf({"/etc/slurm/slurm.conf": "ClusterName=c\n"}, values)


@pytest.mark.parametrize(
    ("prolog", "beside", "wanted"),
    [("/a/prolog.d/*", ["90_site"], "/a/prolog.d/00_flightline"), ("/a/prolog.d/*", ["00_a"], "/a/prolog.d/000000_flightline"),
     ("/a/prolog.d/*", ["00_flightline"], "/a/prolog.d/00_flightline"), ("/a/p*.sh", [], ""), ("", [], "")],
)  # fmt: skip
def test_a_directory_gets_a_program_that_slurm_comes_to_last_and_all_else_a_chain(prolog, beside, wanted):
    made = plan.of_conf(HERE, conf(Prolog=prolog), beside, TEXTS)
    dropped = [one.path for one in made.files if not one.edits]
    assert dropped == ([wanted] if wanted else [])
    text = next(one.data.decode() for one in made.files if one.edits)
    assert ("Prolog=" + plan.HOOKS["prolog"] in text) == (not wanted)
    assert "HealthCheckInterval=300" in text and "SchedulerParameters=nohold_on_prolog_fail" in text


def test_a_prolog_without_room_for_two_is_refused():
    with pytest.raises(SettingsError, match="PrologEpilogTimeout"):
        plan.hook("prolog", HERE, conf(PrologEpilogTimeout="10"), TEXTS)


@pytest.mark.parametrize(
    ("who", "takes", "most", "check", "status", "given"),
    [("prolog", 0, "60", 0, 0, 30), ("prolog", 0, "60", 1, 1, 30), ("prolog", 0, "20", 0, 0, 14), ("prolog", 2, "20", 0, 0, 12),
     ("health", 0, "", 0, 0, 30), ("health", 0, "", 1, 0, 30)],
)  # fmt: skip
def test_both_share_slurms_time_and_ours_comes_second(tmp_path, who, takes, most, check, status, given):
    """The hook itself, with a check that notes how long it may take."""
    for name in ("sinfo", "scontrol", "logger"):
        program(tmp_path / name, "exit 0")
    own = program(tmp_path / "site", f"sleep {takes}; echo site >>{tmp_path}/said")
    ours = program(tmp_path / "flightline-check", f"echo $1 >>{tmp_path}/said; echo 'flightline: go'; exit {check}")
    key = "Prolog" if who == "prolog" else "HealthCheckProgram"
    text = plan.hook(who, HERE._replace(bin=str(tmp_path)), conf(**{key: str(own), "PrologEpilogTimeout": most}), TEXTS)
    hook = program(tmp_path / "hook", "")
    hook.write_text(text.replace("/usr/local/sbin/flightline-check", str(ours)))
    assert subprocess.run([hook], env={"SLURMD_NODENAME": "n1"}, check=False).returncode == status
    said = (tmp_path / "said").read_text().split()
    assert said[0] == "site" and given - 2 <= int(said[1]) <= given
    own.write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "said").unlink()
    ended = subprocess.run([hook], env={"SLURMD_NODENAME": "n1"}, check=False).returncode
    assert (ended, (tmp_path / "said").exists()) == ((7, False) if who == "prolog" else (0, True))
