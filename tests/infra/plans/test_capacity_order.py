"""Zones as a list, and ways to buy in the order that the user wrote: what the stack then is, and what cannot be."""

import pytest

from infra.config.reader import read
from infra.config.values import warnings
from infra.planning import subnets
from tests.infra import program, stacks
from tests.infra.plans.test_settings import errors, only
from tests.infra.test_components import gpu_nodes

A, B, C = (f"us-east-1{letter}" for letter in "abc")
ONE, TWO = "cr-0123456789abcdef0", "cr-0123456789abcdef1"
FIRST, BLOCK = f"reservation {ONE} {A}", f"capacity-block {TWO} {B}"
ORDER = {"gpuInstanceType": "p5.48xlarge", "gpuNodeCount": 8, "capacityOrder": [FIRST, BLOCK, "on-demand", "spot"]}
SINGLE = {"gpuInstanceType": "g6.xlarge", "availabilityZones": [B, A]}
THREE = {
    "availabilityZones": [C, A, B],
    "publicSubnetCidrs": [f"10.0.{n}.0/24" for n in (1, 2, 3)],
    "privateSubnetCidrs": [f"10.0.{n}.0/24" for n in (101, 102, 103)],
}


def taken(raw, letters=None):
    return read(raw, "us-east-1", lambda _: stacks.offer("us-east-1", letters))


def zones(raw, letters=None):
    return taken(raw, letters).network.zones.gpu_names


def test_nodes_that_need_not_be_together_are_in_every_zone_of_the_list_that_offers_the_type():
    assert zones(SINGLE) == (B, A)
    assert zones(SINGLE, ("a", "c")) == (A,)
    assert zones({**SINGLE, **THREE}, ("c", "b")) == (C, B)
    assert zones({"gpuInstanceType": "g6.xlarge"}) == (A,)


@pytest.mark.parametrize(
    "together",
    [
        {"gpuInstanceType": "p5.48xlarge", "gpuNodeCount": 2},
        {"placementGroup": "cluster"},
        {"placementGroup": "mine"},
    ],
)
def test_one_cluster_placement_group_and_one_efa_fabric_are_one_zone(together):
    """The first of the list that offers the type; the subnets, and the data in them, stay where they are."""
    assert zones({**SINGLE, **together}) == (B,)
    elsewhere = taken({**SINGLE, **together}, ("a",))
    assert elsewhere.network.zones.gpu_names == (A,)
    assert [one.zone for one in subnets.plan(elsewhere.network)] == [B, A, B, A]
    assert [one.name for one in subnets.gpu_subnets(elsewhere.network)] == ["private-2"]


def test_every_zone_of_the_list_has_its_subnets_and_nodes_are_launched_into_them():
    run = program.run("dev", changes=THREE)
    assert run.error is None
    made = {one.name: (one.id, one.props["availabilityZone"]) for one in run.of("aws:ec2/subnet:Subnet")}
    assert [made[f"network-private-{n}"][1] for n in (1, 2, 3)] == [C, A, B]
    launched = set(run.one("nodes-group").props["vpcZoneIdentifiers"])
    assert launched == {made[f"network-private-{n}"][0] for n in (1, 2, 3)}
    assert run.outputs["gpu_zone"] == "", "a node of any of them is where it should be"


