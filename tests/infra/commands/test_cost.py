"""The bill of a stack. Prices are invented but for those of recorded.py; questions are what the price list is asked."""

import json
import re
from contextlib import suppress
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.cloud.clients import Clients
from flightline.money import prices
from flightline.money.prices import Price, PriceBook, PriceError, Query
from flightline_node.model import SettingsError
from infra import cost, describe
from tests.unit.money import recorded

ROOT = Path(__file__).parents[3]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


class Book(PriceBook):
    """Everything costs the same, but for what is missing."""

    def __init__(self, amount="2", missing="-", currency="USD"):
        self.amount, self.missing, self.currency = Decimal(amount), missing, currency

    def price(self, query):
        if re.search(self.missing, query.key):
            raise PriceError(f"saw no price, wanted one for {query.key}")
        return Price(self.amount, self.currency, query.unit, "2026-11-22T12:00:00+00:00")


NEVER = "^$"


def bill(changes=None, book=None, stack="dev"):
    return cost.bill({**describe.values(stack, ROOT), **(changes or {})}, book or Book(missing=NEVER), None)


def what(whole):
    return [one.line.what for one in whole.lines]


@pytest.mark.parametrize("stack", STACKS)
def test_every_example_has_a_bill(stack):
    whole = bill(stack=stack)
    assert what(whole)[0].endswith(str(describe.values(stack, ROOT)["gpuInstanceType"]))
    assert all(one.per_hour is not None for one in whole.lines[1:])


def test_hours_and_months_are_added_up():
    whole = bill({"gpuNodeCount": 3, "rootVolumeGib": 730, "natGateways": "per-az", "fsxSizeGib": 1460})
    by_line = {one.line.what: one.per_hour for one in whole.lines}
    assert by_line == {
        "3 x g6.xlarge": 6,
        "3 root volumes, 730 GiB gp3": 6,
        "2 NAT gateways": 4,
        "2 public addresses": 4,
        "FSx for Lustre 1460 GiB, 250 MB/s per TiB": 4,
    }
    assert (whole.per_hour(), whole.per_hour(idle=True), whole.per_month()) == (24, 12, 24 * 730)


def test_endpoints_are_counted_in_both_zones():
    alone = bill({"natGateways": "none", "interfaceEndpoints": True, "packageSource": "mirror"})
    with_head = bill({"natGateways": "none", "interfaceEndpoints": True, "headNode": True, "packageSource": "mirror"})
    assert "12 endpoint interfaces" in what(alone)
    assert "26 endpoint interfaces" in what(with_head)


def test_what_is_joined_costs_the_stack_nothing():
    there = {"vpcId": "vpc-01234567", "interfaceEndpoints": True, "existingEndpoints": ["ssm", "logs"]}
    assert what(bill(there))[2:] == ["8 endpoint interfaces"]
    assert [line for line in what(bill({**there, "eksCluster": "theirs"}, stack="eks")) if "EKS" in line] == []


def test_slurm_brings_a_head_node():
    assert "head node m7i.xlarge" in what(bill({"orchestrator": "slurm"}))


def test_a_kubernetes_cluster_and_its_own_nodes_cost_when_the_gpu_nodes_are_gone():
    whole = bill(stack="eks")
    assert {"EKS cluster", "3 x m7i.xlarge", "3 root volumes of those, 100 GiB gp3"} <= set(what(whole))
    assert not any("head" in line for line in what(whole))
    lasting = [one.line.what for one in whole.lines if one.line.idle]
    assert {"EKS cluster", "3 x m7i.xlarge"} <= set(lasting)


LISTED = {"BoxUsage": "0.8048", "NatGateway-Hours": "0.045", "PublicIPv4": "0.005", "gp3": "0.08"}
"""us-east-1, from AWS' price pages of EC2, VPC and EBS (September 2026)."""


class Listed:
    def price(self, query):
        amount = next((usd for word, usd in LISTED.items() if word in query.key), None)
        if amount is None:
            raise PriceError(f"saw no price, wanted one for {query.key}")
        return Price(Decimal(amount), "USD", query.unit, "2026-09-10T00:00:00+00:00")


def test_the_example_for_trying_stays_within_its_own_budget_with_its_nat_gateway_and_volume():
    whole = bill(book=Listed())
    assert whole.complete and {"1 NAT gateway", "1 public address", "1 root volumes, 200 GiB gp3"} < set(what(whole))
    assert round(whole.per_month(), 1) == Decimal("640.0")
    assert whole.per_month() < describe.values("dev", ROOT)["monthlyBudgetUsd"]


