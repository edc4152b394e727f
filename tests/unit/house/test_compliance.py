"""The compliance suite itself: every test explains itself and can be shown to fail; waivers do not hide for ever."""

import ast
import dataclasses
import json
import re
import shlex
import subprocess
import threading
import time
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.compliance import test_base, test_base_ssh
from tests.compliance.breaking import mutate
from tests.compliance.breaking.mutations import MUTATIONS, UNBREAKABLE
from tests.compliance.looking import ask, expected, filters, installed, say, waivers

SUITE = Path(__file__).parents[2] / "compliance"
TODAY = date(2026, 11, 21)
WAIVER = {
    "check": "test_swap_is_off",
    "scope": "gpu-0*",
    "reason": "old image",
    "owner": "ops@example.com",
    "expiry": "2026-12-01",
}


def functions():
    for path in sorted(SUITE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.name}::{node.name}", node


TESTS = dict(functions())


def test_there_are_tests():
    assert len(TESTS) > 50


def test_the_docstring_says_why():
    assert [name for name, node in TESTS.items() if len(ast.get_docstring(node) or "") <= 25] == []


def test_every_test_has_a_mutation_or_a_reason_why_none_is_possible():
    covered = {mutation.test for mutation in MUTATIONS} | set(UNBREAKABLE)
    assert covered == set(TESTS)


def test_every_role_of_the_site_is_covered():
    import yaml

    groups = yaml.safe_load(expected.ROLE_GROUPS.read_text())["all"]["children"]
    roles = {name for name in groups if (expected.ROOT / "roles" / name).is_dir()}
    assert roles == {expected.role_of(path.name) for path in SUITE.glob("test_*.py")} - {""}


@pytest.mark.parametrize(
    ("test", "host", "today", "what"),
    [
        ("test_swap_is_off", "gpu-01", TODAY, "skip"),
        ("test_swap_is_off[x]", "gpu-01", TODAY, "skip"),
        ("test_swap_is_off", "db-01", TODAY, "run"),
        ("test_time_is_kept", "gpu-01", TODAY, "run"),
        ("test_swap_is_off", "gpu-01", date(2026, 12, 1), "skip"),
        ("test_swap_is_off", "gpu-01", date(2026, 12, 2), "fail"),
    ],
)
def test_a_waiver(test, host, today, what):
    found, why = waivers.verdict(waivers.parse([WAIVER]), test, host, today)
    assert found == what
    assert bool(why) is (what != "run")


@pytest.mark.parametrize("field", waivers.FIELDS)
def test_a_waiver_without_a_field_is_refused(field):
    with pytest.raises(ValueError, match=field):
        waivers.parse([{key: value for key, value in WAIVER.items() if key != field}])


def test_expected_values_are_defaults_under_the_inventory(tmp_path):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        "all:\n  hosts:\n    gpu-01: {instance_type: p5.48xlarge, base_hugepages: 128}\n    gpu-02: {instance_type: g5.xlarge}\n"
        "  vars: {dcgm_version: 4.4.0, site_name: east, cloudwatch_agent_cluster: '{{ site_name }}'}\n"
        "  children: {gpu_nodes: {hosts: {gpu-01: {}}}}\n"
    )
    site = expected.Site([str(inventory)])
    first, second = site.expected("gpu-01"), site.expected("gpu-02")
    assert (first["base_hugepages"], second["base_hugepages"]) == (128, -1)
    assert first["dcgm_version"] == "4.4.0"
    assert first["cloudwatch_agent_namespace"] == "Flightline/east"
    assert (first["nvidia_driver_fabric_manager"], second["nvidia_driver_fabric_manager"]) == (True, False)
    assert {"base", "nvidia_driver"} <= site.applied("gpu-01")
    assert site.applied("gpu-02") == set()
    assert "vm.swappiness" in site.union("base_sysctl")


def test_no_finding_is_a_bare_assert():
    bare = [name for name, node in TESTS.items() if any(isinstance(part, ast.Assert) for part in ast.walk(node))]
    assert bare == []


