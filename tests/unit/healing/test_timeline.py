"""Incidents stand in the HTML report as a timeline, and nothing in them becomes markup."""

import io

import pytest

from flightline.fleet.judgement import judge_run
from flightline.healing.journal.incident import Moment, advance
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.times import precision
from flightline.report import html
from flightline.store.sqlite import Run, SqliteStore
from tests.unit.healing.made import T0, H, incident, through


@pytest.fixture
def page(tmp_path):
    def made(*incidents):
        path = tmp_path / "runs.sqlite"
        with SqliteLedger(path) as ledger:
            for one in incidents:
                ledger.save(one, None)
        with SqliteStore(path) as store:
            store.start(Run("R1", T0))
            report = judge_run(store, "R1")
            report.incidents = store.incidents()
        stream = io.StringIO()
        html.write(report, stream, {})
        return stream.getvalue()

    return made


def test_an_incident_is_a_timeline(page):
    way = (H.QUARANTINED, H.DRAINED, H.STARTED, H.REPAIRED, H.VERIFIED, H.RETURNED)
    text = page(through(incident("gpu-07"), *way))
    section = text[text.index('<section id="incidents">') :]
    places = [
        section.index(f"<td>{word}</td>")
        for word in ("detected", "quarantined", "drained", "repairing", "verified", "returned")
    ]
    assert places == sorted(places)
    assert "gpu-07" in section


def test_text_of_an_incident_is_no_markup(page):
    text = page(advance(incident(), Moment(T0, H.NOTED, "x", "<script>alert(1)</script>", (), ("<b>7</b>",))))
    assert "<script>alert" not in text
    assert "<b>7" not in text


def test_a_store_without_incidents_has_no_section(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        assert store.incidents() == []
        store.start(Run("R1", T0))
        stream = io.StringIO()
        html.write(judge_run(store, "R1"), stream, {})
    assert "Incidents" not in stream.getvalue()


def test_the_precision_of_drains_counts_what_a_second_look_said():
    sick = through(incident("n1"), H.QUARANTINED, H.DRAINED, H.STARTED, H.FAILED)
    sound = through(incident("n2"), H.QUARANTINED, H.DRAINED, H.REPAIRED, H.VERIFIED, H.RETURNED)
    overruled = through(incident("n3"), H.QUARANTINED, H.LEFT)
    unknown, never_out = through(incident("n4"), H.QUARANTINED), through(incident("n5"), H.CLEARED)
    found = precision([sick, sound, overruled, unknown, never_out])
    assert (found.taken_out, found.sick, found.sound) == (4, 1, 2)
    assert found.share == 1 / 3
    assert precision([unknown]).share is None
