"""Prices: asked of the AWS Price List API, kept in a file, read from it where nobody can be asked.

A price that cannot be had is a sentence, never a zero. Format: the Price List Query API's GetProducts, `aws_v1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ..cloud.clients import Clients, explain, is_aws_error
from ..store.atomic import draft_of
from ..store.sqlite import default_path

API_REGION, API_REGION_CHINA = "us-east-1", "cn-northwest-1"
"""Where the price list is served, whatever region it is asked about (AWS Billing user guide, price list endpoints)."""
FRESH = timedelta(days=7)
MOST_PRODUCTS = 5_000
"""A question that matches more is too wide to have one answer; S3 in us-east-1 has 381 (offer file, July 2026)."""
ON_DEMAND = "OnDemand"


class PriceError(Exception):
    """No single price: the text says what was seen, what was wanted and what to do."""


class NoAnswerError(PriceError):
    """AWS did not answer, and will not answer the next question either."""


@dataclass(frozen=True)
class Query:
    """What to ask the price list.

    filters: attributes that must be equal. usage: expression for the whole usage type. unit: Hrs or GB-Mo.
    """

    service: str
    region: str
    unit: str
    filters: tuple[tuple[str, str], ...]
    usage: str = ".*"

    @property
    def key(self) -> str:
        """The question as text, by which its answer is kept."""
        parts = [self.service, self.region, self.unit, self.usage, *(f"{name}={value}" for name, value in self.filters)]
        return " ".join(parts)

    @property
    def asked(self) -> str:
        """The question for people."""
        named = " ".join(f"{name}={value}" for name, value in self.filters)
        usage = "" if self.usage == ".*" else f"usage type {self.usage}"
        return ", ".join(part for part in (f"{self.service} in {self.region}", named, usage) if part)


@dataclass(frozen=True)
class Price:
    """The price of one unit. as_of: when AWS was asked, ISO 8601; source: who said it."""

    amount: Decimal
    currency: str
    unit: str
    as_of: str
    source: str = "AWS Price List API"


def read(answers: Iterable[str], query: Query, as_of: str) -> Price:
    """The one price in the API's answers, each a product as JSON text.

    Raises PriceError unless there is just one, above 0: nothing that a stack is asked about is free.
    """
    found: dict[tuple[Decimal, str], str] = {}
    for text in answers:
        usage, prices = _product(text)
        if re.fullmatch(query.usage, usage):
            found.update({(amount, currency): usage for amount, currency, unit in prices if unit == query.unit})
    if len(found) != 1 or not all(amount for amount, _ in found):
        seen = ", ".join(f"{amount:f} {currency} ({usage})" for (amount, currency), usage in sorted(found.items())[:4])
        do = "do: ask the price list yourself, or look it up" if found else "do: check that the region has it"
        raise PriceError(f"saw {seen or 'none'}, wanted one in {query.unit} above 0 for {query.asked}; {do}")
    ((amount, currency),) = found
    return Price(amount, currency, query.unit, as_of)


def _product(text: str) -> tuple[str, list[tuple[Decimal, str, str]]]:
    """(usage type, [(amount, currency, unit)]) of a product's on-demand terms; of a scale, its first step.

    A capacity block's hours are a product of their own, alike in all else, at 0: they were paid when it was bought.
    """
    try:
        product = json.loads(text)
        attributes = product["product"]["attributes"]
        usage = str(attributes.get("usagetype", ""))
        if attributes.get("marketoption", ON_DEMAND) != ON_DEMAND:
            return usage, []
        terms = product["terms"].get("OnDemand", {}).values()
        steps = [step for term in terms for step in term["priceDimensions"].values()]
        first = [step for step in steps if step.get("beginRange", "0") == "0"]
        return usage, [(*_per_unit(step["pricePerUnit"]), str(step["unit"])) for step in first]
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        seen = f"{type(error).__name__} in {text[:80]!r}"
        raise PriceError(f"saw {seen}, wanted a product of the price list; do: try again later") from None


def _per_unit(given: Mapping[str, str]) -> tuple[Decimal, str]:
    """{"USD": "1.5"} as (1.5, "USD"). Raises InvalidOperation for what is no price, ValueError for two currencies."""
    ((currency, text),) = given.items()
    amount = Decimal(text)
    if not amount.is_finite() or amount < 0:
        raise InvalidOperation(amount)
    return amount, str(currency)


Ask = Callable[[Query], list[str]]


@dataclass
class AwsPriceList:
    """Asks the API with the user's credentials (pricing:GetProducts)."""

    clients: dict[str, Clients] = field(default_factory=dict)

    def __call__(self, query: Query) -> list[str]:
        """The products that match. Raises NoAnswerError, or PriceError for a question with too many answers."""
        where = API_REGION_CHINA if query.region.startswith("cn-") else API_REGION
        named = (("regionCode", query.region), *query.filters)
        filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in named]
        found: list[str] = []
        try:
            client = self.clients.setdefault(where, Clients(where)).get("pricing")
            pages = client.get_paginator("get_products").paginate(
                ServiceCode=query.service, Filters=filters, FormatVersion="aws_v1"
            )
            for page in pages:
                found += page.get("PriceList") or []
                if len(found) > MOST_PRODUCTS:
                    do = "do: look it up in the price list"
                    raise PriceError(f"saw over {MOST_PRODUCTS} products, wanted one for {query.asked}; {do}")
        except Exception as error:
            if is_aws_error(error):
                raise NoAnswerError(explain(error, "pricing:GetProducts")) from None
            raise
        return found


