"""kernel_version: no pin, pin kept or broken, the type's minimum, not printed."""

from .table import FAIL, PASS, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def judged(kernel, kind="p5.48xlarge", **expected):
    return judging("kernel_version", {"versions": {"kernel": kernel}}, kind, expected=expected)


test_kernel_version = table(
    *(row("pin", judged(kernel, kernel_version=pin), wanted)
        for kernel, pin, wanted in [
            ("6.8.0-1018-aws", "6.8.0-1018-aws", "PASS"),
            ("6.8.0-1018-aws", "6.8", "PASS"),
            ("6.8.0-1019-aws", "6.8.0-1018", "FAIL"),
            ("6.1.147-172.266.amzn2023.x86_64", "6.1.147", "PASS"),
            ("6.12.1", "6.1", "FAIL"),
        ]),
    row("minimum of the type", judged("5.15.0-1080-aws", "p6-b200.48xlarge"), FAIL, expected="6.1",
        remedy=UPDATE_SOFTWARE),
    row("minimum of the type", judged("6.8.0-1018-aws", "p6-b200.48xlarge"), PASS),
    row("nothing wanted", judged("6.8.0-1018-aws"), PASS, says="no version pinned"),
    row("unknown", judging("kernel_version", {"versions": {"efa_installer": "1.43.1"}}), UNKNOWN),
)  # fmt: skip