def test_there_are_enough_mutations_and_each_is_another_one():
    assert len(MUTATIONS) >= 80
    assert len({(mutation.test, mutation.what) for mutation in MUTATIONS}) == len(MUTATIONS)
    assert len({mutation.break_it for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_template_of_a_role_is_compared_or_looked_at_in_another_way():
    templates = {f"{path.parts[-3]}/{path.name}" for path in expected.ROOT.glob("roles/*/templates/*.j2")}
    compared = {f"{entry.role}/{entry.template}" for entry in installed.FILES if entry.template}
    assert compared | set(installed.ELSEWHERE) == templates
    assert not compared & set(installed.ELSEWHERE)


def test_a_finding_says_what_was_seen_wanted_and_what_to_do():
    with pytest.raises(pytest.fail.Exception, match=r"^saw: ports: 1, 2; wanted: none; do: close them$"):
        say.none("ports", [1, 2], "none", "close them")
    with pytest.raises(pytest.fail.Exception, match=r"^saw: mode '0o666'; wanted: '0o644'; do: run make configure"):
        say.same("mode", "0o666", "0o644")
    with pytest.raises(pytest.fail.Exception, match=r"6, 7 and 2 more;.*\nsaw also: 8\nsaw also: 9$"):
        say.none("things", range(10), "none")
    say.none("nothing", [], "none")


def test_of_several_assignments_the_last_wins_and_a_parameters_own_line_stands_above_a_pattern():
    pairs = [("vm.swappiness", "1"), ("net.ipv4.conf.*.rp_filter", "2"), ("vm.swappiness", "60")]
    assert test_base.last(pairs, "vm.swappiness") == "60"
    assert test_base.last(pairs, "net.ipv4.conf.eth0.rp_filter") == "2"
    assert (
        test_base.last([*pairs, ("net.ipv4.conf.eth0.rp_filter", "0"), pairs[1]], "net.ipv4.conf.eth0.rp_filter") == "0"
    )
    assert test_base.last(pairs, "vm.overcommit_memory") is None


LIMITS = [
    ["*", "-", "memlock", "unlimited"],
    ["root", "-", "memlock", "unlimited"],
    ["@jobs", "soft", "memlock", "64"],
    ["*", "hard", "nofile", "1024"],
    ["ann", "-", "nofile", "4096"],
    ["*", "hard", "nofile", "2048"],
]


@pytest.mark.parametrize(
    ("item", "user", "groups", "kind", "value"),
    [
        ("memlock", "bob", set(), "hard", "unlimited"),
        ("memlock", "bob", {"jobs"}, "soft", "64"),
        ("memlock", "root", {"root"}, "soft", "unlimited"),
        ("nofile", "ann", set(), "hard", "4096"),
        ("nofile", "bob", set(), "hard", "2048"),
        ("nofile", "root", set(), "hard", None),
    ],
)
def test_limits_as_pam_limits_reads_them(item, user, groups, kind, value):
    assert test_base.limit(LIMITS, item, user, groups, kind) == value


class Host:
    """Stands for testinfra's host: answers by command, and counts the connections."""

    def __init__(self, answers):
        self.answers, self.connections = answers, 0

    def run(self, command, *arguments):
        self.connections += 1
        assert arguments[0] == ask.RUN_ALL
        rows = [[*self.answers[line], False] for line in json.loads(arguments[1])]
        return SimpleNamespace(rc=0, stdout=json.dumps(rows), stderr="")


def test_what_one_host_was_asked_the_next_is_asked_at_once():
    answers = {"uname -r": (0, "6.1\n", ""), "id -u munge": (0, "101\n", ""), "hostname": (0, "a\n", "")}
    hosts, others = [Host(answers), Host(answers)], {}
    for place, one in enumerate(hosts):
        others[str(place)] = ask.Asked(one, others)
    first, second = others.values()
    assert [first("uname -r"), first("id -u %s", "munge"), first("uname -r")] == ["6.1", "101", "6.1"]
    assert [second("hostname"), second("uname -r"), second("id -u %s", "munge")] == ["a", "6.1", "101"]
    assert [host.connections for host in hosts] == [2, 1]


def test_a_tool_that_fails_is_a_finding_and_not_an_empty_answer():
    asked = ask.Asked(Host({"sshd -T": (255, "", "no hostkeys available")}))
    with pytest.raises(pytest.fail.Exception, match=r"saw: sshd ended with 255 \(no hostkeys available\)"):
        asked("sshd -T")


class Here:
    """This machine in the place of a host: commands are really run."""

    def run(self, command, *arguments):
        line = command % tuple(map(shlex.quote, arguments))
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
        return SimpleNamespace(rc=done.returncode, stdout=done.stdout, stderr=done.stderr)


def test_a_tool_that_hangs_is_a_finding_of_its_own_and_the_others_are_still_asked():
    began, asked = time.monotonic(), ask.Asked(Here(), limits_s=(0.5, 60, 5))
    with pytest.raises(
        pytest.fail.Exception, match=r"^saw: sleep did not end within 0\.5 s; .*; do: run it on the host"
    ):
        asked("sleep 600; echo never")
    with pytest.raises(pytest.fail.Exception, match="sleep did not end"):
        asked.answer("sleep 600; echo never")
    assert asked("echo %s", "still here") == "still here"
    assert asked.answer("exit 7").rc == 7
    assert time.monotonic() - began < 20


def test_a_host_whose_every_tool_hangs_costs_its_time_and_no_more():
    began, asked = time.monotonic(), ask.Asked(Here(), limits_s=(0.6, 1, 5))
    for number in range(8):
        with pytest.raises(
            pytest.fail.Exception, match=r"sleep (did not end|was not waited for: the 1 s .* sleep never)"
        ):
            asked(f"sleep 60{number}")
    assert time.monotonic() - began < 10


class Lost:
    """Stands for a host whose connection breaks, or never answers."""

    def __init__(self, error=None):
        self.error, self.tries = error, 0

    def run(self, command, *arguments):
        self.tries += 1
        if self.error:
            raise self.error
        threading.Event().wait(30)


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (Lost(RuntimeError(SimpleNamespace(stderr="ssh: connect to host 192.0.2.1 port 22: No route"))), "No route"),
        (Lost(), "no answer over ssh within 0 s"),
    ],
)
def test_a_lost_connection_is_unreachable_and_is_not_tried_again(lost, said):
    asked = ask.Asked(lost, limits_s=(0.1, 0.1, 0.1))
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception, match=f"^UNREACHABLE: saw: .*{said}"):
            asked("uname -r")
    assert lost.tries == 1 and not asked.answers()


