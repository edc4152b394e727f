"""Every Trainium and Inferentia type carries what the neuron checks compare with."""

import pytest

from flightline_node.know.expected import known_types, resolve

NEURON = [name for name in known_types() if resolve(name).has_neuron]


def test_the_table_has_the_neuron_types():
    assert {"trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.3xlarge", "trn2.48xlarge"} <= set(NEURON)
    assert {"inf2.xlarge", "inf2.8xlarge", "inf2.24xlarge", "inf2.48xlarge"} <= set(NEURON)


@pytest.mark.parametrize("name", NEURON)
def test_no_neuron_row_has_a_hole(name):
    row = resolve(name)
    assert row.gpu_count and row.neuron_cores and row.driver_minimum and row.efa_count is not None
    assert row.has_nvidia_gpu is False
    assert row.gpu_memory_mib == (98304 if name.startswith("trn2") else 32768)
    assert (row.neuron_topology is None) == (row.neuron_link_gb_s is None) == (row.gpu_count == 1)


def test_accelerator_kinds_exclude_each_other():
    assert resolve("p5.48xlarge").has_neuron is False
    assert resolve("none").has_neuron is None
