"""The Systems Manager documents: what may be run on a node, with parameters that no shell can read as more. Pure."""

from collections.abc import Mapping
from typing import Any

from flightline.run.library_call import script
from flightline_node.keep import KEY_CHARACTERS

Document = Mapping[str, Any]
BASE64 = "[A-Za-z0-9+/=]"


def _document(
    description: str, step: str, timeout_s: str, commands: list[str], patterns: Mapping[str, str]
) -> Document:
    """A document of one shell script. patterns: of each parameter, as a whole."""
    inputs = {"timeoutSeconds": timeout_s, "runCommand": commands}
    return {
        "schemaVersion": "2.2",
        "description": description,
        "parameters": {name: {"type": "String", "allowedPattern": f"^{form}$"} for name, form in patterns.items()},
        "mainSteps": [{"action": "aws:runShellScript", "name": step, "inputs": inputs}],
    }


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
    patterns = {
        "job": "[a-z0-9][a-z0-9-]{0,62}",
        "manifest": "s3://[A-Za-z0-9./_-]{3,900}",
        "parameters": f"{BASE64}{{0,8192}}",
    }
    return _document("Start a Flightline training run on this node", "start", "600", script, patterns)


def preflight() -> Document:
    """The document by which `flightline preflight --via ssm` asks a node: it runs the library that the node keeps."""
    # The agent sets AWS_SSM_INSTANCE_ID (amazon-ssm-agent, agent/executers).
    task = script('"$AWS_SSM_INSTANCE_ID"', "{{ key }}", "{{ endS }}", "{{ installed }}")
    patterns = {
        "key": f"[0-9a-f]{{{KEY_CHARACTERS}}}",
        "installed": "/[A-Za-z0-9_./-]{1,200}",
        "endS": "[1-9][0-9]{0,5}",
        "asked": f"{BASE64}+",
    }
    ask = f"printf %s '{{{{ asked }}}}' | {{ {task}; }}"
    return _document("Judge this node by its own Flightline library", "ask", "{{ endS }}", [ask], patterns)
