"""Programs that import nothing of ours, on real PyTorch (gloo), by one changed word: journal, blame, and what the hook costs."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command

from .launch import PYTHON, ROOT

BEGIN = """import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, at = dist.get_rank(), sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
"""
DDP = (
    BEGIN
    + """
model = torch.nn.parallel.DistributedDataParallel(model)
adam, times = torch.optim.AdamW(model.parameters()), []
for step in range(30):
    began = time.perf_counter()
    model(torch.randn(256, 256)).square().mean().backward(); adam.step(); adam.zero_grad()
    times.append(time.perf_counter() - began); time.sleep(0.05)
    if at == "raises" and rank == 1 and step == 20: raise ValueError("bad sample")
if rank == 0: torch.save(model.state_dict(), "model.pt")
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
began = time.perf_counter()
for _ in range(1000): [hook(adam, (), {}) for hook in hooks.values()]
print("HOOK", (time.perf_counter() - began) / 1000 / sorted(times)[15])
"""
)
FSDP = (
    BEGIN
    + """
from torch.distributed.fsdp import fully_shard
import torch.distributed.checkpoint as dcp
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
fully_shard(model, mesh=mesh)
one, two = (torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9) for lr in (0.1, 0.01))
for step in range(30):
    model(torch.randn(64, 256)).square().mean().backward(); one.step(); two.step(); one.zero_grad(); time.sleep(0.05)
    if at == "raises" and rank == 1 and step == 20: raise ValueError("bad sample")
dcp.save({"model": model.state_dict()}, checkpoint_id="ck")
"""
)


@pytest.mark.parametrize("at", ["ends", "raises"])
@pytest.mark.parametrize("program", [DDP, FSDP], ids=["DDP", "FSDP2"])
def test_one_word_is_changed(tmp_path, program, at):
    (tmp_path / "train.py").write_text(program)
    argv = [
        sys.executable,
        "-m",
        "flightline",
        "train",
        "--pause-s",
        "1",
        "--",
        "--standalone",
        "--nproc-per-node",
        "2",
        "train.py",
        at,
    ]
    path = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{ROOT}/module_utils"}
    done = subprocess.run(
        argv, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == (70 if at == "raises" else 0), done.stderr[-3000:]
    logs = tmp_path / ".flightline/train/train"
    last = sorted((logs / "starts").iterdir())[-1]
    events = {
        rank: [json.loads(line) for line in (last / f"contract/rank-{rank:06d}.jsonl").read_text().splitlines()]
        for rank in (0, 1)
    }
    assert all(of[0]["event"] == "start" and any(one["event"] == "step" for one in of) for of in events.values())
    found = json.loads(CliRunner().invoke(command, [str(logs), "--json"]).output)["blames"]
    if at == "raises":
        assert [(one["rank"], one["cause"]) for one in found] == [(1, "software")] and "bad sample" in found[0]["why"]
        assert events[1][-1]["steps"] == 21
        assert len(list((logs / "starts").iterdir())) <= 3, "restarted no more than twice for its own bug"
        assert list(last.glob("contract/flight-*.json")), "the flight recorder, over gloo"
        return
    assert found == []
    assert [one["name"] for one in events[0] if one["event"] == "checkpoint"] == [
        "model.pt" if program == DDP else "ck"
    ]
    assert events[0][-1]["steps"] == 30
    if program == DDP:
        share = float(done.stdout.partition("HOOK ")[2].split()[0])
        assert share < 0.005, f"{share:.3%} of a step"
