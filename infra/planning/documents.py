"""The Systems Manager documents: what may be run on a node, with parameters that no shell can read as more. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightline.run.library_call import script
from flightline_node.keep import KEY_CHARACTERS

Document = Mapping[str, Any]
BASE64 = "[A-Za-z0-9+/=]"


def training() -> Document:
    """The SSM document that starts a run on a node. What the site runs is its unit flightline-train@<job>.

    No parameter reaches the shell but in quotes and after its pattern: base64 has no character that means anything.
    """
    script = [
        "set -eu",
        "install -d -m 0750 /run/flightline/train",
        "umask 027",
        'printf "%s" "{{ manifest }}" > "/run/flightline/train/{{ job }}.manifest"',
        'printf "%s" "{{ parameters }}" | base64 -d > "/run/flightline/train/{{ job }}.json"',
        'systemctl start "flightline-train@{{ job }}.service"',
    ]
    return {
        "schemaVersion": "2.2",
        "description": "Start a Flightline training run on this node",
        "parameters": {
            "job": {"type": "String", "allowedPattern": "^[a-z0-9][a-z0-9-]{0,62}$"},
            "manifest": {"type": "String", "allowedPattern": "^s3://[A-Za-z0-9./_-]{3,900}$"},
            "parameters": {"type": "String", "allowedPattern": f"^{BASE64}{{0,8192}}$"},
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "start",
                "inputs": {"timeoutSeconds": "600", "runCommand": script},
            }
        ],
    }


def preflight() -> Document:
    """The document by which `flightline preflight --via ssm` asks a node: it runs the library that the node keeps."""
    given = "printf %s '{{ asked }}'"
    task = script('"$AWS_SSM_INSTANCE_ID"', "{{ key }}", "{{ endS }}", "{{ installed }}")
    return {
        "schemaVersion": "2.2",
        "description": "Judge this node by its own Flightline library",
        "parameters": {
            "key": {"type": "String", "allowedPattern": f"^[0-9a-f]{{{KEY_CHARACTERS}}}$"},
            "installed": {"type": "String", "allowedPattern": "^/[A-Za-z0-9_./-]{1,200}$"},
            "endS": {"type": "String", "allowedPattern": "^[1-9][0-9]{0,5}$"},
            "asked": {"type": "String", "allowedPattern": f"^{BASE64}+$"},
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "ask",
                # The agent sets AWS_SSM_INSTANCE_ID (amazon-ssm-agent, agent/executers).
                "inputs": {
                    "timeoutSeconds": "{{ endS }}",
                    "runCommand": [f"{given} | {{ {task}; }}"],
                },
            }
        ],
    }
