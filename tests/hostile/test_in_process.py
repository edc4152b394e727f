"""A sample of `make hostile`: each answer through the gate, the store and a fleet's judgement."""

import itertools

from flightline.record import intake
from tests.hostile import inprocess
from tests.hostile.generator import Case, by_field, good

SAMPLE = 1500


def test_the_good_record_is_go_and_the_bad_one_is_not():
    assert intake.is_go(intake.admit(good(), inprocess.ASKED)) and inprocess.expected(Case("good", good()))
    assert not intake.is_go(intake.admit(good("FAIL"), inprocess.ASKED))


def test_a_host_is_go_only_by_its_own_complete_valid_record():
    """Exactly those are go that the oracle says; of the sample some are."""
    found = list(inprocess.cases(10_000, seed=1))[:: 10_000 // SAMPLE]
    wanted = {case.name: inprocess.expected(case) for case in found}
    assert 20 < sum(wanted.values()) < len(found) / 2, "the sample says something"
    for number in range(0, len(found), inprocess.FLEET):
        batch = found[number : number + inprocess.FLEET]
        answers = inprocess.judge(batch)
        pairs = [(case, answers[f"h{place:04}"]) for place, case in enumerate(batch)]
        assert [(case.name, go) for case, go in pairs if go is not inprocess.expected(case)] == []
        assert all(go for host, go in answers.items() if host.startswith("good")), "a neighbour lost its verdict"


def test_what_an_older_version_stored_breaks_no_report_and_no_later_run(tmp_path):
    batch = [case for case in itertools.islice(by_field(), 0, None, 7) if not case.text]
    assert all(inprocess.stored_raw(batch, tmp_path / "runs.sqlite").values()), "a healthy run lost its verdict"
