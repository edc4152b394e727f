"""Offers of EC2's three ways; the answers are written by hand after botocore's model, which the stubs check them against."""

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import boto3
import pytest
from botocore.stub import ANY, Stubber
from click.testing import CliRunner

from flightline.cloud.clients import Clients
from flightline.commands import capacity as command
from flightline.money.capacity import CapacityRequest, Offer, block_hours, find, rank

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
WANTED = CapacityRequest("p5.48xlarge", 16, 60, NOW)


def ec2():
    return boto3.client("ec2", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def spot(zone, price, at=NOW, zone_id=""):
    return {"AvailabilityZone": zone, "AvailabilityZoneId": zone_id, "SpotPrice": price, "Timestamp": at}


def block(fee="92160.0", **rest):
    given = {
        "CapacityBlockOfferingId": "cbr-1",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1b",
        "InstanceCount": 16,
        "StartDate": NOW + timedelta(days=2),
        "CapacityBlockDurationHours": 72,
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
    }
    return {**given, **rest}


def reservation(free, **rest):
    given = {
        "CapacityReservationId": "cr-1",
        "AvailabilityZone": "us-east-1c",
        "TotalInstanceCount": 32,
        "AvailableInstanceCount": free,
        "State": "active",
    }
    return {**given, **rest}


def asked(stub, *, scores=(), reservations=(), blocks=(), spots=()):
    found = {"SpotPlacementScores": list(scores)}
    only = {"InstanceTypes": ["p5.48xlarge"], "TargetCapacity": 16, "RegionNames": ["us-east-1"]}
    stub.add_response("get_spot_placement_scores", found, {**only, "SingleAvailabilityZone": True})
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": list(reservations)}, {"Filters": ANY})
    wanted = {"InstanceType": "p5.48xlarge", "InstanceCount": 16, "CapacityDurationHours": 72}
    stub.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": list(blocks)}, wanted)
    history = {"InstanceTypes": ["p5.48xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": NOW}
    stub.add_response("describe_spot_price_history", {"SpotPriceHistory": list(spots)}, history)


def found_of(**answers):
    client = ec2()
    clients = Clients("us-east-1", {"ec2": client})
    with Stubber(client) as stub:
        asked(stub, **answers)
        return find(WANTED, ["us-east-1"], lambda region: clients)


def test_offers_are_ranked_by_price_and_paid_ones_first():
    found = found_of(
        scores=[{"Region": "us-east-1", "AvailabilityZoneId": "use1-az4", "Score": 3}],
        reservations=[reservation(20)],
        blocks=[block()],
        spots=[spot("us-east-1a", "30.5", zone_id="use1-az4")],
    )
    assert [(one.kind, one.per_node_hour, one.score) for one in found.offers] == [
        ("reservation", None, None),
        ("spot", Decimal("30.5"), 3),
        ("capacity-block", Decimal(80), None),
    ]
    assert found.troubles == []


def test_a_reservation_that_is_too_small_is_last_and_not_enough():
    found = found_of(reservations=[reservation(2)], spots=[spot("us-east-1a", "30.5")])
    assert [(one.kind, one.enough) for one in found.offers] == [("spot", True), ("reservation", False)]


def test_a_reservation_that_ends_too_soon_is_no_offer():
    assert found_of(reservations=[reservation(20, EndDate=NOW + timedelta(hours=59))]).offers == []


def test_a_reservation_that_begins_later_has_all_its_instances():
    later = NOW + timedelta(days=3)
    (one,) = found_of(reservations=[reservation(0, State="scheduled", StartDate=later)]).offers
    assert (one.nodes, one.starts, one.enough) == (32, "2026-11-25T12:00+00:00", True)


def test_the_newest_spot_price_of_a_zone_counts():
    old, new = spot("us-east-1a", "20", NOW - timedelta(hours=3)), spot("us-east-1a", "31", NOW)
    assert [one.per_node_hour for one in found_of(spots=[new, old]).offers] == [31]


def test_what_is_denied_is_said_and_the_rest_still_asked():
    client = ec2()
    clients = Clients("us-east-1", {"ec2": client})
    with Stubber(client) as stub:
        for method in (
            "get_spot_placement_scores",
            "describe_capacity_reservations",
            "describe_capacity_block_offerings",
        ):
            stub.add_client_error(method, "UnauthorizedOperation", "not authorized")
        stub.add_response("describe_spot_price_history", {"SpotPriceHistory": [spot("us-east-1a", "30")]})
        found = find(WANTED, ["us-east-1"], lambda region: clients)
    assert [one.kind for one in found.offers] == ["spot"]
    assert len(found.troubles) == 3
    assert "us-east-1: ec2:DescribeCapacityBlockOfferings: AWS denies it" in found.troubles[2]


@pytest.mark.parametrize("fee", ["", "a lot"])
def test_a_fee_that_cannot_be_read_is_said_and_never_free(fee):
    found = found_of(blocks=[block(fee)], spots=[spot("us-east-1a", "30")])
    assert [one.kind for one in found.offers] == ["spot"]
    assert "cannot be read" in found.troubles[0]


@pytest.mark.parametrize(("hours", "wanted"), [(1, 24), (24, 24), (25, 48), (336, 336), (337, 504), (4368, 4368)])
def test_a_block_lasts_whole_days_then_whole_weeks(hours, wanted):
    assert block_hours(hours) == wanted


def test_the_sooner_of_equal_offers_is_first():
    late = Offer("capacity-block", "us-east-1", "a", 1, starts="2026-12-01T00:00+00:00", per_node_hour=Decimal(5))
    soon = Offer("capacity-block", "us-east-1", "b", 1, starts="2026-11-24T00:00+00:00", per_node_hour=Decimal(5))
    assert min((late, soon), key=rank) is soon


def test_an_unknown_type_is_refused_before_anybody_is_asked():
    done = CliRunner().invoke(command.command, ["p5.49xlarge", "--region", "us-east-1"])
    assert done.exit_code != 0
    assert "p5.49xlarge" in str(done.exception)
