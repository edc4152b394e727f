"""Role training."""

import pytest

from .looking import installed


@pytest.mark.parametrize("entry", installed.of("training"), ids=str)
def test_file_is_as_the_role_writes_it(entry, as_the_role_writes_it):
    """Another launcher or unit, and a node that is not go trains, or a run ends without its checkpoint."""
    as_the_role_writes_it(entry)
