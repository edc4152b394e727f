"""Incidents stand in the HTML report as a timeline, and nothing in them becomes markup."""

import io
from dataclasses import replace

import pytest

from flightline.cloud.clients import Clients
from flightline.cloud.measures import put
from flightline.fleet.judgement import judge_run
from flightline.healing.journal.incident import Moment, advance
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.stamps import later
from flightline.healing.journal.times import numbers, precision, took
from flightline.report import html
from flightline.store.sqlite import Run, SqliteStore
from tests.emulated import REGION, lead_to
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


def test_what_an_operators_graphs_show():
    way = (H.QUARANTINED, H.DRAINED, H.STARTED, H.REPAIRED, H.VERIFIED)
    over = [
        replace(through(through(incident(f"n{n}"), *way), H.RETURNED, at=later(T0, n)), known_at=later(T0, n / 10))
        for n in range(1, 101)
    ]
    held = through(incident("n101"), H.QUARANTINED, H.HELD)
    made = {(name, rank): [value, unit] for name, value, unit, rank in numbers([*over, held, incident("n102")])}
    assert made["OpenIncidents", ""] == [2.0, "Count"] and made["HeldNodes", ""] == [1.0, "Count"]
    assert made["DrainPrecision", ""] == [pytest.approx(100 / 101), "Percent"], "verified without a step: sound"
    assert made["TimeToDetect", "p99"] == [pytest.approx(9.9), "Seconds"]
    assert made["TimeToReturn", "p50"] == [pytest.approx(50), "Seconds"]
    assert made["TimeToQuarantine", "p90"] == [0.0, "Seconds"]
    assert "DrainPrecision" not in {name for name, *_ in numbers([incident()])}
    assert [one.phase for one in took([incident()])] == [], "of incidents of before nobody knows when they were known"


def test_the_numbers_are_in_the_clusters_namespace(server, monkeypatch):
    cloud = lead_to(server, monkeypatch)
    put(Clients(REGION), "Flightline/demo", numbers([replace(incident(), known_at=later(T0, 3))]))
    listed = cloud.client("cloudwatch").list_metrics(Namespace="Flightline/demo")["Metrics"]
    found = {(one["MetricName"], *sorted(d["Value"] for d in one["Dimensions"])) for one in listed}
    assert found == {
        ("OpenIncidents", "demo"),
        ("HeldNodes", "demo"),
        *(("TimeToDetect", "demo", p) for p in ("p50", "p90", "p99")),
    }
