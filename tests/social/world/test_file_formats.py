"""Users' files: what separates columns, and in which letters they are written."""

import gzip

import pytest
from user_files import written
from worlds import small

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.follows import load_network

# -- what stands between, and in which letters ---------------------------------------------------------


@pytest.mark.parametrize(("delimiter", "said"), [(";", "';'"), ("\t", "tabs")])
def test_a_file_is_separated_by_what_stands_there_and_that_is_said(tmp_path, delimiter, said):
    edges = written(tmp_path / "e.csv", f"src{delimiter}dst\n1{delimiter}2\n2{delimiter}3\n")
    posts = written(tmp_path / "p.csv", f'text{delimiter}author\n"a, b{delimiter} c"{delimiter}1\n')
    profiles = written(tmp_path / "a.csv", f"agent{delimiter}activity\n1{delimiter}0.25\n")
    model = small(network_edges=edges, posts_file=posts, agents_profiles=profiles)
    assert list(model.population.ids) == ["1", "2", "3"]
    assert model.posts.texts[0] == f"a, b{delimiter} c"
    assert model.agent(0).activity == 0.25
    for key in ("network.edges", "posts.file", "agents.profiles"):
        assert f"{key}: read as separated by {said}" in model.notes


def test_other_columns_separated_by_something_else_are_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"no column 'src' \(it is separated by ';' and has: one, two\)"):
        load_network(written(tmp_path / "e.csv", "one;two\n1;2\n"))
    with pytest.raises(
        DataError, match=r"no column 'src' \(it is separated by tabs and has: Src, dst\)\. Did you mean"
    ):
        load_network(written(tmp_path / "f.csv", "Src\tdst\n1\t2\n"))
    with pytest.raises(DataError, match="2 columns are called 'dst'"):
        load_network(written(tmp_path / "g.csv", "src,dst,dst\n1,2,3\n"))


def test_blanks_around_names_and_ids_are_none_of_them(tmp_path):
    _, ids = load_network(written(tmp_path / "e.csv", "src, dst\n1, 2\n 2,3 \n ,4\n"))
    assert list(ids) == ["1", "2", "3"]


def test_letters_that_are_not_utf_8_are_placed_and_latin_1_is_tried(tmp_path):
    head = b"text,author\n" + b"hello,a\n" * 200_000
    for name in ("p.csv", "p.csv.gz"):
        file = written(tmp_path / name, head + b"caf\xe9,b\n")
        with pytest.raises(
            DataError, match=r"can't decode byte 0xe9 in position 1600015 \(line 200002\).*latin-1"
        ) as caught:
            load_corpus(file)
        assert str(caught.value).startswith(f"posts.file: {tmp_path / name}: cannot be read: ")
        assert "\n" not in str(caught.value)
        assert "café" in load_corpus(file, FilesParams(encoding="latin-1")).texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_a_file_is_read_in_the_encoding_that_is_given(tmp_path, encoding):
    file = written(tmp_path / "e.csv", "src,dst\nañn,bö\n".encode(encoding))
    assert list(load_network(file, files=FilesParams(encoding=encoding))[1]) == ["añn", "bö"]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (gzip.compress(b"src,dst\n1,2\n"), r"it is packed with gzip: rename it to end in \.csv\.gz"),
        ("src,dst\n1,2\n".encode("utf-16"), r"set files\.encoding=utf-16"),
        (b"PK\x03\x04\x14\x00\xff", "it is a zip file, perhaps of a spreadsheet: save the table as CSV"),
    ],
    ids=["gzip", "utf-16", "zip"],
)
def test_a_file_that_is_something_else_is_called_so(tmp_path, content, hint):
    with pytest.raises(DataError, match=hint):
        load_network(written(tmp_path / "e.csv", content))


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_a_file_that_is_utf_8_and_read_in_another_encoding_is_said(tmp_path, name):
    def notes(content, encoding):
        return load_network(written(tmp_path / name, content), files=FilesParams(encoding=encoding))[0].notes

    said = "network.edges: read as latin-1 (files.encoding), but it is valid UTF-8"
    text = "src,dst\nzoë,bo\n"
    assert notes(text.encode("utf-8"), "latin-1") == (said,)
    assert notes(text.encode("utf-8"), "utf8") == notes(text.encode("latin-1"), "latin-1") == ()
    assert notes(text.encode("utf-16"), "utf-16") == notes(b"src,dst\nzoe,bo\n", "latin-1") == ()


@pytest.mark.parametrize("name", ["utf-9", "base64"])
def test_an_encoding_that_is_none_of_text_is_a_config_error(name):
    with pytest.raises(ConfigError, match=r"files\.encoding: .*give a text encoding \(utf-8, latin-1"):
        small(files_encoding=name)
