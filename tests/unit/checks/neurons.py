"""Facts of a healthy Trn1 node for tests of the neuron checks: the hand-written fixtures as the parsers read them."""

from copy import deepcopy
from functools import lru_cache
from typing import Any

from flightline_node.model import Facts
from flightline_node.read.parsers import PARSERS
from tests.harness import sample

_HEALTHY = {
    "neuron_ls": ("neuron_ls/trn1-32xlarge.json", "neuron-ls.json"),
    "neuron_monitor": ("neuron_monitor/trn1-idle.json", "neuron-monitor.json"),
    "neuron_sysfs": ("neuron_sysfs/trn1-32xlarge.json", "neuron-sysfs.json"),
    "neuron_packages": ("neuron_packages/dpkg.txt", "neuron-packages.txt"),
    "nccom_test": ("nccom_test/trn1-32-ranks.txt", "nccom-test.txt"),
}
TRN1 = "trn1.32xlarge"
_JOB = '{"pid": 4711, "command": "python3 pretrain.py --steps 5000", "neuron_runtime_version": "2.28.23.0"}'


def busy() -> bytes:
    """`neuron-ls -j` of the healthy node while a job holds its first two devices."""
    text = sample(_HEALTHY["neuron_ls"][0]).decode()
    return text.replace('"neuron_processes": []', f'"neuron_processes": [{_JOB}]', 2).encode()


def fixture(parser: str, name: str, file: str = "") -> Facts:
    """A fixture's facts."""
    return PARSERS[parser].parse({file or PARSERS[parser].files[0]: sample(name)})


@lru_cache(maxsize=1)
def _healthy() -> dict[str, Facts]:
    found = {parser: fixture(parser, *names) for parser, names in _HEALTHY.items()}
    quiet = {"files": ["kernel.log"], "events": [], "driver_started": "2.24.7.0"}
    return {**found, "neuron_log": quiet, "kernel": {"xids": []}, "lspci": {"neuron": 16}}


def node(**changed: Any) -> dict[str, Any]:
    """A healthy Trn1 node's facts with some replaced; None takes one away. A fresh copy."""
    facts = {**deepcopy(_healthy()), **changed}
    return {name: value for name, value in facts.items() if value is not None}
