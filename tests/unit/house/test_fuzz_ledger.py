"""The record of fuzzing: what counts, what an edited parser makes of it, and the page."""

import pytest

from flightline_node.read.parsers import PARSERS
from tests.fuzz import ledger


@pytest.fixture(autouse=True)
def own_files(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULT", tmp_path / "result.json")


def row(name):
    return next(line for line in ledger.render().splitlines() if line.startswith(f"| {name} |"))


def test_a_seed_counts_once_on_the_same_code():
    now = ledger.digest("df")
    ledger.write("df", now, 1, 1000, 0, 0.01)
    ledger.write("df", now, 2, 1000, 0, 0.02)
    ledger.write("df", now, 2, 1000, 0, 0.02)
    ledger.write("df", "another code", 2, 500, 3, 0.9)
    assert row("df") == "| df | 2,000 | 1-2 | 1,000 | 0 | 20 | 500 |"
    assert len(ledger.read()["df"]) == 3


def test_what_was_not_fuzzed_says_so():
    assert row("kernel") == "| kernel | 0 | - | - | 0 | 0 | 0 |"
    assert ledger.render().count("\n| ") == len(PARSERS) + 1


def test_the_digest_is_of_the_parser_and_what_it_imports(tmp_path, monkeypatch):
    for name, text in {
        "one": "from . import two\n",
        "two": "from .three import x\n",
        "three": "x = 1\n",
        "four": "",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(ledger, "CODE", tmp_path)
    before = ledger.digest("one")
    (tmp_path / "four.py").write_text("changed")
    assert ledger.digest("one") == before
    (tmp_path / "three.py").write_text("x = 2\n")
    assert ledger.digest("one") != before


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_has_code_of_its_own(name):
    assert name in ledger._modules(name, set())


def test_seeds_are_shown_as_ranges():
    assert ledger._ranges([3, 1, 2, 7, 9, 8, 8]) == "1-3, 7-9"
