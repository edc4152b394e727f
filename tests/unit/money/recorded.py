"""Prices that AWS published, and a price list that answers with them as GetProducts does.

Figures, SKUs and attributes as others recorded them; no account was at hand to record them here. Sources:
- OFFER: AWS' offer files of AmazonEC2, version 20260910195514 (published 2026-09-10), and AmazonS3, version 20260728131000
  (2026-07-28), as quoted in github.com/scttfrdmn/substrate (emulator/pricing_offer_fixture*.go). p5.48xlarge, p4d.24xlarge
  and the capacity block's zero beside them stand in a second reading of version 20260728175247 too.
- ASKED: the Price List API asked for ap-southeast-1 on 2026-08-12, as quoted in a public study's price reference. Its
  amounts, usage types and units are theirs; SKUs, product families and groups after AWS' documentation.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.served import Answering, Serving

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
_KINDS: Mapping[str, Mapping[str, str]] = {
    "linux": _LINUX,
    "block": {**_LINUX, "marketoption": "CapacityBlock", "operation": "RunInstances:CB"},
    "sql": {**_LINUX, "preInstalledSw": "SQL Std", "operation": "RunInstances:0004"},
    "dedicated": {**_LINUX, "tenancy": "Dedicated"},
    "unused": {**_LINUX, "capacitystatus": "UnusedCapacityReservation"},
}
_INSTANCES = """
TPKUC6XYSUQ3VFK2 us-east-1 g6.xlarge     BoxUsage       linux     0.8048000000
5G4TA8Z4MUKE6MJB us-east-1 m5.xlarge     BoxUsage       linux     0.1920000000
EHFDZFP2EH9BD4DX us-east-1 m5.xlarge     BoxUsage       sql       0.6720000000
AN9HBCS6XCP64Z83 us-east-1 m5.xlarge     DedicatedUsage dedicated 0.2040000000
E9RWRGDUV5X76FUB us-east-1 m5.xlarge     UnusedBox      unused    0.1920000000
H7NGEAC6UEHNTKSJ us-east-1 p4d.24xlarge  BoxUsage       linux     21.9576420000
3D4V8UAYEMB38GU2 us-east-1 p5.48xlarge   BoxUsage       linux     55.0400000000
5Q7AP3RH7KTVUNCJ us-east-1 p5.48xlarge   BoxUsage       block     0.0000000000
WVVQPJVCQU4SR8XF us-east-1 trn1.32xlarge BoxUsage       linux     21.5000000000
HNW4W6GM8AE2PCQX us-west-2 p5.48xlarge   USW2-BoxUsage  linux     55.0400000000
CQ3RZ8A8BQKVHSKT eu-west-1 p4d.24xlarge  EU-BoxUsage    linux     23.7156900000
"""
"""SKU, region, type, the usage type's first part, kind, US dollars."""
_OTHERS = """
WP9ANXZGBYYSGJEA AmazonS3  us-east-1 Storage     TimedStorage-ByteHrs     GB-Mo    0=0.0230000000 51200=0.0220000000 512000=0.0210000000
379GYJUQ5WFBUYGM AmazonS3  us-east-1 Storage     TimedStorage-SIA-ByteHrs GB-Mo    0=0.0125000000
E9YHNFENF4XQBZR6 AmazonS3  us-east-1 API_Request Requests-Tier1           Requests 0=0.0000050000
ZWQ6Q48CRJXX4FXE AmazonS3  us-east-1 API_Request Requests-Tier2           Requests 0=0.0000004000
WDAC2WRXVNRSNQS6 AmazonS3  us-east-1 -           Requests-GDA-Tier2       Requests 0=0.0000004000
- AmazonEC2 ap-southeast-1 NAT_Gateway APS1-NatGateway-Hours        Hrs      0=0.0590
- AmazonEC2 ap-southeast-1 NAT_Gateway APS1-NatGateway-Bytes        GB       0=0.0590
- AmazonVPC ap-southeast-1 VpcEndpoint APS1-VpcEndpoint-Hours       Hrs      0=0.0130
- AmazonVPC ap-southeast-1 VpcEndpoint APS1-VpcEndpoint-Bytes       GB       0=0.0100
- AmazonVPC ap-southeast-1 VpcEndpoint APS1-VpcEndpoint-GWLBE-Hours Hrs      0=0.0130
- AmazonEC2 ap-southeast-1 Storage     APS1-EBS:VolumeUsage.gp3     GB-Mo    0=0.0960
- AmazonS3  ap-southeast-1 Storage     APS1-TimedStorage-ByteHrs    GB-Mo    0=0.0250
- AmazonS3  ap-southeast-1 Storage     APS1-TimedStorage-SIA-ByteHrs GB-Mo   0=0.0138
- AmazonS3  ap-southeast-1 API_Request APS1-Requests-Tier2          Requests 0=0.0000004
"""
"""SKU, service, region, family, usage type, unit, and the price from each amount on; - is none, _ a space."""
_MORE: Mapping[str, Mapping[str, str]] = {
    "TimedStorage-ByteHrs": {"storageClass": "General Purpose", "volumeType": "Standard"},
    "TimedStorage-SIA-ByteHrs": {"storageClass": "Infrequent Access", "volumeType": "Standard - Infrequent Access"},
    "Requests-Tier1": {"group": "S3-API-Tier1"},
    "Requests-Tier2": {"group": "S3-API-Tier2"},
    "Requests-GDA-Tier2": {"group": "S3-API-GDA-Tier2"},
    **{
        f"APS1-NatGateway-{what}": {"group": "NGW:NatGateway", "operation": "NatGateway"} for what in ("Hours", "Bytes")
    },
    **{f"APS1-VpcEndpoint-{what}": {"group": "VPCE:VpcEndpoint"} for what in ("Hours", "Bytes", "GWLBE-Hours")},
    "APS1-EBS:VolumeUsage.gp3": {"volumeApiName": "gp3"},
}
"""Attributes by usage type."""


