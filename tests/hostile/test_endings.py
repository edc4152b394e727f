"""Every start of the preflight, from everywhere: 0 stands beside a verdict alone, or where Ansible only reads and that is said."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.delivery.installed import Place, installed
from tests.hostile.bed import ROOT, HostileBed, answer, real
from tests.hostile.endings import CANNOT_RUN, STARTS

PLACES = ("root", "elsewhere", "collection")
VERDICT = re.compile(r"^ *(NO-)?GO +\d+ of \d+ nodes? go", re.M)
ONLY_READ = "nothing was judged: "


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Place:
    return installed(tmp_path_factory.mktemp("installed"))


class Starts:
    """A fleet, and the ways to judge it from a place."""

    def __init__(self, path: Path, package: Place) -> None:
        self.path, self.package, self.work = path, package, path / "work"
        self.work.mkdir()
        ground = HostileBed(path)
        for host, status in (("a", "PASS"), ("b", "PASS"), ("sick", "FAIL")):
            ground.add(host, {"text": answer(real(status), host)})
        ground.write()
        self.env = ground.env
        every = json.loads(ground.inventory.read_text())["all"]
        for name, hosts in (("hosts.json", "a b"), ("sick.json", "a sick")):
            chosen = {host: every["hosts"][host] for host in hosts.split()}
            (path / name).write_text(json.dumps({"all": {**every, "hosts": chosen}}))
        (path / "empty.ini").write_text("")
        (path / "broken.yml").write_text("all: [\n")
        (path / "part").mkdir()
        for name in ("hosts.json", "broken.yml"):
            (path / "part" / name).write_bytes((path / name).read_bytes())
        (path / "own.cfg").write_text("[defaults]\nforks = 3\n")

    def run(self, place: str, words: list[str], environment: dict[str, str], answers: str = "") -> tuple[int, str]:
        """One program to its end; its status and all that it printed, without this place's own path."""
        env = dict(self.env)
        if place == "collection":
            own = self.package.env()
            env |= {name: own[name] for name in ("PATH", "LC_ALL", "ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_CONFIG")}
        done = subprocess.run(
            [env["PATH"].split(os.pathsep)[0] + "/" + words[0], *words[1:]],
            cwd=ROOT if place == "root" else self.work, env={**env, **environment}, input=answers, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout

    def playbook(self, place: str) -> str:
        return {
            "root": "playbooks/preflight.yml",
            "elsewhere": str(ROOT / "playbooks/preflight.yml"),
            "collection": "flightline.gpu.preflight",
        }[place]

    def words(self, start) -> list[str]:
        """Its arguments, with the files where they are."""
        given = ["-i", start.inventory, *start.arguments]
        given = [str(self.path / word) if word == "part" else word for word in given]
        return [re.sub(r"^(@?)(\w+\.(?:json|yml|ini|txt))$", rf"\1{self.path}/\2", word) for word in given]

    def environment(self, start) -> dict[str, str]:
        return {name: str(self.path / value) if "." in value else value for name, value in start.environment}

    def plain(self, text: str) -> str:
        return " ".join(text.replace(f"{self.path}/", "").split())


def verdict_is_due(status: int, out: str) -> bool:
    return status == CANNOT_RUN or bool(VERDICT.search(out)) or (status == 0 and ONLY_READ in out)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.what)
def test_ansible_playbook(tmp_path, package, place, start):
    starts = Starts(tmp_path, package)
    words = ["ansible-playbook", starts.playbook(place), *starts.words(start)]
    status, out = starts.run(place, words, starts.environment(start), start.answers)
    assert (status, start.says in starts.plain(out)) == (start.status, True), f"{status}: {out}"
    assert verdict_is_due(status, out), out
    assert "Traceback" not in out or "EOFError" in out, out  # Ansible's own, where --step finds nobody


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("start", [start for start in STARTS if start.same], ids=lambda start: start.what)
def test_flightline(tmp_path, package, place, start):
    starts = Starts(tmp_path, package)
    words = ["flightline", "preflight", *starts.words(start)]
    status, out = starts.run(place, words, starts.environment(start))
    assert (status, start.says in starts.plain(out)) == (start.status, True), f"{status}: {out}"


@pytest.mark.parametrize(
    "arguments", [("--tags", "foo"), ("--check",), ("--start-at-task", "x"), ("--limit", "a")], ids=str
)
@pytest.mark.parametrize("inventory", ["missing.yml", "empty.ini", "broken.yml", "a,"])
@pytest.mark.parametrize("config", ["", "own.cfg"])
def test_no_two_of_them_end_with_0(tmp_path, package, arguments, inventory, config):
    """Ansible itself may end such a start before it reads anything of Flightline: with its own status, never 0."""
    starts = Starts(tmp_path, package)
    inventory = inventory if "," in inventory else str(tmp_path / inventory)
    environment = {"ANSIBLE_CONFIG": str(tmp_path / config)} if config else {}
    for place in ("elsewhere", "collection"):
        words = ["ansible-playbook", starts.playbook(place), "-i", inventory, *arguments]
        status, out = starts.run(place, words, environment)
        assert status and not re.search(r"^ *GO ", out, re.M), out


def test_a_playbook_of_ones_own_around_it(tmp_path, package):
    starts = Starts(tmp_path, package)
    own = tmp_path / "own.yml"
    own.write_text(f"- ansible.builtin.import_playbook: {ROOT}/playbooks/preflight.yml\n")
    for words, wanted in (
        (["-i", "hosts.json"], 0),
        (["-i", "missing.yml"], 2),
        (["-i", "hosts.json", "-t", "foo"], 2),
    ):
        given = [str(tmp_path / word) if "." in word else word for word in words]
        status, out = starts.run("elsewhere", ["ansible-playbook", str(own), *given], {})
        assert status == wanted and ("GO  2 of 2" in out) == (wanted == 0), out


def test_other_playbooks_and_programs_end_as_before(tmp_path, package):
    starts = Starts(tmp_path, package)
    other = tmp_path / "other.yml"
    other.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: other}\n")
    hosts = ["-i", str(tmp_path / "hosts.json")]
    for place in PLACES:
        for words in (["ansible-playbook", str(other)], ["ansible-inventory", "--list"]):
            status, out = starts.run(place, [*words, *hosts], {})
            assert status == 0 and "flightline: " not in out, out
