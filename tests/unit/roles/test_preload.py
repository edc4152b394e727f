"""The preloader of roles/lustre_client: lfs and the AWS CLI are simulated; Lustre itself is not here.

What `lfs hsm_state` prints is written by hand after the FSx for Lustre user guide.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from flightline_node.act import preload
from tests.node_programs import PRELOAD

RELEASED, THERE = "(0x0000000d) released exists archived, archive_id:1", "(0x00000009) exists archived, archive_id:1"


class Clock:
    """Time that passes only in sleep."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Lustre:
    """A simulated file system: files come `after_s` seconds after they were asked for, or never."""

    def __init__(self, clock, after_s=10.0, never=(), refused=(), said=None):
        self.clock, self.after_s, self.never, self.refused, self.said = clock, after_s, never, refused, said
        self.asked, self.calls = {}, []

    def __call__(self, argv):
        self.calls.append(list(argv))
        verb, paths = argv[1], argv[2:]
        if verb == "hsm_restore":
            bad = [path for path in paths if Path(path).name in self.refused]
            for path in paths:
                if path not in bad:
                    self.asked.setdefault(path, self.clock.now)
            return (
                (1, "", f"Cannot send HSM request (use of {bad[0]}): Operation not permitted") if bad else (0, "", "")
            )
        return 0, "".join(f"{path}: {self.said or self.state(path)}\n" for path in paths), ""

    def state(self, path):
        came = path in self.asked and self.clock.now - self.asked[path] >= self.after_s
        return THERE if came and Path(path).name not in self.never else RELEASED


@pytest.fixture
def data(tmp_path):
    """Three files of 8 bytes."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x" * 8)
    return tmp_path


def wanted(data, *names, size=8):
    return [preload.WantedFile(str(data / name), size) for name in names]


def went(files, lustre, deadline_s=60.0, every_s=5.0):
    one, lines = preload.Preload(files, deadline_s, lustre, lustre.clock), []
    one.go(every_s, lines.append)
    return one, lines


def test_every_file_comes_with_progress_on_the_way(data):
    lustre = Lustre(Clock())
    one, lines = went(wanted(data, "a", "b", "c"), lustre)
    assert (one.there, one.failed) == (3, {})
    assert len(lines) > 1 and lines[0].startswith("preload: 0 of 3 files") and lines[-1].startswith("preload: 3 of 3")


def test_what_is_there_already_is_not_asked_for(data):
    lustre = Lustre(Clock(), said=THERE)
    one, _ = went(wanted(data, "a"), lustre)
    assert one.there == 1 and [call[1] for call in lustre.calls] == ["hsm_state"]


def test_the_deadline_ends_it_and_names_the_files_that_did_not_come(data):
    lustre = Lustre(Clock(), never=("b",))
    one, _ = went(wanted(data, "a", "b"), lustre)
    assert list(one.failed) == [str(data / "b")] and "time was over" in one.failed[str(data / "b")]
    assert lustre.clock.now <= 1000.0 + 61


def test_a_restore_that_the_servers_dropped_is_asked_for_again(data):
    lustre = Lustre(Clock(), never=("a",))
    went(wanted(data, "a"), lustre, deadline_s=700.0)
    assert len([call for call in lustre.calls if call[1] == "hsm_restore"]) == 3


def test_one_refused_file_takes_no_other_with_it(data):
    one, _ = went(wanted(data, "a", "b", "c"), Lustre(Clock(), refused=("b",)))
    assert one.there == 2 and "Operation not permitted" in one.failed[str(data / "b")]


@pytest.mark.parametrize(
    "said", ["", "garbage", "(0x) exists", "released", "0x00000009", "(0x0000000d) exists archived"]
)
def test_a_state_that_cannot_be_read_is_not_one_of_being_there(data, said):
    one, _ = went(wanted(data, "a"), Lustre(Clock(), said=said or "\n"))
    assert one.there == 0 and list(one.failed)


def test_a_file_that_s3_has_no_more_is_named_at_once(data):
    lustre = Lustre(Clock(), said="(0x0000004d) released exists lost archived, archive_id:1")
    one, _ = went(wanted(data, "a"), lustre)
    assert "lost" in one.failed[str(data / "a")] and lustre.clock.now == 1000.0


def test_what_is_not_imported_yet_or_is_no_file_is_never_asked_for(data):
    (data / "link").symlink_to("/etc/passwd")
    (data / "folder").mkdir()
    files = [*wanted(data, "missing", "link", "folder"), *wanted(data, "a", size=9)]
    lustre = Lustre(Clock())
    one, _ = went(files, lustre)
    assert len(one.failed) == 4 and one.there == 0 and lustre.calls == []


def body(**changes):
    return json.dumps({"bucket": "b-data", "objects": [{"key": "c4/s-0", "size": 1}], **changes})


def test_keys_become_paths_below_the_link():
    where = preload.link("s3://b-data/c4=/fsx/data")
    assert preload.manifest(body(), where) == [preload.WantedFile("/fsx/data/s-0", 1)]
    whole = preload.link("s3://b-data=/fsx/data/")
    assert preload.manifest(body(), whole) == [preload.WantedFile("/fsx/data/c4/s-0", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{", body(objects=[]), body(objects=None), body(objects=[{"key": "c4/s-0"}]),
        body(bucket="another"), body(objects=[{"key": "c4/s-0", "size": "many"}]),
        *(body(objects=[{"key": key, "size": 1}]) for key in ("../x", "c4/../../x", "/x", "c4//x", "c4/./x", "c4/a\0", "")),
    ],
)  # fmt: skip
def test_a_manifest_that_leads_elsewhere_or_cannot_be_read_is_refused(text):
    with pytest.raises(preload.PreloadError, match="saw"):
        preload.manifest(text, preload.link("s3://b-data=/fsx/data"))


@pytest.mark.parametrize("text", ["", "b-data=/fsx", "s3://b-data", "s3://b-data=fsx", "s3://=/fsx", "=/fsx/data"])
def test_a_link_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="wanted s3://"):
        preload.link(text)


LFS = """#!/bin/sh
# A simulated lfs: a file that was asked for is there from the next look on; names with "never" stay in S3.
verb=$1; shift
for path; do
    case $verb in
    hsm_restore) touch "$path.asked" ;;
    hsm_state)
        case $path in
        *never*) echo "$path: (0x0000000d) released exists archived, archive_id:1" ;;
        *) if [ -e "$path.asked" ]; then echo "$path: (0x00000009) exists archived, archive_id:1"
           else echo "$path: (0x0000000d) released exists archived, archive_id:1"; fi ;;
        esac ;;
    esac
