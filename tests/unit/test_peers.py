"""Each rule of another tool is answered as tests/corpus/peers.yml says, or it says why not; and the second reading stands."""

import pytest

from tests.corpus import peers
from tests.corpus.run import PAGE
from tests.messages import catalogue


def test_every_rule_of_every_peer_is_answered():
    assert not [said for rule in peers.rules() if (said := peers.wrong(rule))]
    assert {rule.peer for rule in peers.rules()} == set(peers.PEERS["read"])


def test_a_rule_that_does_not_block_or_is_not_answered_says_why():
    silent = [rule.name for rule in peers.rules() if not rule.ours and not rule.why]
    assert not silent


@pytest.mark.parametrize(
    "given",
    [
        {"line": "md/raid0md0: Disk failure on nvme0n1p1 detected, failing array.", "ours": ("go",)},
        {"line": "NVRM: Xid (PCI:0000:53:00): 13, pid=1, name=a, x", "ours": ("xid", "xid.13", "FAIL")},
        {"line": "nfs: server a OK", "ours": ("kernel_errors", "event.nfs", "WARN")},
        {"line": "nfs: server a OK", "ours": ()},
        {"line": "", "ours": ("xid", "no_such_reason")},
        {"line": "", "ours": ()},
    ],
)
def test_an_answer_that_is_not_so_is_found(given):
    assert peers.wrong(peers.Rule("x", "y", why="", file="kernel.log", type="p5.48xlarge", **given))


def test_what_the_second_reading_decided_is_how_the_messages_are_classed():
    for row in catalogue.readings():
        meant = [
            one.cls
            for path in catalogue.files()
            for one in catalogue.load(path)
            if one.tool == row["tool"] and row["part"] in one.sample and one.times == 1 and not one.before
        ]
        assert set(meant) == {row["decided"]}, row


def test_the_page_shows_both():
    page = PAGE.read_text(encoding="utf-8")
    for table in (peers.table(), catalogue.readings_table()):
        assert "\n".join(table) in page