def test_a_file_of_settings_that_was_written_half_is_a_sentence():
    asked = ask.Asked(Host({"cat /etc/x.json": (0, '{"a": [1,', "")}))
    with pytest.raises(pytest.fail.Exception, match=r"saw: /etc/x\.json of 9 characters is no JSON"):
        asked.json("/etc/x.json")


def test_a_file_that_differs_shows_its_lines_and_no_key():
    there = "a\nexit 0\nkey=AKIAABCDEFGHIJKLMNOP\n"
    asked = ask.Asked(Host({"cat /x": (0, there, "")}))
    asked._files["/x"] = {"sha256": installed.digest(there), "uid": 0, "mode": 0o644}
    with pytest.raises(pytest.fail.Exception) as found:
        installed.compare(asked, "/x", installed.digest("a\nexec y\n"), 0o644, "a\nexec y\n")
    lines = r"\(- there, \+ of the role\): -exit 0, - a line with a key or password, \+exec y; wanted"
    assert re.search(lines, str(found.value)) and "AKIA" not in str(found.value)


def test_many_commands_are_asked_in_portions():
    keys: list[tuple[str, ...]] = [("echo %s", "x" * 9000) for _ in range(7)]
    portions = ask._portions(keys)
    assert [key for portion in portions for key in portion] == keys
    assert all(sum(len(ask._line(key)) for key in portion) <= ask.MOST_CHARACTERS for portion in portions)


