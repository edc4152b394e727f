"""EFA interface layout per instance type."""

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightline_node.know import expected
from infra.planning.efa import EFA, EFA_ONLY, ENA, efa_count, interfaces
from infra.planning.instance_types import CAPACITIES, CAPACITY_BLOCK, ON_DEMAND, SPOT, facts, known

TYPES = st.sampled_from(known())
WITH_EFA = [name for name in known() if facts(name).efa_count]
WITHOUT_EFA = [name for name in known() if not facts(name).efa_count]


@given(TYPES, st.booleans())
def test_every_layout_can_be_launched(instance_type, efa):
    """What EC2 refuses: a primary without IP, two interfaces on one device, or two EFA interfaces on one card."""
    if efa and not facts(instance_type).efa_count:
        with pytest.raises(ValueError, match="has none"):
            interfaces(instance_type, efa=True)
        return
    layout = interfaces(instance_type, efa)
    primary = layout[0]
    assert (primary.card, primary.device) == (0, 0)
    assert primary.kind in (ENA, EFA)
    assert primary.public_address is False
    assert len({(item.card, item.device) for item in layout}) == len(layout)
    cards = [item.card for item in layout if item.kind != ENA]
    assert len(set(cards)) == len(cards)
    assert all(item.public_address is None for item in layout[1:])
    assert all(item.delete_on_termination for item in layout)
    assert list(layout) == sorted(layout, key=lambda item: (item.card, item.device))


@pytest.mark.parametrize("instance_type", WITH_EFA)
def test_the_layout_has_the_count_that_a_node_is_judged_by(instance_type):
    """The node library expects this many EFA devices; one less here and every node would be a no-go."""
    count = efa_count(interfaces(instance_type, efa=True))
    wanted = expected.resolve(instance_type).efa_count
    assert wanted is None or count == wanted
    assert efa_count(interfaces(instance_type, efa=False)) == 0


@pytest.mark.parametrize(
    ("instance_type", "layout"),
    # AWS' page on EFA for accelerated types (2026): card and device of each interface.
    [
        ("p5.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 32))]),
        ("p5e.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 32))]),
        ("p5en.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 16))]),
        ("p6-b200.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 8))]),
        ("p6-b300.48xlarge", [(0, 0, ENA), *((card, 0, EFA_ONLY) for card in range(1, 17))]),
        ("p6e-gb200.36xlarge", [(0, 0, ENA), *((card, 0, EFA_ONLY) for card in (1, 5, 9, 13))]),
        ("p4d.24xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 4))]),
        ("trn1.32xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 8))]),
        ("trn2.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 16))]),
        ("g7e.48xlarge", [(0, 0, ENA), (0, 1, EFA_ONLY), *((card, 0, EFA_ONLY) for card in range(1, 4))]),
        ("g6.8xlarge", [(0, 0, EFA)]),
    ],
)
def test_layout_of_a_type(instance_type, layout):
    assert [(item.card, item.device, item.kind) for item in interfaces(instance_type, efa=True)] == layout


@pytest.mark.parametrize("instance_type", WITHOUT_EFA)
def test_a_type_without_efa_has_one_plain_interface(instance_type):
    assert [item.kind for item in interfaces(instance_type, efa=False)] == [ENA]


def test_the_table_has_types_with_and_without():
    assert "g5.xlarge" in WITHOUT_EFA
    assert "p5.48xlarge" in WITH_EFA
    assert len(WITH_EFA) + len(WITHOUT_EFA) == len(known()) > 70


@given(TYPES)
def test_every_type_can_be_bought_some_way(instance_type):
    found = facts(instance_type)
    assert found.capacities
    assert found.capacities <= set(CAPACITIES)
    assert found.gpu_count > 0
    assert found.architecture in ("x86_64", "arm64")


def test_capacity_kinds_of_known_cases():
    assert facts("p6e-gb200.36xlarge").capacities == {CAPACITY_BLOCK}
    assert CAPACITY_BLOCK not in facts("g6.48xlarge").capacities
    assert SPOT not in facts("trn2u.48xlarge").capacities
    assert {ON_DEMAND, SPOT, CAPACITY_BLOCK} <= facts("p5.48xlarge").capacities


@pytest.mark.parametrize("instance_type", known())
def test_the_api_model_knows_every_type(instance_type):
    assert instance_type in botocore.session.Session().get_service_model("ec2").shape_for("InstanceType").enum
