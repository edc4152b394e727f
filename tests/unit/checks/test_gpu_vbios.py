"""gpu_vbios: pin, one version within the node, unreadable."""

from functools import partial

import pytest

from tests.harness import only, status

from . import gpus
from .table import FAIL, NONE, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table

judge = partial(judging, "gpu_vbios")

test_gpu_vbios = table(
    row("one version", judge(gpus.node()), PASS, says="96.00.A5.00.01"),
    row("two models have two versions",
        judge(gpus.put(gpus.one(4, "vbios_version", "90.04.38.00.03"), 4, "name", "Tesla T4")), PASS),
    row("unreadable is unknown",
        [judge(gpus.one(0, "vbios_version", "[Unknown Error]")), judge(gpus.one(0, "vbios_version", None))], UNKNOWN),
    *(each for facts in [gpus.silent("vbios_version")] for each in (
        row("not printed matters only to a pin", judge(facts), SKIP),
        row("not printed matters only to a pin", judge(facts, expected={"vbios_version": "96"}), UNKNOWN),
    )),
)  # fmt: skip


def test_other_version_within_the_node_warns():
    facts = gpus.one(4, "vbios_version", "96.00.74.00.01")
    findings = judge(facts)
    assert only(findings, WARN).measured == "96.00.74.00.01, 96.00.A5.00.01"
    assert status(findings) is WARN
    assert not [finding for finding in findings if finding.status is PASS]


@pytest.mark.parametrize(
    ("pin", "wanted"),
    [
        ("96.00.A5.00.01", PASS),
        ("96.00.a5", PASS),
        ("96.00.B5.00.01", FAIL),
        ("96.00.A", FAIL),
    ],
)
def test_pin_counts_hexadecimal_groups(pin, wanted):
    findings = judge(gpus.node(), expected={"vbios_version": pin})
    assert status(findings) is wanted
    assert findings[0].remedy is (REPLACE if wanted is FAIL else NONE)