def test_of_several_ways_and_zones_the_one_in_use_is_counted_and_each_zone_has_its_gateway():
    order = ["capacity-block cr-0123456789abcdef0 us-east-1a", "on-demand"]
    first, second = (bill({"capacityOrder": order, "capacityChosen": one}).lines[0] for one in ("", "on-demand"))
    assert (first.per_hour, second.per_hour) == (0, 2)
    zones = {"natGateways": "per-az", "availabilityZones": ["us-east-1a", "us-east-1b", "us-east-1c"]}
    assert "3 NAT gateways" in what(bill(zones))


def test_what_has_no_price_is_never_counted_as_nothing():
    whole = bill(book=Book(missing="NAT"))
    assert not whole.complete
    said = cost.as_dict(whole, Decimal(1))
    assert [row["what"] for row in said["lines"] if row["per_hour"] is None] == ["1 NAT gateway"]
    assert said["over_budget"] is None


def test_a_block_is_paid_already_and_a_reservation_costs_while_idle():
    block = bill({"capacityType": "capacity-block"})
    assert block.lines[0].per_hour == 0
    assert "on demand 2 USD a node-hour" in block.lines[0].line.note
    reserved = bill({"capacityType": "reservation"})
    assert reserved.per_hour(idle=True) >= reserved.lines[0].per_hour > 0


def test_spot_without_a_price_is_not_the_on_demand_price():
    assert bill({"capacityType": "spot"}).lines[0].per_hour is None


MIX = {"capacityType": "spot", "gpuInstanceType": "g6.xlarge", "spotInstanceTypes": ["g6.2xlarge", "g5.xlarge"]}
SPOT = {"g6.xlarge": "0.3", "g6.2xlarge": "0.5", "g5.xlarge": "0.4"}


class SpotMarket(Clients):
    """EC2's spot prices: invented, one zone; a type without a price is not sold there."""

    def __init__(self, prices):
        self.prices = prices

    def get(self, service):
        assert service == "ec2"
        return self

    def get_paginator(self, name):
        assert name == "describe_spot_price_history"
        return self

    def paginate(self, InstanceTypes, **_):
        zone = {"AvailabilityZone": "us-east-1a", "Timestamp": datetime(2026, 11, 22, tzinfo=timezone.utc)}
        return [
            {
                "SpotPriceHistory": [
                    {**zone, "SpotPrice": self.prices[name]} for name in InstanceTypes if name in self.prices
                ]
            }
        ]


def spot(changes=None, prices=None):
    given = {**describe.values("dev", ROOT), **MIX, **(changes or {})}
    return cost.bill(given, Book(missing=NEVER), SpotMarket(SPOT if prices is None else prices))


def test_a_mix_of_spot_types_is_counted_at_its_dearest_and_says_so():
    """It was priced as gpuInstanceType alone."""
    nodes = spot({"gpuNodeCount": 2}).lines[0]
    assert nodes.per_hour == Decimal("1.0")
    for word in ("over 3 types", "the dearest of", "g6.xlarge 0.3", "g5.xlarge 0.4", "price-capacity-optimized"):
        assert word in nodes.line.note


def test_types_above_the_cap_are_not_counted():
    assert spot({"spotMaxPriceUsd": "0.45"}).lines[0].per_hour == Decimal("0.4")
    none = spot({"spotMaxPriceUsd": "0.1"}).lines[0]
    assert none.per_hour is None
    assert "from 0.3, wanted one within spotMaxPriceUsd, 0.1" in none.why


def test_a_type_of_the_mix_without_a_price_leaves_the_bill_incomplete():
    whole = spot(prices={"g6.xlarge": "0.3"})
    assert whole.lines[0].per_hour == Decimal("0.3")
    assert not whole.complete
    assert "saw no spot price of g6.2xlarge, g5.xlarge in us-east-1" in whole.lines[0].why
    assert spot(prices={}).lines[0].per_hour is None


def test_storage_is_a_rate_until_its_size_is_given():
    changes = {"s3Express": True, "fsxSizeGib": 1200, "fsxDataRepository": "data"}
    whole = bill(changes)
    assert [one.line.what for one in whole.rates] == [
        "S3 Standard", "S3 Express One Zone", "preload of FSx, each file at least once",
    ]  # fmt: skip
    given = cost.bill(
        {**describe.values("dev", ROOT), **changes}, Book(missing=NEVER), None, cost.Sizes(s3_gib=730, express_gib=1460)
    )
    assert {one.line.what: one.per_hour for one in given.lines[-2:]} == {
        "S3 Standard, 730 GiB": 2,
        "S3 Express One Zone, 1460 GiB": 4,
    }
    assert given.per_hour(idle=True) == whole.per_hour(idle=True) + 6
    assert len(given.rates) == 1


