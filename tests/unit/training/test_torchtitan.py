"""The job of training/torchtitan-70b.yml against torchtitan's names and the role's launcher.

NAMES were read in the wheel torchtitan 0.3.0 of PyPI on 2026-11-23 (torchtitan/config, trainer.py, components): the
fields of each section that a job is likely to set. That release was not run: it wants a newer PyTorch.
"""

from pathlib import Path

import pytest
import yaml

from flightline.training import effective, flight
from flightline_node.train.plan import plan

from .test_launcher import SETTINGS

FILE = Path(__file__).parents[3] / "training" / "torchtitan-70b.yml"
NAMES = {
    "": {"module", "config", "hf_assets_path", "dump_folder"},
    "dataloader": {"dataset", "dataset_path", "infinite", "num_workers", "persistent_workers"},
    "training": {"local_batch_size", "global_batch_size", "seq_len", "max_norm", "steps", "enable_cpu_offload", "dtype",
                 "mixed_precision_param", "mixed_precision_reduce"},
    "parallelism": {"data_parallel_replicate_degree", "data_parallel_shard_degree", "fsdp_reshard_after_forward",
                    "tensor_parallel_degree"},
    "checkpoint": {"enable", "folder", "interval", "initial_load_path", "last_save_model_only", "keep_latest_k", "load_step",
                   "async_mode"},
    "comm": {"init_timeout_seconds", "train_timeout_seconds", "trace_buf_size", "save_traces_folder", "save_traces_file_prefix",
             "mode"},
    "compile": {"enable", "components", "backend"},
    "debug": {"seed", "deterministic", "print_config", "save_config_file"},
    "metrics": {"log_freq", "enable_tensorboard", "save_tb_folder", "enable_wandb"},
}  # fmt: skip
ASYNC_MODES = {"disabled", "async", "async_with_pinned_mem"}


@pytest.fixture
def job():
    return yaml.safe_load(FILE.read_text())["training_jobs"]["llama-70b"]


def given(job):
    """Section and field to value; True for a word that stands alone."""
    found = {}
    for word in job["command"][2:]:
        name, _, value = word.removeprefix("--").partition("=")
        section, _, field = name.rpartition(".")
        found[section, field] = value or True
    return found


def test_every_field_is_one_of_torchtitans(job):
    assert job["command"][:2] == ["-m", "torchtitan.train"]
    unknown = [(section, field) for section, field in given(job) if field not in NAMES.get(section, ())]
    assert not unknown
    assert given(job)["checkpoint", "async_mode"] in ASYNC_MODES


def test_what_it_says_fits_together(job):
    said = given(job)
    nodes, ranks = job["nodes"][1], 8
    groups = nodes * ranks // int(said["parallelism", "tensor_parallel_degree"])
    assert int(said["training", "global_batch_size"]) % (groups * int(said["training", "local_batch_size"])) == 0
    assert int(said["checkpoint", "keep_latest_k"]) >= 2, "torchtitan refuses 1: the last may be being written"
    prefix = said["comm", "save_traces_file_prefix"]
    assert flight.NAME.fullmatch(f"{prefix}12"), "flightline blame finds the dumps"
    assert effective.interval_s(effective.ClusterRates(gpus=nodes * ranks)) == pytest.approx(1690, rel=0.01)


def test_the_launcher_starts_it_and_a_requests_parameters_come_last(job):
    made = plan("llama-70b", SETTINGS, job, {"training.steps": "100"}, "")
    assert made.argv[-1] == "--training.steps=100" and made.argv[-len(job["command"]) - 1] == "-m"
    assert (made.meeting.host, made.meeting.least) == ("gpu-01", 16)
