"""report.html: one file that opens anywhere, offline, and asks nothing of any network.

The style and the script stand in the page; its security policy names them by hash, so that nothing else runs even
if a text from a node were to end up as markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import IO

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from flightline.fleet.result import Report

from .compact import compact
from .view import view

TEMPLATES = "templates"


def write(report: Report, stream: IO[str], links: Mapping[str, str]) -> None:
    """Write the page. links: title -> relative address of the report's other files."""
    environment = Environment(
        loader=PackageLoader("flightline.report", TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _asset("report.css"), _asset("report.js")
    page = view(report)
    parts = environment.get_template("report.html.j2").generate(
        page=page,
        data=compact(report, page.detailed),
        links=links,
        style=Markup(style),  # noqa: S704 - our own file, shipped beside this one
        script=Markup(script),  # noqa: S704 - our own file, shipped beside this one
        policy=policy(style, script),
    )
    for part in parts:
        stream.write(part)


def policy(style: str, script: str) -> str:
    """Write the Content-Security-Policy: our style and our script, and nothing from anywhere else."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _asset(name: str) -> str:
    return resources.files("flightline.report").joinpath(TEMPLATES, name).read_text(encoding="utf-8")
