"""neuron_driver: not loaded, too old, not the pinned one, updated but not reloaded."""

import pytest

from tests.harness import BROKEN, only

from .neurons import TRN1, node
from .table import FAIL, FIX_CONFIG, PASS, REBOOT, UNKNOWN, UPDATE_SOFTWARE, WARN, changed, judging, row, table


def judge(facts, instance_type=TRN1, **expected):
    return judging("neuron_driver", facts, instance_type, expected=expected)


test_neuron_driver = table(
    row("healthy", judge(node()), PASS, says="2.24.7.0"),
    *(row("the types minimum",
        judge(changed(node(neuron_packages=None), {"neuron_sysfs.driver": version}), instance_type), wanted)
        for instance_type, version, wanted in [
            ("trn1.32xlarge", "2.4.6.0", FAIL), ("trn1.32xlarge", "2.5.0", PASS), ("trn1n.32xlarge", "2.7.33.0", FAIL),
            ("trn2.48xlarge", "2.19.64.0", FAIL), ("trn2.48xlarge", "2.20.28.0", PASS),
        ]),
    row("the sites pin", judge(node(), driver_version="2.24"), PASS),
    row("the sites pin", judge(node(), driver_version="2.26"), FAIL, measured="2.24.7.0", expected="2.26"),
    row("an update that was not loaded warns",
        judge(changed(node(), {"neuron_packages.packages.aws-neuronx-dkms": "2.26.10.0"})), WARN, remedy=REBOOT),
    row("what is not a version",
        [judge(changed(node(neuron_packages=None), {"neuron_sysfs.driver": "error: Input/output error"})),
        judge(node(neuron_sysfs=BROKEN, neuron_packages=BROKEN))], UNKNOWN),
    row("the log and the packages stand in for the kernels word",
        [judge(node(neuron_sysfs=None)), judge(node(neuron_sysfs=None, neuron_log=None))], PASS),
)  # fmt: skip


@pytest.mark.parametrize(("packages", "remedy"), [({}, UPDATE_SOFTWARE), (None, FIX_CONFIG)])
def test_not_loaded(packages, remedy):
    facts = node(neuron_sysfs={"driver": None, "devices": []})
    if packages is not None:
        facts["neuron_packages"] = {"packages": packages}
    finding = only(judge(facts), FAIL)
    assert (finding.measured, finding.remedy) == ("not loaded", remedy)
