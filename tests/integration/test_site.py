"""playbooks/site.yml on real hosts: converges, changes nothing twice, survives what goes wrong on the way.

The tests run in the order in which they stand: each begins from hosts that the ones before left converged.
"""

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as Xml

import pytest

from tests.beds import ran
from tests.compliance.breaking.mutate import first_of_each
from tests.compliance.breaking.mutations import MUTATIONS

from . import play as plays
from .bed import bed as beds
from .conftest import SITE
from .shelf_gpu import REAL_DRIVER_HOST

BARE = "gpu-04"
"""The machine that tests make bare again."""
TIMEOUT_S = 300
STORE_LINK = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0001"


@pytest.fixture(scope="module")
def first(bed):
    return bed.converge()


def troubles(played):
    """What failed, and the end of the output, for a message."""
    lines = [line for line in played.output.splitlines() if line.startswith(("[ERROR]", "fatal:", "failed:"))]
    return "\n".join([*lines, played.output[-2000:]])


def clean(played, names):
    """Every host went through, and nobody failed."""
    assert played.status == 0, troubles(played)
    assert set(played.recap) == set(names), played.output[-3000:]
    assert all(row.failed == row.unreachable == 0 for row in played.recap.values())


def waited(bed, name, condition, show):
    """Wait until a command succeeds on a machine, as long as a busy machine may need; what `show` prints then."""
    return bed.ssh(name, f"for i in $(seq {TIMEOUT_S}); do {condition} && break; sleep 1; done; {show}")


def test_bare_hosts_become_ready(bed, first):
    clean(first, bed.hosts)


def test_a_second_run_changes_nothing(bed, first):
    second = bed.converge()
    clean(second, bed.hosts)
    assert {name: row.changed for name, row in second.recap.items()} == dict.fromkeys(bed.hosts, 0), second.changed()


def test_a_run_limited_to_one_node_leaves_the_clusters_settings_alone(bed, first):
    before = bed.ssh("gpu-03", "cat /etc/slurm/slurm.conf")
    limited = bed.converge(limit="gpu-03", tags=["slurm"])
    clean(limited, ["gpu-03"])
    assert bed.ssh("gpu-03", "cat /etc/slurm/slurm.conf") == before
    assert limited.recap["gpu-03"].changed == 0, limited.changed()
    assert "no facts in this run of gpu-01, gpu-02, gpu-04" in " ".join(limited.output.split())


def test_check_mode_on_ready_hosts_finds_nothing_to_do(bed, first):
    checked = bed.converge(limit="gpu-03", tags=["base", "instance_store"], options=["--check"])
    clean(checked, ["gpu-03"])
    assert checked.recap["gpu-03"].changed == 0, checked.changed()


