"""The sentence of a start without a verdict, and the page that lists them."""

import re
from pathlib import Path

import pytest
from ansible.inventory.manager import IGNORED

from flightline.run import exit_status, no_verdict
from tests.hostile import endings

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("limit", ["", " ", ",", " , ", ":", "::", ":&", "!"])
def test_a_limit_that_names_nobody_is_refused(limit):
    said = no_verdict.empty_limit(limit)
    assert said.startswith(f"saw --limit {limit!r}, ") and "wanted hosts" in said and "do: " in said


@pytest.mark.parametrize("limit", [None, "a", "!gpu-03", "all", "~web.*", "a,,b", "@/no/such/file", "gpu[0:3]"])
def test_a_limit_that_names_somebody_and_none_at_all_are_taken(limit):
    assert no_verdict.empty_limit(limit) == ""


def test_a_limit_whose_file_is_empty_is_refused(tmp_path):
    listed = tmp_path / "no-go.txt"
    listed.write_text("\n \n")
    assert no_verdict.empty_limit(f"@{listed}")
    assert no_verdict.empty_limit(f"@{listed},gpu-01") == ""
    listed.write_text("\ngpu-01\n")
    assert no_verdict.empty_limit(f"@{listed}") == ""


class Inventory:
    """What is asked of Ansible's InventoryManager."""

    def __init__(self, sources, read):
        self._sources, self._inventory = sources, self
        self.processed_sources = read


def test_each_file_of_a_directory_must_have_been_read(tmp_path):
    for name in ("a.yml", "b.yml", ".hidden", "notes.md~", "group_vars/all.yml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    sources = [str(tmp_path), "h1,h2"]
    read = [str(tmp_path / "a.yml"), None, "h1,h2"]
    assert exit_status.unread(Inventory(sources, read), IGNORED) == [str(tmp_path / "b.yml")]
    assert exit_status.unread(Inventory(sources, [*read, str(tmp_path / "b.yml")]), IGNORED) == []
    assert exit_status.unread(Inventory(["/no/such"], []), IGNORED) == ["/no/such"]


def test_no_row_of_the_table_has_0_without_a_verdict():
    assert {start.status for start in endings.STARTS} == {0, 1, 2}
    assert [
        start.what
        for start in endings.STARTS
        if start.status < 2 and not re.search("GO|nothing was judged", start.says)
    ] == []


def test_the_page_shows_the_table():
    assert endings.table() in (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8"), (
        "python -m tests.hostile.endings"
    )