def products() -> list[dict[str, Any]]:
    """All of them, as the price list has them."""
    made = []
    for line in _INSTANCES.split("\n")[1:-1]:
        sku, region, kind, word, of, amount = line.split()
        attributes = {**_KINDS[of], "regionCode": region, "instanceType": kind}
        usage = f"{word}:{kind}"
        made.append(_product(sku, "AmazonEC2", "Compute Instance", attributes, usage, (("0", amount),), "Hrs"))
    for line in _OTHERS.split("\n")[1:-1]:
        sku, service, region, family, usage, unit, *steps = line.split()
        attributes = {**_MORE.get(usage, {}), "regionCode": region}
        scale = tuple((begin, amount) for begin, _, amount in (step.partition("=") for step in steps))
        named = "" if family == "-" else family.replace("_", " ")
        made.append(_product(usage if sku == "-" else sku, service, named, attributes, usage, scale, unit))
    return made


def _product(
    sku: str,
    service: str,
    family: str,
    attributes: Mapping[str, str],
    usage: str,
    steps: tuple[tuple[str, str], ...],
    unit: str,
) -> dict[str, Any]:
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

    class Handler(Answering):
        def do_POST(self) -> None:
            asked = json.loads(self.given())
            if refuse:
                status, code, message = refuse
                self._say(status, {"__type": code, "message": message})
                return
            found = matching(asked["ServiceCode"], asked.get("Filters", []))
            start = int(asked.get("NextToken") or 0)
            more = {"NextToken": str(start + page)} if start + page < len(found) else {}
            self._say(200, {"FormatVersion": "aws_v1", "PriceList": found[start : start + page], **more})

        def _say(self, status: int, answer: dict[str, Any]) -> None:
            self.say(status, json.dumps(answer).encode(), {"Content-Type": "application/x-amz-json-1.1"})

    with Serving(Handler) as server:
        yield f"http://127.0.0.1:{server.port}"
