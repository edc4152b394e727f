"""The lists of the nodes that passed, as job starters read them."""

import io

import pytest

from flightline.report.healthy import NAMES, Healthy, gpus_of, write

NODES = [Healthy("gpu-01", "10.0.0.1", 8), Healthy("gpu-02", "10.0.0.2", 8), Healthy("x; reboot", "10.0.0.3", 8)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("mpi", "10.0.0.1 slots=8\n10.0.0.2 slots=8\n"),
        ("slurm", "gpu-[01-02]\n"),
        ("ansible", "[flightline_go]\ngpu-01\ngpu-02\n"),
    ],
)
def test_each_list_names_the_nodes_its_way_and_no_name_that_could_be_read_as_more(kind, text):
    stream = io.StringIO()
    write(kind, NODES, stream)
    assert stream.getvalue() == text


def test_without_a_healthy_node_the_lists_name_none():
    for kind in NAMES:
        stream = io.StringIO()
        write(kind, [], stream)
        assert stream.getvalue() in ("", "[flightline_go]\n")


def test_slots_are_the_gpus_of_the_type():
    assert (gpus_of("p5.48xlarge"), gpus_of("no-such-type"), gpus_of("none")) == (8, 1, 1)