def test_what_cannot_be_is_refused():
    only({"availabilityZones": [A, "us-west-2a"]}, "availabilityZones", says="a zone of the region")
    only({"availabilityZones": [A, "use1-az1"]}, "availabilityZones", says="each zone once")
    short = errors({"availabilityZones": [C, A, B]})
    assert set(short) == {"privateSubnetCidrs", "publicSubnetCidrs"} and "3 blocks" in str(short)
    only({**SINGLE, "capacityType": "spot", "spotZones": 2}, "spotZones", says="availabilityZones names them")
    only({**ORDER, "capacityType": "spot"}, "capacityType", says="capacityOrder says it")
    only({**ORDER, "capacityOrder": ["spot", "spot"]}, "capacityOrder", says="each way once")
    only({**ORDER, "capacityOrder": ["reservation"]}, "capacityOrder", says="KIND CR-ID ZONE")
    only({**ORDER, "gpuInstanceType": "g6.xlarge"}, "capacityOrder", says="a way that g6.xlarge is sold")
    only({**ORDER, "gpuNodeCount": 65}, "gpuNodeCount", says="one capacity block")
    only({**ORDER, "availabilityZones": [A, C]}, "capacityOrder", says="zones of availabilityZones")
    only({"capacityChosen": "spot"}, "capacityChosen", says="nothing without capacityOrder")
    fsx = {"fsxSizeGib": 19200, "fsxEfa": True}
    only({**ORDER, **fsx}, "fsxEfa", says=f"EFA to FSx stays inside its zone, {A}")
    assert errors({**ORDER, **fsx, "capacityOrder": [FIRST, "on-demand"]}) == {}
    eks = {**stacks.values("eks"), "capacityType": "on-demand", "capacityReservationId": ""}
    only({**eks, "capacityOrder": [FIRST, "spot"]}, "capacityOrder", says="nothing with orchestrator eks")


def test_the_first_way_is_taken_until_another_was_chosen_and_its_zone_with_it():
    first = taken(ORDER)
    assert (first.nodes.capacity.kind, first.nodes.capacity.reservation_id) == ("reservation", ONE)
    block = taken({**ORDER, "capacityChosen": BLOCK})
    assert (block.nodes.capacity.kind, block.nodes.capacity.reservation_id) == ("capacity-block", TWO)
    assert [one.network.zones.gpu_names for one in (first, block)] == [(A,), (B,)]
    assert subnets.plan(first.network) == subnets.plan(block.network), "no subnet moves"
    assert taken({**ORDER, "capacityChosen": "spot"}).nodes.create_placement_group
    assert taken({**ORDER, "capacityChosen": f"reservation {TWO} {B}"}) == first, "no way of the order any more"


def test_a_reservation_before_on_demand_is_ec2s_own_order_at_every_launch():
    changes = {key: value for key, value in ORDER.items() if key != "capacityOrder"}
    run = gpu_nodes("dev", **changes, capacityOrder=[FIRST, "on-demand"])
    specification = run.one("nodes-group").props["capacityReservationSpecification"]
    assert specification == {
        "capacityReservationPreference": "capacity-reservations-first",
        "capacityReservationTarget": {"capacityReservationIds": [ONE]},
    }
    assert "capacityReservationSpecification" not in run.one("nodes-template").props
    alone = gpu_nodes("dev", **changes, capacityOrder=[FIRST, "spot"])
    assert "capacityReservationSpecification" not in alone.one("nodes-group").props
    preference = alone.one("nodes-template").props["capacityReservationSpecification"]["capacityReservationPreference"]
    assert preference == "capacity-reservations-only", "spot is taken by `make up`, and by no launch"


def test_another_way_changes_the_template_and_the_groups_subnets_and_no_data():
    given = {**ORDER, "fsxSizeGib": 1200, "s3Express": True}
    runs = [program.run("dev", changes={**given, "capacityChosen": way}) for way in (FIRST, BLOCK)]
    assert [run.error for run in runs] == [None, None]
    first, second = ({one.urn: one.props for one in run.requests} for run in runs)
    changed = {urn.rsplit("::", 1)[1] for urn in first if first[urn] != second.get(urn)}
    assert {"nodes-template", "nodes-group"} <= changed
    assert not {name for name in changed if name.startswith(("network-", "lustre", "storage", "head"))}


def test_the_earlier_name_of_the_list_does_what_the_new_one_does():
    for text in (B, "use1-az2"):
        assert zones({"availabilityZone": text}) == zones({"availabilityZones": [B]}) == (B,)
    assert zones({"availabilityZone": ""}) == (A,)
    assert "availabilityZones" in warnings({"availabilityZone": B})[0]
