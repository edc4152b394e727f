"""The table of exit statuses in docs/preflight.md, a test per row: 0 go, 1 no-go, 2 whatever else."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.beds import hears_signals
from tests.hostile import bed
from tests.hostile.bed import COMMAND, PLAYBOOK, ROOT, HostileBed, answer, real

BOTH = pytest.mark.parametrize("command", [PLAYBOOK, COMMAND], ids=["ansible-playbook", "flightline"])
SENTENCE = re.compile(r"flightline: run \S+ has no verdict: .*; what was measured: flightline report \S+")


def place_of(path, status="PASS", **plans):
    """A fleet of one host that answers with a status, and others by their plans."""
    place = HostileBed(path)
    place.add("a", {"text": answer(real(status), "a")})
    for host, plan in plans.items():
        place.add(host, plan)
    place.write()
    return place


def sabotage(path: Path, code: str) -> dict[str, str]:
    """Environment in which the control side's Python runs this code first; the node's Python takes no such thing."""
    directory = path / "sabotage"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(directory)}


@BOTH
@pytest.mark.parametrize(("status", "wanted"), [("PASS", 0), ("WARN", 0), ("FAIL", 1), ("UNKNOWN", 1)])
def test_a_verdict(tmp_path, command, status, wanted):
    done = place_of(tmp_path, status).run(command)
    assert done.status == wanted, done.out


def boom(where: str) -> str:
    module, _, name = where.rpartition(":")
    return (
        f"import importlib\nmodule = importlib.import_module({module!r})\n"
        "def boom(*a, **k): raise KeyError('made to break')\n"
        f"holder, _, last = {name!r}.rpartition('.')\n"
        "holder = getattr(module, holder) if holder else module\n"
        "getattr(holder, last), setattr(holder, last, boom)\n"
    )


@BOTH
@pytest.mark.parametrize(
    "where",
    [
        "flightline.store.run_rows:RunRows.open",
        "flightline.store.run_rows:RunRows.put",
        "flightline.run.conclude:judge_run",
        "flightline.run.conclude:_write",
        "flightline.store.sqlite:ExpectedHost",
    ],
)
def test_whatever_breaks_on_the_way_to_the_verdict(tmp_path, command, where):
    """Ansible only warns of a callback that raises, and ends with 0."""
    done = place_of(tmp_path).run(command, **sabotage(tmp_path, boom(where)))
    assert done.status == 2, done.out
    assert "made to break" in done.out and re.search(r"run \S+ has no verdict", done.out), done.out


def test_a_verdict_that_cannot_be_shown_stands(tmp_path):
    for status, wanted in (("PASS", 0), ("FAIL", 1)):
        path = tmp_path / status
        path.mkdir()
        done = place_of(path, status).run(PLAYBOOK, **sabotage(path, boom("flightline.run.conclude:show")))
        assert done.status == wanted and "could not be shown" in done.out, done.out


@BOTH
def test_the_flightline_package_cannot_be_imported(tmp_path, command):
    code = "import sys\nsys.modules['flightline.store.sqlite'] = None\nsys.modules['flightline.run.conclude'] = None\n"
    done = place_of(tmp_path).run(command, **sabotage(tmp_path, code))
    assert done.status == 2 and "flightline" in done.out, done.out


def test_the_playbook_breaks_off(tmp_path):
    """A node on this machine that kills its worker: Ansible gives up the whole play."""
    place = place_of(tmp_path, murder={"way": "murder"})
    done = place.run(PLAYBOOK)
    assert done.status == 2 and SENTENCE.search(done.out), done.out
    assert place.run(COMMAND).status == 2


@pytest.mark.parametrize("numbers", [[2], [15], [1], [2, 2], [15, 1, 15]], ids=str)
def test_an_interrupted_ansible_playbook(tmp_path, numbers):
    place = place_of(tmp_path, slow={"way": "hang"})
    status, out = interrupted(place, PLAYBOOK, numbers)
    assert status == 2 and SENTENCE.search(out), out
    assert place.left_over() == []


@pytest.mark.parametrize("numbers", [[2], [15], [2, 2]], ids=str)
def test_an_interrupted_flightline_judges_what_was_measured(tmp_path, numbers):
    place = place_of(tmp_path, slow={"way": "hang"})
    status, out = interrupted(place, COMMAND, numbers)
    assert status == 1 and "NO-GO  1 of 2 nodes go" in out and "Traceback" not in out, out
    assert place.left_over() == []


def interrupted(place, command, numbers):
    process = subprocess.Popen(
        [*command, "-i", str(place.inventory)],
        cwd=ROOT, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=hears_signals,
    )  # fmt: skip
    place.wait_for_rows(1)
    time.sleep(1)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.4)
    out, _ = process.communicate(timeout=180)
    return process.returncode, out


NOT_LOADED = "from flightline.run import exit_status\nexit_status.CALLBACK = 'none'\n"
UNVALIDATED = (*PLAYBOOK, "--start-at-task", "Probe and judge the node")


@pytest.mark.parametrize(
    "command", [PLAYBOOK, COMMAND, UNVALIDATED], ids=["ansible-playbook", "flightline", "unvalidated"]
)
def test_where_the_callback_cannot_be_loaded_no_node_is_touched(tmp_path, command):
    done = place_of(tmp_path).run(command, ANSIBLE_CALLBACKS_ENABLED="none", **sabotage(tmp_path, NOT_LOADED))
    assert done.status == 2 and "callback is not active" in done.out and done.report is None, done.out


@BOTH
@pytest.mark.parametrize("how", [">&-", "| head -c 1 >/dev/null"])
@pytest.mark.parametrize(("status", "wanted"), [("PASS", 0), ("FAIL", 1)])
def test_a_closed_output_changes_no_status(tmp_path, command, how, status, wanted):
    place = place_of(tmp_path, status)
    line = f"{' '.join(command)} -i {place.inventory} {how}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=ROOT, env=place.env, timeout=120, check=False)
    assert done.returncode == wanted


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_locale_that_ansible_refuses(tmp_path, locale):
    """Ansible's own status: it ends before any plugin is read. Never 0."""
    place = place_of(tmp_path)
    done = place.run(PLAYBOOK, LC_ALL=locale)
    assert done.status == 1 and "locale" in done.out and done.report is None
    assert place.run(COMMAND, LC_ALL=locale).status == 0
    assert place.run(PLAYBOOK, LANG=locale, LC_ALL="").status == 0


def test_a_status_that_a_later_playbook_may_change_only_after_go(tmp_path):
    after = tmp_path / "after.yml"
    after.write_text("- hosts: a\n  gather_facts: false\n  tasks:\n    - ansible.builtin.fail: {msg: no}\n")
    assert place_of(tmp_path / "x").run((*PLAYBOOK, str(after))).status == 2
    done = place_of(tmp_path / "y", "FAIL").run((*PLAYBOOK, str(after)))
    assert done.status == 1 and "after" not in done.out


def test_the_place_has_no_raw_escape():
    assert bed.RAW.search("\x1b") and not bed.RAW.search("text\r\n\t")