done
"""
AWS = """#!/bin/sh
# A simulated AWS CLI: it prints the manifest.
[ "$1 $2 $4" = "s3 cp s3://b-results/training/job/r.json" ] && cat "$MANIFEST"
"""


@pytest.fixture
def node(tmp_path):
    """A program call on a node with simulated tools and a file system in a directory."""
    tools, root = tmp_path / "bin", tmp_path / "fsx"
    for name, text in (("lfs", LFS), ("aws", AWS)):
        tools.mkdir(exist_ok=True)
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    root.mkdir()

    def command(keys, *more, tools_on_path=True):
        for key in keys:
            (root / key).write_bytes(b"x")
        (tmp_path / "m.json").write_text(body(objects=[{"key": key, "size": 1} for key in keys]))
        path = f"{tools}:{os.environ['PATH']}" if tools_on_path else str(tmp_path)
        argv = [
            *PRELOAD,
            "--manifest=s3://b-results/training/job/r.json",
            f"--link=s3://b-data={root}",
        ]
        return [*argv, "--every-s=0.1", *more], {**os.environ, "PATH": path, "MANIFEST": str(tmp_path / "m.json")}

    return command


def test_the_program_ends_with_0_when_all_are_there(node, tmp_path):
    argv, env = node(["a", "b c", "d'e"], f"--progress={tmp_path / 'seen'}")
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"files": 3, "there": 3, "bytes": 3, "failed": {}}
    assert (tmp_path / "seen").read_text().startswith("preload: 3 of 3 files")


def test_the_program_ends_with_1_and_names_what_did_not_come(node):
    argv, env = node(["a", "never"], "--deadline-min=0.01")
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "/never: still in S3" in ended.stderr
    assert next(iter(json.loads(ended.stdout)["failed"])).endswith("/never")


def test_without_the_tools_it_ends_with_2_and_words(node):
    argv, env = node(["a"], tools_on_path=False)
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and "saw no aws" in ended.stderr and "Traceback" not in ended.stderr


def test_an_interrupt_ends_it_without_a_traceback(node):
    argv, env = node(["never"])
    running = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stderr is not None and running.stderr.readline().startswith("preload:")
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130 and "interrupted" in err and "Traceback" not in err
