"""What the documentation of every module of library/ says: author, and what holds in check mode and diff mode."""

from __future__ import annotations


class ModuleDocFragment:
    """Ansible's name for it. What a module says of an attribute itself goes before this."""

    DOCUMENTATION = r"""
version_added: "0.1.0"
author:
  - Flightline contributors (@flightline)
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    description: Nothing is changed.
"""
