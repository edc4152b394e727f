"""Mode act as a service on real hosts: a fault, the drain, the end of the job, a reboot, the proof, the return.

Real: systemd, sshd, slurmctld, slurmd, a job, the watcher, the remediator's unit and its Ansible, the reboot of a machine.
A pipe stands in for /dev/kmsg of the sick node, for its kernel is the outer machine's.
"""

import json
import os
import shutil

import pytest
import yaml

from tests.beds import until

from .bed import layout
from .shelf import HOST_CHECKS

pytestmark = pytest.mark.skipif("FLIGHTLINE_HEALING_HOSTS" not in os.environ, reason="minutes: make healing-hosts")

HEAD, SICK, OTHER = "gpu-01", "gpu-02", "gpu-03"
TAGS = ["cluster_ssh", "slurm", "flightline_node", "flightline_watch"]
KEY = "/etc/flightline/remediate.key"
PIPE = "/var/lib/flightline/kmsg"
FAULT = "EXT4-fs (nvme1n1): Remounting filesystem read-only"
CHECKS = [*(check for check in HOST_CHECKS if check != "sysctl"), "kernel_errors"]
"""The role base is left out, and with it the kernel's parameters."""
DMESG = "#!/bin/sh\n# Simulated: a container may not read the kernel's log.\necho '[    0.000000] Linux version 6.1.0-1-amd64'\n"
LEDGER = "/usr/local/bin/flightline incidents --json"
WAIT_S = 420.0


@pytest.fixture(scope="module")
def acting(bed):
    """The bed with Slurm and watchers, and a remediator in mode act on its head node alone."""
    acts = {"flightline_remediate_mode": "act", "flightline_remediate_every_s": 10}
    variables = bed.inventory.parent / "host_vars"
    variables.mkdir()
    for name in bed.hosts:
        mine = {"flightline_node_checks": CHECKS, **(acts if name == HEAD else {})}
        (variables / f"{name}.yml").write_text(yaml.safe_dump(mine))
        bed.ssh(name, f"printf '%s' \"{DMESG}\" > /usr/local/sbin/dmesg && chmod 755 /usr/local/sbin/dmesg")
    try:
        assert bed.converge(tags=TAGS).status == 0
        key = (layout.STATE / "id_ed25519").read_text()
        bed.ssh(HEAD, f"mkdir -p /etc/flightline && umask 077 && cat > {KEY} <<'END'\n{key}END\nchown slurm {KEY}")
        played = bed.converge(limit=f"{HEAD},{SICK},{OTHER}", tags=["flightline_remediate"])
        assert played.status == 0, played.output[-3000:]
        bed.ssh(OTHER, "systemctl disable --now flightline-remediate", check=False)
        yield bed
    finally:
        shutil.rmtree(variables)


def incidents(bed):
    found = bed.ssh(HEAD, LEDGER, check=False)
    return json.loads(found[found.index("{") : found.rindex("}") + 1])["incidents"] if "{" in found else []


def show(bed):
    """Where it stands, for a message."""
    return bed.ssh(HEAD, "journalctl -u flightline-remediate -n 60 --no-pager; sinfo -N -o '%N %T %E'", check=False)


def test_a_node_leaves_and_returns_healed_without_a_person(acting):
    bed = acting
    as_service = "systemd-run -q --wait --pipe -p User=slurm -p EnvironmentFile=/etc/flightline/remediate.env "
    as_service += "-p Environment=HOME=/var/lib/flightline-remediate -p WorkingDirectory=/var/lib/flightline-remediate "
    said = bed.ssh(
        HEAD, as_service + "/usr/local/bin/flightline preflight -i /etc/flightline/remediate.yml", check=False
    )
    assert "4 of 4" in said or "4 go" in said, said

    bed.ssh(SICK, f"mkfifo {PIPE}")
    edit = f"import json; p='/etc/flightline/watch.json'; s=json.load(open(p)); s['kmsg']='{PIPE}'; json.dump(s,open(p,'w'))"
    bed.ssh(SICK, f'python3 -c "{edit}" && systemctl restart flightline-watch')
    job = bed.ssh(HEAD, f"sbatch --parsable -w {SICK} -o /dev/null --wrap 'sleep 150'").split()[0]
    assert until(lambda: "R" in bed.ssh(HEAD, f"squeue -h -j {job} -o %t"), 60, every_s=1)
    boot = bed.ssh(SICK, "cat /proc/sys/kernel/random/boot_id")
    bed.ssh(SICK, f"echo '3,7,7000,-;{FAULT}' > {PIPE}")

    state = lambda: bed.ssh(HEAD, f"sinfo -h -N -n {SICK} -o '%T|%E'")  # noqa: E731
    assert until(lambda: "flightline: kernel_errors" in state(), 30, every_s=1), state()
    assert "R" in bed.ssh(HEAD, f"squeue -h -j {job} -o %t"), "the drain ends no job"
    closed = until(lambda: [one for one in incidents(bed) if one["closed_at"]], WAIT_S, every_s=1)
    assert closed, show(bed)
    events = [event["what"] for event in closed[0]["events"]]
    assert events[-1] == "returned", (events, show(bed))
    assert [what for what in events if what != "noted"] == [
        "detected", "quarantined", "drained", "repairing", "repaired", "verified", "returned",
    ]  # fmt: skip
    assert [(one["step"], one["outcome"]) for one in closed[0]["attempts"]] == [("REBOOT", "done")]
    assert bed.ssh(SICK, "cat /proc/sys/kernel/random/boot_id") != boot
    assert "drain" not in state().lower(), state()
    assert "not in quarantine" in bed.ssh(
        SICK, "PYTHONPATH=/opt/flightline/flightline-node.pyz python3 -m flightline_node watch --status"
    )
    assert bed.ssh(HEAD, f"srun --immediate=120 -w {SICK} hostname").strip() == SICK
