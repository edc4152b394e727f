"""What is installed in a cluster from elsewhere is one version, from a source that answers over TLS."""

import re
from typing import Iterator

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import look, require

RELEASE = "kubernetes:helm.sh/v3:Release"
_ONE_VERSION = r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?"
_OVER_TLS = ("https://", "oci://")


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Helm releases."""
    if resource.type_ != RELEASE:
        return
    version = look(resource.props, "version")
    if version is UNKNOWN:
        yield Unsure("version is known only during the update")
    elif not re.fullmatch(_ONE_VERSION, str(version or "")):
        yield Broken(f"version is {version or 'not set'}; one version is wanted, not a range and not the newest")
    repository = look(resource.props, "repositoryOpts.repo") or look(resource.props, "chart")
    if repository is UNKNOWN:
        yield Unsure("repositoryOpts.repo is known only during the update")
    elif not str(repository or "").startswith(_OVER_TLS):
        yield Broken(f"repositoryOpts.repo is {repository or 'not set'}; an https:// or oci:// source is wanted")
    yield from require(resource.props, "atomic", True)


RULE = Rule("pinned-charts", "A chart runs with rights on every node: what runs is what was read.", check)
