"""A node that is to blame leaves service by the marker that the watcher uses, with the evidence; real Ansible, one local node."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline.healing.plan.observe import from_marker
from flightline.training.blame import MOST_ILL, RankBlame, suspects
from flightline_node.model import Verdict
from flightline_node.selfcheck import held

HUNG = RankBlame("hung", 3, "gpu-01", 1, "wrote no flight recorder dump, 3 others did")


def test_who_is_ill_and_who_is_not():
    found = suspects([HUNG, RankBlame("slow", 4, "gpu-01", 2, "x"), RankBlame("data", None, "", None, "x")], "/logs")
    assert [one["message"] for one in found["gpu-01"]] == [f"rank 3 hung: {HUNG.why}", "rank 4 slow: x"]
    assert found["gpu-01"][0]["evidence"] == [f"/logs: {HUNG.why}"]
    assert suspects([RankBlame("failed", 0, "gpu-02", 0, "IndexError", 7, own=True)], "/logs") == {}
    nameless = suspects([RankBlame("vanished", None, "gpu-02", None, "srun says so")], "/logs")["gpu-02"][0]
    assert (nameless["message"], nameless["device"]) == ("a rank vanished: srun says so", {})
    many = [RankBlame("vanished", n, f"gpu-{n:02d}", 0, "x") for n in range(MOST_ILL + 1)]
    assert suspects(many, "/logs") == {} and len(suspects(many[1:], "/logs")) == MOST_ILL


def event(rank, name, time, **more):
    return json.dumps({"event": name, "time": time, "rank": rank, "attempt": 0, **more}) + "\n"


@pytest.fixture
def logs(tmp_path):
    """Rank 1 of gpu-02 vanished: made by hand, in the form of the reference job's journals."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank in (0, 1):
        more = event(0, "exception", 9, type="RuntimeError", text="Connection closed by peer", step=4)
        about = {"host": f"gpu-{rank + 1:02d}", "world": 2, "device": 0, "pid": 1}
        (folder / f"rank-{rank:06d}.jsonl").write_text(event(rank, "start", 1, **about) + ("" if rank else more))
    return folder


def inventory(tmp_path, *hosts) -> Path:
    rows = [f"{host} ansible_connection=local flightline_root={tmp_path}/{host}\n" for host in hosts]
    path = tmp_path / "hosts"
    path.write_text("".join(rows))
    return path


def test_the_node_to_blame_and_no_other_is_in_quarantine_with_why(tmp_path, logs):
    done = CliRunner().invoke(command, [str(logs), "--quarantine", "-i", str(inventory(tmp_path, "gpu-01", "gpu-02"))])
    assert done.exit_code == 1, done.output
    assert "gpu-02 is in quarantine until a preflight proves it" in done.output
    where = tmp_path / "gpu-02/var/lib/flightline"
    marker = json.loads((where / "quarantine.json").read_text())
    assert marker["by"] == "flightline-blame" and str(logs) in marker["findings"][0]["evidence"][0]
    assert not (tmp_path / "gpu-01/var/lib/flightline/quarantine.json").exists()
    record = held({"findings": [], "verdict": "go"}, where)
    assert record["verdict"] == Verdict.NO_GO and "rank 1 vanished" in record["findings"][0]["message"], (
        "the gate refuses it"
    )
    (trouble,) = from_marker("gpu-02", "p5", marker).troubles
    assert (trouble.check, trouble.remedy) == ("training", "INVESTIGATE") and trouble.evidence


def test_a_node_that_the_inventory_lacks_is_said(tmp_path, logs):
    done = CliRunner().invoke(command, [str(logs), "--quarantine", "-i", str(inventory(tmp_path, "gpu-01"))])
    assert done.exit_code == 2 and "drain the node by hand" in done.output and "Traceback" not in done.output


def test_without_an_inventory_nothing_is_tried(logs):
    done = CliRunner().invoke(command, [str(logs), "--quarantine"])
    assert done.exit_code == 2 and "add -i PATH" in done.output
