"""The lists of checks, parsers and roles are what stands in their folders."""

import pytest
import yaml

from tools import registries


def test_the_lists_are_as_the_folders_say():
    assert registries.old() == {}, "run: python -m tools.registries"


def test_a_new_file_is_listed_though_it_does_not_import_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(registries, "LIBRARY", tmp_path)
    folder = tmp_path / "read" / "parsers"
    folder.mkdir(parents=True)
    (folder / "new.py").write_text("import nowhere\nFILES = ('new.txt',)\nLATER = True\n")
    (folder / "text.py").write_text("WORDS = 1\n")
    block = "\n".join(registries.parsers())
    assert 'Parser("new", ("new.txt",), _later("new")),' in block
    assert "text" not in block.replace("new.txt", "")


def _role(root, name, site):
    meta = root / "roles" / name / "meta"
    meta.mkdir(parents=True)
    if site:
        (meta / "site.yml").write_text(site)


def test_a_new_role_has_its_place_and_its_group_by_its_own_file(tmp_path, monkeypatch):
    monkeypatch.setattr(registries, "ROOT", tmp_path)
    _role(tmp_path, "last", "{hosts: [gpu_nodes], after: [new]}")
    _role(tmp_path, "first", "{hosts: [gpu_nodes]}")
    _role(
        tmp_path,
        "new",
        "{hosts: [gpu_nodes, slurm_controller], after: [first], when: has.efa, also: [first], needs: [first]}",
    )
    _role(tmp_path, "only_included", "")
    first, new, last = yaml.safe_load("\n".join(registries.roles()))
    assert [one["vars"]["flightline_role"] for one in (first, new, last)] == ["first", "new", "last"]
    assert new["tags"] == ["new", "first"]
    assert new["when"] == "'new' in group_names and has.efa and 'first' not in refused"
    assert first["rescue"] == last["rescue"] and "flightline_refused" in str(last["rescue"])
    assert list(registries.groups())[2:4] == ["    new:", "      children: {gpu_nodes: {}, slurm_controller: {}}"]


@pytest.mark.parametrize("after, said", [("other", "each after the other"), ("nobody", "'nobody'")])
def test_roles_without_an_order_are_refused(tmp_path, monkeypatch, after, said):
    monkeypatch.setattr(registries, "ROOT", tmp_path)
    _role(tmp_path, "one", f"{{hosts: [gpu_nodes], after: [{after}]}}")
    _role(tmp_path, "other", "{hosts: [gpu_nodes], after: [one]}")
    with pytest.raises(ValueError, match=said):
        list(registries.roles())
