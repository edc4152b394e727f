"""Every limit on what a node may say, and how long it may take; both sides read them here.

A node cuts what it says to these sizes and says so (fit.py). What comes in beyond them is refused, not cut: a cut
answer is no whole answer, and only a whole one can be go.
"""

from __future__ import annotations

from typing import Mapping

MAX_RECORD_BYTES = 1 << 20
"""A record as JSON. One of a node with eight GPUs has 17 KB, the largest seen with a made fault 47 KB."""
MAX_BUNDLE_BYTES = 3 << 20
"""A packed bundle, before base64. Only when asked for; it is held in memory several times over on the control node."""
MAX_BUNDLE_TEXT = 10 << 20
"""Its base64: a third longer, and the last file that was packed may exceed the limit by its own size."""
MAX_BUNDLE_FILE_BYTES = 4 << 20
"""Of a longer file its end travels: the newest kernel messages, the last lines of a test."""
MAX_JUDGED_FILES = 2000
"""Of a bundle that is judged again: some dozen are of probes, the rest of whoever packed it."""
MAX_JUDGED_FILE_BYTES = 1 << 30
"""Of one that is not packed: a kernel log is mapped, what other tools print is held in memory."""
MAX_UNPACKED_FILE_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 128 << 20
"""Of a packed file of a bundle and of all together, unpacked: a few KiB can unpack to more than a disk holds."""
MAX_CHATTER_BYTES = 1 << 20
"""What a login shell or Ansible's wrapper prints around the answer."""
MAX_GROWTH_BYTES = 24 << 20
"""How much the control node's worker of one host may grow while it listens: the wrapper of a first call takes 12 MB."""
CLIENT_GROWTH_BYTES = 40 << 20
"""And where the connection loads a client of its own for it: boto3's for aws_ssm took 19 MB, and 24 to import."""
GROWTH_PER_BYTE = 6
"""Copies of an answer that Ansible's connection holds at once: pieces, whole, with escalation, text, lines, JSON."""

MAX_FINDINGS = 512
MAX_MESSAGE_CHARS = 2000
MAX_VALUE_CHARS = 1000
"""A measured or expected value, as JSON."""
MAX_TEXT_CHARS = 500
MAX_NAME_CHARS = 255
MAX_WORD_CHARS = 64
MAX_EVIDENCE = 9
"""Lines of a finding's evidence: eight, and the word that there are more (model.clip_evidence)."""
MAX_EVIDENCE_CHARS = 304
MAX_DEPTH = 4
MAX_PARTS = 64
"""GPUs or other accelerators of a node."""
MAX_DEVICE_KEYS = 16
MAX_MEASURES = 512
MAX_VALUES = 512
"""Devices of one measure."""
MAX_PROBES = 256
MAX_VERSIONS = 64
MAX_WAIVERS = 256
MAX_NUMBER = 1e30
"""Above every counter of 64 bits; a larger one is damage."""

SHOWN_CHARS = 200
"""Of a refused answer its beginning is shown, escaped."""
SAID_CHARS = 1000
"""Of what Ansible, a connection or a dying tool says."""

DEADLINE_S: Mapping[str, int] = {"quick": 180, "standard": 6000, "deep": 18000}
"""A node at a level, from the first byte to the last. Above the sum of the level's probes' own deadlines (a test adds
them up), which end first; a quick node answers within 10 s, the rest is for a slow connection that sends the module."""
MAX_DEADLINE_S = 7 * 86_400
NODE_GRACE_S = 15
"""After the control side has given up, the call on the node ends itself."""
