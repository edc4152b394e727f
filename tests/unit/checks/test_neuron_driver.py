"""neuron_driver: not loaded, too old, not the pinned one, updated but not reloaded."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

from .neurons import TRN1, node


def judge(facts, instance_type=TRN1, **expected):
    return judge_facts("neuron_driver", facts, instance_type, expected=expected)


def test_healthy():
    assert "2.24.7.0" in only(judge(node()), Status.PASS).message


@pytest.mark.parametrize(("packages", "remedy"), [({}, Remedy.UPDATE_SOFTWARE), (None, Remedy.FIX_CONFIG)])
def test_not_loaded(packages, remedy):
    facts = node(neuron_sysfs={"driver": None, "devices": []})
    if packages is not None:
        facts["neuron_packages"] = {"packages": packages}
    finding = only(judge(facts), Status.FAIL)
    assert (finding.measured, finding.remedy) == ("not loaded", remedy)


@pytest.mark.parametrize(
    ("instance_type", "version", "wanted"),
    [
        ("trn1.32xlarge", "2.4.6.0", Status.FAIL),
        ("trn1.32xlarge", "2.5.0", Status.PASS),
        ("trn1n.32xlarge", "2.7.33.0", Status.FAIL),
        ("trn2.48xlarge", "2.19.64.0", Status.FAIL),
        ("trn2.48xlarge", "2.20.28.0", Status.PASS),
    ],
)
def test_the_types_minimum(instance_type, version, wanted):
    facts = node(neuron_packages=None)
    facts["neuron_sysfs"]["driver"] = version
    assert status(judge(facts, instance_type)) is wanted


def test_the_sites_pin():
    assert status(judge(node(), driver_version="2.24")) is Status.PASS
    finding = only(judge(node(), driver_version="2.26"), Status.FAIL)
    assert (finding.measured, finding.expected) == ("2.24.7.0", "2.26")


def test_an_update_that_was_not_loaded_warns():
    facts = node()
    facts["neuron_packages"]["packages"]["aws-neuronx-dkms"] = "2.26.10.0"
    assert only(judge(facts), Status.WARN).remedy is Remedy.REBOOT


def test_what_is_not_a_version():
    facts = node(neuron_packages=None)
    facts["neuron_sysfs"]["driver"] = "error: Input/output error"
    assert status(judge(facts)) is Status.UNKNOWN
    assert status(judge(node(neuron_sysfs=BROKEN, neuron_packages=BROKEN))) is Status.UNKNOWN


def test_the_log_and_the_packages_stand_in_for_the_kernels_word():
    assert status(judge(node(neuron_sysfs=None))) is Status.PASS
    assert status(judge(node(neuron_sysfs=None, neuron_log=None))) is Status.PASS
