"""The price list's answers are written by hand after the documented `aws_v1` shape, with invented amounts; the recorded
ones, with their dates and sources, are in recorded.py.
"""

import json
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import boto3
import pytest
from botocore.stub import Stubber

from flightline.cloud.clients import Clients
from flightline.money.prices import AwsPriceList, NoAnswerError, PriceBook, PriceError, Query, read

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
QUERY = Query("AmazonEC2", "us-east-1", "Hrs", (("instanceType", "g6.xlarge"),), ".*BoxUsage:.*")


def product(amount="1.25", usage="BoxUsage:g6.xlarge", currency="USD", unit="Hrs", begin="0"):
    step = {"unit": unit, "beginRange": begin, "endRange": "Inf", "pricePerUnit": {currency: amount}}
    terms = {"OnDemand": {"sku.term": {"priceDimensions": {"sku.term.step": step}}}}
    return json.dumps({"product": {"sku": "sku", "attributes": {"usagetype": usage}}, "terms": terms})


def test_one_price_is_read():
    price = read([product(), product(usage="UnusedBox:g6.xlarge", amount="9")], QUERY, "now")
    assert (price.amount, price.currency, price.unit) == (Decimal("1.25"), "USD", "Hrs")


def test_yuan_stay_yuan():
    assert read([product(currency="CNY")], QUERY, "now").currency == "CNY"


def test_of_a_scale_the_first_step_counts():
    assert read([product(), product(amount="0.5", begin="100")], QUERY, "now").amount == Decimal("1.25")


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [product(unit="Quantity")],
        [product(), product(amount="2")],
        ["not json"],
        ["[]"],
        [json.dumps({"product": {}})],
        [product(amount="NaN")],
        [product(amount="-1")],
        [product(amount="")],
        [product(amount="0.0000000000")],
    ],
    ids=["none", "other unit", "two", "torn", "list", "no attributes", "nan", "negative", "empty", "free"],
)
def test_what_is_not_one_price_is_refused_with_what_was_seen(answers):
    with pytest.raises(PriceError, match=r"saw .* wanted"):
        read(answers, QUERY, "now")


def book(tmp_path, ask, now=NOW):
    return PriceBook(tmp_path / "prices.json", ask, now)


def refuse(_):
    raise NoAnswerError("AWS denies it")


def test_a_question_that_is_too_wide_does_not_end_the_others(tmp_path):
    """Every later line was then said to be too wide as well."""

    def ask(query):
        if query.service == "AmazonS3":
            raise PriceError("saw over 5000 products")
        return [product()]

    one = book(tmp_path, ask)
    with pytest.raises(PriceError, match="saw over"):
        one.price(Query("AmazonS3", "us-east-1", "GB-Mo", ()))
    assert one.price(QUERY).amount == Decimal("1.25")


@contextmanager
def served(where="us-east-1"):
    """A price list behind botocore's stub: the stub, and what asks it."""
    client = boto3.client("pricing", region_name=where, aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        yield stub, AwsPriceList({where: Clients(where, {"pricing": client})})


@pytest.mark.parametrize("answer", [{}, {"PriceList": []}])
def test_an_answer_without_products_is_none(answer):
    with served() as (stub, ask):
        stub.add_response("get_products", answer)
        assert ask(QUERY) == []


def test_a_price_is_kept_and_read_without_aws(tmp_path):
    book(tmp_path, lambda _: [product()]).price(QUERY)
    kept = book(tmp_path, None, NOW + timedelta(days=30)).price(QUERY)
    assert (kept.amount, kept.as_of[:10]) == (Decimal("1.25"), "2026-11-22")


def test_a_fresh_price_is_not_asked_again_and_an_old_one_is(tmp_path):
    book(tmp_path, lambda _: [product()]).price(QUERY)
    assert book(tmp_path, refuse, NOW + timedelta(days=6)).price(QUERY).amount == Decimal("1.25")
    newer = book(tmp_path, lambda _: [product("3")], NOW + timedelta(days=8)).price(QUERY)
    assert newer.amount == 3


def test_an_old_price_is_better_than_none_where_aws_refuses(tmp_path):
    book(tmp_path, lambda _: [product()]).price(QUERY)
    refused = book(tmp_path, refuse, NOW + timedelta(days=8))
    assert refused.price(QUERY).amount == Decimal("1.25")
    assert refused.trouble == "AWS denies it"


def test_aws_is_asked_once_when_it_refuses(tmp_path):
    asked = []

    def ask(query):
        asked.append(query)
        raise NoAnswerError("denied")

    one = book(tmp_path, ask)
    for _ in range(3):
        with pytest.raises(PriceError, match="saw no price kept, and denied"):
            one.price(QUERY)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "content", ["", "[]", "{", json.dumps({QUERY.key: 5}), json.dumps({QUERY.key: {"amount": "x"}})]
)
def test_a_damaged_file_is_no_price(tmp_path, content):
    (tmp_path / "prices.json").write_text(content)
    with pytest.raises(PriceError, match="nobody is asked"):
        book(tmp_path, None).price(QUERY)
    assert book(tmp_path, lambda _: [product()]).price(QUERY).amount == Decimal("1.25")


def test_a_file_that_cannot_be_written_costs_no_price(tmp_path):
    (tmp_path / "file").write_text("")
    assert PriceBook(tmp_path / "file" / "prices.json", lambda _: [product()], NOW).price(QUERY).amount == Decimal(
        "1.25"
    )


@pytest.mark.parametrize(("region", "where"), [("eu-west-1", "us-east-1"), ("cn-north-1", "cn-northwest-1")])
def test_the_api_is_asked_where_it_is_served(region, where):
    query = Query("AmazonEC2", region, "Hrs", (("instanceType", "g6.xlarge"),))
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
        {"Type": "TERM_MATCH", "Field": "instanceType", "Value": "g6.xlarge"},
    ]
    with served(where) as (stub, ask):
        wanted = {"ServiceCode": "AmazonEC2", "Filters": filters, "FormatVersion": "aws_v1"}
        stub.add_response("get_products", {"PriceList": [product()]}, wanted)
        assert ask(query) == [product()]


def test_a_denied_question_names_the_permission():
    with served() as (stub, ask):
        stub.add_client_error("get_products", "AccessDeniedException", "not authorized to perform: pricing:GetProducts")
        with pytest.raises(PriceError, match="pricing:GetProducts: AWS denies it"):
            ask(QUERY)
