"""The README's commands, run as they stand there; those that need an account or minutes are named here, with what they need."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.beds import BIN, ROOT, own_env

NOT_RUN = {
    "make test": "is what runs this",
    "make preflight": "is run by hand in a fresh clone; the same as scripts/preflight below",
    "make up": "an AWS account and Pulumi",
    "make configure": "an AWS account",
    "flightline adopt": "a Slurm cluster: tests/healing/test_adopt_real.py",
    "flightline capacity": "an AWS account",
    "flightline cost": "an AWS account, for the price list",
    ". .venv/bin/activate": "the PATH of these tests has it",
}
NO_ACCOUNT = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "us-east-1"}


def commands(page: str) -> list[str]:
    """The lines of a page's shell blocks, without what is said of them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


RUN = [line for line in commands("README.md") if not line.startswith(tuple(NOT_RUN))]


class Work:
    """A work folder with what the README's placeholders stand for."""

    def __init__(self, path: Path) -> None:
        self.path, self.first = path, ""

    def run(self, command: str) -> tuple[int, str]:
        own = {"PATH": f"{BIN}:{os.environ['PATH']}", "FLIGHTLINE_STORE": str(self.path / "runs.sqlite")}
        env = own_env("ANSIBLE", "AWS", "FLIGHTLINE", **NO_ACCOUNT, **own)
        for word, meant in self.meant():
            command = re.sub(rf"(?<![\w-]){re.escape(word)}(?!\w)", meant, command)
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=ROOT, env=env, text=True, check=False, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout

    def meant(self) -> list[tuple[str, str]]:
        return [
            ("BUNDLE.tar.gz", str(self.path / "bundle.tar.gz")),
            ("BUNDLE", str(self.path / "bundle")),
            ("inventory/my_cluster.yml", str(self.path / "fleet")),
            ("RUN", self.first),
            ("gpu-07", "gpu-02"),
        ]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    made = Work(tmp_path_factory.mktemp("readme"))
    status, out = made.run(f"flightline demo --out {made.path}/fleet --nodes 2 --fault gpu_missing=gpu-02")
    assert status == 0, out
    status, out = made.run(
        f"flightline collect --instance-type p5.48xlarge --out BUNDLE && tar -C {made.path} -czf BUNDLE.tar.gz bundle"
    )
    assert status == 0, out
    status, out = made.run(f"scripts/preflight {made.path}/fleet quick")
    assert status == 1 and "NO-GO" in out, out
    made.first = re.search(r"^run (\S+)", out, re.M).group(1)
    return made


@pytest.mark.parametrize("command", RUN)
def test_a_command_of_the_readme_runs(work, command):
    status, out = work.run(command)
    assert status in (0, 1), out
    assert not re.search(r"Traceback|No such (command|option)|Usage:|internal error|command not found", out), out


def test_most_of_the_readme_is_run():
    left_out = [line for line in commands("README.md") if line not in RUN]
    assert len(RUN) > len(left_out) == len(NOT_RUN), (RUN, left_out)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/collection.md"])
def test_every_target_link_and_picture_of_a_page_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake ([a-z-]+)\b(?! [a-z]+ that)", "\n".join(commands(page)))) <= targets
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / link).exists(), link


def test_the_picture_is_small():
    assert (ROOT / "docs/report.png").stat().st_size < 200_000
