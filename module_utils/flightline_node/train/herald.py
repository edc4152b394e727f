"""How the run stands, for nodes that were not wanted in it: the launcher of the rendezvous' node says it when asked.

PyTorch's store on the rendezvous' port ends with each start, and tells a node that waits neither whether others train
nor whether the run is done. So the port beside it answers with one word, as long as that launcher lives.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from .plan import Meeting, is_here

RUNNING, MEETING, FINISHED = "running", "meeting", "finished"
PARTING_S = 15.0
"""For which the end is still told: a spare looks once its torchrun has seen the rendezvous closed."""
ASK_S = 5.0


class Herald:
    """word: what is said. On other nodes nothing is."""

    def __init__(self, meeting: Meeting) -> None:
        self.word = MEETING
        self._heard = is_here(meeting.host)
        # A port that is taken costs the spares their answer, and the run nothing.
        with contextlib.suppress(OSError):
            if self._heard:
                listening = socket.create_server(("", meeting.port + 1))
                threading.Thread(target=self._serve, args=(listening,), daemon=True).start()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError), listening.accept()[0] as peer:
                peer.sendall(self.word.encode())

    def finished(self) -> None:
        """The run is done: say so a little longer."""
        if self._heard:
            self.word = FINISHED
            time.sleep(PARTING_S)


def ask(meeting: Meeting) -> str:
    """How the run stands; '' where nobody says it."""
    with contextlib.suppress(OSError), socket.create_connection((meeting.host, meeting.port + 1), ASK_S) as peer:
        peer.settimeout(ASK_S)
        return peer.recv(64).decode("ascii", "replace")
    return ""
