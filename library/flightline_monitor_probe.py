#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Prove that monitoring works: a thin shell over flightline_host/trial/monitor.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_monitor_probe
short_description: Send a test metric and a test alert and wait until both are seen
description:
  - Publishes a metric to CloudWatch and waits until it can be read back.
  - Publishes a test alert, as an event that goes through EventBridge, the alert router and the topic, and waits until
    a queue on that topic has it. The queue and its subscription are removed afterwards.
  - Looks whether the agents of the given nodes report.
  - Runs where boto3 and credentials are, usually on the control node.
extends_documentation_fragment: [flightline_module]
requirements:
  - boto3
options:
  cluster:
    description: The cluster's name.
    type: str
    required: true
  namespace:
    description: Namespace of its metrics; C(Flightline/) and the cluster's name when not given.
    type: str
  topic_arn:
    description: The topic that people are told through.
    type: str
    required: true
  via:
    description: V(event) sends the alert the whole way, V(topic) straight to the topic.
    type: str
    choices: [event, topic]
    default: event
  instance_ids:
    description: Nodes whose agents must have reported of late.
    type: list
    elements: str
    default: []
  fresh_s:
    description: What "of late" means, in seconds.
    type: int
    default: 600
  timeout_s:
    description: How long to wait, in seconds. CloudWatch may take a few minutes to show a metric.
    type: int
    default: 300
  poll_s:
    description: Pause between two looks, in seconds.
    type: float
    default: 5
  region:
    description: AWS region; from the environment when not given.
    type: str
  endpoint_url:
    description: Address of an emulator instead of AWS.
    type: str
attributes:
  check_mode:
    support: partial
    description: Nothing is sent; only the topic and the nodes are looked at.
  diff_mode:
    description: Nothing that stays is changed.
"""

EXAMPLES = r"""
- name: Prove that a metric and an alert come through
  flightline_monitor_probe:
    cluster: demo
    topic_arn: arn:aws:sns:eu-west-1:123456789012:demo-alerts
    region: eu-west-1
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
metric_s:
  description: Seconds until the metric was seen.
  returned: when it was seen
  type: float
alert_s:
  description: Seconds until the alert was seen.
  returned: when it was seen
  type: float
silent:
  description: Nodes that do not report.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.flightline_host.trial import monitor

try:
    import boto3
    import botocore.exceptions
except ImportError:
    boto3 = None

ARGUMENT_SPEC = {
    "cluster": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "topic_arn": {"type": "str", "required": True},
    "via": {"type": "str", "choices": ["event", "topic"], "default": "event"},
    "instance_ids": {"type": "list", "elements": "str", "default": []},
    "fresh_s": {"type": "int", "default": 600},
    "timeout_s": {"type": "int", "default": 300},
    "poll_s": {"type": "float", "default": 5},
    "region": {"type": "str"},
    "endpoint_url": {"type": "str"},
}
SERVICES = ("cloudwatch", "events", "sns", "sqs")


def main() -> None:
    """Read the arguments, probe, say what is missing."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    if boto3 is None:
        module.fail_json(msg=missing_required_lib("boto3"))
    given = module.params
    probe = monitor.MonitorProbe(
        cluster=given["cluster"],
        namespace=given["namespace"] or f"Flightline/{given['cluster']}",
        topic_arn=given["topic_arn"],
        via=given["via"],
        timeout_s=given["timeout_s"],
        poll_s=given["poll_s"],
        instance_ids=tuple(given["instance_ids"]),
        fresh_s=given["fresh_s"],
    )
    try:
        options = {"region_name": given["region"], "endpoint_url": given["endpoint_url"]}
        clients = {service: boto3.client(service, **options) for service in SERVICES}
        seen = monitor.look_only(clients, probe) if module.check_mode else monitor.run(clients, probe)
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, monitor.ProbeError) as error:
        module.fail_json(msg=f"saw {error}; wanted: the probe made; do: check credentials, region and topic_arn")
    result = {"changed": False, "metric_s": seen.metric_s, "alert_s": seen.alert_s, "silent": seen.silent}
    missing = monitor.advice(probe, seen, sent=not module.check_mode)
    if missing:
        module.fail_json(msg=missing, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
