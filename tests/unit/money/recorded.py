"""Prices that AWS published (recorded.yml), and a price list that answers with them as GetProducts does.

Figures, SKUs and attributes as others recorded them; no account was at hand to record them here. Sources:
- OFFER: AWS' offer files of AmazonEC2, version 20260910195514 (published 2026-09-10), and AmazonS3, version 20260728131000
  (2026-07-28), as quoted in github.com/scttfrdmn/substrate (emulator/pricing_offer_fixture*.go). p5.48xlarge, p4d.24xlarge
  and the capacity block's zero beside them stand in a second reading of version 20260728175247 too.
- ASKED: the Price List API asked for ap-southeast-1 on 2026-08-12, as quoted in a public study's price reference. Its
  amounts, usage types and units are theirs; SKUs, product families and groups after AWS' documentation.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

OFFER = {
    "AmazonEC2": ("20260910195514", "2026-09-10T19:55:14Z"),
    "AmazonS3": ("20260728131000", "2026-07-28T13:10:00Z"),
}
ASKED = ("20260812000000", "2026-08-12T00:00:00Z")

_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "operation": "RunInstances",
}
TABLES = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))


def products() -> list[dict[str, Any]]:
    """All of them, as the price list has them."""
    instances = [
        _product(sku, "AmazonEC2", "Compute Instance", _LINUX | more | {"regionCode": region, "instanceType": kind},
                 f"{word}:{kind}", {"0": amount})
        for sku, region, kind, word, amount, more in TABLES["instances"]
    ]  # fmt: skip
    others = [
        _product(sku or usage, service, family, {**more, "regionCode": region}, usage, steps, unit)
        for sku, service, region, family, usage, unit, steps, more in TABLES["others"]
    ]
    return instances + others


def _product(
    sku: str,
    service: str,
    family: str,
    attributes: Mapping[str, str],
    usage: str,
    amounts: Mapping[str, str],
    unit: str = "Hrs",
) -> dict[str, Any]:
    steps = list(amounts.items())
    term = f"{sku}.JRTCKXETXF"
    dimensions = {
        f"{term}.{number}": {
            "unit": unit,
            "beginRange": begin,
            "endRange": steps[number + 1][0] if number + 1 < len(steps) else "Inf",
            "pricePerUnit": {"USD": amount},
            "appliesTo": [],
            "rateCode": f"{term}.{number}",
        }
        for number, (begin, amount) in enumerate(steps)
    }
    version, published = OFFER.get(service, ASKED) if sku != usage else ASKED
    return {
        "product": {
            "sku": sku,
            **({"productFamily": family} if family else {}),
            "attributes": {**attributes, "servicecode": service, "usagetype": usage},
        },
        "serviceCode": service,
        "terms": {"OnDemand": {term: {"sku": sku, "priceDimensions": dimensions, "termAttributes": {}}}},
        "version": version,
        "publicationDate": published,
    }


def matching(service: str, filters: list[Mapping[str, str]]) -> list[str]:
    """What GetProducts answers: TERM_MATCH on every attribute named, without regard to case."""

    def says(one: dict[str, Any], name: str) -> str:
        product = one["product"]
        return str(product.get("productFamily", "") if name == "productFamily" else product["attributes"].get(name, ""))

    def fits(one: dict[str, Any]) -> bool:
        return all(says(one, given["Field"]).lower() == given["Value"].lower() for given in filters)

    return [json.dumps(one) for one in products() if one["serviceCode"] == service and fits(one)]


@contextmanager
def served(refuse: tuple[int, str, str] | None = None, page: int = 2) -> Iterator[str]:
    """The price list on this machine; its address. refuse: status, code and message of every answer instead."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if refuse:
                status, code, message = refuse
                self._say(status, {"__type": code, "message": message})
                return
            found = matching(asked["ServiceCode"], asked.get("Filters", []))
            start = int(asked.get("NextToken") or 0)
            more = {"NextToken": str(start + page)} if start + page < len(found) else {}
            self._say(200, {"FormatVersion": "aws_v1", "PriceList": found[start : start + page], **more})

        def _say(self, status: int, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """No line per request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
