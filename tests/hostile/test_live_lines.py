"""What is said of a node while the run goes is what its row says at the end."""

import pytest

from tests.beds import BIN
from tests.hostile import bed
from tests.hostile.bed import HostileBed, answer, real

BIG = "QUJD" * 400_000
"""Well above what ansible-runner's event holds of a result (MAX_EVENT_RES, 700000 characters)."""


def with_bundle(status: str, host: str) -> dict[str, str]:
    return {"text": answer(real(status), host)[:-2] + f', "bundle": "{BIG}"}}}}'}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    place = HostileBed(tmp_path_factory.mktemp("live"))
    place.add("bundle", bed.rogues()["bundle"])
    place.add("small", {"text": answer(real("FAIL"), "small")})
    place.add("fine", {"text": answer(real(), "fine")})
    place.add("silent", {"text": ""})
    place.write(flightline_keep_bundles=True)
    return place.run(bed.COMMAND)


def live(ran, host):
    (line,) = [line for line in ran.out.splitlines() if line.startswith("[") and f"] {host} " in line]
    return line.partition("] ")[2]


def test_the_live_line_of_a_node_with_a_large_bundle_is_its_rows(ran):
    small, big = live(ran, "small"), live(ran, "bundle")
    assert big == small.replace("small", "bundle", 1) and "passed the gate" not in ran.out, ran.out
    (trouble,) = {trouble.said for trouble in ran.rows["bundle"].troubles}
    assert trouble in big


def test_every_host_has_one_line_and_it_says_its_verdict(ran):
    for host, row in ran.rows.items():
        assert f"{host} {row.verdict}" in live(ran, host)


def test_nothing_of_a_run_is_read_from_events_that_leave_results_out(tmp_path):
    place = HostileBed(tmp_path)
    for host in ("a", "b"):
        place.add(host, {"text": answer(real(), host)})
    place.write()
    done = place.run(bed.COMMAND, MAX_EVENT_RES="1")
    assert done.status == 0 and live(done, "a").startswith("a go, "), done.out
    assert done.out.startswith("2 hosts, judged by "), done.out


def test_a_launcher_s_run_needs_no_event_either(tmp_path):
    """Thousands of hosts make a result that is left out."""
    place = HostileBed(tmp_path)
    place.add("a", {"text": ""})
    place.write()
    done = place.run((*bed.COMMAND, "--via", "slurm"), MAX_EVENT_RES="1", PATH=f"{BIN}:/usr/bin:/bin")
    assert done.status == 2 and "ansible-playbook ended with status" not in done.out, done.out
