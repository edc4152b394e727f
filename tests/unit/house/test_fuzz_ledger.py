"""The record of fuzzing: what counts, what an edited parser makes of it, and the page."""

import pytest

from flightline_node.read.parsers import PARSERS
from tests.fuzz import ledger


@pytest.fixture(autouse=True)
def own_files(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "PAGE", tmp_path / "fuzz.md")


def row(name):
    return ledger.read().get(name, ledger.Row())


def test_a_seed_counts_once_on_the_same_code():
    ledger.write("df", "older code", 2, 500, 3, 0.9)
    for seed, slowest_s in ((1, 0.01), (2, 0.02), (2, 0.02)):
        ledger.write("df", "this code", seed, 1000, 0, slowest_s)
    kept = row("df")
    assert (kept.code, kept.cases, kept.seeds, kept.problems) == ("this code", 2000, "1-2", 0)
    assert (kept.slowest_ms, kept.before) == (20, 500)


def test_what_ran_on_other_code_proves_nothing_of_this_one():
    ledger.write("df", "older code", 1, 1000, 1, 0.01)
    assert row("df").on("this code") == ledger.Row(before=1000)


def test_what_was_not_fuzzed_says_so():
    ledger.write("df", "this code", 1, 1000, 0, 0.01)
    assert "| kernel | - | 0 | - | 0 | 0 | - | 0 |" in ledger.PAGE.read_text().splitlines()
    assert ledger.PAGE.read_text().count("\n| ") == len(PARSERS) + 1


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
    assert ledger._numbers("1-3, 7") == [1, 2, 3, 7]
