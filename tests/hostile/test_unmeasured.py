"""What was not measured is not go: the table against an operator's list, against answers with holes, and on the node itself.

`make hostile` runs the same over 20,000 answers.
"""

import pytest

from flightline_node.judge import judgement
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Status
from flightline_node.read import bundle
from flightline_node.read.facts import FactBook
from flightline_node.read.parsers import PARSERS
from flightline_node.settings import build
from tests.corpus.material import demo, generation
from tests.e2e.test_faults import simulated_types
from tests.harness import NOW
from tests.hostile import unmeasured
from tools import must

SAMPLE = 2000
REASONS = ("waived", "driver_silent", "only_advice")


@pytest.mark.parametrize("kind", must.KINDS)
def test_a_healthy_node_of_each_kind_is_go(kind):
    for level in LEVELS:
        whole = unmeasured.Turned("whole", kind, level, unmeasured.healthy(kind, level))
        assert unmeasured.is_go(whole) and unmeasured.should_be_go(whole), level


def test_no_answer_with_a_hole_is_go_that_an_operator_would_not_take():
    found = list(unmeasured.cases(SAMPLE, seed=2))
    go = [one for one in found if unmeasured.should_be_go(one)]
    assert 10 < len(go) < SAMPLE / 2, "the sample says something"
    assert [(one.kind, one.level, one.name) for one in found if unmeasured.is_go(one) is not (one in go)] == []


@pytest.mark.parametrize("kind", ["p5.48xlarge", "g5.48xlarge", "trn1.32xlarge"])
def test_each_check_that_must_be_measured_makes_its_node_no_go_when_it_is_skipped(kind):
    """The words of the fault itself: of a healthy record one check becomes SKIP, INFO or absent."""
    table = must.table(kind)
    go = {one.name.split()[0] for one in unmeasured.one_check(kind, "deep", REASONS) if unmeasured.is_go(one)}
    assert {check for check in go if must.cell(table[check]) == must.MUST and not table[check].informs} == set()
    assert len(go) > 5, "optional checks may be skipped"


@pytest.mark.parametrize("kind", ["p5.48xlarge", "trn1.32xlarge"])
def test_a_check_that_breaks_on_the_node_costs_its_node_the_go(kind):
    table = must.table(kind)
    found = list(unmeasured.defects(kind, "deep"))
    assert [one.name for one in found if unmeasured.is_go(one) is not unmeasured.should_be_go(one)] == []
    go = [one.name.split(maxsplit=1) for one in found if unmeasured.is_go(one)]
    wrong = [(check, how) for check, how in go if must.cell(table[check]) == must.MUST]
    assert {check for check, how in wrong} == {
        check for check, how in wrong if how == "informs" and table[check].informs
    }


@pytest.mark.parametrize("kind", simulated_types())
def test_a_check_whose_evidence_is_gone_is_unknown_or_rightly_skipped(kind, tmp_path):
    """Every output that a check may read is taken from a healthy node."""
    files, table, expected = dict(demo(kind)), must.table(kind), resolve(kind)
    said = {}
    for check in CHECKS.values():
        reads = {file for name in (*check.needs, *check.needs_any, *check.wants) for file in PARSERS[name].files}
        place = tmp_path / check.id
        place.mkdir()
        for file in set(files) - reads:
            (place / file).symlink_to(_kept(tmp_path, file, files[file]))
        settings, book = build(level="deep"), FactBook(bundle.load(place))
        found = judgement.answers([check], book, expected, settings, NOW, {}, required=True)
        said[check.id] = {(str(one.status), one.reason) for one in found}
    wanted = {one: row for one, row in table.items() if must.cell(row) == must.MUST}
    assert {one: said[one] for one in wanted if said[one] != {("UNKNOWN", "not_collected")}} == {}
    skipped = {(one, reason) for one, answers in said.items() for status, reason in answers if status == "SKIP"}
    assert [(one, reason) for one, reason in skipped if reason not in table[one].reasons] == []
    assert {status for answers in said.values() for status, _ in answers} <= {"UNKNOWN", "SKIP"}


def _kept(place, file, content):
    path = place / "kept" / file
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(content)
    return path


OUTPUTS = {
    "v100-450": "p3dn.24xlarge", "t4-515": "g4dn.12xlarge", "a100-535-mig": "p4d.24xlarge", "h100-550-faulty": "p5.48xlarge",
    "h200-570-recovery": "p5en.48xlarge", "b200-580": "p6-b200.48xlarge", "rtxpro6000-590": "g7e.2xlarge",
}  # fmt: skip


OTHER_WORDS = {(fixture, branch) for fixture in OUTPUTS for branch in ("", "525", "545", "560", "575")}
OTHER_WORDS -= {("v100-450", "525"), ("t4-515", "525")}


@pytest.mark.parametrize(("fixture", "branch"), sorted(OTHER_WORDS))
def test_a_driver_that_prints_less_costs_no_healthy_node_the_go(fixture, branch, tmp_path):
    """nvidia-smi's output of a healthy node in the words of several drivers: what it lacks is no hole of the table."""
    (tmp_path / "nvidia-smi.xml").write_text(generation(fixture, OUTPUTS[fixture], branch))
    mine = [one.id for one in CHECKS.values() if {*one.needs, *one.needs_any} == {"nvidia_smi"}]
    settings, kind = build(select=mine), resolve(OUTPUTS[fixture])
    found = judgement.judge(bundle.load(tmp_path), kind, settings, NOW, required=True).findings
    assert [(one.check, one.message) for one in found if one.status is Status.UNKNOWN] == []
