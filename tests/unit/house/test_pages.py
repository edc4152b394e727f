"""What the pages tell a reader to type is there: commands and their options, make's targets, modules, links."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from flightline.cli import cli

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name != "CHANGELOG.md"  # it also tells of what is gone
)
TARGETS = set(re.findall(r"^([a-z][a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def code(page: str) -> str:
    """A page's code: its shell blocks, and what stands between backticks, a line each."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.M | re.S))
    blocks = re.sub(r"\s*\\\n\s*", " ", blocks)
    return blocks + "\n" + "\n".join(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)))


def said(page: str, start: str) -> Iterator[list[str]]:
    """The words of each line that types a program; what follows a pipe or a remark is another's."""
    for line in code(page).splitlines():
        found = re.match(rf"(?:\$ |\.venv/bin/)?{start} (.+)", line.strip())
        if found:
            plain = re.split(r"\s#|[|;&>]|\s{2,}", found[1].replace("...", "").replace("'", ""))[0]
            yield shlex.split(plain.replace('"', ""))


def mistakes(words: list[str]) -> list[str]:
    """Commands and options of a line that flightline does not have."""
    command: click.Command = cli
    words = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            if not re.fullmatch(r"[a-z-]+", word):
                return []
            if word not in command.list_commands(click.Context(command)):
                return [word]
            command = command.get_command(click.Context(command), word) or command
    known = {name for param in (*command.params, *cli.params) for name in (*param.opts, *param.secondary_opts)}
    given = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return [word for word in given if word not in known | {"--help"}]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_types_what_there_is(page):
    wrong = [(" ".join(words), found) for words in said(page, "flightline") if (found := mistakes(words))]
    wrong += [(" ".join(words), words[:1]) for words in said(page, "make") if words and words[0] not in TARGETS]
    for words in said(page, r"(?:\S*/)?python3? -m"):
        if words[0].split(".")[0] in ("tools", "tests", "infra", "bench", "flightline") and not module(words[0]):
            wrong.append((" ".join(words), words[:1]))
    assert wrong == []


def module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES)
def test_a_page_leads_to_what_is_there(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    places = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    assert [link for link in places if not ((ROOT / page).parent / link).exists()] == []
    files = re.findall(
        r"`((?:docs|tests|tools|infra|flightline|playbooks|roles|module_utils|plugins|bench)/[\w./-]+\.\w+)`", text
    )
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_a_mistake_would_be_seen():
    assert mistakes(["preflight", "--levle", "deep"]) == ["--levle"] and mistakes(["preflght"]) == ["preflght"]
    assert mistakes(["preflight", "-i", "x", "--level=deep"]) == []
    assert len([words for page in PAGES for words in said(page, "flightline")]) > 50
