"""Roles without a node: their variables and templates, evaluated by Ansible's own engine with facts that a test gives."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from tools.roledocs import ROLES

SYSTEMS: Mapping[str, Mapping[str, str]] = {
    name: {
        "distribution": name.split()[0],
        "distribution_version": name.split()[1],
        "distribution_major_version": name.split()[1].split(".")[0],
        "os_family": family,
        "distribution_release": release,
        "kernel": kernel,
    }
    for name, family, release, kernel in (
        ("Debian 12", "Debian", "bookworm", "6.1.0-40-cloud-amd64"),
        ("Ubuntu 22.04", "Debian", "jammy", "6.8.0-1040-aws"),
        ("Ubuntu 24.04", "Debian", "noble", "6.14.0-1015-aws"),
        ("Amazon 2023", "RedHat", "NA", "6.12.46-66.121.amzn2023.x86_64"),
    )
}


def facts(system: str, **more: Any) -> dict[str, Any]:
    """What setup says of a node with a system."""
    return {**SYSTEMS[system], "architecture": "x86_64", "default_ipv4": {"interface": "ens5"}, **more}


@lru_cache(maxsize=1)
def _loader() -> DataLoader:
    init_plugin_loader()
    return DataLoader()


@lru_cache(maxsize=None)
def _own(name: str) -> dict[str, Any]:
    """The defaults of all roles and the variables of one; read once."""
    variables: dict[str, Any] = {}
    for path in (*sorted(ROLES.glob("*/defaults/main.yml")), ROLES / name / "vars/main.yml"):
        variables |= _loader().load_from_file(str(path), trusted_as_template=True) or {}
    return variables


class Role:
    """One role on one host. Given variables stand above the role's own, as an inventory's do above defaults."""

    def __init__(self, name: str, system: str, given: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.directory = ROLES / name
        loader = _loader()
        variables: dict[str, Any] = {"inventory_hostname": "gpu-01", "ansible_check_mode": False, **_own(name)}
        variables |= {"role_name": name, "ansible_facts": facts(system), **(given or {}), **more}
        variables["ansible_search_path"] = [str(self.directory)]
        self._templar = Templar(loader=loader, variables=variables)
        self.variables = variables

    def __getitem__(self, name: str) -> Any:
        return self._templar.template(self.variables[name])

    def evaluate(self, expression: str) -> Any:
        """An expression as a task's condition has it."""
        return self._templar.template(trust_as_template("{{ " + expression + " }}"))

    def file(self, template: str) -> str:
        """A template of the role as it is written on the node."""
        text = (self.directory / "templates" / template).read_text()
        return str(self._templar.copy_with_new_env().template(trust_as_template(text)))


@lru_cache(maxsize=None)
def tasks(role: str) -> list[dict[str, Any]]:
    """Every task of a role, those in blocks and those that roles share as well."""
    paths = sorted((ROLES / role / "tasks").glob("*.yml"))
    found = [task for path in paths for task in _flat(yaml.safe_load(path.read_text()) or [])]
    shared = [str(task.get("ansible.builtin.import_tasks", "")).partition("/../")[2] for task in found]
    return found + [task for name in filter(None, shared) for task in _flat(yaml.safe_load((ROLES / name).read_text()))]


def _flat(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for entry in entries:
        found.append(entry)
        for part in ("block", "rescue", "always"):
            found += _flat(entry.get(part) or [])
    return found
