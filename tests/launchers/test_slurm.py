"""`flightline preflight --via slurm` on a real slurmctld and slurmd; the nodes' tools are simulated."""

import pytest

from tests.beds import BIN, ran, until

VIA = ("--via", "slurm")
OF_ONE_RUN = ("call_id", "started_at", "seconds", "library_cpu_s", "probes", "evidence")


def judged(fleet):
    """What was found of each host, without what differs from run to run."""
    rows = {}
    for host, record in fleet.rows().items():
        rows[host] = {name: value for name, value in record.items() if name not in OF_ONE_RUN}
    return rows


def found_alike(by_launcher, by_ansible):
    """The same nodes were judged the same, but for what was measured at another moment."""
    for host, record in by_ansible.items():
        found, wanted = by_launcher[host].pop("findings"), record.pop("findings")
        assert [(one["check"], one["status"]) for one in found] == [(one["check"], one["status"]) for one in wanted]
        assert by_launcher[host] == {**record, "measures": by_launcher[host]["measures"]}


def test_verdict_and_findings_are_those_of_ansible(fleet):
    first, by_ansible = fleet.preflight()[0], judged(fleet)
    second, said = fleet.preflight(*VIA)
    assert first == second == 1 and "NO-GO  6 of 8 nodes go, 2 no-go" in said, said
    found_alike(judged(fleet), by_ansible)


def test_the_inventory_may_say_who_asks(fleet):
    fleet.set(lambda demo: demo["vars"].update(flightline_via="slurm"))
    fleet.slurm.run("scontrol", "update", "NodeName=n5", "State=DRAIN", "Reason=bad gpu")
    status, said = fleet.preflight()
    assert status == 1 and "drained (bad gpu)" in fleet.rows()["gpu-05"]["findings"][0]["message"], said
    status, said = fleet.preflight("--via", "ansible")
    assert fleet.rows()["gpu-05"]["verdict"] == "go", said


def test_a_node_that_slurm_will_not_start_on_is_a_row_with_slurms_reason(fleet):
    fleet.slurm.run("scontrol", "update", "NodeName=n5", "State=DRAIN", "Reason=bad gpu")
    fleet.set(lambda demo: demo["hosts"]["gpu-08"].update(slurm_node_name="n99"))
    status, said = fleet.preflight(*VIA)
    rows = fleet.rows()
    assert status == 1 and rows["gpu-01"]["verdict"] == "go", said
    assert "drained (bad gpu)" in rows["gpu-05"]["findings"][0]["message"]
    assert "Slurm has no node n99" in rows["gpu-08"]["findings"][0]["message"]
    assert {rows[host]["findings"][0]["status"] for host in ("gpu-05", "gpu-08")} == {"UNREACHABLE"}
    assert rows["n8"]["findings"][0]["check"] == "absent", "Slurm's own list is part of the truth"


def test_a_busy_node_is_asked_when_it_is_free(fleet):
    fleet.slurm.sleep_on("n2", 6)
    fleet.preflight(*VIA)
    assert fleet.rows()["gpu-02"]["verdict"] == "go"


def test_a_node_that_stays_busy_is_unreachable_at_the_deadline_and_its_job_lives(fleet):
    job = fleet.slurm.sleep_on("n2")
    status, said = fleet.preflight(*VIA, "--timeout", "5")
    rows = fleet.rows()
    assert status == 1 and rows["gpu-02"]["findings"][0]["status"] == "UNREACHABLE", said
    assert rows["gpu-01"]["verdict"] == "go"
    assert fleet.slurm.job_state(job) == "RUNNING"
    assert fleet.slurm.run("squeue", "-h", "-o", "%j").stdout.split() == ["sleeper"], "ours has left the queue"


def test_a_node_without_the_library_says_what_to_do(fleet):
    fleet.without_library(*VIA)


def test_an_interrupted_run_judges_what_it_has_and_leaves_no_job(fleet):
    fleet.slurm.sleep_on("n2")
    fleet.interrupted(*VIA)
    rows = fleet.rows()
    assert rows["gpu-01"]["verdict"] == "go" and rows["gpu-02"]["verdict"] == "no-go"
    jobs = lambda: fleet.slurm.run("squeue", "-h", "-o", "%j").stdout.split()  # noqa: E731
    until(lambda: jobs() == ["sleeper"], 20, "ours has left the queue")


def test_two_hosts_of_one_slurm_node_are_refused_before_any_is_asked(fleet):
    fleet.set(lambda demo: demo["hosts"]["gpu-02"].update(slurm_node_name="n1"))
    status, said = fleet.preflight(*VIA)
    assert status == 2 and "n1" in said and "gpu-02" in said and "Traceback" not in said


def test_without_slurm_it_says_what_is_missing(fleet, tmp_path):
    argv = (BIN / "flightline", "preflight", "-i", fleet.inventory, "--store", tmp_path / "s.sqlite", *VIA)
    done = ran(*argv, env={**fleet.env, "PATH": str(tmp_path)}, timeout=120)
    assert done.returncode == 2 and "sinfo" in done.stderr and "head node" in done.stderr, done.stderr
    assert done.stderr.count("saw ") == 1, done.stderr


@pytest.mark.parametrize("option", ["--reservation=nobody", "--partition=nowhere"])
def test_what_srun_refuses_is_said_in_its_words(fleet, option):
    status, _ = fleet.preflight(*VIA, "--via-option", option)
    (finding,) = fleet.rows()["gpu-01"]["findings"]
    assert status == 1 and finding["status"] == "UNREACHABLE" and "srun" in finding["message"], finding
