"""The reference job's parts that need no torch: order of samples, guard, tokens, whole checkpoints."""

import math
import random

import pytest

from training import manifest
from training.guard import FEWEST, LossError, LossGuard
from training.order import BatchPlan
from training.tokens import DataError, Tokens, fingerprint


@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_together_read_the_same_whatever_their_number(world):
    plan = BatchPlan(samples=37, batch=8, micro=2, seed=3)
    for step in range(12):
        assert [at for rank in range(world) for at in plan.at(step, rank, world)] == plan.at(step, 0, 1)


def test_an_epoch_reads_every_sample_once_and_the_next_in_another_order():
    plan = BatchPlan(samples=40, batch=8, micro=1, seed=3)
    epochs = [[at for step in range(start, start + 5) for at in plan.at(step, 0, 1)] for start in (0, 5)]
    assert all(sorted(epoch) == list(range(40)) for epoch in epochs) and epochs[0] != epochs[1]


def test_a_batch_that_cannot_be_shared_is_refused_with_figures():
    assert BatchPlan(9, 8, 2, 0).accumulation(2) == 2
    with pytest.raises(ValueError, match="saw 3 ranks with 2 samples each"):
        BatchPlan(9, 8, 2, 0).accumulation(3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_stops_at_once(value):
    with pytest.raises(LossError, match="step 7: the loss is"):
        LossGuard().look(7, value, 1.0)
    with pytest.raises(LossError, match="step 7: the gradient norm is"):
        LossGuard().look(7, 2.0, value)


def test_a_spike_stops_and_noise_does_not():
    chance, guard = random.Random(1), LossGuard()
    for step in range(20_000):
        guard.look(step, 3.0 + chance.gauss(0, 0.3), 1.0)
    with pytest.raises(LossError, match=r"step 20000: the loss is 9\.0000, wanted at most"):
        guard.look(20_000, 9.0, 1.0)


def test_the_first_steps_may_fall_as_they_like_and_a_resumed_guard_judges_alike():
    guard = LossGuard()
    for step in range(FEWEST):
        guard.look(step, 11.0 - step / 2, 1.0)
    assert LossGuard(guard.seen).most() == guard.most() < math.inf


def test_samples_do_not_span_files(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(9)))
    (tmp_path / "b").write_bytes(bytes(range(100, 105)))
    (tmp_path / "short").write_bytes(b"xy")
    tokens = Tokens([tmp_path / "a", tmp_path / "short", tmp_path / "b"], 4)
    assert tokens.samples == 3
    assert [list(tokens.sample(at)) for at in range(3)] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [100, 101, 102, 103, 104]]


def test_no_data_is_an_error_that_says_so(tmp_path):
    (tmp_path / "short").write_bytes(b"xy")
    with pytest.raises(DataError, match="no file with more than 4 bytes"):
        Tokens([tmp_path / "short"], 4)


def test_the_fingerprint_sees_size_and_both_ends(tmp_path):
    path = tmp_path / "a"
    prints = set()
    for content in (b"aa", b"ab", b"ba", b"aaa"):
        path.write_bytes(content)
        prints.add(fingerprint([path]))
    assert len(prints) == 4


def saved(root, step, nonce="0" * 8, world=2):
    where = manifest.directory(root, step, nonce)
    where.mkdir()
    for rank in range(world):
        file = where / f"__{rank}_0.distcp"
        file.write_bytes(f"{step} {rank}".encode())
        manifest.write_part(where, rank, [file])
    manifest.write(where, world, {"step": step})
    return where


def test_a_whole_checkpoint_is_read_and_a_changed_byte_is_found(tmp_path):
    where = saved(tmp_path, 40)
    found = manifest.read(where)
    manifest.check(where, found["files"])
    (where / "__1_0.distcp").write_bytes(b"40 9")
    assert manifest.read(where) == found
    with pytest.raises(manifest.DamagedError, match=r"__1_0\.distcp: the content is not what was saved"):
        manifest.check(where, found["files"])


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("manifest.json", None, "was never completed"),
        ("manifest.json", b"{", "cannot be read"),
        ("manifest.json", b"[]", "is not flightline-checkpoint/1"),
        ("__0_0.distcp", b"4", "1 bytes, wanted 4"),
        ("__0_0.distcp", None, "No such file"),
    ],
)
def test_a_damaged_one_says_why(tmp_path, name, content, why):
    where = saved(tmp_path, 40)
    (where / name).unlink() if content is None else (where / name).write_bytes(content)
    with pytest.raises(manifest.DamagedError, match=why):
        manifest.read(where)


def test_a_manifest_of_another_step_is_none(tmp_path):
    saved(tmp_path, 40).rename(tmp_path / "step-00000050-00000000")
    with pytest.raises(manifest.DamagedError, match="is of step 40"):
        manifest.read(tmp_path / "step-00000050-00000000")


def test_without_a_part_there_is_no_manifest(tmp_path):
    where = manifest.directory(tmp_path, 5, "0" * 8)
    where.mkdir()
    manifest.write_part(where, 0, [])
    with pytest.raises(FileNotFoundError):
        manifest.write(where, 2, {"step": 5})
    assert not (where / manifest.NAME).exists()


def test_the_last_and_every_so_many_are_kept_and_an_unfinished_newest_stays(tmp_path):
    for step in range(10, 80, 10):
        saved(tmp_path, step)
    for step in (30, 80):
        manifest.directory(tmp_path, step, "1" * 8).mkdir()
    gone = manifest.tidy(tmp_path, last=2, every=30)
    assert gone == [f"step-000000{step}-00000000" for step in (10, 20)] + [
        "step-00000030-11111111", "step-00000040-00000000", "step-00000050-00000000"]  # fmt: skip
    assert [manifest.step_of(path) for path in manifest.candidates(tmp_path)] == [80, 70, 60, 30]
