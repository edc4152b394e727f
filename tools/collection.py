"""The Ansible collection flightline.gpu and the wheel that goes with it: python -m tools.collection OUT_DIR.

What a checkout has at Ansible's own places (library/, module_utils/, plugins/, roles/, playbooks/) goes to those of a
collection. Text changes only where Ansible wants it: module_utils are imported by the collection's full name, filters
are used by it, and roles find the tree's files one folder deeper. docs/decisions/collection.md says what was decided.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tomllib
import yaml

from flightline import node_package
from tools import controlpackage
from tools.generated import ROOT, out_of
from tools.nodepackage import LIBRARY

NAMESPACE, NAME = "flightline", "gpu"
FULL_NAME = f"{NAMESPACE}.{NAME}"
UTILS = f"ansible_collections.{FULL_NAME}.plugins.module_utils"
REQUIRES_ANSIBLE = ">=2.19.0"
DEPENDENCIES = {"ansible.posix": ">=1.6.0", "community.crypto": ">=2.22.0", "community.general": ">=10.0.0"}
"""What the roles use beside ansible.builtin; the floors are what their pinned Ansible has or an older line of it."""

FOLDERS = {
    "library": "plugins/modules",
    "module_utils": "plugins/module_utils",
    "plugins/action": "plugins/action",
    "plugins/callback": "plugins/callback",
    "plugins/doc_fragments": "plugins/doc_fragments",
    "plugins/filter": "plugins/filter",
    "plugins/inventory": "plugins/inventory",
    "roles": "roles",
}
FILES = {"LICENSE": "LICENSE", "docs/collection.md": "README.md", "inventory/roles.yml": "inventory/roles.yml"}
WHEEL_FROM = (
    *("pyproject.toml", "requirements.txt", "README.md", "LICENSE"),
    *("flightline", "flightline_pulumi", "infra", "module_utils"),
)
PACKAGE = "roles/flightline_node/files/flightline-node.pyz"
CONTROL = "roles/flightline_remediate/files/flightline-control.tar.gz"
RENAMED = {"flightline_verdict": "flightline_verdict_info", "flightline_verify": "flightline_archive_info"}
"""Modules by their former names: the collection's runtime.yml leads on to the present ones."""

_CHECKOUT_ONLY = re.compile(
    r"^(inventory|library|module_utils|(action|callback|doc_fragment|filter|inventory)_plugins|roles_path) *=.*\n"
    r"|^# Found in the .*\n",
    re.M,
)


def contents(root: Path = ROOT) -> dict[str, bytes]:
    """Every file of the collection by its path in it."""
    found = {target: (root / source).read_bytes() for source, target in FILES.items()}
    for source, target in FOLDERS.items():
        for path in sorted((root / source).rglob("*")):
            if path.is_file() and path.stem not in RENAMED and "__pycache__" not in path.parts:
                found[f"{target}/{path.relative_to(root / source).as_posix()}"] = path.read_bytes()
    for path in sorted((root / "playbooks").glob("*.yml")):
        found[f"playbooks/{path.name}"] = path.read_bytes()
    filters = set(_filters(root))
    found = {name: _text(name, data, filters) for name, data in found.items()}
    found["ansible.cfg"] = _configuration((root / "ansible.cfg").read_text(encoding="utf-8")).encode()
    found["galaxy.yml"] = yaml.safe_dump(_galaxy(root), sort_keys=False).encode()
    found["meta/runtime.yml"] = yaml.safe_dump(_runtime(), sort_keys=False).encode()
    found[PACKAGE] = node_package.contents(LIBRARY)
    found[CONTROL] = controlpackage.contents(root)
    return found


def _filters(root: Path) -> Iterator[str]:
    """Names of the filters; each is given out under its function's name."""
    for path in (root / "plugins" / "filter").glob("*.py"):
        yield from re.findall(r'"(flightline_\w+)": flightline_\w+', path.read_text(encoding="utf-8"))


