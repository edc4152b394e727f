"""neuron_topology: gaps, one-sided links, neighbours that are not there, and what the driver does not show."""

from tests.harness import only, status

from .neurons import TRN1, fixture, node
from .table import FAIL, INVESTIGATE, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judge(facts, instance_type=TRN1):
    return judging("neuron_topology", facts, instance_type)


test_neuron_topology = table(
    *(row("the shapes", judge(node(neuron_ls=fixture("neuron_ls", f"neuron_ls/{name}.json")), instance_type), PASS,
        says=words)
        for name, instance_type, words in [
            ("trn1-32xlarge", "trn1.32xlarge", "4 neighbours for each of 16 devices: the torus"),
            ("trn2-48xlarge", "trn2u.48xlarge", "4 neighbours"),
            ("inf2-48xlarge", "inf2.48xlarge", "2 neighbours for each of 12 devices: the ring"),
            ("inf2-24xlarge", "inf2.24xlarge", "1 to 2 neighbours for each of 6 devices: the line"),
        ]),
    row("a single device has none",
        judge(node(neuron_ls=fixture("neuron_ls", "neuron_ls/inf2-xlarge.json")), "inf2.xlarge"), SKIP,
        message="a single device has no neighbours"),
)  # fmt: skip


def test_a_broken_link_names_both_ends():
    facts = node()
    for here, there in ((5, 6), (6, 5)):
        facts["neuron_ls"]["devices"][here]["connected"].remove(there)
    findings = [finding for finding in judge(facts) if finding.status is FAIL]
    assert [finding.device["name"] for finding in findings] == ["neuron5", "neuron6"]
    assert "neuron6 missing" in findings[0].message
    assert findings[0].remedy is REPLACE


def test_seen_from_one_side_only():
    facts = node()
    facts["neuron_ls"]["devices"][5]["connected"].remove(6)
    named = {finding.device["name"] for finding in judge(facts) if finding.status is FAIL}
    assert named == {"neuron5", "neuron6"}


def test_a_neighbour_that_is_not_listed():
    facts = node()
    del facts["neuron_ls"]["devices"][6]
    named = {finding.device["name"] for finding in judge(facts) if finding.status is FAIL}
    assert {"neuron2", "neuron5", "neuron7", "neuron10"} <= named
    # The driver tells neighbours when all devices are there: without a type the rest may be another container's.
    untyped = judge(facts, "none")
    assert status(untyped) is UNKNOWN
    assert {finding.remedy for finding in untyped} == {INVESTIGATE}


def test_no_neighbours_shown_is_unknown():
    facts = node()
    for device in facts["neuron_ls"]["devices"]:
        device["connected"] = []
    assert status(judge(facts)) is UNKNOWN
    assert only(judge(facts, "none"), SKIP).message == "no neighbours shown"


def test_another_order_of_the_same_shape_only_warns():
    facts = node()
    swap = {1: 2, 2: 1}
    rows = facts["neuron_ls"]["devices"]
    for device in rows:
        device["connected"] = [swap.get(other, other) for other in device["connected"]]
    rows[1]["connected"], rows[2]["connected"] = rows[2]["connected"], rows[1]["connected"]
    assert status(judge(facts)) is WARN
