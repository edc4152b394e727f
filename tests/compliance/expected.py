"""Expected values: the variables that the roles themselves were given, by the same inventory and the same defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar
from ansible.vars.manager import VariableManager

ROOT = Path(__file__).parents[2]
ROLE_GROUPS = ROOT / "inventory" / "roles.yml"
FACTS = {"distribution_release": "bookworm", "os_family": "Debian", "architecture": "x86_64"}
"""What defaults ask of a host and no test relies on."""


class Expected(Mapping[str, Any]):
    """One host's variables, templated when they are asked for."""

    def __init__(self, templar: Templar, variables: dict[str, Any]) -> None:
        self._templar, self._variables = templar, variables

    def __getitem__(self, name: str) -> Any:
        return self._templar.template(self._variables[name])

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
        self._defaults = self._read_defaults()

    def _read_defaults(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(ROOT.glob("roles/*/defaults/main.yml")):
            found.update(self._loader.load_from_file(str(path), trusted_as_template=True) or {})
        return found

    def groups_of(self, host: str) -> set[str]:
        """Group = role: what is configured on a host."""
        found = self._inventory.get_host(host)
        return {group.name for group in found.get_groups()} if found else set()

    def hosts(self) -> list[str]:
        return sorted(host.name for host in self._inventory.get_hosts())

    def expected(self, host: str) -> Expected:
        """The variables of one host; inventory stands above defaults, as it does for the roles."""
        known = self._inventory.get_host(host)
        given = self._variables.get_vars(host=known) if known else {}
        variables = {"ansible_facts": FACTS, **self._defaults, **given}
        return Expected(Templar(loader=self._loader, variables=variables), variables)

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
