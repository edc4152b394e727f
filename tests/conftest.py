"""Hypothesis on a busy machine: how long an example takes says nothing of the code."""

import os
from contextlib import suppress

# The compliance suite runs on control nodes that have requirements.txt only, without hypothesis.
with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    if not os.environ.get("CI"):  # there Hypothesis has a profile of its own, which repeats the same examples
        settings.load_profile("busy")
