"""Version numbers, and the table of EFA versions that go together."""

import pytest

from flightline_host import version
from flightline_host.host import Host, Problem
from flightline_host.software import efa_matrix
from flightline_host.software.driver import fabric_manager_package
from flightline_host.system.lnet import spread


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2.3.1amzn1.0", (2, 3, 1)), ("v580.95.05", (580, 95, 5)), ("", ()), (None, ()), ("none", ())],
)
def test_numbers(text, expected):
    assert version.numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "minimum", "expected"),
    [
        ("2.17.3", "2.17.3", True),
        ("2.17", "2.17.0", True),
        ("2.9", "2.17", False),
        (None, "0", False),
        ("10", "9.9", True),
    ],
)
def test_reaches(text, minimum, expected):
    assert version.reaches(text, minimum) is expected


@pytest.mark.parametrize(
    ("text", "pin", "expected"),
    [("580.95.05", "580", True), ("580.95.05", "58", False), ("580", "580.95", False), ("1.2", "", False)],
)
def test_within(text, pin, expected):
    assert version.within(text, pin) is expected


@pytest.mark.parametrize(
    ("package", "expected"), [("1:580.95.05-0ubuntu1", "580.95.05"), ("2.28.3-1+cuda13.0", "2.28.3"), ("1.0", "1.0")]
)
def test_upstream(package, expected):
    assert version.upstream(package) == expected


@pytest.mark.parametrize(
    ("driver", "package"), [("580.95.05", "nvidia-fabricmanager"), ("570.172.08", "nvidia-fabricmanager-570")]
)
def test_the_name_of_the_fabric_manager_package(driver, package):
    assert fabric_manager_package(driver) == package


def test_an_unknown_version_does_not_pass_a_minimum():
    found = list(efa_matrix.conflicts(efa_matrix.Stack(), {"efa_driver": "2.17"}))
    assert [problem.seen for problem in found] == ["efa_driver not known"]


def test_spread_takes_devices_at_even_distances():
    assert spread([f"d{index}" for index in range(32)], 8) == [f"d{index}" for index in range(0, 32, 4)]
    assert spread(["a", "b", "c"], 3) == ["a", "b", "c"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    host = Host(root=str(tmp_path))
    host.write("/etc/x", "old")
    monkeypatch.setattr("pathlib.Path.write_text", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        host.write("/etc/x", "new")
    assert host.read("/etc/x") == "old"
    assert [path.name for path in (tmp_path / "etc").iterdir()] == ["x"]


def test_a_program_that_is_not_there_is_a_problem_and_no_traceback():
    with pytest.raises(Problem, match="no-such-program ended with 127"):
        Host().change(["no-such-program"], "it", "install it")
