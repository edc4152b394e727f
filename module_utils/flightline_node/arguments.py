"""The arguments of the Ansible module; its documentation is in library/flightline_node.py."""

from __future__ import annotations

from typing import Any, Dict, Mapping

LISTED = {"type": "list", "elements": "str", "default": []}

SPEC: Mapping[str, Mapping[str, Any]] = {
    "instance_type": {"type": "str", "required": True},
    "level": {"type": "str", "choices": ["quick", "standard", "deep"], "default": "quick"},
    "checks": LISTED,
    "skip": LISTED,
    "expected": {"type": "dict", "default": {}},
    "thresholds": {"type": "dict", "default": {}},
    "waivers": {"type": "list", "elements": "dict", "default": []},
    "options": {"type": "dict", "default": {}},
    "host": {"type": "str", "default": ""},
    "instance_id": {"type": "str", "default": ""},
    "root": {"type": "path", "default": "/"},
    "tool_path": {"type": "list", "elements": "path", "default": []},
    "bundle_dir": {"type": "path"},
    "timeout_s": {"type": "int", "default": 0},
    "call_id": {"type": "str", "default": ""},
    "return_bundle": {"type": "bool", "default": False},
    "library_key": {"type": "str", "default": ""},
}

PATHS = ("root", "bundle_dir")
PATH_LISTS = ("tool_path",)


def unexpanded() -> Dict[str, Dict[str, Any]]:
    """SPEC with paths as plain text: `~` and variables in them are the node's, not the control node's."""
    spec = {name: dict(entry) for name, entry in SPEC.items()}
    for name in PATHS:
        spec[name]["type"] = "str"
    for name in PATH_LISTS:
        spec[name]["elements"] = "str"
    return spec