def _text(name: str, data: bytes, filters: set[str]) -> bytes:
    """One file as the collection has it."""
    text = data.decode()
    if name.startswith("plugins/") and not name.startswith("plugins/module_utils/"):
        text = text.replace("from ansible.module_utils.flightline_", f"from {UTILS}.flightline_")
        text = text.replace("from ansible.module_utils import flightline_", f"from {UTILS} import flightline_")
        text = text.replace("_fragment: [flightline_", f"_fragment: [{FULL_NAME}.flightline_")
    elif name.startswith(("roles/", "playbooks/")):
        text = re.sub(rf"\| *({'|'.join(sorted(filters))})\b", rf"| {FULL_NAME}.\1", text)
        text = text.replace("/../../module_utils/", "/../../plugins/module_utils/")
    for packed in (PACKAGE, CONTROL):
        role = packed.split("/")[1]
        if name == f"roles/{role}/defaults/main.yml":
            own = f'{role}_package: "{{{{ role_path }}}}/files/{Path(packed).name}"'
            text = text.replace(f'{role}_package: ""', own)
    return text.encode()


def _configuration(text: str) -> str:
    """ansible.cfg without what only a checkout has, and with the callbacks by their full names."""
    callbacks = re.search(r"^callbacks_enabled *= *(.*)$", text, re.M)
    if callbacks is None:
        raise ValueError("ansible.cfg: saw no callbacks_enabled, wanted the callbacks that keep a run")
    full = ", ".join(f"{FULL_NAME}.{name.strip()}" for name in callbacks[1].split(","))
    text = text.replace(callbacks[0], f"callbacks_enabled = {full}")
    return _CHECKOUT_ONLY.sub(
        "", text.replace("enable_plugins = flightline_", f"enable_plugins = {FULL_NAME}.flightline_")
    )


def version(root: Path = ROOT) -> str:
    """The collection's version is the Python package's."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def _galaxy(root: Path) -> dict[str, object]:
    return {
        "namespace": NAMESPACE,
        "name": NAME,
        "version": version(root),
        "readme": "README.md",
        "authors": ["Flightline contributors"],
        "description": "Configure GPU nodes on AWS and clear them for large-model training",
        "license": ["Apache-2.0"],
        "tags": ["aws", "gpu", "nvidia", "hpc", "linux"],
        "dependencies": DEPENDENCIES,
    }


def _runtime() -> dict[str, object]:
    lead = {old: {"redirect": f"{FULL_NAME}.{new}"} for old, new in RENAMED.items()}
    actions = {old: {**to} for old, to in lead.items() if (ROOT / "plugins/action" / f"{RENAMED[old]}.py").is_file()}
    return {"requires_ansible": REQUIRES_ANSIBLE, "plugin_routing": {"modules": lead, "action": actions}}


def _run(name: str, draft: str, *command: object) -> None:
    done = subprocess.run(list(map(str, command)), cwd=draft, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{name}: {done.stderr.strip()[-400:]}")


def build(out: Path) -> Path:
    """Write the collection's archive into a folder and return its path. Raises OSError or ValueError."""
    out.mkdir(parents=True, exist_ok=True)
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    with tempfile.TemporaryDirectory() as draft:
        for name, data in contents().items():
            path = Path(draft) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _run("ansible-galaxy", draft, galaxy, "collection", "build", draft, "--output-path", out.absolute(), "--force")
    return out / f"{NAMESPACE}-{NAME}-{version()}.tar.gz"


def wheel(out: Path, root: Path = ROOT) -> Path:
    """Write the Python package's wheel into a folder and return its path. Raises OSError.

    Built in a copy: setuptools leaves a folder in the tree, and takes what lies in an old one.
    """
    with tempfile.TemporaryDirectory() as draft:
        for name in WHEEL_FROM:
            source, target = root / name, Path(draft) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
        _run("pip wheel", draft, *pip, "--wheel-dir", out.absolute(), draft)
    return out / f"flightline-{version(root)}-py3-none-any.whl"


def main() -> int:
    """Build both where the command line says."""
    does = "Build the Ansible collection flightline.gpu and the wheel of the control side."
    out = out_of("collection", does, "OUT_DIR", ".flightline/dist", "where both files go; made where it is not")
    sys.stdout.write(f"{build(out)}\n{wheel(out)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
