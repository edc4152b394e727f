"""The lists of checks and parsers are what stands in their folders."""

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
