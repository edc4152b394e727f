"""Active tests do not start beside a job: who is named, what is asked again, and how to override it.

The tools are stand-ins that print stored answers.
"""

import pytest

from flightline_node.ask import idle
from flightline_node.ask.probes import BY_ID, Probe
from flightline_node.ask.runner import Node, Refusal, run_probes
from flightline_node.model import Status
from flightline_node.node import Identity, collect
from flightline_node.read.bundle import load, write_manifest
from flightline_node.read.facts import UNREADABLE, FactBook
from flightline_node.settings import build
from tests.harness import judge_dir, sample
from tests.unit.checks.neurons import busy
from tests.unit.made import program

PROCESS = (
    "<processes><process_info><pid>4711</pid><type>C</type><process_name>python3</process_name>"
    "<used_memory>70212 MiB</used_memory></process_info></processes>"
)
XML = sample("nvidia_smi/h200-610.xml").decode()
FIO = BY_ID["fio"]


def smi(busy=False, used_mib=4):
    first, found, rest = XML.partition("<processes>")
    text = first + PROCESS + rest.partition("</processes>")[2] if busy else XML
    assert found
    head, tag, tail = text.partition("<fb_memory_usage>")
    start, used, end = tail.partition("<used>")
    assert used
    return head + tag + start + used + f"{used_mib} MiB<" + end.partition("<")[2]


@pytest.fixture
def place(tmp_path):
    """A bundle's directory as it is when the passive probes are done, and a node whose nvidia-smi can be changed."""
    tools, out = tmp_path / "tools", tmp_path / "out"
    out.mkdir()
    program(tools / "nvidia-smi", f"cat {tmp_path}/now.xml")
    (tmp_path / "now.xml").write_text(smi())
    (out / "nvidia-smi.xml").write_text(smi())
    (out / "loadavg.txt").write_text("0.50 0.40 0.30 1/900 4242\n")
    (out / "cpuinfo.json").write_text(
        '{"lscpu":[{"field":"CPU(s):","data":"8"},{"field":"On-line CPU(s) list:","data":"0-7"}]}'
    )
    return tmp_path, out, Node(str(tmp_path), (str(tools),))


def ask(place, options=None, thresholds=None):
    _, out, node = place
    why_not = idle.guard(node, out, options or {}, thresholds or {})

    def text(probe):
        refused = why_not(probe)
        return refused.text if refused else ""

    return text


def test_an_idle_node_may_be_loaded(place):
    assert ask(place)(FIO) == ""


def test_a_process_on_a_gpu_is_named(place):
    (place[1] / "nvidia-smi.xml").write_text(smi(busy=True))
    reason = ask(place)(FIO)
    assert "GPU 0 is used by pid 4711 python3" in reason
    assert "active_when_busy" in reason


def test_memory_without_a_visible_process_counts(place):
    (place[1] / "nvidia-smi.xml").write_text(smi(used_mib=70000))
    assert "GPU 0 has 70000 MiB in use by a process that cannot be seen" in ask(place)(FIO)
    assert ask(place, thresholds={"gpu_processes.max_idle_mib": 80000})(FIO) == ""


def test_a_load_of_more_than_one_task_a_cpu_counts(place):
    (place[1] / "loadavg.txt").write_text("9.10 8.00 7.00 9/900 4242\n")
    assert "load 9.1 on 8 CPUs shows a running job" in ask(place)(FIO)
    assert ask(place, thresholds={"load.max_per_cpu": 2})(FIO) == ""


def test_an_answer_that_cannot_be_read_is_no_permission(place):
    (place[1] / "nvidia-smi.xml").write_text("Failed to initialize NVML: Driver/library version mismatch\n")
    assert "does not tell whether the GPUs are in use" in ask(place)(FIO)


def test_without_nvidia_smi_the_load_alone_decides(place):
    (place[1] / "nvidia-smi.xml").unlink()
    assert ask(place)(FIO) == ""


@pytest.mark.parametrize("value", [True, "true", "yes", 1])
def test_the_override(place, value):
    (place[1] / "nvidia-smi.xml").write_text(smi(busy=True))
    assert ask(place, {"active_when_busy": value})(FIO) == ""
    assert ask(place, {"active_when_busy": False})(FIO) != ""


def test_a_job_that_starts_between_two_tests_is_seen(place, monkeypatch):
    monkeypatch.setattr(idle, "SETTLE_S", 0.0)
    question = ask(place)
    assert question(FIO) == ""
    assert question(FIO) == ""
    (place[0] / "now.xml").write_text(smi(busy=True))
    assert "pid 4711" in question(FIO)


