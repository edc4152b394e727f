"""NCCL's and the EFA plugin's words: lower case, each in one list."""

from flightline_node.know.catalog import nccl_warnings as said

LISTS = (said.NOTHING_FOUND, said.NOT_STARTED, said.REQUESTS, said.MEMORY)


def test_lists():
    phrases = [words for phrases in LISTS for words in phrases]
    assert all(words == words.lower() for words in phrases)
    assert len(set(phrases)) == len(phrases)


def test_saying():
    lines = ["NET/OFI Couldn't open CQ. RC: -22", "step 1", "NET/OFI Couldn't open AV. RC: -22"]
    assert said.saying(lines, said.NOT_STARTED) == [lines[0], lines[2]]
    assert said.saying(lines, said.REQUESTS) == []


def test_peers_are_the_instances_named():
    lines = ["(13) Peer host id: i-0123456789abcdef0 (7)", "Peer host id: i-0123456789abcdef0", "Peer host id: N/A"]
    assert said.peers(lines) == ["i-0123456789abcdef0"]
