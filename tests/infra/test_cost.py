"""The bill of a stack. Prices are invented, questions are what the price list is asked."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.money.prices import Price, PriceBook, PriceError
from infra import cost, describe

ROOT = Path(__file__).parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


class Book:
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
    assert "14 endpoint interfaces" in what(alone)
    assert "26 endpoint interfaces" in what(with_head)


def test_slurm_brings_a_head_node():
    assert "head node m7i.xlarge" in what(bill({"orchestrator": "slurm"}))


def test_what_has_no_price_is_never_counted_as_nothing():
    whole = bill(book=Book(missing="NAT"))
    assert not whole.complete
    said = cost.as_dict(whole, Decimal(1))
    assert [row["what"] for row in said["lines"] if row["per_hour"] is None] == ["1 NAT gateway"]
    assert said["over_budget"] is None


def test_two_currencies_are_refused():
    whole = bill()
    mixed = cost.Bill([whole.lines[0], *bill(book=Book(missing=NEVER, currency="CNY")).lines[1:]])
    with pytest.raises(PriceError, match="CNY and USD"):
        mixed.currency  # noqa: B018


def test_a_block_is_paid_already_and_a_reservation_costs_while_idle():
    block = bill({"capacityType": "capacity-block"})
    assert block.lines[0].per_hour == 0
    assert "on demand 2 USD a node-hour" in block.lines[0].line.note
    reserved = bill({"capacityType": "reservation"})
    assert reserved.per_hour(idle=True) >= reserved.lines[0].per_hour > 0


def test_spot_without_a_price_is_not_the_on_demand_price():
    assert bill({"capacityType": "spot"}).lines[0].per_hour is None


def run(*arguments):
    return CliRunner().invoke(cost.command, [*arguments, "--offline", "--project", str(ROOT)])


def test_without_any_price_the_command_says_why_and_ends_with_2(tmp_path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    done = run("dev")
    assert done.exit_code == 2
    assert "no price: not known yet: nobody is asked (--offline)" in done.output
    assert "within" not in done.output


def test_prices_of_an_earlier_call_are_shown_with_their_date(tmp_path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    book = PriceBook(tmp_path / "prices.json", None)
    for line in cost.lines(describe.values("dev", ROOT)):
        book._keep(line.query, Price(Decimal("0.5"), "USD", line.query.unit, "2026-11-01T00:00:00+00:00"))
    done = run("dev")
    assert done.exit_code == 0
    assert "prices as of 2026-11-01" in done.output
    assert "over monthlyBudgetUsd, 200" in done.output
    said = json.loads(run("dev", "--json").output)
    assert (said["complete"], said["over_budget"], said["currency"]) == (True, True, "USD")


def test_a_stack_without_a_file_is_named():
    done = run("nowhere")
    assert done.exit_code != 0
    assert "Pulumi.nowhere.yaml" in done.output


def test_a_stack_without_a_region_is_named():
    with pytest.raises(ValueError, match="aws:region: saw none"):
        list(cost.lines({**describe.values("dev", ROOT), "aws:region": ""}))