def test_what_the_last_test_leaves_for_a_moment_is_no_job(place, monkeypatch):
    question = ask(place)
    assert question(FIO) == ""
    answers = iter([Refusal("gpu_busy", "GPU 0 is used by pid 4711 nvvs"), None])
    monkeypatch.setattr(idle, "_asked_once", lambda *_: next(answers))
    monkeypatch.setattr(idle, "SETTLE_S", 0.0)
    assert question(FIO) == ""
    assert list(answers) == []


def test_a_refusal_stands(place):
    question = ask(place)
    (place[1] / "nvidia-smi.xml").write_text(smi(busy=True))
    assert "pid 4711" in question(FIO)
    (place[1] / "nvidia-smi.xml").write_text(smi())
    assert "pid 4711" in question(FIO)


def test_a_refused_probe_is_not_started_and_says_why(tmp_path):
    probe = Probe("fio", "fio.json", (("touch", str(tmp_path / "started")),), exclusive=True, level="deep")
    (result,) = run_probes(
        [probe], Node(), tmp_path, {}, guard=lambda _: Refusal("gpu_busy", "GPU 0 is used by pid 1 x")
    )
    assert not (tmp_path / "started").exists()
    assert (result.rc, result.note) == (None, "not run: GPU 0 is used by pid 1 x")
    write_manifest(tmp_path, host="h", instance_id="", instance_type="", collected_at="", probes=[result])
    parsed = FactBook(load(tmp_path)).get("fio")
    assert (parsed.state, parsed.reason) == (UNREADABLE, "not run: GPU 0 is used by pid 1 x")
    findings = [finding for finding in judge_dir(tmp_path).findings if finding.check == "fio_disk"]
    assert [finding.status for finding in findings] == [Status.UNKNOWN]
    assert "not run: GPU 0 is used by pid 1 x" in findings[0].message
    assert findings[0].reason == "not_run.gpu_busy"


def test_passive_probes_are_not_asked_about(tmp_path):
    probe = Probe("uptime", "uptime.txt", (("echo", "1.0 1.0"),))
    (result,) = run_probes([probe], Node(), tmp_path, {}, guard=lambda _: Refusal("gpu_busy", "in use"))
    assert (result.rc, result.note) == (0, "")


def test_a_quick_collection_asks_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("flightline_node.node.plan", lambda level: (Probe("a", "a.txt", (("echo", "a"),)),))
    monkeypatch.setattr(idle, "guard", lambda *_: pytest.fail("asked"))
    collect(Node(), "quick", tmp_path, Identity(), "", settings=build())


def test_every_probe_above_quick_is_guarded():
    assert [probe.id for probe in BY_ID.values() if probe.level != "quick" and not probe.exclusive] == []


class TestNeuron:
    """A Neuron node is asked through neuron-ls; nvidia-smi, which it has not, is not missed."""

    BUSY = busy().decode()
    IDLE = sample("neuron_ls/trn1-32xlarge.json").decode()

    @pytest.fixture
    def neuron(self, place):
        root, out, node = place
        (out / "nvidia-smi.xml").unlink()
        (root / "tools" / "nvidia-smi").unlink()
        program(root / "tools" / "neuron-ls", f"cat {root}/now.json")
        (root / "now.json").write_text(self.IDLE)
        (out / "neuron-ls.json").write_text(self.IDLE)
        return root, out, node

    def test_idle(self, neuron):
        why = ask(neuron)
        assert (why(FIO), why(FIO)) == ("", "")

    def test_a_job_is_named(self, neuron):
        (neuron[1] / "neuron-ls.json").write_text(self.BUSY)
        assert ask(neuron)(FIO).startswith("neuron0 is used by pid 4711 python3 pretrain.py --steps 5000 and 1 more; ")

    def test_one_that_starts_between_two_tests_is_seen(self, neuron, monkeypatch):
        monkeypatch.setattr(idle, "SETTLE_S", 0.0)
        why = ask(neuron)
        assert why(FIO) == ""
        (neuron[0] / "now.json").write_text(self.BUSY)
        assert "pid 4711" in why(FIO)

    @pytest.mark.parametrize("text", ["neuron-ls: no neuron device found\n", "[", "[]"])
    def test_an_answer_without_a_device_is_no_permission(self, neuron, text):
        (neuron[1] / "neuron-ls.json").write_text(text)
        assert "neuron-ls does not tell" in ask(neuron)(FIO)
