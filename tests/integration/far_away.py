"""ssh's ProxyCommand of a host that is far away: far_away.py SECONDS HOST PORT; each byte takes SECONDS in each direction."""

import os
import queue
import socket
import sys
import threading
import time

Way = queue.Queue[tuple[float, bytes]]


def arrive(way: Way, sink: int) -> None:
    """Hand on what was read, each piece in its time, and end with it."""
    while True:
        when, data = way.get()
        time.sleep(max(0.0, when - time.monotonic()))
        if not data:
            os._exit(0)
        os.write(sink, data)


def carry(source: int, sink: int, seconds: float) -> None:
    """One direction."""
    way: Way = queue.Queue()
    threading.Thread(target=arrive, args=(way, sink)).start()
    data = b"begin"
    while data:
        data = os.read(source, 65536)
        way.put((time.monotonic() + seconds, data))


if __name__ == "__main__":
    far = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    threading.Thread(target=carry, args=(far.fileno(), 1, float(sys.argv[1]))).start()
    carry(0, far.fileno(), float(sys.argv[1]))
