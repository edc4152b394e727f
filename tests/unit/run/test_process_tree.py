"""Nothing that a run started outlives it."""

import subprocess
import time

from flightline.run.process_tree import descendants, end, end_with_sessions, of_sessions

TREE = "setsid sleep 60 & setsid sh -c 'trap \"\" TERM; sleep 60 & wait' & echo ready; wait"


def test_descendants_in_sessions_of_their_own_are_found_and_ended_even_when_they_refuse():
    with subprocess.Popen(["sh", "-c", TREE], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        until = time.monotonic() + 60
        while len(found := descendants(parent.pid)) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(found) == 3 and parent.pid not in found
        end(found, 0.3)
        assert parent.wait(60) is not None and descendants(parent.pid) == {}


def test_what_a_leader_left_in_its_session_is_ended_after_it():
    """As a node's call whose worker an interrupt has ended before it."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as elsewhere:
        with subprocess.Popen(
            ["sh", "-c", "trap '' INT TERM; sleep 60 & echo $!"],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        ) as leader:  # fmt: skip
            left = int(leader.stdout.readline())
            assert leader.wait(60) == 0
            assert list(of_sessions([leader.pid])) == [left]
            end_with_sessions({leader.pid: "gone"})
            assert of_sessions([leader.pid]) == {}
        assert elsewhere.poll() is None
        elsewhere.kill()


def test_a_later_process_of_the_same_id_is_left_alone():
    with subprocess.Popen(["sleep", "60"]) as stranger:
        end({stranger.pid: "started at another time"}, 0.1)
        assert stranger.poll() is None
        stranger.kill()
