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
    """What this launcher knows of the run. On the rendezvous' node it is said to who asks, elsewhere told to that node.

    That node may itself be the spare: it hears from the others.
    """

    def __init__(self, meeting: Meeting) -> None:
        self.word, self._meeting, self._here = MEETING, meeting, is_here(meeting.host)
        # A port that is taken costs the spares their answer, and the run nothing.
        with contextlib.suppress(OSError):
            if self._here:
                listening = socket.create_server(("", meeting.port + 1))
                threading.Thread(target=self._serve, args=(listening,), daemon=True).start()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError), listening.accept()[0] as peer:
                peer.settimeout(ASK_S)
                heard = peer.recv(64).decode("ascii", "replace")
                self.word = heard if heard in (RUNNING, FINISHED) else self.word
                peer.sendall(self.word.encode())

    def begin(self) -> None:
        """A start: the nodes have to meet first."""
        self.word = self.word if self.word == FINISHED else MEETING

    def running(self) -> None:
        """Ranks run here."""
        if self.word != RUNNING:
            self.word = RUNNING
            if self._meeting.host and not self._here:
                ask(self._meeting, RUNNING)

    def finished(self) -> None:
        """The run is done: say so a little longer."""
        self.word = FINISHED
        if self._here:
            time.sleep(PARTING_S)
        elif self._meeting.host:
            ask(self._meeting, FINISHED)


def ask(meeting: Meeting, word: str = "?") -> str:
    """How the run stands; '' where nobody says it. word: what this node knows of it."""
    with contextlib.suppress(OSError), socket.create_connection((meeting.host, meeting.port + 1), ASK_S) as peer:
        peer.settimeout(ASK_S)
        peer.sendall(word.encode())
        return peer.recv(64).decode("ascii", "replace")
    return ""
