"""An empty host that gets nothing but its user data: it configures itself, is judged, and only then serves.

What runs is cloud-init, the boot's unit and script, the AWS CLI, ansible-core from the bundle, the roles and the node library.
Simulated: AWS (moto, and a model of the launch hook), the metadata service, the vendors' packages. No GPU: of the checks the
node is judged by those that a machine of the bed can pass, until a test wants them all.
"""

import json
import time

import pytest

from tests.integration.bed import bed as beds
from tests.integration.bed import layout, machine
from tests.unit.functions import samples

from . import machines

ONE, OTHER = layout.machine(1), layout.machine(2)
ALONE = '\\"checks\\": []'
HOST_ONLY = '\\"checks\\": [\\"disk_space\\", \\"uptime\\"]'
"""In the user data, where JSON stands inside JSON."""


@pytest.fixture(scope="module")
def unconfigured(site):
    """User data of the same stack with configureAtBoot: false; judged by all checks, of which no machine here passes most."""
    planned = site.account.plan_again("by-hand", {"configureAtBoot": False})
    return site.account.user_data(planned)


@pytest.fixture(scope="module")
def judged_by_the_host(unconfigured):
    assert unconfigured.count(ALONE) == 1
    return unconfigured.replace(ALONE, HOST_ONLY)


def order(site):
    """Positions of the calls that an ABANDON rests on, and of the ABANDON."""
    names = ("/bundle/", "/outcome.json", "ABANDON")
    return [next(at for at, call in enumerate(site.hook.calls) if name in call) for name in names]


def test_a_node_without_gpus_is_kept_out_and_the_message_says_what_is_missing(site, unconfigured):
    instance = site.launch(ONE, user_data=unconfigured)
    assert site.decided(instance) == "Terminated", site.journal(instance)
    assert order(site) == sorted(order(site)), "what an ABANDON rests on comes first: then the instance is gone"
    kept = site.account.objects(instance)
    record = json.loads(kept["record.json"])
    assert (record["verdict"], record["instance_id"], record["instance_type"]) == ("no-go", instance, "p5.4xlarge")
    assert any(name.startswith("bundle/") for name in kept)
    (told,) = site.account.told()
    for word in (instance, "no_go_at_boot", "gpu_count", f"s3://{site.account.bucket}/{site.account.boots(instance)}"):
        assert word in told


def test_a_go_enters_service_and_a_no_go_after_a_reboot_is_told_and_stops_nothing(site, judged_by_the_host):
    instance = site.launch(ONE, user_data=judged_by_the_host)
    assert site.decided(instance) == "InService", site.journal(instance)
    assert site.account.told() == []
    boots = len(site.boots(instance))
    machines.ssh(ONE, 'sed -i \'s/"checks": \\[[^]]*\\]/"checks": ["gpu_count"]/\' /etc/flightline/node.json; sync')
    site.hook.calls.clear()
    beds.restart(ONE)
    site.boots(instance, more_than=boots)
    (told,) = site.account.told()
    assert "no-go after a reboot" in told and "gpu_count" in told
    assert site.hook.state[instance] == "InService"
    assert not {"ABANDON", "CONTINUE"} & set(site.hook.calls)


def test_a_machine_that_dies_while_it_boots_is_given_up_by_the_hook_and_told(site, unconfigured):
    site.hook.limit_s = 1.0
    try:
        instance = site.launch(ONE, user_data=unconfigured)
        machine.stop(ONE)
        assert site.decided(instance) == "Terminated"
    finally:
        site.hook.limit_s = 1200.0
    assert site.hook.calls[-1] == "timeout"
    group = site.account.outputs["node_group"]
    told = site.account.told(samples.launch(instance=instance, event_id="died", AutoScalingGroupName=group))
    assert any(instance in text for text in told)


def test_a_bundle_that_is_not_there_is_told_and_nothing_is_applied(site):
    site.front.refused.add("/artifacts/flightline-roles-")
    try:
        instance = site.launch(ONE)
        assert site.decided(instance) == "Terminated", site.journal(instance)
    finally:
        site.front.refused.clear()
    assert "could not be fetched or have another checksum" in site.account.told()[0]
    assert "configure.log" not in site.account.objects(instance)


def test_a_bundle_that_somebody_changed_is_not_applied(site):
    with site.account.changed_bundle():
        instance = site.launch(ONE)
        assert site.decided(instance) == "Terminated", site.journal(instance)
    assert "could not be fetched or have another checksum" in site.account.told()[0]
    assert not any(name.endswith("configure.log") for name in site.account.objects(instance))


@pytest.mark.parametrize(
    ("site_says", "limit_s", "told", "log"),
    [
        ({"base_hugepages": "many"}, 1800, "the roles could not be applied", "base_hugepages"),
        ({}, 3, "not applied within configureMinutes", ""),
    ],
)
def test_roles_that_fail_or_hang_keep_the_node_out(site, site_says, limit_s, told, log):
    user_data = site.account.user_data()
    if site_says:
        planned = site.account.plan_again("broken", {}, site_says)
        site.account.deliver_artifacts(planned)
        user_data = site.account.user_data(planned)
    instance = site.launch(ONE, user_data=user_data.replace("CONFIGURE_S='1800'", f"CONFIGURE_S='{limit_s}'"))
    assert site.decided(instance) == "Terminated", site.journal(instance)
    assert told in site.account.told()[0]
    kept = {name.rpartition("/")[2]: body for name, body in site.account.objects(instance).items()}
    assert log in kept["configure.log"].decode()


def test_the_end_of_a_capacity_block_is_told_and_ends_relaunching(site):
    detail = {"capacity-reservation-id": "cr-0123456789abcdef0", "end-date": "2026-11-21T11:30:00Z"}
    told = site.account.told(samples.bridge("Capacity Block Reservation Expiration Warning", "aws.ec2", detail))
    assert "Write a checkpoint now" in told[0]
    assert site.account.suspended() == ["Launch"]


def test_an_empty_host_comes_up_configured_and_judged_and_the_push_way_finds_nothing_to_do(site):
    instance = site.launch(ONE)
    assert site.decided(instance) == "InService", site.journal(instance)
    assert site.account.told() == []
    record = json.loads(site.account.objects(instance)["record.json"])
    assert record["verdict"] == "go" and {"sysctl", "disk_space"} <= {one["check"] for one in record["findings"]}
    for own in (("TASK [cluster_ssh", "TASK [host_state"), ("TASK [cluster_ssh",)):
        began = time.monotonic()
        pushed = site.push(instance, ONE)
        assert pushed.status == 0, pushed.output[-4000:]
        # The first push signs the record of the host by the control side's key, which no node has.
        changed = [line for line in pushed.changed() if not line.startswith(own)]
        assert changed == [], f"{time.monotonic() - began:.0f} s"
