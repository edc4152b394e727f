"""Flightline's node library: probe a node, parse what its tools print, judge it.

Standard library only, Python 3.8 to 3.13, so that it runs wherever Ansible does.
Everything downstream of a bundle (a directory of raw tool outputs) is pure.
"""

__version__ = "0.1.0"
