"""What adding a thing takes: each is done in a clone of this tree, generators run, and the files written by hand counted."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flightline_node.read.parsers import PARSERS
from tests.fuzz.run import seeds

ROOT = Path(__file__).parents[3]
CHECKS, PARSER_FILES = "module_utils/flightline_node/judge/checks", "module_utils/flightline_node/read/parsers"


class Clone:
    """The tracked files but for the tests, and those that were written by hand; a role counts as its folder."""

    def __init__(self, root: Path) -> None:
        self.root, self._by_hand = root, set[str]()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            if not name.startswith(("tests/", "bench/")) and (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name, follow_symlinks=False)

    def write(self, name: str, text: str) -> None:
        self._by_hand.add("/".join(name.split("/")[:2]) if name.startswith("roles/") else name)
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, new))

    def python(self, *words: str, program: str = "") -> str:
        env = {**os.environ, "PYTHONPATH": f"{self.root}:{self.root / 'module_utils'}"}
        words = ("-c", program) if program else ("-m", *words)
        done = subprocess.run([sys.executable, *words], cwd=self.root, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def flightline(self, *words: str) -> str:
        return self.python(program=f"from flightline.cli import cli; cli({list(words)})")

    def takes(self, thing: str) -> None:
        """The files written by hand are as many as CONTRIBUTING says."""
        (stands,) = re.findall(rf"^\| {thing} \| (\d+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
        assert len(self._by_hand) == int(stands), sorted(self._by_hand)


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


def test_a_check(clone):
    text = (ROOT / CHECKS / "uptime.py").read_text()
    clone.write(f"{CHECKS}/boots.py", text.replace('id="uptime"', 'id="boots"').replace("order=690", "order=691"))
    clone.python("tools.registries")
    assert "host, boot" in clone.flightline("checks", "boots")
    clone.takes("a check")


def test_a_parser(clone):
    text = (ROOT / PARSER_FILES / "uptime.py").read_text()
    clone.write(f"{PARSER_FILES}/awake.py", text.replace("uptime.txt", "awake.txt"))
    clone.python("tools.registries")
    program = "from flightline_node.read.parsers import PARSERS; print(PARSERS['awake'].parse({'awake.txt': b'7.5 1'}))"
    assert clone.python(program=program).strip() == "{'uptime_s': 7.5}"
    clone.takes("a parser")


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_without_a_test_or_a_fixture_is_refused(name):
    texts = [
        path.read_text() for part in ("parsers", "checks") for path in (ROOT / "tests/unit" / part).glob("test_*.py")
    ]
    asked = rf"[\"']{name}[\"']|import .*\b{name}\b|\b{name}\.parse\b"
    assert any(re.search(asked, text) for text in texts), f"no test of tests/unit/parsers asks the parser {name}"
    assert seeds(PARSERS[name]), f"no fixture of tests/unit/fixtures is one that the parser {name} reads"


ECHO = '''"""A channel of a file."""

from pathlib import Path

from ..channel import Channel, ChannelSetting


def send(digest, means):
    """Write the title."""
    Path(means.given["echo"]).write_text(digest.title)
    return ""


CHANNEL = Channel("Echo", (ChannelSetting("echo", "a file", switches=True),), send)
'''
TELLS = """
from flightline.cloud.clients import Clients
from flightline.cloud.publish_settings import publish
from flightline.cloud.telling import voice_of
from flightline.healing.journal.notice import Known
from flightline.tell.digest import Digest
from infra.planning.functions import archive
wanted = publish({"echo": "told.txt"})
print(voice_of(wanted, Clients("")).tell(Digest("no-go"), Known({}, "now")).delivered, publish(wanted.to_dict()) == wanted)
print(*(key for key in ("storage", "verdict") if "flightline/tell/channels/echo.py" in archive(key)))
"""


def test_an_alert_destination(clone):
    """It is offered, tells runs and incidents, and is shipped with the functions."""
    clone.write("flightline/tell/channels/echo.py", ECHO)
    assert clone.python(program=TELLS).split("\n")[:2] == ["['echo'] True", "storage verdict"]
    assert (clone.root / "told.txt").read_text() == "no-go"
    clone.takes("an alert destination")


LAUNCHER = '''"""A launcher of a file."""

from typing import ClassVar

from . import Detaching, Gathering, Listing


class PdshLauncher(Detaching, Gathering, Listing):
    """It does whatever a launcher may."""

    says: ClassVar[str] = "pdsh, from anywhere"
    tool: ClassVar[str] = "pdsh"
    example: ClassVar[str] = "--rcmd=NAME"
    exclusive: ClassVar[bool] = True
    lists: ClassVar[str] = "the nodes of genders"
    starter: ClassVar[str] = "srun"
    start_options: ClassVar[tuple[str, ...]] = ()
    node_word: ClassVar[str] = "$(uname -n)"
    how = "pdsh"

    def sort_out(self, calls):
        return list(calls), []

    def send(self, ready, run_id, until):
        """Ask nobody."""

    def came(self, at, order, known):
        return iter(())

    def taken(self, names):
        return {name: f"{name} is busy" for name in names}

    def cancel(self, job):
        """Nothing was started."""

    def inventory(self):
        return {"all": {"vars": {"flightline_via": "pdsh"}, "hosts": {"n1": {}}}}
'''
LAUNCHES = """
from pathlib import Path
from click.testing import CliRunner
from flightline.cli import cli
from flightline.fabric.by_launcher import LauncherRounds
from flightline.fabric.drive import READY, FabricNodes
from flightline.fabric.settings import wanted_of
from flightline.run import cluster_inventory, launchers
from flightline.run.validation import HostVars, validate
from flightline_node.know.expected import resolve

