"""instance_identity: as declared, wrong type, zone or group, no service, service that does not answer."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table

P5 = read("imds", "imds/p5.json")


def judged(facts=P5, kind="p5.48xlarge", **expected):
    return judging("instance_identity", {"imds": facts}, kind, expected=expected)


SILENT = {"available": False, "reason": "no session token, timed out", "asked": "http://169.254.169.254"}


test_instance_identity = table(
    *(row("as declared", judged(availability_zone=zone, placement_group="train-a"), PASS,
        message=f"as declared: instance type p5.48xlarge, zone {zone}, placement group train-a")
        for zone in ["us-east-1a", "use1-az4"]),
    *(row("not as declared", judged(kind=kind, **expected), FAIL, remedy=FIX_CONFIG)
        for kind, expected in [
            ("p5e.48xlarge", {}),
            ("p5.48xlarge", {"availability_zone": "us-east-1b"}),
            ("p5.48xlarge", {"placement_group": "train-b"}),
        ]),
    row("no placement group at all", judged({**P5, "placement_group": None}, placement_group="train-a"), FAIL,
        message="placement group is none, wanted train-a"),
    row("not asked or not answered is unknown",
        judged({"available": True, "errors": {"meta-data/instance-type": "HTTP status 500"}}), UNKNOWN,
        shows="HTTP status 500"),
    row("tokens optional warns", judged({**P5, "tokens_required": False}), WARN),
    row("tokens optional warns", judged({**P5, "tokens_required": True}), PASS),
    row("no service", judged({"available": False, "reason": "not an EC2 instance: the system vendor is QEMU"}), SKIP),
    row("no service", judged(SILENT), WARN, remedy=FIX_CONFIG),
    row("no service", judged(SILENT, kind="none"), SKIP),
    row("nothing declared", judged(kind="none"), SKIP),
    row("nothing declared", judged(kind="none", availability_zone="us-east-1a"), PASS),
)  # fmt: skip