def test_the_hosts_comply(bed, first, tmp_path):
    report = tmp_path / "junit.xml"
    argv = [sys.executable, "-m", "pytest", "tests/compliance", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    argv += ["--hosts=ansible://gpu_nodes", f"--ansible-inventory={bed.inventory}"]
    done = ran(*argv, cwd=beds.layout.ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = {case.get("name", "") for case in Xml.parse(report).iter("testcase") if case.find("skipped") is None}
    for name in bed.hosts:
        assert sum(f"ansible://{name}" in case for case in passed) > 100, name


def test_every_compliance_test_can_fail(bed, first):
    """Breaks one thing per test on one host; `make compliance-mutations` breaks the rest and repairs it."""
    host = [name for name in bed.hosts if name not in (REAL_DRIVER_HOST, BARE)][-1]
    argv = [sys.executable, "-m", "tests.compliance.breaking.mutate", "--inventory", str(bed.inventory), "--host", host]
    done = ran(*argv, "--first", cwd=beds.layout.ROOT)
    rows = done.stdout.splitlines()
    odd = "\n".join(row for row in rows if not row.startswith("caught: "))
    assert len([row for row in rows if row.startswith("caught: ")]) == len(first_of_each(MUTATIONS)), odd
    assert "the host is whole again" in rows, odd


def test_the_role_builds_the_node_package_itself(bed, first):
    built = bed.converge(limit="gpu-03", tags=["flightline_node"], variables={"flightline_node_package": ""})
    clean(built, ["gpu-03"])
    assert "go" in bed.ssh("gpu-03", "flightline-check 60 --reason")


def test_the_clock_follows_the_time_source_of_ec2(bed, first):
    assert "169.254.169.123" in bed.ssh("gpu-03", "chronyc waitsync 30 0 0 1 >/dev/null; chronyc -n sources")
    assert bed.ssh("gpu-03", "chronyc -c tracking").split(",")[13].strip() == "Normal"


def test_a_job_runs_on_all_nodes(bed, first):
    answer = bed.ssh("gpu-01", f"srun --nodes={len(bed.hosts)} --immediate=300 hostname")
    assert sorted(answer.split()) == bed.hosts


def test_a_node_that_is_not_fit_is_drained_before_the_job_starts(bed, first):
    bed.ssh("gpu-02", "sysctl -q -w vm.swappiness=60")
    try:
        # It waits for the node until it is cancelled below, and must not keep this connection open.
        bed.ssh("gpu-01", "setsid --fork srun --nodelist=gpu-02 hostname > /dev/null 2>&1 < /dev/null")
        state = waited(bed, "gpu-01", "scontrol show node gpu-02 | grep -q DRAIN", "scontrol show node gpu-02")
    finally:
        bed.ssh("gpu-02", "sysctl -q -w vm.swappiness=1")
        bed.ssh("gpu-01", "scancel --user=root")
        # Until then the node is still completing the job.
        waited(bed, "gpu-01", "! squeue --noheader | grep -q . && ! sinfo -N -h -o %T | grep -q completing", "squeue")
    assert "DRAIN" in state
    assert "flightline: sysctl: vm.swappiness is 60, wanted 1" in state


def test_a_node_that_flightline_drained_comes_back_when_it_passes_and_no_other(bed, first):
    bed.ssh("gpu-01", "scontrol update NodeName=gpu-03 State=DRAIN Reason='disk to be changed'")
    try:
        for name in ("gpu-02", "gpu-03"):
            bed.ssh(name, "/usr/local/libexec/flightline-slurm-health")
        states = dict(row.split() for row in bed.ssh("gpu-01", "sinfo -N -h -o '%N %T'").splitlines())
    finally:
        bed.ssh("gpu-01", "scontrol update NodeName=gpu-03 State=RESUME")
    assert "drain" not in states["gpu-02"], states
    assert "drain" in states["gpu-03"], states


def test_the_mpi_key_starts_the_daemon_without_a_shell_and_nothing_else(bed, first):
    bed.ssh("gpu-02", "printf '#!/bin/sh\\necho \"$@\"\\n' > /usr/bin/orted; chmod 755 /usr/bin/orted")
    user = "sudo -u admin ssh -o ControlPath=none gpu-02"
    assert bed.ssh("gpu-01", f"{user} 'orted -mca ess env; id'").strip() == "-mca ess env; id"
    refused = bed.ssh("gpu-01", f"{user} id", check=False)
    assert "this key starts MPI daemons only" in refused
    assert "uid=" not in refused
    assert "uid=" not in bed.ssh("gpu-01", f"{user} -t < /dev/null", check=False)
    assert "administratively prohibited" in bed.ssh(
        "gpu-01", "sudo -u admin ssh -o ControlPath=none -W localhost:22 gpu-02 </dev/null", check=False
    )
    bed.ssh("gpu-02", "rm /usr/bin/orted")


def test_after_stop_and_start_the_blank_disk_serves_again_and_the_node_was_judged_once(bed, first):
    bed.ssh("gpu-03", "touch /mnt/local/scratch")
    boots = "touch /var/log/flightline/records.jsonl; grep -c run.:.boot-gpu-03- /var/log/flightline/records.jsonl"
    before = int(bed.ssh("gpu-03", boots, check=False))
    beds.restart(bed.machine("gpu-03"), wipe_disk=True)
    # Asked too early systemctl finds no bus, and would not wait. Slurm starts last: after the disk and the node's judgement.
    waited(bed, "gpu-03", "systemctl is-active --quiet slurmd", "systemctl is-active slurmd || true")
    assert "/dev/nvme1n1 /mnt/local xfs" in bed.ssh("gpu-03", "cat /proc/mounts")
    assert bed.ssh("gpu-03", "ls /mnt/local").strip() == ""
    assert json.loads(bed.ssh("gpu-03", "cat /var/lib/flightline/boot-record.json"))["verdict"] == "go"
    assert int(bed.ssh("gpu-03", boots)) == before + 1
    times = "systemctl show flightline-boot slurmd --property=ExecMainExitTimestampMonotonic,ExecMainStartTimestampMonotonic"
    boot, slurmd = (dict(row.split("=") for row in part.split()) for part in bed.ssh("gpu-03", times).split("\n\n"))
    assert 0 < int(boot["ExecMainExitTimestampMonotonic"]) <= int(slurmd["ExecMainStartTimestampMonotonic"])


METADATA = """\
import http.server, os
class Service(http.server.BaseHTTPRequestHandler):
    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_PUT(self):
        self.answer(200, "token")
    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "token":
            self.answer(401, "")
        elif self.path.endswith("spot/instance-action") and os.path.exists("/run/spot-notice"):
            self.answer(200, open("/run/spot-notice").read())
        else:
            self.answer(404, "")
http.server.HTTPServer(("169.254.169.254", 80), Service).serve_forever()
"""
"""A stand-in of EC2's metadata service, version 2 only, at its own address on the machine's loopback."""
TRAINING = """\
[Service]
ExecStart=/bin/sh -c 'trap "touch /run/checkpoint-signal" USR1; while :; do sleep 0.2; done'
"""


def test_a_spot_notice_reaches_training_as_the_checkpoint_signal_and_drains_the_node(bed, first):
    assert bed.ssh("gpu-03", "systemctl is-active flightline-notice").strip() == "active"
    unit = "/run/systemd/system/flightline-train@probe.service"
    bed.ssh("gpu-03", f"cat > /run/metadata.py <<'END'\n{METADATA}END\nmkdir -p {unit.rpartition('/')[0]}")
    bed.ssh("gpu-03", f"cat > {unit} <<'END'\n{TRAINING}END\nsystemctl daemon-reload")
    since = bed.ssh("gpu-03", "date '+%F %T'").strip()
    try:
        bed.ssh("gpu-03", "ip address add 169.254.169.254/32 dev lo")
        bed.ssh("gpu-03", "systemd-run --quiet --unit=metadata-stand-in python3 /run/metadata.py")
        bed.ssh("gpu-03", "systemctl start flightline-train@probe.service")
        waited(bed, "gpu-03", f'journalctl -u flightline-notice --since="{since}" | grep -q "answers again"', "true")
        assert "no" in bed.ssh("gpu-03", "test -e /run/checkpoint-signal || echo no")
        notice = '{"action": "terminate", "time": "2099-01-01T00:00:00Z"}'
        bed.ssh("gpu-03", f"echo '{notice}' > /run/spot-notice")
        seen = waited(bed, "gpu-03", "test -e /run/checkpoint-signal", "ls /run")
        assert "checkpoint-signal" in seen, bed.ssh("gpu-03", "journalctl -u flightline-notice --lines=20")
        drained = "scontrol show node gpu-03 | grep -q 'Reason=this instance ends: spot notice'"
        assert "DRAIN" in waited(bed, "gpu-03", drained, "scontrol show node gpu-03")
    finally:
        bed.ssh("gpu-03", "systemctl stop flightline-train@probe.service metadata-stand-in", check=False)
        bed.ssh("gpu-03", "ip address del 169.254.169.254/32 dev lo", check=False)
        left = f"{unit} /run/metadata.py /run/spot-notice /run/checkpoint-signal"
        bed.ssh("gpu-03", f"rm -f {left}; systemctl daemon-reload; systemctl reset-failed")
        bed.ssh("gpu-03", "scontrol update NodeName=gpu-03 State=RESUME", check=False)


def test_preflight_over_ssh_names_what_is_missing(bed, first, tmp_path):
    report = tmp_path / "report.json"
    program = plays.command(bed.inventory, SITE)[0].replace("ansible-playbook", "flightline")
    argv = [program, "preflight", "-i", str(bed.inventory), "--json", str(report)]
    env = {**plays.environment(), "FLIGHTLINE_STORE": str(tmp_path / "runs.sqlite")}
    done = ran(*argv, cwd=beds.layout.ROOT, env=env)
    assert done.returncode == 1, done.stdout + done.stderr
    assert all(name in done.stdout for name in bed.hosts)
    assert "nvidia-smi" in report.read_text()


def test_an_interrupted_run_converges_when_it_is_started_again(bed, first):
    beds.reset(bed.machine(BARE))
    argv = plays.command(bed.inventory, SITE, limit=BARE, tags=["base"])
    with subprocess.Popen(
        argv, cwd=beds.layout.ROOT, env=plays.environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as control:
        for line in control.stdout:
            # sshd's settings are on disk now, and sshd has not been told.
            if "Let journal, clock and sshd take their settings" in line:
                os.killpg(control.pid, signal.SIGKILL)
                break
        else:
            pytest.fail("the run ended before it could be interrupted")
    before = bed.ssh(BARE, "systemctl show ssh --property=StateChangeTimestampMonotonic")
    clean(bed.converge(limit=BARE, tags=["base"]), [BARE])
    assert bed.ssh(BARE, "systemctl show ssh --property=StateChangeTimestampMonotonic") != before
    again = bed.converge(limit=BARE, tags=["base"])
    assert again.recap[BARE].changed == 0, again.changed()


def refused(played):
    """The message of the task that failed."""
    assert played.status != 0, played.output[-2000:]
    assert played.recap[BARE].failed == 1
    return " ".join(played.output.split())


def test_a_full_disk_is_named_and_the_run_goes_on_when_it_is_free(bed, first):
    bed.ssh(BARE, "mount -t tmpfs -o size=1m tmpfs /var/cache")
    try:
        said = refused(bed.converge(limit=BARE, tags=["base"]))
    finally:
        bed.ssh(BARE, "umount /var/cache")
    assert "seen: 1 MiB free on /var/cache; wanted: 1024 MiB; do: free space there" in said
    clean(bed.converge(limit=BARE, tags=["base"]), [BARE])


def test_another_system_is_named_and_nothing_is_changed(bed, first):
    bed.ssh(BARE, "cp -a /etc/debian_version /root/; cp --remove-destination /usr/lib/os-release /etc/os-release")
    bed.ssh(BARE, "sed -i s/12/11/ /etc/os-release; echo 11.11 > /etc/debian_version")
    try:
        played = bed.converge(limit=BARE, tags=["base"])
    finally:
        bed.ssh(BARE, "cp -a /root/debian_version /etc/; ln -sf ../usr/lib/os-release /etc/os-release")
    assert "seen: Debian 11; wanted: one of Amazon 2023, Debian 12" in refused(played)
    assert played.recap[BARE].changed == 0


def test_stray_tests_and_diagnostics_are_removed_and_reported(bed, first):
    bed.ssh("gpu-02", "mkdir -p /tmp/flightline-left /tmp/flightline-new; cp /bin/sleep /tmp/all_reduce_perf")
    bed.ssh("gpu-02", "touch -d '10 days ago' /tmp/flightline-left")
    bed.ssh("gpu-02", "setsid --fork /tmp/all_reduce_perf 3600 > /dev/null 2>&1 < /dev/null")
    waited(bed, "gpu-02", "pgrep -x all_reduce_perf", "pgrep -x all_reduce_perf")
    playbook = beds.layout.ROOT / "playbooks" / "cleanup.yml"
    clean(bed.converge(playbook, limit="gpu-02"), ["gpu-02"])
    there = bed.ssh("gpu-02", "pgrep -x all_reduce_perf; ls -d /tmp/flightline-*")
    assert there.split()[0].isdecimal() and there.split()[1:] == ["/tmp/flightline-new"], "young: may be a run's"
    cleaned = bed.converge(playbook, limit="gpu-02", variables={"cleanup_min_age_hours": 0})
    clean(cleaned, ["gpu-02"])
    assert '"stopped": ["all_reduce_perf"]' in " ".join(cleaned.output.split()).replace("[ ", "[").replace(" ]", "]")
    assert bed.ssh("gpu-02", "pgrep -x all_reduce_perf; ls -d /tmp/flightline-*", check=False).count("all_reduce") == 0
    assert "No such file" in bed.ssh("gpu-02", "ls -d /tmp/flightline-*", check=False)


def test_no_instance_disks_is_named(bed, first):
    bed.ssh(BARE, f"mv {STORE_LINK} /root/")
    try:
        said = refused(bed.converge(limit=BARE, tags=["instance_store"]))
    finally:
        bed.ssh(BARE, f"mv /root/{STORE_LINK.rsplit('/', 1)[1]} {STORE_LINK}")
    assert "saw: no instance-store disks; wanted: at least one; do: use an instance type with NVMe" in said
    clean(bed.converge(limit=BARE, tags=["instance_store"]), [BARE])


def test_an_unreachable_repository_is_named_and_stops_no_other_host(bed, first):
    beds.reset(bed.machine(BARE))
    bed.ssh(BARE, "sed -i 's/:3142/:3143/' /etc/apt/apt.conf.d/81proxy")
    played = bed.converge(limit=f"gpu-03,{BARE}", tags=["base"])
    said = refused(played)
    assert "wanted: every repository of this host answers" in said
    assert any(f"{words} connect to {beds.layout.GATEWAY}:3143" in said for words in ("nable to", "ould not"))
    assert (played.recap["gpu-03"].failed, played.recap[BARE].failed) == (0, 1)
    beds.reset(bed.machine(BARE))
    clean(bed.converge(limit=BARE, tags=["base"]), [BARE])
