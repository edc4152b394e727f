"""Questions to AWS before any resource: an answer that is an error ends the run with words, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import pulumi


@contextmanager
def aws_query(what: str, to_do: str) -> Iterator[None]:
    """Ask AWS for something. Raises pulumi.RunError, which Pulumi shows as it is."""
    try:
        yield
    except Exception as error:  # the SDK raises Exception itself, whatever went wrong
        raise pulumi.RunError(
            f"AWS did not tell about {what}, so nothing was created.\n  Saw: {error}\n  Wanted: an answer\n  Do: check "
            f"the credentials (`aws sts get-caller-identity`), or {to_do}."
        ) from None
