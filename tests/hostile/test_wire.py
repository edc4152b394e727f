"""Hostile nodes against the real playbook. One run per way to start it, looked at by many tests."""

import pytest

from tests.hostile import bed
from tests.hostile.bed import HostileBed, answer, real
from tests.hostile.generator import by_field, put
from tests.hostile.wire import planned

BROKEN = {
    "check-is-a-list": put(real(), ("findings", 0, "check"), ["x"]),
    "findings-is-5": put(real(), ("findings",), 5),
    "findings-is-null": put(real(), ("findings",), None),
    "seconds-is-text": put(real(), ("seconds",), "abc"),
    "seconds-is-huge": put(real(), ("seconds",), 10**400),
    "device-is-text": put(real(), ("findings", 0, "device"), "x"),
    "remedy-is-a-list": put(real(), ("findings", 0, "remedy"), []),
    "unit-is-5": put(real(), ("findings", 0, "unit"), 5),
    "versions-is-a-list": put(real(), ("versions",), []),
    "measures-is-5": put(real(), ("measures",), {"ecc_uncorrected_aggregate": 5}),
    "partial": {"verdict": "go", "findings": real()["findings"][:1]},
    "another-level": put(real(), ("level",), "deep"),
    "another-call": put(real(), ("call_id",), "call-0"),
    "another-host": put(real(), ("host",), "good-0"),
}
GOOD = [f"good-{number}" for number in range(4)]


@pytest.fixture(scope="module", params=[bed.PLAYBOOK, bed.COMMAND], ids=["ansible-playbook", "flightline"])
def ran(request, tmp_path_factory):
    place = HostileBed(tmp_path_factory.mktemp("hostile"))
    for host, record in BROKEN.items():
        place.add(host, {"text": answer(record, host)})
    for host, plan in bed.rogues().items():
        place.add(host, plan, flightline_timeout_s=8)
    for host in GOOD:
        place.add(host, {"text": answer(real(), host)})
    place.add("claims-go", {"text": answer(real("FAIL"), "claims-go")})
    place.write()
    result = place.run(request.param)
    result.left_over = place.left_over()
    result.place = place
    return result


def test_the_fleet_is_no_go_with_status_1_and_every_row(ran):
    """A finding whose check is a list once ended the judging: no verdict, status 0."""
    assert ran.status == 1 and "NO-GO  4 of" in ran.out, ran.out[-3000:]
    assert len(ran.rows) == len(ran.place.plan)


@pytest.mark.parametrize("host", BROKEN)
def test_a_malformed_record_is_its_own_host_s_unknown_row(ran, host):
    (finding,) = ran.rows[host].findings
    assert (finding["check"], finding["status"]) == ("node", "UNKNOWN"), finding
    assert "refused" in finding["message"] and "it began: " in finding["message"]


@pytest.mark.parametrize("host", bed.rogues())
def test_a_rogue_is_its_own_host_s_no_go(ran, host):
    assert ran.rows[host].verdict == "no-go"
    if host != "bundle":
        assert ran.rows[host].status == "UNKNOWN", ran.rows[host].findings


@pytest.mark.parametrize("host", GOOD)
def test_good_hosts_keep_their_verdict(ran, host):
    assert ran.rows[host].verdict == "go", ran.rows[host].findings


def test_a_fail_that_claims_go_is_no_go_also_in_the_live_line(ran):
    assert ran.rows["claims-go"].verdict == "no-go"
    assert "claims-go go" not in ran.out


def test_a_node_that_hangs_ends_with_its_deadline_and_leaves_nothing_behind(ran):
    for host in ("hangs", "holds"):
        assert "no answer within 8 s" in ran.rows[host].findings[0]["message"], ran.rows[host].findings
    assert ran.left_over == []


def test_endless_answers_are_cut(ran):
    for host in ("floods", "much", "junk"):
        said = ran.rows[host].findings[0]["message"]
        assert "endless" in said or "taken are" in said or "no answer within" in said, said
    assert ran.peak_mb < 500


def test_a_bundle_that_nobody_asked_for_is_not_kept(ran):
    assert not (ran.place.store.parent / "bundles").exists()


def test_no_escape_reaches_the_terminal(ran):
    assert bed.RAW.search(ran.out.replace("\r", "")) is None, ascii(ran.out[-2000:])


def test_a_later_healthy_run_of_the_same_hosts_is_go(ran, tmp_path_factory):
    place = HostileBed(tmp_path_factory.mktemp("later"))
    for host in ("measures-is-5", "check-is-a-list", "partial"):
        place.add(host, {"text": answer(real(), host)})
    place.write()
    later = place.run(bed.PLAYBOOK, FLIGHTLINE_STORE=str(ran.place.store))
    assert later.status == 0, later.out[-2000:]


def test_generated_answers_come_to_what_they_should(tmp_path):
    """A sample of `make hostile`."""
    place, wanted = HostileBed(tmp_path), {}
    # A version of its own is a finding of the fleet, not of the node.
    cases = [case for case in by_field() if not case.name.startswith("versions.")]
    for number, case in enumerate(cases[::60]):
        host = f"h{number:03}"
        plan = planned(case, host)
        place.add(host, plan)
        wanted[host] = plan["go"]
    place.write()
    done = place.run()
    assert {host: row.verdict == "go" for host, row in done.rows.items()} == wanted
    assert 1 <= sum(wanted.values()) < len(wanted) / 2
    assert done.status == 1 and done.peak_mb < 500
