"""Expected values: the variables that the roles themselves were given, by the same inventory and the same defaults."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

ROOT = Path(__file__).parents[3]
SITE = ROOT / "playbooks" / "site.yml"
SETTINGS = Path(__file__).with_name("defaults.yml")
ROLE_GROUPS = ROOT / "inventory" / "roles.yml"
FACTS = {
    "distribution": "Debian",
    "distribution_version": "12",
    "distribution_major_version": "12",
    "distribution_release": "bookworm",
    "os_family": "Debian",
    "architecture": "x86_64",
    "kernel": "none",
}
"""Of a host that was not asked: what defaults need to be templated at all."""


def role_of(test_file: str) -> str:
    """The role that test_<role>.py, or test_<role>_<part>.py, is about; empty for the files about every host."""
    name = Path(test_file).stem.removeprefix("test_")
    roles = [path.name for path in ROOT.glob("roles/*") if name == path.name or name.startswith(f"{path.name}_")]
    return max(roles, key=len, default="")


class Expected(Mapping[str, Any]):
    """One host's variables, templated when they are asked for."""

    def __init__(self, templar: Templar, variables: dict[str, Any]) -> None:
        self._templar, self._variables = templar, variables

    def __getitem__(self, name: str) -> Any:
        return self._templar.template(self._variables[name])

    def template(self, text: str) -> Any:
        """The value of an expression that this suite wrote."""
        return self._templar.template(trust_as_template(text))

    def __iter__(self) -> Any:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


class Site:
    """The inventory of the run."""

    def __init__(self, sources: Iterable[str]) -> None:
        self._loader = DataLoader()
        self._inventory = InventoryManager(self._loader, [*map(str, sources), str(ROLE_GROUPS)])
        self._variables = VariableManager(self._loader, self._inventory)
        HostVars(self._inventory, self._variables, self._loader)  # the roles' templates read other hosts' variables
        self._defaults = self._read_defaults()
        self._hosts_variables: dict[str, dict[str, Any]] = {}

    def _read_defaults(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(self._loader.load_from_file(str(SETTINGS), trusted_as_template=True))
        for path in sorted(ROOT.glob("roles/*/defaults/main.yml")):
            found.update(self._loader.load_from_file(str(path), trusted_as_template=True) or {})
        return found

    def applied(self, host: str) -> set[str]:
        """The roles that playbooks/site.yml applies to a host: its own conditions, with the host's variables."""
        found: set[str] = set()
        for play in self._loader.load_from_file(str(SITE), trusted_as_template=True):
            known = self.expected(host, FACTS, **play.get("vars", {}))
            for entry in play.get("tasks", []):
                role = entry.get("vars", {}).get("flightline_role")
                if role and known.template(f"{{{{ ({entry.get('when', 'true')}) | bool }}}}"):
                    found.add(str(role))
        return found

    def hosts(self) -> list[str]:
        return sorted(host.name for host in self._inventory.get_hosts())

    def expected(self, host: str, facts: Mapping[str, str] = MappingProxyType(FACTS), **extra: Any) -> Expected:
        """The variables of one host; inventory stands above defaults, as it does for the roles."""
        variables = {**self._given(host, facts), **extra}
        return Expected(Templar(loader=self._loader, variables=variables), variables)

    def _given(self, host: str, facts: Mapping[str, str]) -> dict[str, Any]:
        if host not in self._hosts_variables:
            known = self._inventory.get_host(host)
            self._hosts_variables[host] = self._variables.get_vars(host=known) if known else {}
        return {**self._defaults, **self._hosts_variables[host], "ansible_facts": dict(facts)}

    def of_role(self, host: str, role: str, facts: Mapping[str, str], **extra: Any) -> Expected:
        """The variables as a role's tasks have them, its own `vars` included."""
        folder = ROOT / "roles" / role
        self._variables.set_host_facts(host, dict(facts))  # for what templates read in hostvars
        path = folder / "vars" / "main.yml"
        own = self._loader.load_from_file(str(path), trusted_as_template=True) if path.is_file() else {}
        search = {
            "role_path": str(folder),
            "ansible_search_path": [str(folder)],
            "playbook_dir": str(ROOT / "playbooks"),
        }
        variables = {**self._given(host, facts), **(own or {}), **search, **extra}
        return Expected(Templar(loader=self._loader, variables=variables), variables)

    def rendered(self, host: str, role: str, template: str, facts: Mapping[str, str], **extra: Any) -> str:
        """What a role's template becomes on a host."""
        variables = self.of_role(host, role, facts, **extra)
        return str(variables.template(f"{{{{ lookup('ansible.builtin.template', '{template}') }}}}"))

    def union(self, name: str) -> list[str]:
        """Keys or entries of a variable over all hosts: what tests are parametrised over."""
        found: set[str] = set()
        for host in self.hosts():
            expected = self.expected(host)
            if name in expected:
                found.update(map(str, expected[name]))
        return sorted(found)


@lru_cache(maxsize=1)
def site(sources: tuple[str, ...]) -> Site:
    """The site of these inventory sources; read once."""
    init_plugin_loader()
    return Site(sources)
