"""A user's program by a trainer from its own package: its data break rank 2 at the 12th sample."""

import os
import signal
import sys
import time

import torch

TRAINER, FAULT, MARK = sys.argv[1:4]
STEPS, AT = 40, 12
ERRORS = {
    "raise": ValueError("bad token 77 in sample 12"),
    "ecc": RuntimeError("CUDA error: uncorrectable ECC error encountered"),
    "oom": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB"),
}
FAULTS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "exit": lambda: os._exit(1),
    "mismatch": lambda: (torch.distributed.all_reduce(torch.ones(7)), torch.distributed.all_reduce(torch.ones(9))),
    "loader": lambda: time.sleep(900),
    "spin": lambda: all(iter(lambda: True, False)),
}


def inject(count):
    if int(os.environ["RANK"]) != 2:
        return
    if FAULT == "slow" and count > AT:
        time.sleep(0.2)
    if count == AT and not (os.path.exists(MARK) and FAULT in ("ecc", *FAULTS)):
        with open(MARK, "w") as file:
            file.write(FAULT)
        if FAULT in ERRORS:
            raise ERRORS[FAULT]
        FAULTS.get(FAULT, int)()


class Data(torch.utils.data.Dataset):
    count = 0

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        Data.count += 1
        inject(Data.count)
        time.sleep(0.03)
        tokens = torch.arange(index, index + 32) % 64
        return {"input_ids": tokens, "labels": tokens} if TRAINER == "hf" else torch.ones(32) * (index % 7)


def hf():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    given = TrainingArguments("hf", use_cpu=True, ddp_backend="gloo", max_steps=STEPS, per_device_train_batch_size=1,
                              logging_steps=10, save_steps=20, report_to=[], disable_tqdm=True)  # fmt: skip
    Trainer(model, given, train_dataset=Data()).train()


def lightning():
    import lightning.pytorch as pl
    from lightning.pytorch.demos.boring_classes import BoringModel

    pl.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=STEPS,
               limit_val_batches=0, logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(
               BoringModel(), torch.utils.data.DataLoader(Data(), batch_size=1))  # fmt: skip


def accelerate():
    from accelerate import Accelerator

    helper, model = Accelerator(cpu=True), torch.nn.Linear(32, 2)
    adam = torch.optim.AdamW(model.parameters())
    model, adam, data = helper.prepare(model, adam, torch.utils.data.DataLoader(Data(), batch_size=1))
    for _, batch in zip(range(STEPS), data):
        adam.zero_grad()
        helper.backward(model(batch).square().mean())
        adam.step()


def torchtitan():
    """Its own program, FSDP2 and loader on a debug model; titan_cpu.py answers for the GPU."""
    sys.argv[1:] = sys.argv[4:]  # read when it is imported
    from tests.training import titan_cpu

    titan_cpu.prepare()
    from torchtitan.datasets import hf_datasets

    loaded = hf_datasets.HuggingFaceDataset.__iter__

    def counted(self):
        for count, sample in enumerate(loaded(self), 1):
            inject(count)
            time.sleep(0.03)
            yield sample

    hf_datasets.HuggingFaceDataset.__iter__ = counted
    titan_cpu.run()


def pipeline():
    """Written here: a stage on each rank, which meet in sends and receives alone. (PyTorch's own schedules end over gloo.)"""
    torch.distributed.init_process_group("gloo")
    rank, last = torch.distributed.get_rank(), torch.distributed.get_world_size() - 1
    model = torch.nn.Linear(32, 32)
    adam = torch.optim.AdamW(model.parameters())
    for count in range(1, STEPS + 1):
        inject(count)
        time.sleep(0.03)
        given, back = torch.ones(8, 32), torch.empty(8, 32)
        if rank > 0:
            torch.distributed.recv(given, rank - 1)
        made = model(given.requires_grad_())
        if rank < last:
            torch.distributed.send(made.detach(), rank + 1)
            torch.distributed.recv(back, rank + 1)
        made.backward(back if rank < last else made.detach())
        if rank > 0:
            torch.distributed.send(given.grad, rank - 1)
        adam.step()
        adam.zero_grad()


{"hf": hf, "lightning": lightning, "accelerate": accelerate, "torchtitan": torchtitan, "pipeline": pipeline}[TRAINER]()
