"""Role training."""


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Another launcher or unit, and a node that is not go trains, or a run ends without its checkpoint."""
    as_the_role_writes_it()
