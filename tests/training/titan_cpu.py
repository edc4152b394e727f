"""torchtitan.train without an accelerator: what it asks a GPU for at its start is answered for the CPU."""

import runpy
import types

import torch
import torch._utils
import torch.distributed as dist

ANSWERS = {
    "get_device_name": lambda *_: "cpu",
    "get_device_properties": lambda *_: types.SimpleNamespace(total_memory=1 << 34),
    "current_device": lambda *_: 0,
    "set_device": lambda *_: None,
    "memory_stats": lambda *_: {},
    "reset_peak_memory_stats": lambda *_: None,
    "empty_cache": lambda *_: None,
}


def prepare():
    """Before anything of torchtitan is imported."""
    barrier = dist.barrier
    dist.barrier = lambda *given, device_ids=None, **more: barrier(*given, **more)
    torch._utils._get_available_device_type = lambda: "cpu"
    for name, answer in ANSWERS.items():
        setattr(torch.cpu, name, answer)


def run():
    """As python -m torchtitan.train."""
    runpy.run_module("torchtitan.train", run_name="__main__")


if __name__ == "__main__":
    prepare()
    run()