def test_a_match_block_is_asked_for_by_each_of_its_criteria():
    text = "PermitRootLogin no\nMatch User ann,bob Address 198.51.100.0/24\n PasswordAuthentication yes\n"
    command = "cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf 2>/dev/null || true"
    found = test_base_ssh.contexts(ask.Asked(Host({command: (0, text, "")})), ["admin"])
    assert {user for user, _, _, _ in found} == {"admin", "ann", "bob"}
    assert ("bob", "node.example", "198.51.100.0", "22") in found


def test_two_mutations_of_one_file_are_never_broken_together():
    groups = mutate.plan(MUTATIONS)
    assert sum(map(len, groups)) == len(MUTATIONS)
    for group in groups:
        seen = [path for mutation in group for path in mutate.touched(mutation)]
        assert len(seen) == len(set(seen))


def test_a_row_that_differs_from_the_list_is_named():
    mended, left = MUTATIONS[0], next(entry for entry in MUTATIONS if not entry.left)
    assert mutate.unexpected(mutate.Row(left, "caught", "left")) == "the roles should repair it and do not"
    assert mutate.unexpected(mutate.Row(mended, "caught", "repaired")).startswith("the roles repair it")
    assert mutate.unexpected(mutate.Row(left, "MISSED")) == "MISSED"
    assert mutate.unexpected(mutate.Row(left, "caught", "repaired")) == ""
    foreign = next(entry for entry in MUTATIONS if entry.left and not entry.left.startswith("refused"))
    assert mutate.unexpected(
        mutate.Row(foreign, "caught", "not tried", f"saw: x; wanted: y; {mutate.ADVICE}")
    ).startswith("its")
    assert "1 of 2 mutations caught; `make configure` repairs 1" in mutate.page(
        [mutate.Row(left, "caught", "repaired"), mutate.Row(mended, "MISSED")]
    )


def test_a_run_that_was_cut_short_is_taken_up_again(tmp_path):
    first, second, changed = MUTATIONS[:3]
    memory = mutate.Memory(str(tmp_path / "known"))
    memory.keep([mutate.Row(first, "caught", "repaired"), mutate.Row(second, "MISSED"), mutate.Row(changed, "caught")])
    again = mutate.Memory(str(tmp_path / "known"))
    assert again.row(first) == mutate.Row(first, "caught", "repaired")
    assert again.row(second) is None
    assert again.row(dataclasses.replace(changed, left="another reason")) is None
    assert mutate.Memory("").row(first) is None


NFT = """table inet filter {
	set banned {
		type ipv4_addr
		elements = { 10.0.0.9 }
	}
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		jump site
		log prefix "drop " accept comment "we drop nothing"
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		drop
	}
	chain site {
		ip saddr @banned counter packets 0 bytes 0 drop
	}
	chain unused {
		drop
	}
}
table ip raw {
	chain PREROUTING {
		type filter hook prerouting priority raw; policy accept;
		ip daddr 172.17.0.2 iifname != "docker0" counter packets 0 bytes 0 drop
	}
}
"""
SAVED = """# Generated by iptables-save v1.8.7
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:f2b-sshd - [0:0]
-A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd
-A FORWARD -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A OUTPUT -p tcp -m comment --comment "may -j DROP later" -j ACCEPT
-A f2b-sshd -s 198.51.100.7/32 -j REJECT --reject-with icmp-port-unreachable
-A f2b-sshd -j RETURN
COMMIT
"""


def test_a_filter_s_rules_for_the_host_are_found_and_its_containers_are_left():
    assert filters.dropped(NFT, []) == [
        "inet filter input: policy drop",
        "inet filter site: ip saddr @banned counter packets 0 bytes 0 drop",
    ]
    (row,) = filters.dropped("", [SAVED])
    assert row.startswith("iptables filter f2b-sshd: -s 198.51.100.7/32 -j REJECT")
    assert (
        filters.dropped("", [SAVED.replace(":INPUT ACCEPT", ":INPUT DROP"), SAVED])[0]
        == "iptables filter INPUT: policy drop"
    )
    assert filters.dropped("", [""]) == []