def said(*words):
    done = CliRunner().invoke(cli, ["preflight", *words])
    return " ".join(f"{done.output} {done.exception}".split())

print(said("--help"))
print(said("--detach", "--via", "slurm"), said("--via-option=--x"), said("--via", "pdsh", "--via-option=x"))
fleet = FabricNodes(("a",), {"a": "n1"}, resolve("none"), ())
print(LauncherRounds(wanted_of({}).asked, fleet, "r1", launchers.make("pdsh"))(READY, {}, "")["a"].trouble)
(path,) = cluster_inventory.resolved(["pdsh"], Path("runs.sqlite"))
print(Path(path).read_text(), cluster_inventory.word_of(path))
print(*validate({"a": HostVars({"instance_type": "none", "flightline_via": "pdsh"})}).mistakes)
"""


def test_a_launcher(clone):
    """What it declares is what --help, --detach, --via-option, -i, flightline_via and the fabric test know of it."""
    clone.write("flightline/run/launchers/pdsh.py", LAUNCHER)
    helped, refused, taken, *listed, mistakes = clone.python(program=LAUNCHES).splitlines()
    assert "kubectl, in the agents. pdsh: pdsh, from anywhere, never beside a job. slurm:" in helped
    assert "pdsh: the nodes of genders." in helped and "with --via pdsh or ssm a function" in helped
    assert "for kubectl or pdsh or srun, such as --context=NAME or --rcmd=NAME or --reservation=NAME;" in helped
    assert "saw --via slurm; wanted --via pdsh or ssm: only their nodes answer" in refused
    assert "wanted --via kubernetes or pdsh or slurm beside it" in refused
    assert "saw x, wanted an option first, such as --rcmd=NAME" in refused
    assert taken == "n1 is busy" and '"n1"' in "".join(listed) and listed[-1].split()[-1] == "pdsh" and not mistakes
    clone.takes("a launcher")


def test_an_instance_type(clone):
    table = "module_utils/flightline_node/know/hardware.py"
    (row,) = re.findall(r'^\{"instance_type":"g6\.xlarge".*\n', (ROOT / table).read_text(), re.M)
    clone.edit(table, row, row + row.replace("g6.xlarge", "g6.tiny"))
    program = "from flightline_node.know.expected import resolve; print(resolve('g6.tiny').gpu_model)"
    assert clone.python(program=program).strip() == "L4"
    clone.takes("an instance type")


def test_a_role(clone):
    for path in (ROOT / "roles" / "container_toolkit").rglob("*.*"):
        name = path.relative_to(ROOT).as_posix().replace("container_toolkit", "toolbox")
        clone.write(name, path.read_text().replace("container_toolkit", "toolbox"))
    clone.python("tools.registries")
    assert "- {name: Apply toolbox, tags: [toolbox],\n" in (clone.root / "playbooks/site.yml").read_text()
    assert "    toolbox:\n" in (clone.root / "inventory/roles.yml").read_text()
    clone.python("tools.roledocs")
    assert "\n| toolbox | " in (clone.root / "docs/roles.md").read_text()
    clone.python("tools.roledocs", "--check")
    clone.takes("a role")


def test_a_setting_that_reaches_a_node(clone):
    declared = '    flow_logs: bool = setting("flowLogs",'
    new = '    motd: str = setting("nodeMotd", "hello", "What a node says at login.", variable="base_motd")\n'
    clone.edit("infra/config/model.py", declared, new + declared)
    role = ROOT / "roles" / "base"
    clone.write("roles/base/defaults/main.yml", (role / "defaults/main.yml").read_text() + "base_motd: hello\n")
    task = '\n- name: Say it\n  ansible.builtin.copy: {dest: /etc/motd, content: "{{ base_motd }}"}\n'
    clone.write("roles/base/tasks/files.yml", (role / "tasks/files.yml").read_text() + task)
    clone.python("tools.stack_settings")
    assert (
        'base_motd: "{{ flightline_stack.node_motd }}"'
        in (clone.root / "inventory/group_vars/aws_ec2/roles.yml").read_text()
    )
    clone.python(program=REACHES)
    clone.takes("a setting that reaches a node")


REACHES = """
from flightline import contract
from infra.config.declare import reaching
from infra.config.reader import read
from infra.planning.zones import Zone, ZoneOffering
zones = (Zone("us-east-1a", "use1-az1"), Zone("us-east-1b", "use1-az2"))
offer = ZoneOffering(zones, frozenset(zone.zone_id for zone in zones))
outputs = dict(reaching(read({"nodeMotd": "to work"}, "us-east-1", lambda _: offer)))
assert outputs["node_motd"] == "to work"
assert not [mistake for mistake in contract.mistakes(outputs) if mistake.startswith("node_motd")]
assert [mistake for mistake in contract.mistakes({}) if mistake.startswith("node_motd: missing")]
"""


def test_a_check_is_renamed(clone):
    """What sites and stores have under its earlier id works on, with a warning; so do a threshold's and a reason's."""
    clone.edit(f"{CHECKS}/uptime.py", 'id="uptime",', 'id="boot_time",\n    aliases=("uptime",),')
    several = 'Reason("many_boots", "the node was started several times"'
    clone.edit(f"{CHECKS}/uptime.py", several, f'{several}, aliases=("booted_often",)')
    clone.edit(
        f"{CHECKS}/uptime.py",
        '            "a P5 instance needs minutes until all services are up",\n            0,\n',
        '            "a P5 instance needs minutes until all services are up",\n            0,\n            aliases=("fresh_s",),\n',
    )
    clone.python("tools.registries")
    found = json.loads(clone.python(program=RENAMED))
    assert found == {
        "thresholds": {"boot_time.recent_s": 60.0, "boot_time.boots": 5.0},
        "checks": ["boot_time"],
        "skipped": ["boot_time"],
        "waived": ["boot_time SKIP waived"],
        "stored": ["boot_time many_boots"],
        "answer": ["boot_time"],
        "healing": ["boot_time", "boot_time@S-1"],
        "demo": [],
        "warned": [
            "checks: saw uptime, wanted boot_time",
            "skip: saw uptime, wanted boot_time",
            "thresholds: saw uptime.fresh_s, wanted boot_time.recent_s",
            "thresholds: saw uptime.boots, wanted boot_time.boots",
            "waivers: saw uptime, wanted boot_time",
        ],
    }
    assert "warning: saw uptime, wanted boot_time, its new name; do:" in clone.flightline("checks", "uptime")
    clone.takes("a new id of a check")


RENAMED = """
import json
from datetime import date
from pathlib import Path
from flightline.demo import FAULTS
from flightline.healing.journal.incident import NodeTrouble
from flightline.record import intake
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline_node import names
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.waivers import apply
from flightline_node.model import Finding, Status
from flightline_node.settings import build

