"""neuron_software: the pairs that the release notes name, libraries of different releases, and hosts without any."""

import pytest

from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, only, status

from .neurons import TRN1, node


def judge(driver, runtime, collectives):
    names = {"aws-neuronx-runtime-lib": runtime, "aws-neuronx-collectives": collectives}
    facts = node(neuron_packages={"packages": {name: version for name, version in names.items() if version}})
    facts["neuron_sysfs"]["driver"] = driver
    return judge_facts("neuron_software", facts, TRN1)


@pytest.mark.parametrize(
    ("driver", "runtime", "collectives", "wanted"),
    [
        ("2.24.7.0", "2.28.23.0-dd58", "2.28.27.0-bc30", Status.PASS),
        ("2.29.1.0", "2.33.4.0", "2.33.4.0", Status.PASS),
        ("2.29.1.0", "2.32.31.0", "2.32.28.0", Status.FAIL),
        ("2.26.10.0", "2.32.31.0", "2.32.28.0", Status.FAIL),
        ("2.27.4.0", "2.32.31.0", "2.32.28.0", Status.PASS),
        ("2.26.10.0", "2.31.24.0", "2.31.24.0", Status.PASS),
        ("2.30.2", "2.34.10", "2.31.24.0", Status.WARN),
        ("2.21.37.0", "2.27.23.0", "2.25.65.0", Status.PASS),
        ("2.24.7.0", None, "2.28.27.0", Status.PASS),
        ("2.24.7.0", None, None, Status.SKIP),
        (None, "2.28.23.0", None, Status.PASS),
    ],
)
def test_pairs(driver, runtime, collectives, wanted):
    assert status(judge(driver, runtime, collectives)) is wanted


def test_a_failure_names_both():
    finding = only(judge("2.29.1.0", "2.31.24.0", None), Status.FAIL)
    assert (finding.measured, finding.expected) == ("2.31.24.0", "2.33 or later")
    assert "driver 2.29.1.0" in finding.message


def test_a_package_list_that_cannot_be_read_is_unknown():
    assert status(judge_facts("neuron_software", node(neuron_packages=BROKEN), TRN1)) is Status.UNKNOWN


def test_what_the_host_has_and_lacks_is_said():
    whole = only(judge("2.24.7.0", "2.28.23.0", "2.28.27.0"), Status.PASS)
    assert whole.message == "driver 2.24.7.0, runtime 2.28.23.0, collectives 2.28.27.0"
    part = only(judge("2.24.7.0", None, "2.28.27.0"), Status.PASS)
    assert part.message == "driver 2.24.7.0, collectives 2.28.27.0; not on the host: runtime"
