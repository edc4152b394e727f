"""Work beside the caller: what breaks off there prints nothing, and an interrupted wait takes nothing for ended."""

import os
import signal
import threading
import time

import pytest

from flightline.run import background, playbooks


@pytest.mark.parametrize(
    ("error", "told"),
    [(ValueError("Timeout exceeded.\n<pexpect.spawn>"), "ValueError: Timeout exceeded."), (OSError(), "OSError")],
    ids=["of several lines", "without words"],
)
def test_what_breaks_off_is_kept_in_one_line_and_prints_nothing(capfd, error, told):
    def work() -> None:
        raise error

    begun = background.begin(work)
    assert begun.wait(10)
    assert begun.broken and background.why(begun.broken) == told
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_wait_takes_nothing_for_ended():
    """Thread.join does in Python 3.11: an interrupted run then removed the files that its playbook still wrote."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    release = threading.Event()
    begun = background.begin(lambda: release.wait(60))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            begun.wait(30)
    finally:
        signal.signal(signal.SIGTERM, before)
    began = time.monotonic()
    assert not begun.wait(0.3) and not begun.ended and time.monotonic() - began >= 0.3
    release.set()
    assert begun.wait(30) and begun.broken is None


def test_a_playbook_is_played_and_its_runner_knows_its_end(tmp_path):
    (tmp_path / "p.yml").write_text(
        "- hosts: localhost\n  gather_facts: false\n  connection: local\n  tasks: [{fail: }]\n"
    )
    work, runner = background.play(
        private_data_dir=str(tmp_path), playbook=str(tmp_path / "p.yml"), inventory="localhost,",
        envvars=playbooks.environment(playbooks.find()), quiet=True,
    )  # fmt: skip
    assert work.wait(120)
    assert (runner.rc, work.broken) == (2, None)
