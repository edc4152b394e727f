"""Copies of checkpoints in S3: the real AWS command line on an emulated directory bucket, which lists in no order."""

import json
import random

import pytest

from tests.express import BUCKET, directory_bucket
from training import copies, manifest

from .test_pure import saved

NAMES = [f"step-{step:08d}-{nonce * 8}" for step, nonce in ((90, "a"), (100, "0"), (100, "f"), (20, "9"))]
with_aws = pytest.mark.usefixtures("aws_command")


express = pytest.fixture(directory_bucket)


def rows(*without):
    """Keys as S3 gives them; of the two with 100 steps that with the nonce 0 was written last."""
    found = [(f"p/{name}/{file}", f"2026-11-23T08:0{1 + name.endswith('0')}:00Z") for name in NAMES
             for file in ("__0_0.distcp", manifest.NAME) if (name, file) not in without]  # fmt: skip
    return [*found, ("p/step-00000200-11111111/__0_0.distcp", "2026"), ("p/notes.txt", "2026"), ("p/step-1/x", "2026")]


def test_the_newest_is_found_in_whatever_order_they_are_listed():
    wanted = [NAMES[1], NAMES[2], NAMES[0], NAMES[3]]
    found, chance = rows(), random.Random(0)
    for _ in range(300):
        chance.shuffle(found)
        assert copies.newest(copies.grouped(found, "p/")) == wanted, found
    assert copies.newest(copies.grouped(rows((NAMES[1], manifest.NAME)), "p/"))[0] == NAMES[2], "no manifest, no copy"


@pytest.mark.parametrize("text", ["/fsx/ck", "s3://", "s3:///x", "s3://B_/x", "s3://bucket//x", "https://bucket/x"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        copies.place(text)
    assert copies.place("s3://demo--use1-az4--x-s3/a/b") == "s3://demo--use1-az4--x-s3/a/b/"


@with_aws
def test_a_directory_bucket_is_listed_by_the_aws_command_line(express):
    for key in (f"llama-1/{NAMES[0]}/{manifest.NAME}", "llama-1/notes.txt", f"llama-2/{NAMES[1]}/{manifest.NAME}"):
        express.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x")
    assert list(copies.listed(f"s3://{BUCKET}/llama-1/")) == [NAMES[0]]


def aws(path, monkeypatch, text):
    """A stand-in of the AWS command line, which writes down how it was called."""
    (path / "aws").write_text(f'#!/bin/sh\necho "$@" >> {path}/asked\n{text}\n')
    (path / "aws").chmod(0o755)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    return lambda: (path / "asked").read_text().splitlines()


def test_what_s3_denies_is_said_and_costs_no_training(tmp_path, monkeypatch):
    asked = aws(tmp_path, monkeypatch, "echo 'An error occurred (AccessDenied)' >&2; exit 254")
    said = []
    copier = copies.Copier("s3://b-1/p/", lambda event, **more: said.append((event, more)), 1, 0)
    copier.want(saved(tmp_path, 10))
    copier.finish()
    assert said[0][0] == "copy_failed" and "AccessDenied" in said[0][1]["why"]
    assert len(asked()) == 1, "no manifest where the files did not arrive"


def test_s3_that_does_not_answer_is_not_taken_for_empty(tmp_path, monkeypatch):
    aws(tmp_path, monkeypatch, "exit 255")
    with pytest.raises(copies.CopyError, match=r"saw aws s3api end with 255.*wanted"):
        copies.bring(tmp_path, "s3://b-1/p/", print)
    (tmp_path / "aws").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(copies.CopyError, match="saw no aws"):
        copies.bring(tmp_path, "s3://b-1/p/", print)


def test_a_copy_in_parts_is_left_beside_the_one_before_it(tmp_path, monkeypatch):
    listed = [[f"p/step-000000{step}-00000000/{manifest.NAME}", "2026"] for step in (10, 20)]
    # Of the newer one only the manifest arrives.
    (tmp_path / "from").mkdir()
    good = saved(tmp_path / "from", 10)
    aws(tmp_path, monkeypatch, f"""case "$*" in
        s3api*) echo '{json.dumps(listed)}' ;;
        *step-00000020*) for last; do :; done; mkdir -p $last; echo '{{}}' > $last/{manifest.NAME} ;;
        *) for last; do :; done; cp -r {good} $last ;;
    esac""")  # fmt: skip
    root = tmp_path / "ck"
    root.mkdir()
    said = []
    copies.bring(root, "s3://b-1/p/", lambda event, **more: said.append((event, more)))
    assert said == [("brought", {"name": good.name, "where": "s3://b-1/p/"})]
    assert [manifest.step_of(path) for path in manifest.candidates(root)] == [20, 10]


def test_what_is_being_copied_is_not_removed(tmp_path):
    for step in (10, 20, 30):
        saved(tmp_path, step)
    assert manifest.tidy(tmp_path, 1, 0, held="step-00000010-00000000") == ["step-00000020-00000000"]
