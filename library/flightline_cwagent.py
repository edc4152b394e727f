#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Validate and load the CloudWatch agent's configuration: a thin shell over flightline_host/software/cwagent.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_cwagent
short_description: Validate the CloudWatch agent's configuration and load it
description:
  - Checks the configuration against the JSON schema that the installed agent brings, before anything is written.
  - Loads it with C(amazon-cloudwatch-agent-ctl -a fetch-config) and asks the agent whether it runs. What the agent
    refuses is taken back, and the previous configuration is loaded again.
extends_documentation_fragment: [flightline_module]
options:
  config:
    description: The configuration.
    type: dict
    required: true
  path:
    description: File to keep it in.
    type: path
    default: /opt/aws/amazon-cloudwatch-agent/etc/flightline.json
  schema:
    description: The schema to check against.
    type: path
    default: /opt/aws/amazon-cloudwatch-agent/doc/amazon-cloudwatch-agent-schema.json
  state:
    description: V(started) loads the configuration and starts the agent; V(valid) only checks it.
    type: str
    choices: [started, valid]
    default: started
attributes:
  check_mode:
    description: Validates the same; nothing is written.
  diff_mode:
    support: full
    description: Shows the configuration, whether the agent has loaded it, and whether it runs.
"""

EXAMPLES = r"""
- name: Send CPU and memory
  flightline_cwagent:
    config:
      metrics:
        namespace: Flightline
        metrics_collected:
          mem:
            measurement: [mem_used_percent]
"""

RETURN = r"""
facts:
  description: C(config), C(loaded) and C(running) as they are afterwards.
  returned: success
  type: dict
commands:
  description: The changing commands that ran, as argument lists.
  returned: always
  type: list
  elements: list
  sample: [[/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl, -a, fetch-config]]
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.software import cwagent

ARGUMENT_SPEC = {
    "config": {"type": "dict", "required": True},
    "path": {"type": "path", "default": "/opt/aws/amazon-cloudwatch-agent/etc/flightline.json"},
    "schema": {"type": "path", "default": "/opt/aws/amazon-cloudwatch-agent/doc/amazon-cloudwatch-agent-schema.json"},
    "state": {"type": "str", "choices": ["started", "valid"], "default": "started"},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, cwagent.ensure)


if __name__ == "__main__":
    main()
