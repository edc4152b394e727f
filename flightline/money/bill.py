"""A stack's bill: lines with a quantity and a question for the price list, priced and added up. No I/O of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .prices import Price, PriceError, Query

HOURS_PER_MONTH = Decimal(730)
"""A month in AWS' own estimates (AWS Pricing Calculator: 365 x 24 / 12)."""
HOURLY, MONTHLY, REQUESTS = "Hrs", "GB-Mo", "Requests"


@dataclass(frozen=True)
class BillLine:
    """What is paid for: quantity of a query's unit. idle: goes on when the nodes are down (`make down-compute`).

    query: None for what has been paid already or is paid by use; note says so.
    """

    what: str
    quantity: Decimal
    query: Query | None
    idle: bool = True
    note: str = ""


@dataclass(frozen=True)
class Priced:
    """A line with its price, or with the reason why there is none, or none for a part of it."""

    line: BillLine
    price: Price | None
    why: str = ""

    @property
    def per_hour(self) -> Decimal | None:
        """Cost of an hour in the price's currency; None when it is not known."""
        if self.line.query is None:
            return Decimal(0)
        if self.price is None:
            return None
        cost = self.line.quantity * self.price.amount
        return cost if self.line.query.unit == HOURLY else cost / HOURS_PER_MONTH


@dataclass(frozen=True)
class Bill:
    """All lines of a stack. rates: the price of one unit of what is billed by use; in no sum."""

    lines: Sequence[Priced]
    rates: Sequence[Priced] = ()

    @property
    def complete(self) -> bool:
        """Whether every line has a price, and has it whole."""
        return all(line.per_hour is not None and not line.why for line in self.lines)

    @property
    def currency(self) -> str:
        """The one currency; '' when no line has a price. Raises PriceError for two."""
        seen = sorted({line.price.currency for line in (*self.lines, *self.rates) if line.price})
        if len(seen) > 1:
            raise PriceError(
                f"saw prices in {' and '.join(seen)}, wanted one currency; do: remove prices.json beside the run store"
            )
        return seen[0] if seen else ""

    def per_hour(self, *, idle: bool = False) -> Decimal:
        """The known lines' sum, or that of those that go on without nodes."""
        known = (line.per_hour for line in self.lines if line.line.idle or not idle)
        return sum((cost for cost in known if cost is not None), Decimal(0))

    def per_month(self, *, idle: bool = False) -> Decimal:
        """The same for a month of 730 hours."""
        return self.per_hour(idle=idle) * HOURS_PER_MONTH


def priced(lines: Iterable[BillLine], price: Callable[[Query], Price]) -> Bill:
    """Look every line up; what has no price keeps the reason."""
    return Bill([_priced(line, price) for line in lines])


def _priced(line: BillLine, price: Callable[[Query], Price]) -> Priced:
    if line.query is None:
        return Priced(line, None)
    try:
        return Priced(line, price(line.query))
    except PriceError as error:
        return Priced(line, None, str(error))
