"""docs/deploy.md, line by line: what it names is there. What needs no account runs; of the rest target, options and API are held.

The page's way from end to end needs an account and Pulumi's command line; no test here has either.
"""

import re
import shlex
import sys
from pathlib import Path

import boto3
import pytest
from botocore import xform_name

from tests.beds import BIN, ROOT, own_env, ran

from .test_readme import NO_ACCOUNT, commands

PAGE = "docs/deploy.md"
TEXT = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
LINES = commands(PAGE)
AWS = sorted({found for found in re.findall(r"`(aws [^`]+)`", TEXT) if len(found.split()) > 2})


def starting(word: str) -> list[str]:
    found = [line for line in LINES if line.startswith(word)]
    assert found, f"no line of {PAGE} begins with {word}"
    return found


def test_every_line_is_of_a_kind_that_is_looked_at():
    kinds = ("cp ", "make ", "flightline ", "ansible-playbook ", "ansible-inventory ", ". .venv/bin/activate")
    assert [line for line in LINES if not line.startswith(kinds)] == []


@pytest.mark.parametrize("line", starting("make "))
def test_a_target_is_one_of_the_makefile(line):
    target = line.split()[1]
    assert re.search(rf"^{re.escape(target)}:.*## ", (ROOT / "Makefile").read_text(), re.M), target


def test_the_targets_named_in_the_text_are_there_too():
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", TEXT)) <= targets


@pytest.mark.parametrize("line", [*starting("cp "), *starting("ansible-")])
def test_a_file_that_is_read_is_there(line):
    words = shlex.split(line)
    read = [words[1]] if words[0] == "cp" else [word for word in words if word.startswith(("playbooks/", "inventory/"))]
    assert read and [name for name in read if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("line", starting("flightline "))
def test_a_command_takes_the_options_it_is_given(line):
    words = shlex.split(line)
    asked = ran(BIN / "flightline", words[1], "--help", cwd=ROOT)
    assert asked.returncode == 0, asked.stderr
    missing = [word for word in words if word.startswith("--") and word not in asked.stdout]
    assert missing == [], missing


def test_the_cost_of_a_stack_runs_without_an_account(tmp_path):
    env = own_env("AWS", "FLIGHTLINE", **NO_ACCOUNT, FLIGHTLINE_STORE=str(tmp_path / "runs.sqlite"))
    done = ran(BIN / "flightline", "cost", "p5-reservation", "--offline", env=env, cwd=ROOT)
    assert done.returncode == 2
    for said in ("no price of 8 x p5.48xlarge", "saw no price kept, and nobody is asked (--offline)"):
        assert said in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_what_up_will_do_is_said_of_the_page_s_stack():
    done = ran(sys.executable, "-m", "infra.describe", "up", "p5-reservation", cwd=ROOT)
    assert done.returncode == 0 and "Pulumi shows the preview next" in done.stdout


@pytest.mark.parametrize("line", AWS)
def test_an_aws_command_is_one_of_the_api(line):
    """Service, operation and options by the service's own model, which is what the AWS CLI makes its commands of."""
    _, service, operation, *rest = shlex.split(line)
    model = boto3.client(service, region_name="us-east-1").meta.service_model
    named = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in named
    shape = model.operation_model(named[operation]).input_shape
    known = {f"--{xform_name(name, '-')}" for name in (shape.members if shape else {})}
    assert {word for word in rest if word.startswith("--")} <= known


def test_the_aws_commands_were_found():
    assert len(AWS) >= 3, AWS


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT)
    assert [link for link in links if "://" not in link and not (Path(ROOT / "docs") / link).exists()] == []


def test_configure_before_up_says_what_is_missing(tmp_path):
    done = ran("make", "-s", "configure", f"INVENTORY={tmp_path}/aws_ec2.yml", cwd=ROOT, timeout=300)
    assert done.returncode == 2 and "wanted the stack's outputs; do: make outputs" in done.stderr
    assert "ERROR" not in done.stdout + done.stderr
