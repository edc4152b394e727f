"""Checks of the site's own: declared, run, contained, taken by the gate; and the five examples of docs/site-checks.md."""

import json
import re
import time
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from flightline.demo import prepare
from flightline.record import intake
from flightline.record.answers import asked_of
from flightline_node import node, settings
from flightline_node.ask import site_program
from flightline_node.ask.runner import Node
from flightline_node.inputs import defaults
from flightline_node.judge import site_checks
from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError
from flightline_node.watch import claim
from tests.beds import processes
from tests.unit.made import program

PAGE = Path(__file__).parents[3] / "docs" / "site-checks.md"
CHECKS_D = "etc/flightline/checks.d"


def judged(root, site=None, select=("site",), **more):
    """The record of a node whose only checks are the site's."""
    wanted = settings.build(select=select, site=site, **more)
    return node.run(Node(str(root)), resolve("none"), wanted, node.Identity("n1"))


def found(record, check):
    return [one for one in record["findings"] if one["check"] == check]


def said(tmp_path, script, name="own", **declared):
    """What a program of that text comes to: status, reason, verdict."""
    path = program(tmp_path / CHECKS_D / name, script)
    site = {name: {"program": f"/{path.relative_to(tmp_path)}", "seconds": 2, **declared}}
    record = judged(tmp_path, site)
    (one,) = found(record, f"site.{name}")
    return one["status"], one.get("reason", ""), record["verdict"]


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("echo 'OK - all ports up | ports=32'", "PASS", ""),
        ("exit 0", "PASS", ""),
        ("echo 'ERROR: nhc: /scratch is read-only' >&2; exit 1", "FAIL", "said"),
        ("echo 'CRITICAL - 31 of 32'; exit 2", "FAIL", "said"),
        ("exit 3", "UNKNOWN", "bad_answer"),
        ("exit 127", "UNKNOWN", "bad_answer"),
        ("kill -9 $$", "UNKNOWN", "bad_answer"),
        ("""echo '{"status": "PASS", "message": "32 ports", "measured": 32}'""", "PASS", ""),
        (
            """echo '{"status": "FAIL", "message": "31", "reason": "port.down", "remedy": "REBOOT"}'""",
            "FAIL",
            "port.down",
        ),
        ("""echo '{"status": "WARN", "message": "old"}'""", "WARN", "said"),
    ],
)
def test_a_program_says_it_by_its_exit_status_or_by_one_document(tmp_path, script, status, reason):
    verdict = "go" if status in ("PASS", "WARN") else "no-go"
    assert said(tmp_path, script) == (status, reason, verdict)


def test_a_program_of_nagios_warns_with_1_where_the_site_says_so(tmp_path):
    assert said(tmp_path, "echo 'WARNING - warm'; exit 1", warns=True) == ("WARN", "said", "go")