@dataclass
class PriceBook:
    """Prices by question: the file while it is fresh, else AWS, else the file however old. Learns as it is asked.

    trouble: why AWS did not answer, once; it is not asked again then.
    """

    path: Path
    ask: Ask | None
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    trouble: str = ""
    _kept: dict[str, Any] | None = None

    def price(self, query: Query) -> Price:
        """The price. Raises PriceError with the reason when there is none."""
        kept = self._known(query)
        if kept and self.now - datetime.fromisoformat(kept.as_of) < FRESH:
            return kept
        if self.ask is None or self.trouble:
            return self._or_refuse(kept, self.trouble or "nobody is asked (--offline)")
        try:
            answers = self.ask(query)
        except NoAnswerError as error:
            self.trouble = str(error)
            return self._or_refuse(kept, self.trouble)
        price = read(answers, query, self.now.isoformat(timespec="seconds"))
        self._keep(query, price)
        return price

    @staticmethod
    def _or_refuse(kept: Price | None, why: str) -> Price:
        if kept is None:
            raise PriceError(f"saw no price kept, and {why}; wanted one of AWS' price list")
        return kept

    def _known(self, query: Query) -> Price | None:
        entry = self._all().get(query.key)
        try:
            return (
                Price(Decimal(entry["amount"]), entry["currency"], query.unit, _stamp(entry["as_of"]))
                if entry
                else None
            )
        except (KeyError, TypeError, ValueError, InvalidOperation):
            return None  # a damaged entry is no price; AWS is asked

    def _keep(self, query: Query, price: Price) -> None:
        known = self._all()
        known[query.key] = {"amount": str(price.amount), "currency": price.currency, "as_of": price.as_of}
        with suppress(OSError), draft_of(self.path) as draft:  # not kept, and asked again the next time
            draft.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")

    def _all(self) -> dict[str, Any]:
        if self._kept is None:
            self._kept = _load(self.path)
        return self._kept


def _stamp(text: str) -> str:
    """The stamp, which must be one with a zone. Raises ValueError, TypeError."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(text)
    return text


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def default_book(offline: bool) -> PriceBook:
    """The book beside the run store."""
    return PriceBook(default_path().parent / "prices.json", None if offline else AwsPriceList())
