"""Where the nodes stand in EC2's network. moto has no DescribeInstanceTopology: botocore's own model checks these answers."""

import boto3
import pytest
from botocore.stub import Stubber

from flightline.cloud.topology import stands
from flightline.fabric.ansible import FabricError, FabricRequest, fleet_of_hosts, with_places
from flightline.fabric.drive import FabricResult
from flightline.fabric.findings import of_result
from flightline.fabric.topology import outside


@pytest.fixture
def ec2():
    client = boto3.client("ec2", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        yield client, stub


def place(number, leaf, group="cluster"):
    return {
        "InstanceId": f"i-{number:017x}", "InstanceType": "p5.48xlarge", "GroupName": group,
        "NetworkNodes": ["nn-top", f"nn-spine-{leaf // 2}", f"nn-leaf-{leaf}"],
    }  # fmt: skip


def hosts(count):
    return {f"n{at}": {"instance_id": f"i-{at:017x}", "instance_type": "p5.48xlarge"} for at in range(count)}


def test_more_instances_than_a_request_takes_are_asked_in_several_and_pages_are_followed(ec2):
    client, stub = ec2
    ids = [f"i-{at:017x}" for at in range(150)]
    first = {"Instances": [place(at, 0) for at in range(60)], "NextToken": "more"}
    stub.add_response("describe_instance_topology", first, {"InstanceIds": ids[:100]})
    rest = {"Instances": [place(at, 1) for at in range(60, 100)]}
    stub.add_response("describe_instance_topology", rest, {"InstanceIds": ids[:100], "NextToken": "more"})
    last = {"Instances": [place(at, 2) for at in range(100, 150)]}
    stub.add_response("describe_instance_topology", last, {"InstanceIds": ids[100:]})
    found = stands(ids, client)
    assert len(found) == 150 and found[ids[70]].network_nodes[-1] == "nn-leaf-1"


def test_near_nodes_are_neighbours_and_one_outside_the_placement_group_shows(ec2):
    client, stub = ec2
    answer = [place(at, at % 2, "cluster" if at != 3 else "") for at in range(6)]
    stub.add_response("describe_instance_topology", {"Instances": answer})
    fleet = fleet_of_hosts(with_places(hosts(6), client), FabricRequest(()))
    assert fleet.ring == ("n0", "n2", "n4", "n1", "n3", "n5")
    assert fleet.groups["n0"] == fleet.groups["n4"] == "nn-leaf-0" and list(fleet.outside) == ["n3"]
    (apart,) = [one for one in of_result(FabricResult(fleet)) if one["status"] == "WARN"]
    assert apart["device"]["host"] == "n3" and "placement group none, 5 of 6 nodes are in cluster" in apart["message"]


def test_an_answer_that_ec2_refuses_is_said_and_hosts_without_an_id_are_not_asked_about(ec2):
    client, stub = ec2
    stub.add_client_error("describe_instance_topology", "UnauthorizedOperation")
    with pytest.raises(FabricError, match=r"UnauthorizedOperation.*wanted EC2 to say where the instances stand"):
        with_places(hosts(2), client)
    assert with_places({"a": {}, "b": {"network_nodes": ["x"]}}) == {"a": {}, "b": {"network_nodes": ["x"]}}


@pytest.mark.parametrize("groups", [[], ["", "", ""], ["a", "b"], ["a", "a", "b", "b"]])
def test_without_a_group_that_most_share_nobody_is_outside(groups):
    assert outside({f"n{at}": {"placement_group": group} for at, group in enumerate(groups)}) == {}


def test_the_group_that_the_inventory_plugin_found_counts():
    found = {f"n{at}": {"ec2_placement": {"group_name": "c"}} for at in range(3)} | {"odd": {"ec2_placement": {}}}
    assert list(outside(found)) == ["odd"]
