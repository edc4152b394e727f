"""Where the playbooks are: in this checkout, or in the collection flightline.gpu of a flightline installed by pip."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flightline_node.model import SettingsError

CHECKOUT = Path(__file__).resolve().parents[2]
COLLECTION = Path("ansible_collections") / "flightline" / "gpu"
PATHS_ENV = "ANSIBLE_COLLECTIONS_PATH"
PATHS = "~/.ansible/collections:/usr/share/ansible/collections"
"""Ansible's own default. Source: ansible-doc's configuration reference, COLLECTIONS_PATHS."""


INVENTORY_ENV = "FLIGHTLINE_INVENTORY"


@dataclass(frozen=True)
class Playbooks:
    """root: what has playbooks/ and ansible.cfg. callbacks: a directory that Ansible must be told of, if any.

    inventory: the embedded demo fleet, where there is one.
    """

    root: Path
    callbacks: Path | None = None
    inventory: Path | None = None

    def playbook(self, name: str) -> Path:
        """One of them."""
        return self.root / "playbooks" / f"{name}.yml"


def find(checkout: Path = CHECKOUT) -> Playbooks:
    """The checkout's, else those of the first collection that Ansible would find. Raises SettingsError."""
    if (checkout / "playbooks" / "preflight.yml").is_file():
        return Playbooks(checkout, checkout / "plugins" / "callback", checkout / "inventory" / "demo")
    looked = list(_collection_paths())
    for path in looked:
        if (path / COLLECTION / "playbooks" / "preflight.yml").is_file():
            return Playbooks(path / COLLECTION)
    raise SettingsError(
        f"saw no collection flightline.gpu in {', '.join(map(str, looked))}; wanted it beside this flightline; "
        f"do: ansible-galaxy collection install FILE, or name its place in {PATHS_ENV}"
    )


def sources(given: tuple[str, ...]) -> tuple[str, ...]:
    """The inventory to take: what is given, the environment's, the embedded demo. Raises SettingsError."""
    default = os.environ.get(INVENTORY_ENV) or find().inventory
    if not (given or default):
        raise SettingsError(
            "saw no inventory, and only a checkout embeds the demo fleet; wanted -i PATH; "
            "do: flightline demo --out fleet, then name it with -i fleet"
        )
    return given or (str(default),)


def absolute(source: str) -> str:
    """A path from where the user stands, because Ansible runs where the playbooks are; a host list stays."""
    return source if "," in source else str(Path(source).absolute())


def environment(own: Playbooks) -> dict[str, str]:
    """What each program of Ansible is told, above the environment that it inherits."""
    return {
        "ANSIBLE_CONFIG": str(own.root / "ansible.cfg"),
        # ansible-runner would switch host-key checking off.
        "ANSIBLE_HOST_KEY_CHECKING": os.environ.get("ANSIBLE_HOST_KEY_CHECKING", "True"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
        # Ansible refuses a locale without UTF-8.
        **({} if _speaks_utf8() else {"LC_ALL": "C.UTF-8"}),
        "ANSIBLE_NOCOLOR": "1",
    }


def _speaks_utf8() -> bool:
    named = next((value for value in map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG")) if value), "")
    return named.lower().replace("-", "").endswith("utf8")


@contextmanager
def workplace(purpose: str) -> Iterator[Path]:
    """A directory for ansible-runner's files, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix=f"flightline-{purpose}-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _collection_paths() -> Iterator[Path]:
    for text in (os.environ.get(PATHS_ENV) or PATHS).split(os.pathsep):
        if text:
            yield Path(text).expanduser()
    # Ansible's collections are a package of their own, which ansible-core lacks.
    beside = importlib.util.find_spec("ansible_collections")
    yield from (Path(text).parent for text in (beside.submodule_search_locations if beside else None) or ())
