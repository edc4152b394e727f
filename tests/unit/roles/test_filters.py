"""The filters that the roles use: errors of the inventory are named, and what is rendered is what the agent gets."""

from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from tests.unit.made import loaded

PATH = Path(__file__).parents[3] / "plugins" / "filter" / "flightline_software.py"


@pytest.fixture(scope="module")
def filters():
    return loaded("flightline_software", PATH).FilterModule().filters()


def test_software_of_a_type(filters):
    assert filters["flightline_software"]("p5.48xlarge")["architecture"] == "90"


def test_an_unknown_type_is_an_error_of_the_inventory(filters):
    with pytest.raises(AnsibleFilterError, match=r"p9\.48xlarge"):
        filters["flightline_software"]("p9.48xlarge")


def test_the_agents_configuration_follows_the_instance_type(filters):
    plan = {"namespace": "Flightline/x", "mounts": ["/", "/fsx"], "retention_days": 30}
    gpu = filters["flightline_agent_config"]({"instance_type": "p5.48xlarge", **plan})
    cpu = filters["flightline_agent_config"]({"instance_type": "none", **plan})
    assert {"nvidia_gpu", "efa"} <= set(gpu["metrics"]["metrics_collected"])
    assert not {"nvidia_gpu", "efa"} & set(cpu["metrics"]["metrics_collected"])
    assert gpu["metrics"]["metrics_collected"]["disk"]["resources"] == ["/", "/fsx"]


def test_a_field_that_nobody_knows_is_an_error(filters):
    with pytest.raises(AnsibleFilterError, match="colour"):
        filters["flightline_agent_config"]({"instance_type": "none", "colour": "red"})