def test_a_rate_without_a_price_is_named():
    said = cost.as_dict(bill(book=Book(missing="TimedStorage")), Decimal(0))
    assert [(row["per_unit"], bool(row["why"])) for row in said["rates"] if row["what"] == "S3 Standard"] == [
        (None, True)
    ]


def test_a_stack_scaled_to_zero_costs_what_is_left_and_a_reservation_is_not_called_free():
    assert bill({"gpuNodeCount": 0}).lines[0].per_hour == 0
    reserved = bill({"gpuNodeCount": 0, "capacityType": "reservation"})
    assert reserved.lines[0].per_hour is None and not reserved.complete
    assert "size is not in the stack's file" in reserved.lines[0].why


def run(*arguments):
    return CliRunner().invoke(cost.command, [*arguments, "--offline", "--project", str(ROOT)])


def test_without_any_price_the_command_says_why_and_ends_with_2(tmp_path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    done = run("dev")
    assert done.exit_code == 2
    assert "no price of 1 x g6.xlarge" in done.output
    assert "saw no price kept, and nobody is asked (--offline)" in done.output
    assert "within" not in done.output


def test_prices_of_an_earlier_call_are_shown_with_their_date(tmp_path, monkeypatch):
    keep_prices(tmp_path, describe.values("dev", ROOT), ["USD"], monkeypatch)
    done = run("dev")
    assert done.exit_code == 0
    assert "prices as of 2026-11-01" in done.output
    assert "over monthlyBudgetUsd, 700" in done.output
    said = json.loads(run("dev", "--json").output)
    assert (said["complete"], said["over_budget"], said["currency"]) == (True, True, "USD")


def test_a_stack_without_a_file_is_named():
    done = run("nowhere")
    assert done.exit_code != 0
    assert "Pulumi.nowhere.yaml" in done.output


def test_a_stack_without_a_region_is_named():
    with pytest.raises(ValueError, match="aws:region: saw none"):
        cost.checked({**describe.values("dev", ROOT), "aws:region": ""})


def recorded_price(service, region, unit, filters, usage=".*"):
    query = Query(service, region, unit, filters, usage)
    named = (("regionCode", region), *filters)
    answers = recorded.matching(service, [{"Field": name, "Value": value} for name, value in named])
    return prices.read(answers, query, "now").amount


@pytest.mark.parametrize(
    ("instance_type", "region", "usd"),
    [
        ("g6.xlarge", "us-east-1", "0.8048"),
        ("m5.xlarge", "us-east-1", "0.192"),
        ("p4d.24xlarge", "eu-west-1", "23.71569"),
        ("p5.48xlarge", "us-east-1", "55.04"),
        ("p5.48xlarge", "us-west-2", "55.04"),
        ("trn1.32xlarge", "us-east-1", "21.5"),
    ],
)
def test_of_recorded_products_each_type_has_one_price(instance_type, region, usd):
    """A capacity block's hours, at 0 beside the price on demand, left p5 and p4d without any."""
    query = cost._instance(instance_type, region)
    assert recorded_price(query.service, region, query.unit, query.filters, query.usage) == Decimal(usd)


def test_of_recorded_products_each_question_of_a_stack_has_one_price():
    """Price List API, ap-southeast-1, 2026-08-12."""
    given = {**describe.values("dev", ROOT), "aws:region": "ap-southeast-1", "interfaceEndpoints": True}
    questions = [line.query for line in (*cost.lines(given), *cost.stored(given, cost.Sizes())[1])]
    found = {}
    for query in questions:
        with suppress(PriceError):
            found[query.usage] = recorded_price(query.service, query.region, query.unit, query.filters, query.usage)
    assert {usage.rpartition("?")[2]: str(amount) for usage, amount in found.items()} == {
        ".*": "0.0960",
        "NatGateway-Hours": "0.0590",
        "VpcEndpoint-Hours": "0.0130",
        "TimedStorage-ByteHrs": "0.0250",
    }


def stack_file(place, **changes):
    """A project of its own with the stack `mine`: dev's file with some lines changed."""
    (place / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    for was, now in changes.items():
        assert re.search(rf"{was}: .*", text)
        text = re.sub(rf"{was}: .*", f"{was}: {now}", text)
    (place / "Pulumi.mine.yaml").write_text(text)
    return ["mine", "--project", str(place)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpuInstanceType": "g6.xxlarge"}, "gpuInstanceType: saw 'g6.xxlarge'; wanted a GPU.* for example g6.xlarge"),
        ({"gpuNodeCount": "many"}, "gpuNodeCount: saw 'many'; wanted a whole number"),
        ({"gpuNodeCount": "-1"}, "gpuNodeCount: saw -1; wanted"),
        ({"monthlyBudgetUsd": "lots"}, "monthlyBudgetUsd: saw 'lots'"),
        ({"aws:region": "us-est-1"}, r"region: saw 'us-est-1', wanted an AWS region \(did you mean .*us-east-1"),
        ({"aws:region": "[]"}, "aws:region: saw none, wanted the stack's region; do: "),
    ],
)
def test_what_make_up_would_refuse_has_no_bill(tmp_path, changes, said):
    """An invalid number was an internal error; an unknown type or region had a bill without prices."""
    done = CliRunner().invoke(cost.command, [*stack_file(tmp_path, **changes), "--offline"])
    error = f"Error: {done.exception}" if isinstance(done.exception, SettingsError) else done.output
    assert done.exit_code != 0
    assert re.search(said, error)


def test_a_stack_s_file_that_is_no_text_is_named(tmp_path):
    arguments = stack_file(tmp_path)
    (tmp_path / "Pulumi.mine.yaml").write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(cost.command, arguments)
    assert (done.exit_code, "Pulumi.mine.yaml: wanted YAML" in done.output) == (1, True)


def keep_prices(place, given, currencies, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(place / "runs.sqlite"))
    book = PriceBook(place / "prices.json", None)
    for number, line in enumerate((*cost.lines(given), *cost.stored(given, cost.Sizes())[1])):
        currency = currencies[number % len(currencies)]
        assert line.query
        book._keep(line.query, Price(Decimal("0.5"), currency, line.query.unit, "2026-11-01T00:00:00+00:00"))


def with_prices(place, currencies, monkeypatch, **changes):
    """The command for a stack of its own with prices kept, and how it is called."""
    arguments = [*stack_file(place, **changes), "--offline"]
    keep_prices(place, describe.values("mine", place), currencies, monkeypatch)
    return CliRunner().invoke(cost.command, arguments), arguments


def test_yuan_are_never_compared_with_a_budget_in_dollars(tmp_path, monkeypatch):
    """1,195 CNY a month was "over monthlyBudgetUsd, 700"."""
    done, arguments = with_prices(tmp_path, ["CNY"], monkeypatch, **{"aws:region": "cn-north-1"})
    assert done.exit_code == 0
    assert "in all, CNY" in done.output
    assert "CNY a month is not compared with monthlyBudgetUsd, 700" in done.output
    said = json.loads(CliRunner().invoke(cost.command, [*arguments, "--json"]).output)
    assert (said["currency"], said["over_budget"]) == ("CNY", None)


def test_two_currencies_in_the_file_of_prices_are_an_error_in_words(tmp_path, monkeypatch):
    done, _ = with_prices(tmp_path, ["CNY", "USD"], monkeypatch)
    assert done.exit_code == 1
    assert "Error: saw prices in CNY and USD, wanted one currency; do: remove prices.json" in done.output


def test_a_cap_in_dollars_is_not_held_against_yuan():
    node = spot({"aws:region": "cn-north-1", "spotMaxPriceUsd": "0.45"}).lines[0]
    assert node.per_hour is None
    assert "saw spot prices in CNY, wanted USD as in spotMaxPriceUsd; do: " in node.why


def asked(tmp_path, monkeypatch, stack, refuse=None):
    """The command against a price list on this machine."""
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    with recorded.served(refuse) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", url)
        return CliRunner().invoke(cost.command, [stack, "--project", str(ROOT)])


def test_figures_of_the_reservation_example_are_those_recorded(tmp_path, monkeypatch):
    """Eight p5.48xlarge in us-east-1 at the price list's 55.04 USD of 2026-09-10. Their other lines are not recorded."""
    done = asked(tmp_path, monkeypatch, "p5-reservation")
    assert done.exit_code == 0
    assert re.search(r"8 x p5.48xlarge .* 440\.320 +321,434", done.output)
    assert "no price of 2 NAT gateways: saw none, wanted one in Hrs above 0 for AmazonEC2 in us-east-1" in done.output
    assert "at least 321,434 a month is perhaps within monthlyBudgetUsd" in done.output


def test_without_the_right_to_ask_the_command_names_the_permission_once(tmp_path, monkeypatch):
    said = "User: arn:aws:iam::123456789012:user/x is not authorized to perform: pricing:GetProducts"
    done = asked(tmp_path, monkeypatch, "dev", (400, "AccessDeniedException", said))
    assert done.exit_code == 2
    assert done.output.count("pricing:GetProducts: AWS denies it") == 1
    assert "no price of 1 x g6.xlarge, 1 root volumes, 200 GiB gp3, 1 NAT gateway" in done.output
    assert "within" not in done.output
