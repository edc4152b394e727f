"""The programs that roles install: short files that start what the node package has."""

import subprocess

import pytest

from tests.node_programs import INSTALLERS, installed


def called(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("word", INSTALLERS)
def test_a_program_is_that_of_the_package(word, tmp_path):
    done = called(installed(word, tmp_path), "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: flightline-{word} ")


@pytest.mark.parametrize("word", INSTALLERS)
def test_a_node_without_the_package_is_said_in_one_sentence(word, tmp_path):
    program = installed(word, tmp_path)
    (tmp_path / "flightline-node.pyz").unlink()
    done = called(program)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"wanted {tmp_path}/flightline-node.pyz; do: run the role flightline_node" in done.stderr
