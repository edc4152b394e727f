"""What a run may be given: each input once. To add one, write its line here and run `python -m tools.inputs`.

From this list follow the Ansible module's arguments and documentation, what the playbook hands on, which variables of
an inventory there are, the role flightline_node and the settings file of a node that judges itself.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Tuple


class Input(NamedTuple):
    """One input.

    kind and elements: Ansible's types. variable: of the inventory, handed on by playbooks/preflight.yml; "" where the
    playbook makes the value itself, or nobody but the action plugin does. stored: kept in a node's settings file.
    boot_choices: levels that the role offers at boot, its own default first.
    """

    name: str
    kind: str
    what: str
    default: Any = None
    variable: str = ""
    stored: bool = False
    elements: str = ""
    choices: Tuple[str, ...] = ()
    boot_choices: Tuple[str, ...] = ()
    required: bool = False

    def argument(self) -> Dict[str, Any]:
        """The entry of Ansible's argument specification."""
        given: Dict[str, Any] = {"type": self.kind}
        if self.elements:
            given["elements"] = self.elements
        if self.choices:
            given["choices"] = list(self.choices)
        if self.required:
            given["required"] = True
        elif self.default is not None:
            given["default"] = self.default
        return given


INPUTS: Tuple[Input, ...] = (
    Input("instance_type", "str", "EC2 instance type, the source of expected values; none judges only what needs no "
          "expectation.", variable="instance_type", stored=True, required=True),
    Input("level", "str", "How much to measure.", "quick", "flightline_level", True,
          choices=("quick", "standard", "deep"), boot_choices=("quick", "standard")),
    Input("checks", "list", "Ids or tags of the checks to run; all of the level when empty.", [], "flightline_checks",
          True, "str"),
    Input("skip", "list", "Ids or tags of checks to leave out; each is reported as SKIP.", [], "flightline_skip", True,
          "str"),
    Input("expected", "dict", "Expected values on top of the instance type's, such as driver_version.", {},
          "flightline_expected", True),
    Input("thresholds", "dict", "Thresholds by full name, <check>.<name>, such as disk_space.warn_percent.", {},
          "flightline_thresholds", True),
    Input("waivers", "list", "Findings to set aside, each with check, scope, reason, owner and expiry.", [],
          "flightline_waivers", True, "dict"),
    Input("options", "dict", "Options of checks that are not numbers, such as xid_policy.", {}, "flightline_options",
          True),
    Input("site_checks", "dict", "Checks of the site's own by name: a program of the node, or a rule over facts "
          "(docs/site-checks.md).", {}, "flightline_site_checks", True),
    Input("host", "str", "The node's name in the inventory; asked of the node when empty.", "", stored=True),
    Input("instance_id", "str", "EC2 instance id, for the record.", "", "instance_id", True),
    Input("root", "path", "File-system root that probes read from.", "/", "flightline_root"),
    Input("tool_path", "list", "Directories searched for tools before the system's.", [], "flightline_tool_path",
          elements="path"),
    Input("bundle_dir", "path", "Keep the raw outputs in this directory on the node; removed when not given.",
          variable="flightline_bundle_dir"),
    Input("timeout_s", "int",
          "Seconds until a node is given up, UNKNOWN; 0: quick 180, standard 6000, deep 18000.", 0,
          "flightline_timeout_s"),
    Input("call_id", "str", "Comes back in the record, so that an old answer is not taken for a new one. Set by the "
          "action plugin.", ""),
    Input("return_bundle", "bool", "Return the raw outputs of a node that is not go.", False),
    Input("library_key", "str", "Version of the node library to keep on the node; set by the action plugin.", ""),
)  # fmt: skip

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {one.name: one.argument() for one in INPUTS}
PATHS = tuple(one.name for one in INPUTS if one.kind == "path")
PATH_LISTS = tuple(one.name for one in INPUTS if one.elements == "path")


def unexpanded() -> Dict[str, Dict[str, Any]]:
    """ARGUMENTS with paths as plain text: `~` and variables in them are the node's, not the control node's."""
    spec = {name: dict(entry) for name, entry in ARGUMENTS.items()}
    for name in PATHS:
        spec[name]["type"] = "str"
    for name in PATH_LISTS:
        spec[name]["elements"] = "str"
    return spec


def defaults() -> Dict[str, Any]:
    """Every input as it is when nobody gives it."""
    return {one.name: one.default for one in INPUTS}
