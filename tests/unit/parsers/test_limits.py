"""/proc/self/limits, ulimit -a, and the launchers' and pam_limits' parts that the reader adds."""

from flightline_node.ask.readers import limits
from tests.harness import sample
from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    facts = read("limits", "proc/debian12-limits.txt")
    assert (facts["memlock_soft_kib"], facts["memlock_hard_kib"]) == (8192, 8192)
    assert (facts["nofile_soft"], facts["nproc_hard"]) == (20000, 96365)
    assert (facts["launchers"], facts["configured"]) == ({}, [])


def test_recorded_ulimit_has_soft_limits_only():
    facts = read("limits", "proc/debian12-ulimit-a.txt")
    assert (facts["memlock_soft_kib"], facts["nofile_soft"], facts["nproc_soft"]) == (8192, 20000, 96365)
    assert "memlock_hard_kib" not in facts


def test_unlimited_is_a_word():
    text = "Max locked memory         unlimited            unlimited            bytes     \n"
    assert parse("limits", text)["memlock_soft_kib"] == "unlimited"


def test_launchers_and_configured():
    facts = read("limits", "proc/slurm-limits.txt")
    assert facts["memlock_soft_kib"] == 8192
    assert facts["launchers"]["slurmd"]["memlock_hard_kib"] == "unlimited"
    assert facts["configured"] == [
        {"domain": "*", "type": "soft", "memlock_kib": "unlimited"},
        {"domain": "*", "type": "hard", "memlock_kib": "unlimited"},
        {"domain": "root", "type": "-", "memlock_kib": 65536},
    ]


def test_reader_finds_launchers_and_configuration(tmp_path):
    process, other, security = tmp_path / "proc/77", tmp_path / "proc/78", tmp_path / "etc/security/limits.d"
    for folder in (process, other, tmp_path / "proc/self", security):
        folder.mkdir(parents=True)
    recorded = sample("proc/debian12-limits.txt")
    for folder in (process, other, tmp_path / "proc/self"):
        (folder / "limits").write_bytes(recorded)
    (process / "comm").write_text("containerd\n")
    (other / "comm").write_text("bash\n")
    (security / "99-efa.conf").write_text("# * soft memlock 1\n* - memlock unlimited\n* - nofile 1\n")
    facts = parse("limits", limits(str(tmp_path)))
    assert list(facts["launchers"]) == ["containerd"]
    assert facts["launchers"]["containerd"]["memlock_soft_kib"] == 8192
    assert facts["configured"] == [{"domain": "*", "type": "-", "memlock_kib": "unlimited"}]


def test_reader_of_this_machine():
    assert "memlock_soft_kib" in parse("limits", limits("/"))
