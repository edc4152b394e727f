"""The report of a run: terminal, JSON, JUnit and HTML from one model."""

from __future__ import annotations

from .files import Records, existing, opened, write_all

__all__ = ["Records", "existing", "opened", "write_all"]