HOSTILE = {
    "hangs": "sleep 600",
    "hangs and hears no signal": "trap '' TERM; while :; do sleep 1; done",
    "a gigabyte": "head -c 1000000000 /dev/zero | tr '\\0' x",
    "a gigabyte of errors": "head -c 1000000000 /dev/zero | tr '\\0' x >&2",
    "garbage JSON": 'echo \'{"status": "PASS", \'',
    "a status twice": """echo '{"status": "FAIL", "status": "PASS", "message": "x"}'""",
    "no status": """echo '{"message": "x"}'""",
    "an unknown status": """echo '{"status": "GREAT", "message": "x"}'""",
    "skips itself": """echo '{"status": "SKIP", "message": "x"}'""",
    "speaks for another check": """echo '{"check": "xid", "status": "PASS", "message": "x"}'""",
    "good words and a bad end": """echo '{"status": "PASS", "message": "x"}'; exit 1""",
    "only informs": """echo '{"status": "INFO", "message": "x", "reason": "seen"}'""",
    "an empty list": "echo '[]'",
    "nested": """python3 -c 'print("[" * 100000)'""",
    "many processes": "for i in 1 2 3 4 5 6 7 8; do (sleep 7777) & (sleep 7777) & done; sleep 7777",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_program_is_contained_and_never_go(tmp_path, kind):
    path = program(tmp_path / CHECKS_D / "own", HOSTILE[kind])
    began = time.monotonic()
    record = judged(tmp_path, {"own": {"program": f"/{path.relative_to(tmp_path)}", "seconds": 2}})
    assert time.monotonic() - began < 12, "its deadline ends it"
    assert record["verdict"] == "no-go" and {one["status"] for one in found(record, "site.own")} & {"UNKNOWN", "FAIL"}
    assert {one["check"] for one in record["findings"]} == {"site.own"}
    assert len(json.dumps(record)) < 20_000
    assert not processes("sleep 7777"), "nothing of it is left"


def test_who_else_could_have_written_a_program_does_not_run_it(tmp_path):
    path = program(tmp_path / CHECKS_D / "own", f"touch {tmp_path}/ran")
    path.chmod(0o777)
    record = judged(tmp_path, {"own": {}})
    (one,) = found(record, "site.own")
    assert (one["status"], record["verdict"]) == ("UNKNOWN", "no-go") and not (tmp_path / "ran").exists()


def test_a_program_that_is_declared_and_not_there_is_unknown(tmp_path):
    assert judged(tmp_path, {"own": {}})["verdict"] == "no-go"
    assert judged(tmp_path, select=["site.other"])["verdict"] == "no-go"


def test_a_nodes_own_directory_counts_where_nobody_chose_checks(tmp_path):
    program(tmp_path / CHECKS_D / "ports.sh", "exit 2")
    (tmp_path / CHECKS_D / "kernel.json").write_text('{"facts": "versions", "field": "kernel", "value": "6.1.0"}')
    (tmp_path / CHECKS_D / "broken.json").write_text('{"facts": "nothing", "field": "x", "value": 1}')
    (tmp_path / CHECKS_D / "README").write_text("not a program")
    names = [one.id for one in site_program.found(str(tmp_path))]
    assert names == ["site.broken", "site.kernel", "site.ports"]
    record = judged(tmp_path, select=None)
    assert found(record, "site.ports")[0]["status"] == "FAIL" and found(record, "site.broken")[0]["status"] == "UNKNOWN"
    assert not found(judged(tmp_path, {"own": {}}), "site.ports"), "a chosen check brings no others"


FACTS = {"gpus": [{"power": 700.0, "vbios": "96.00.A5", "on": True}, {"power": 650.0, "vbios": "96.00.A5", "on": True}]}


class Facts:
    """Stands for a context: facts as given."""

    def __init__(self, check, facts):
        from flightline_node.judge.context import Context

        self.context = Context(check, lambda name: facts, resolve("none"), {}, "quick", datetime.now(), {}, {})


@pytest.mark.parametrize(
    ("rule", "statuses"),
    [
        ({"field": "gpus.*.power", "must": ">=", "value": 600}, ["PASS"]),
        ({"field": "gpus.*.power", "must": ">=", "value": 700}, ["FAIL"]),
        ({"field": "gpus.*.power", "must": ">", "value": 700, "else": "WARN"}, ["WARN", "WARN"]),
        ({"field": "gpus.*.vbios", "must": "in", "value": ["96.00.A5"]}, ["PASS"]),
        ({"field": "gpus.*.vbios", "must": "matches", "value": "96\\..*"}, ["PASS"]),
        ({"field": "gpus.*.on", "value": True}, ["PASS"]),
        ({"field": "gpus.*.on", "value": 1}, ["UNKNOWN", "UNKNOWN"]),
        ({"field": "gpus.*.power", "value": "700"}, ["UNKNOWN", "UNKNOWN"]),
        ({"field": "gpus.*.nothing", "value": 1}, ["UNKNOWN", "UNKNOWN"]),
        ({"field": "gpu.*.power", "value": 1}, ["UNKNOWN"]),
        ({"field": "driver", "value": "580"}, ["UNKNOWN"]),
    ],
)
def test_a_rule_compares_every_value_and_what_is_not_there_is_unknown(rule, statuses):
    check = site_checks.check_of("own", {"facts": "nvidia_smi", **rule})
    told = list(check.evaluate(Facts(check, FACTS).context))
    assert [str(one.status) for one in told] == statuses
    assert all(one.reason for one in told if str(one.status) != "PASS")


def test_a_rule_over_an_empty_list_is_unknown():
    check = site_checks.check_of("own", {"facts": "nvidia_smi", "field": "gpus.*.power", "value": 1})
    assert [str(one.status) for one in check.evaluate(Facts(check, {"gpus": []}).context)] == ["UNKNOWN"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"Name!": {}}, {"own": []}, {"own": {"program": "rel"}}, {"own": {"level": "fast"}}, {"own": {"remedy": "PRAY"}},
        {"own": {"seconds": 9}}, {"own": {"seconds": True}}, {"own": {"facts": "nothing", "field": "a", "value": 1}},
        {"own": {"facts": "df", "field": "a"}}, {"own": {"facts": "df", "field": "a", "value": 1, "must": "~"}},
        {"own": {"facts": "df", "field": "a", "value": "(", "must": "matches"}}, {"own": {"shell": "true"}}, ["own"],
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_before_a_node_is_touched(wrong):
    with pytest.raises(SettingsError):
        settings.build(site=wrong)


def asked(**given):
    return asked_of({**defaults(), "instance_type": "none", "host": "n1", "instance_id": "", "call_id": "", **given})


def test_the_gate_wants_what_is_declared_and_lets_a_directorys_own_only_make_it_worse(tmp_path):
    program(tmp_path / CHECKS_D / "own", "exit 0")
    record = judged(tmp_path, {"own": {}})
    declared = asked(checks=["site"], site_checks={"own": {}})
    assert intake.is_go(intake.admit(record, declared))
    with pytest.raises(intake.AnswerRefusedError, match=r"site\.second"):
        intake.admit(record, asked(checks=["site"], site_checks={"own": {}, "second": {}}))
    extra = {"check": "site.extra", "status": "FAIL", "message": "x", "reason": "said"}
    worse = {**record, "findings": [*record["findings"], extra]}
    assert not intake.is_go(intake.admit(worse, declared))
    with pytest.raises(intake.AnswerRefusedError):
        intake.admit({**record, "findings": [*record["findings"], {**extra, "check": "sites.x"}]}, declared)
    with pytest.raises(intake.AnswerRefusedError, match="sysctl"):
        intake.admit(record, asked(checks=["sysctl"]))


def test_a_waiver_a_skip_and_a_claim_know_its_id(tmp_path):
    program(tmp_path / CHECKS_D / "own", "exit 2")
    until = (date.today() + timedelta(days=3)).isoformat()
    waiver = {"check": "site.own", "scope": "*", "reason": "known", "owner": "ada", "expiry": until}
    (one,) = found(judged(tmp_path, {"own": {}}, waivers=[waiver]), "site.own")
    assert (one["status"], one["reason"]) == ("SKIP", "waived")
    wanted = settings.build(skip=["site.own"], site={"own": {}})
    assert [check.id for check in wanted.skipped] == ["site.own"]
    text = claim.of_finding({"check": "site.own", "reason": "said"}, ": no", "health", "quick").text
    assert claim.read(text).check == "site.own"


def test_a_check_of_a_deeper_level_waits_for_it(tmp_path):
    program(tmp_path / CHECKS_D / "own", f"touch {tmp_path}/ran")
    record = judged(tmp_path, {"own": {"level": "standard"}})
    assert not (tmp_path / "ran").exists() and not found(record, "site.own")


EXAMPLES = re.findall(
    r"```(yaml|sh|json|python) # example: (\w+)\n(.*?)```", PAGE.read_text() if PAGE.exists() else "", re.S
)


def test_the_page_has_its_five_examples():
    assert len({name for _, name, _ in EXAMPLES}) == 5


@pytest.mark.parametrize("name", sorted({name for _, name, _ in EXAMPLES}))
def test_an_example_of_the_page_does_what_it_says(tmp_path, name):
    """As written, on a simulated node; a plugin that is not the site's own is a stand-in."""
    place = tmp_path / "gpu-01"
    prepare({"gpu-01": {"demo_dir": place, "instance_type": "p5.48xlarge", "demo_faults": []}})
    declared = {}
    for kind, _, text in [one for one in EXAMPLES if one[1] == name]:
        if kind == "yaml":
            declared = yaml.safe_load(text)["flightline_site_checks"]
            if "program" in declared[name]:
                program(
                    place / "root" / declared[name]["program"].lstrip("/"), "echo 'WARNING - load 9 | load1=9'; exit 1"
                )
        else:
            path = program(place / "root" / CHECKS_D / f"{name}{'.json' if kind == 'json' else ''}", "")
            path.write_text(text)
    with (place / "root/proc/mounts").open("a") as mounts:
        mounts.write("fsx@tcp:/x /fsx lustre rw,flock 0 0\n")
    own = declared or {name: json.loads(text) if kind == "json" else {}}
    (check,) = site_checks.declared(own)
    assert declared or [one.id for one in site_program.found(f"{place}/root")] == [check.id]
    wanted = settings.build(select=["site"], site=own)
    there = Node(f"{place}/root", (f"{place}/tools",))
    record = node.run(there, resolve("p5.48xlarge"), wanted, node.Identity("gpu-01"))
    told = [(one["status"], one["message"]) for one in found(record, check.id)]
    assert {"vbios": ["PASS"], "ssh": ["PASS"], "scratch": ["PASS"], "load": ["WARN"], "uplinks": ["PASS", "FAIL"]}[
        name
    ] == [status for status, _ in told], told
