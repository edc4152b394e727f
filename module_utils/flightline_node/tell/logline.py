"""One record per log line: how a node's results travel through a log to the storage function, and back.

CloudWatch Logs takes an event of at most 256 KiB with 26 bytes of its own (PutLogEvents, AWS API reference) and the
agent cuts longer lines off, so a record that does not fit is compressed, and when that is too long as well it is
cut into parts, one line each. A line is plain JSON in ASCII: bytes are characters, and Logs Insights can query it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..read.strictjson import once

MARK = "flightline-log/"
FORMAT = MARK + "1"
KINDS = ("node", "training")
TRAINING_STREAM = "-training"
"""After the instance's id, the log stream of what training jobs write: their user may say nothing of a node there."""
MAX_LINE_BYTES = 240_000
MAX_RECORD_BYTES = 8 * 1024 * 1024
"""A record of a node with hundreds of findings is far below; what unpacks to more is damage or an attack."""
MAX_PARTS = 64
PLAIN, PACKED = "json", "zlib+base64"


class LineError(ValueError):
    """A line that claims to be ours and cannot be read; the text says what was seen and wanted."""


class Piece(NamedTuple):
    """One line: a whole record (parts is 1) or one part of it. data: text of the encoding."""

    kind: str
    id: str
    run: str
    part: int
    parts: int
    encoding: str
    data: str


def lines(kind: str, run_id: str, record: Dict[str, Any], limit: int = MAX_LINE_BYTES) -> List[str]:
    """A record as log lines without line ends. Raises LineError for an unknown kind or a record beyond all limits."""
    if kind not in KINDS:
        raise LineError(f"kind {kind!r}: wanted one of {', '.join(KINDS)}")
    text = json.dumps(record, separators=(",", ":"), sort_keys=True, default=str)
    if len(text) > MAX_RECORD_BYTES:
        raise LineError(f"a record of {len(text)} bytes: at most {MAX_RECORD_BYTES}")
    key = _digest(kind, run_id, text)
    head = _line(kind, key, run_id, 1, 1, PLAIN, text)
    if len(head) <= limit:
        return [head]
    packed = base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")
    room = limit - len(_line(kind, key, run_id, MAX_PARTS, MAX_PARTS, PACKED, ""))
    if room <= 0 or len(packed) > room * MAX_PARTS:
        raise LineError(f"a record of {len(text)} bytes does not fit into {MAX_PARTS} lines of {limit} bytes")
    chunks = [packed[start : start + room] for start in range(0, len(packed), room)]
    return [_line(kind, key, run_id, n, len(chunks), PACKED, chunk) for n, chunk in enumerate(chunks, 1)]


def parse(line: str) -> Optional[Piece]:
    """The piece in a line, or None when the line is not ours (another program's). Raises LineError."""
    if MARK not in line[:64]:
        return None
    try:
        found = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON ({error}): the line was cut off or damaged") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise LineError(f"format {found.get('format') if isinstance(found, dict) else found!r}: wanted {FORMAT}")
    return _checked(found)


def join(pieces: Sequence[Piece]) -> Dict[str, Any]:
    """The record of all its pieces, in any order. Raises LineError when one is missing or the content is damaged."""
    first = pieces[0]
    by_part = {piece.part: piece for piece in pieces}
    missing = [str(n) for n in range(1, first.parts + 1) if n not in by_part]
    if missing:
        raise LineError(f"record {first.id}: parts {', '.join(missing)} of {first.parts} are missing")
    data = "".join(by_part[n].data for n in range(1, first.parts + 1))
    text = data if first.encoding == PLAIN else _unpack(data)
    if _digest(first.kind, first.run, text) != first.id:
        raise LineError(f"record {first.id}: its content does not match its id; it was changed on the way")
    try:
        record = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise LineError(f"record {first.id}: {error}") from None
    if not isinstance(record, dict):
        raise LineError(f"record {first.id}: a {type(record).__name__}, wanted an object")
    return record


def _line(kind: str, key: str, run_id: str, part: int, parts: int, encoding: str, data: str) -> str:
    head = {"format": FORMAT, "kind": kind, "id": key, "run": run_id, "part": part, "parts": parts}
    text = json.dumps({**head, "encoding": encoding}, separators=(",", ":"))
    # A plain record goes in as it is, not as a string in a string.
    value = data if encoding == PLAIN else json.dumps(data)
    return f'{text[:-1]},"data":{value}}}'


def _checked(found: Dict[str, Any]) -> Piece:
    kind, part, parts = found.get("kind"), found.get("part"), found.get("parts")
    if kind not in KINDS:
        raise LineError(f"kind {kind!r}: wanted one of {', '.join(KINDS)}")
    if not (isinstance(part, int) and isinstance(parts, int) and 1 <= part <= parts <= MAX_PARTS):
        raise LineError(f"part {part!r} of {parts!r}: wanted 1 to {MAX_PARTS}")
    texts = [found.get(key) for key in ("id", "run", "encoding")]
    if not all(isinstance(text, str) and text for text in texts):
        raise LineError("id, run and encoding are wanted, each as text")
    return _piece(found, str(found["encoding"]), part, parts)


def _piece(found: Dict[str, Any], encoding: str, part: int, parts: int) -> Piece:
    data = found.get("data")
    if encoding == PLAIN and parts == 1 and isinstance(data, dict):
        data = json.dumps(data, separators=(",", ":"), sort_keys=True)
    elif not (encoding == PACKED and isinstance(data, str)):
        raise LineError(f"encoding {encoding!r} with data of {type(data).__name__}")
    return Piece(found["kind"], found["id"], found["run"], part, parts, encoding, data)


def _unpack(data: str) -> str:
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(base64.b64decode(data, validate=True), MAX_RECORD_BYTES).decode("ascii")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise LineError(f"the compressed data cannot be read: {error}") from None
    if not reader.eof:
        raise LineError(f"the compressed data is cut off, or unpacks to more than {MAX_RECORD_BYTES} bytes")
    return text


def _digest(kind: str, run_id: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\n{run_id}\n{text}".encode()).hexdigest()[:32]
