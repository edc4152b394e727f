"""A time source at the address where EC2 has its own: it answers NTP with the outer machine's clock.

Simulated: it shows that a machine's chrony asks the right address and follows it, nothing about accuracy.
"""

import socket
import struct
import time

ADDRESS = "169.254.169.123"  # Amazon Time Sync Service, link-local, from the EC2 user guide
PORT = 123
NTP_EPOCH_S = 2_208_988_800
"""Seconds from 1900 to 1970."""
REQUEST_BYTES = 48


def stamp(seconds: float) -> bytes:
    """NTP's 64-bit time."""
    whole = int(seconds)
    return struct.pack("!II", (whole + NTP_EPOCH_S) & 0xFFFFFFFF, int((seconds - whole) * 2**32))


def answer(request: bytes, received_s: float, now_s: float) -> bytes:
    """The reply to a client's request: version 4, server mode, stratum 3."""
    head = struct.pack("!BBbb", 0 << 6 | 4 << 3 | 4, 3, 4, -20) + struct.pack("!II", 0, 0x10) + b"\xa9\xfe\xa9\x7a"
    return head + stamp(received_s) + request[40:48] + stamp(received_s) + stamp(now_s)


def serve(interface: str) -> None:
    """Answer on one interface until the process ends: each bed has the address on a bridge of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        source.bind((ADDRESS, PORT))
        while True:
            request, client = source.recvfrom(512)
            received = time.time()
            if len(request) >= REQUEST_BYTES:
                source.sendto(answer(request, received, time.time()), client)
