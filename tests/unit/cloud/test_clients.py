"""How AWS is asked: botocore repeats what is throttled, five times in all and the same on both sides."""

import pytest
from botocore.exceptions import ClientError

from flightline.cloud.clients import ATTEMPTS, Clients
from flightline.cloud.functions.common import services
from infra.planning.functions import functions
from tests.infra.stacks import STACKS, place, planned_names


@pytest.fixture
def function_client():
    """The functions' own; it is kept per process, and this server is gone after the test."""
    services.client.cache_clear()
    yield services.client
    services.client.cache_clear()


def refusing(cloud, times):
    left = iter([(400, "ThrottlingException")] * times)
    cloud.before = lambda _: next(left, None)
    cloud.seen.clear()


@pytest.mark.parametrize("side", ["control node", "function"])
def test_a_moment_of_throttling_is_sat_out_and_no_longer_one_repeated_for_ever(aws, side, function_client):
    client = Clients().get("dynamodb") if side == "control node" else function_client("dynamodb")
    refusing(aws, ATTEMPTS - 1)
    assert client.list_tables()["TableNames"] == [] and aws.seen["ListTables"] == ATTEMPTS
    refusing(aws, ATTEMPTS)
    with pytest.raises(ClientError, match="ThrottlingException"):
        client.list_tables()
    assert aws.seen["ListTables"] == ATTEMPTS, "one layer of retries"


def test_a_command_to_nodes_is_sent_once(aws, function_client):
    refusing(aws, 1)
    with pytest.raises(ClientError, match="ThrottlingException"):
        function_client("ssm").list_commands()
    assert aws.seen["ListCommands"] == 1


def test_a_function_whose_service_is_dumb_ends_before_its_time(aws, function_client):
    """Attempts that all run into the time limit, and the longest waits between them (1, 2, 4, 8 s)."""
    plans = functions(True, 5, planned_names(STACKS[0]), place(STACKS[0])).values()
    config = function_client("dynamodb").meta.config
    worst = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout) + 15
    assert worst <= min(plan.timeout_s for plan in plans)