waiver = {"check": "uptime", "scope": "*", "reason": "known", "owner": "ops", "expiry": "2999-12-31"}
given = {"thresholds": {"uptime.fresh_s": 60, "uptime.boots": 5}, "waivers": [waiver]}
settings, chosen = build(skip=["uptime"], **given), build(select="uptime")
waived = apply([Finding("boot_time", Status.WARN, "booted")], settings.waivers, ["gpu-01"], date(2026, 11, 24))
finding = {"check": "uptime", "status": "WARN", "message": "up for 2 h", "reason": "booted_often"}
old = intake.stamped({"schema": "flightline-node/1", "host": "gpu-01", "seconds": 1.0, "findings": [finding]})
with_store = SqliteStore(Path("runs.sqlite"))
with_store.start(Run("r1", "2026-11-21T10:00:00+00:00", hosts=(ExpectedHost("gpu-01"),)))
with_store.save("r1", old)
answer = {key: value for key, value in old.items() if key not in ("admitted", "verdict")}
more = {"instance_id": "", "instance_type": "none", "level": "quick", "started_at": "2026-11-21T10:00:00+00:00",
        "measures": {}, "versions": {}, "gpus": [], "verdict": "go", "call_id": "", "flightline": "1", "probes": []}
trouble = NodeTrouble("uptime@S-1", "uptime", "REBOOT", "m").today()
print(json.dumps({
    "thresholds": settings.thresholds,
    "checks": [check.id for check in chosen.checks],
    "skipped": [check.id for check in settings.skipped],
    "waived": [f"{one.check} {one.status} {one.reason}" for one in waived],
    "stored": [f"{one['check']} {one['reason']}" for record in with_store.records("r1") for one in record["findings"]],
    "answer": [one["check"] for one in intake.shaped({**answer, **more})["findings"]],
    "healing": [trouble.check, trouble.key],
    "demo": sorted({fault.check for fault in FAULTS.values()} & {"uptime"}),
    "warned": [one.split(", its")[0] for one in names.warnings({"checks": "uptime", "skip": ["uptime"], **given})],
}))
"""
