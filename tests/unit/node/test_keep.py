"""The kept copy of the node library: private, whole or not at all, and never in the way."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from flightline_node import keep
from tools import nodepackage


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return keep


def archive(tmp_path, **files):
    path = tmp_path / "payload.zip"
    with zipfile.ZipFile(path, "w") as target:
        for name, text in {"__init__": "", "node": "", "checks/a": "A = 1", **files}.items():
            target.writestr(f"ansible/module_utils/flightline_node/{name}.py", text)
    return [f"{path}/ansible/module_utils/flightline_node"]


def used(compiled, path, key="one"):
    compiled.use(path, key)
    return path


def test_the_same_version_is_kept_once_and_a_new_one_beside_it(compiled, tmp_path):
    first, second = used(compiled, archive(tmp_path)), used(compiled, archive(tmp_path))
    assert first[0] == second[0] and (Path(first[0]) / "checks/a.py").read_text() == "A = 1"
    assert first[1].endswith("payload.zip/ansible/module_utils/flightline_node"), "the archive stays as the fallback"
    other = used(compiled, archive(tmp_path, __init__="B = 2"), "two")
    assert other[0] != first[0] and (Path(other[0]) / "__init__.py").read_text() == "B = 2" and Path(first[0]).is_dir()
    assert Path(first[0]).parents[1].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("key", ["", "../elsewhere", "a/b"])
def test_nothing_is_kept_without_a_plain_key(compiled, tmp_path, key):
    assert len(used(compiled, archive(tmp_path), key)) == 1
    assert not (tmp_path / "home/.ansible").exists()


def test_another_python_compiles_the_copy_for_itself(compiled, tmp_path):
    kept = Path(used(compiled, archive(tmp_path))[0])
    for path in kept.rglob("*.pyc"):
        path.unlink()
    (kept.parent / "python").write_text("/usr/bin/another\n")
    used(compiled, archive(tmp_path))
    assert Path(compiled.compiled_mark(str(kept.parent))).exists()
    assert (kept.parent / "python").read_text() == f"{sys.executable}\n"


@pytest.mark.parametrize("trouble", ["no home", "foreign", "not an archive", "file in the way"])
def test_what_cannot_be_kept_is_imported_from_the_archive(compiled, tmp_path, monkeypatch, trouble):
    path = archive(tmp_path)
    if trouble == "no home":
        monkeypatch.setenv("HOME", "/proc/nowhere")
    elif trouble == "foreign":
        used(compiled, archive(tmp_path))
        os.chmod(tmp_path / "home/.ansible/flightline", 0o777)
    elif trouble == "not an archive":
        Path(path[0].split(".zip")[0] + ".zip").write_text("no zip")
    else:
        (tmp_path / "home/.ansible").write_text("")
    before = list(path)
    assert used(compiled, path) == before


def test_an_installed_library_is_left_alone(compiled):
    assert len(used(compiled, ["/usr/lib/python3/dist-packages/ansible/module_utils/flightline_node"])) == 1


def test_the_copy_is_compiled_at_once(compiled, tmp_path):
    path = used(compiled, archive(tmp_path))
    assert list(Path(path[0]).rglob("__pycache__/a.*.pyc"))


def test_old_versions_are_removed(compiled, tmp_path):
    path = used(compiled, archive(tmp_path))
    os.utime(Path(path[0]).parent, (0, 0))
    used(compiled, archive(tmp_path, __init__="C = 3"), "two")
    assert not Path(path[0]).exists()


def test_a_package_installs_itself_compiled_for_all_and_takes_older_versions_away(tmp_path):
    package = nodepackage.build(tmp_path / "flightline-node.pyz").path
    base = tmp_path / "opt"
    (base / "0123456789abcdef" / "flightline_node").mkdir(parents=True)
    (base / "site").mkdir()
    command = [sys.executable, "-I", str(package), "install", str(base)]
    first = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "", "nothing to do"
    library = nodepackage.LIBRARY
    key = keep.key_of(keep.sources(library))
    assert first == f"installed {base / key}\n"
    assert {path.name for path in base.iterdir()} == {key, "site"}
    assert os.path.exists(keep.compiled_mark(str(base / key)))
    assert (base / key).stat().st_mode & 0o777 == 0o755
    (base / key / "flightline_node" / "model.py").write_text("x = 1\n")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == first, "repaired"
    assert (base / key / "flightline_node" / "node.py").stat().st_mode & 0o777 == 0o644


def test_a_package_that_cannot_be_installed_says_why(tmp_path):
    package = nodepackage.build(tmp_path / "flightline-node.pyz").path
    done = subprocess.run(
        [sys.executable, "-I", str(package), "install", str(tmp_path / "nowhere")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "saw:" in done.stderr and "Traceback" not in done.stderr
