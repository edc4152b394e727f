"""A healthy node's files: a tool for every probe, so that no real tool of this machine ever answers for a node."""

import re

import pytest

from flightline.demo.hardware import machine
from flightline.demo.tree import Tool, healthy
from flightline_node.ask.probes import PROBES
from flightline_node.model import SettingsError

SHELLS = {"cat", "sh"}


@pytest.mark.parametrize("kind", ["p5.48xlarge", "g5g.xlarge", "trn2.48xlarge"])
def test_every_command_of_every_probe_is_simulated(kind):
    tools = {path.partition("/")[2] for path in healthy(kind) if path.startswith("tools/")}
    for name, *arguments in (command for probe in PROBES for command in probe.commands):
        assert name in tools | SHELLS
        assert set(re.findall(r"\bexec ([\w-]+)", " ".join(arguments))) <= tools


@pytest.mark.parametrize("kind", ["p5.48xlarge", "trn1.32xlarge"])
def test_a_tool_prints_only_files_that_are_there(kind):
    files = healthy(kind)
    for entry in files.values():
        if isinstance(entry, Tool):
            named = [*entry.answers.values(), *([entry.otherwise] if entry.otherwise else [])]
            assert all(f"out/{name}" in files for name in named)


def test_the_parts_of_the_large_types_sit_where_aws_puts_them():
    p5, p4 = machine("p5.48xlarge"), machine("p4d.24xlarge")
    assert p5.gpu_pci()[0] == "0000:53:00.0"
    assert p5.efa_devices()[:5] == ["rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0", "rdmap96s0"]
    assert p4.efa_devices() == ["rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27"]
    for one in (p5, p4, machine("p6-b200.48xlarge"), machine("g6e.48xlarge")):
        places = one.gpu_pci() + one.efa_pci()
        assert len(places) == len(set(places))


def test_types_without_a_stored_output_are_refused_by_name():
    for kind in ("g6f.large", "gr6f.4xlarge", "none"):
        with pytest.raises(SettingsError, match="cannot be simulated"):
            machine(kind)
