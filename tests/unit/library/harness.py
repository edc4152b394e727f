"""Runs a module of library/ in this process against a directory and a script of commands.

A case is data: `input` (arguments; null takes one away that all cases share), `flags` (check, diff), `files` (path -> text, {link: target} for a link, any
other mapping as JSON), `old` (paths last changed ten days ago), `archives` (path -> members of a tar archive),
`commands` (what programs answer), `output` (what the module must answer) and `left` (files afterwards). Every command
that the module runs must stand in `commands`, and every one that stands there must be run, in that order.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
import yaml
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from flightline_host.host import ProgramResult
from tests.unit.made import loaded

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
TEN_DAYS_S = 864_000
if str(ROOT / "module_utils") not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(str(ROOT / "module_utils"))


class Answer(Exception):
    """What the module would have printed."""

    def __init__(self, failed: bool, values: dict[str, Any]) -> None:
        super().__init__(values.get("msg"))
        self.values = {"failed": failed, **values}


class Script:
    """Answers commands in the order in which the case expects them; effects are files that a command leaves."""

    def __init__(self, steps: list[dict[str, Any]], tree: Path) -> None:
        self._left = list(steps)
        self._tree = tree

    def __call__(self, argv: Any, cwd: Any, env: Any) -> ProgramResult:
        ran = [str(word).replace(str(self._tree), "{root}") for word in argv]
        assert self._left, f"nothing more was expected, but the module ran {ran}"
        step = self._left.pop(0)
        assert match(step["argv"], ran), f"expected {step['argv']}, the module ran {ran}"
        write_files(self._tree, step.get("leaves", {}))
        for path in step.get("removes", []):
            (self._tree / path.lstrip("/")).unlink()
        return ProgramResult(step.get("rc", 0), step.get("out", ""), step.get("err", ""))

    def finished(self) -> None:
        assert not self._left, f"never run: {[step['argv'] for step in self._left]}"


def match(expected: list[str], ran: list[str]) -> bool:
    """Word by word; '*' is any one word (a temporary directory), '...' at the end any rest."""
    if expected and expected[-1] == "...":
        return match(expected[:-1], ran[: len(expected) - 1])
    return len(expected) == len(ran) and all(want in ("*", word) for want, word in zip(expected, ran, strict=True))


def write_files(tree: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = tree / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and "link" in content:
            path.symlink_to(content["link"])
        elif isinstance(content, dict):
            path.write_text(json.dumps(content))
        else:
            path.write_text(content)


def write_archives(tree: Path, archives: dict[str, dict[str, str]]) -> dict[str, str]:
    """Make tar archives of members; returns the SHA-256 of each by its path."""
    digests = {}
    for name, members in archives.items():
        path = tree / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as archive:
            for member, text in members.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def filled(value: Any, digests: dict[str, str]) -> Any:
    """Put a digest where a case says {sha256:/path}."""
    if not isinstance(value, dict):
        return (
            re.sub(r"\{sha256:([^}]+)\}", lambda found: digests[found[1]], value) if isinstance(value, str) else value
        )
    return {key: filled(entry, digests) for key, entry in value.items()}


def run_case(name: str, case: dict[str, Any], tree: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run one case and return what the module answered."""
    write_files(tree, case.get("files", {}))
    digests = write_archives(tree, case.get("archives", {}))
    for path in case.get("old", []):
        os.utime(tree / path.lstrip("/"), (time.time() - TEN_DAYS_S,) * 2)
    script = Script(case.get("commands", []), tree)
    module = load(name)
    monkeypatch.setattr(module.shell, "make_host", lambda: module.shell.Host(script, str(tree)))
    monkeypatch.setattr(basic.AnsibleModule, "exit_json", lambda self, **values: _answer(False, values))
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", lambda self, **values: _answer(True, values))
    flags = case.get("flags", {})
    arguments = {
        **filled(case.get("input", {}), digests),
        "_ansible_check_mode": bool(flags.get("check")),
        "_ansible_diff": bool(flags.get("diff")),
    }
    with patch_module_args(arguments), pytest.raises(Answer) as answer:
        module.main()
    script.finished()
    return answer.value.values


def _answer(failed: bool, values: dict[str, Any]) -> None:
    raise Answer(failed, values)


def load(name: str) -> Any:
    """Import library/<name>.py as Ansible would on the node."""
    return loaded(name, ROOT / "library" / f"{name}.py")


@cache
def cases() -> list[Any]:
    """Every case of every module's file, named module:case."""
    found = []
    for path in sorted(HERE.glob("*.yml")):
        document = yaml.safe_load(path.read_text())
        shared = document.get("commands", {})
        for case in document["cases"]:
            steps = case.get("commands", [])
            case["commands"] = [
                entry for step in steps for entry in (shared[step] if isinstance(step, str) else [step])
            ]
            case["files"] = {**document.get("files", {}), **case.get("files", {})}
            given = {**document.get("input", {}), **case.get("input", {})}
            case["input"] = {option: value for option, value in given.items() if value is not None}
            found.append(pytest.param(path.stem, case, id=f"{path.stem}:{case['id']}"))
    return found
