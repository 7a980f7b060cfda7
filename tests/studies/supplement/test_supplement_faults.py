"""Archives from anybody: damaged, changed, or made to do harm."""

import json
import zipfile
from contextlib import suppress

import pytest

from prism_mesa.errors import DataError
from prism_mesa.studies.supplement import zip_files
from prism_mesa.studies.supplement.checking import check
from prism_mesa.studies.supplement.packed import crate_metadata
from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, Action, Cleaner, Contents, checksums

FACTS = {"title": "t", "published": "2026-01-01", "version": "1", "license": None, "author": None}


@pytest.fixture
def whole(tmp_path):
    """The files of a whole archive, made by hand."""
    contents = Contents("run", "r", Cleaner(environment={}))
    names = ("manifest.json", "config.yaml", "versions.json", "README.md", "rounds.parquet")
    contents.files |= {name: name.encode() for name in names}
    own = {"format": 1, "kind": "run", "name": "r", "left_out": []}
    contents.files["archive.json"] = json.dumps(own).encode()
    contents.actions.append(
        Action("#run-r", "a run", "prism run", None, None, "", "", ("config.yaml",), ("rounds.parquet",))
    )
    contents.files[CRATE] = crate_metadata(contents, FACTS)
    contents.files[CHECKSUMS] = checksums(contents.files)
    return contents.files


def written(tmp_path, files):
    file = tmp_path / "a.zip"
    zip_files.write_zip(file, files)
    return file


def test_a_whole_archive_has_no_fault(whole, tmp_path):
    found = check(written(tmp_path, whole))
    assert (found.faults, found.kind, found.name, found.files) == ((), "run", "r", 8)


def test_what_is_changed_missing_or_added_is_said_in_a_line_each(whole, tmp_path):
    lost = dict(whole)
    del lost["rounds.parquet"], lost["versions.json"]
    faults = check(written(tmp_path, lost | {"config.yaml": b"other", "more.txt": b"?"})).faults
    assert faults == (
        "versions.json: is missing from an archive of a run",
        "config.yaml: was changed (its SHA-256 differs from manifest-sha256.txt)",
        "rounds.parquet: is missing",
        "versions.json: is missing",
        "more.txt: was added (not in manifest-sha256.txt)",
    )
    with pytest.raises(DataError, match=r"archive\.json is missing"):
        check(written(tmp_path, {"x": b""}))


def test_the_crate_describes_every_file_and_what_each_run_read_and_made(whole):
    graph = {entity["@id"]: entity for entity in json.loads(whole[CRATE])["@graph"]}
    files = {name for name, entity in graph.items() if entity["@type"] == "File"}
    assert files == whole.keys() - {CRATE}
    assert {part["@id"] for part in graph["./"]["hasPart"]} == files
    run = graph["#run-r"]
    assert (run["object"], run["result"]) == ([{"@id": "config.yaml"}], [{"@id": "rounds.parquet"}])
    assert run["instrument"]["@id"] in graph


@pytest.mark.parametrize("raw", [b"[]", b'{"kind": ["run"], "left_out": 3}', b"\xff"])
def test_facts_that_are_none_are_a_fault_and_no_error(whole, tmp_path, raw):
    assert check(written(tmp_path, whole | {"archive.json": raw})).faults


@pytest.mark.parametrize("name", ["../out.txt", "/abs.txt", "a/../../b", "c:\\x", "a\\..\\b", "a//b", "folder/", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused_before_anything_is_written(tmp_path, name):
    file = tmp_path / "bad.zip"
    with zipfile.ZipFile(file, "w") as packed:
        entry = zipfile.ZipInfo("placeholder")
        entry.filename = entry.orig_filename = name
        packed.writestr(entry, b"harm")
    with pytest.raises(DataError, match=r"leads out of|is not a valid name"):
        check(file, out=tmp_path / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.zip"]


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_files, "_ALLOWANCE", 10_000)
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros", bytes(5_000_000))
    with pytest.raises(DataError, match="unpacks to 5,000,000 bytes"):
        check(file, out=tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_zip_that_is_damaged_anywhere_is_a_line_and_never_a_traceback(whole, tmp_path):
    raw = written(tmp_path, whole).read_bytes()
    bad = tmp_path / "bad.zip"
    for place in range(0, len(raw), 61):
        bad.write_bytes(raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :])
        with suppress(DataError):
            check(bad)
    for end in (0, 10, len(raw) // 2, len(raw) - 5):
        bad.write_bytes(raw[:end])
        with pytest.raises(DataError, match="is not an archive"):
            check(bad)


def test_an_archive_is_unpacked_only_whole_and_only_into_an_empty_folder(whole, tmp_path):
    file, there = written(tmp_path, whole), tmp_path / "there"
    there.mkdir()
    (there / "mine").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        check(file, out=there)
    assert [path.name for path in there.iterdir()] == ["mine"]
    changed = written(tmp_path, whole | {"config.yaml": b"other"})
    assert check(changed, out=tmp_path / "other").faults
    assert not (tmp_path / "other").exists()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match="is not empty"):
        check(written(tmp_path, whole), out=tmp_path / "link")


def test_the_folder_of_an_archive_is_checked_as_the_archive_and_no_link_in_it_is_followed(whole, tmp_path):
    there = tmp_path / "there"
    check(written(tmp_path, whole), out=there)
    assert check(there).faults == ()
    (there / "rounds.parquet").write_bytes(b"other")
    assert check(there).faults == ("rounds.parquet: was changed (its SHA-256 differs from manifest-sha256.txt)",)
    (there / "rounds.parquet").unlink()
    (there / "rounds.parquet").symlink_to("/etc/passwd")
    with pytest.raises(DataError, match=r"rounds\.parquet: is a link"):
        check(there)


CLEANED = [
    ("/home/ann/work/edges.csv", "[removed]/edges.csv"),
    (r"C:\Users\ann\edges.csv", "[removed]/edges.csv"),
    ("edges in /srv/data/x.csv, line 3", "edges in [removed]/x.csv, line 3"),
    ("https://doi.org/10.18564/jasss.4259", "https://doi.org/10.18564/jasss.4259"),
    ("results/run-1/rounds.parquet", "results/run-1/rounds.parquet"),
    ("http://me:pass@host:1/v1", "http://host:1/v1"),
    ("token ghp_abcdefghijklmnopqrstuvwxyz", "token [removed]"),
    ("ann@host:/srv/data/x.csv", "ann@host:[removed]/x.csv"),
    ("no file '/srv/data of mine/x.csv'", "no file '[removed]/x.csv'"),
    ("/s just kidding", "/s just kidding"),
    ("/", "/"),
]


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_paths_and_keys_are_taken_out_of_values_and_nothing_else_is(text, cleaned):
    assert Cleaner(environment={}).clean_value({"a": [text]}) == {"a": [cleaned]}


def test_a_path_that_has_a_name_is_told_by_it_however_often_a_text_is_cleaned():
    cleaner = Cleaner(environment={})
    cleaner.replace_path("/data of mine/edges.csv", "inputs/network-edges.csv")
    cleaner.replace_path("edges.csv", "inputs/network-edges.csv")
    values = ["edges.csv", "/data of mine/edges.csv", "run network.edges='/data of mine/edges.csv'", "edges.csv: no"]
    cleaned = cleaner.clean_value(values)
    name = "inputs/network-edges.csv"
    assert cleaned == [name, name, f"run network.edges='{name}'", "edges.csv: no"]
    assert cleaner.clean_value(cleaned) == cleaned


def test_paths_and_keys_are_found_as_pages_and_json_write_them():
    cleaner = Cleaner(["/data/R&D/ä ann"], environment={"MY_TOKEN": 'a<b"01234'})
    for written in ("/data/R&amp;D/ä ann/x", r"/data/R&D/\u00e4 ann/x"):
        assert cleaner.clean_text(f"<td>{written}</td>") == "<td>[removed]/x</td>"
        assert cleaner.find_leak(written) == "a path of this machine"
    assert cleaner.clean_text("<td>a&lt;b&quot;01234</td>") == "<td>[removed]</td>"
    assert cleaner.find_leak(r'{"a": "a<b\"01234"}') == "a key or password"


def test_a_path_that_was_met_is_taken_out_of_pages_too_and_keys_of_the_environment_are():
    cleaner = Cleaner(
        environment={"MY_TOKEN": "0123456789", "PATH": "/usr/bin", "CREDENTIAL": "short", "LANG": "abcdefghij"}
    )
    cleaner.clean_value({"file": "/data of mine/a.csv"})
    page = "<td>/data of mine/a.csv</td> 0123456789 short abcdefghij data:image/png;base64,aa+/bb/cc/dd=="
    assert cleaner.clean_text(page) == (
        "<td>[removed]</td> [removed] short abcdefghij data:image/png;base64,aa+/bb/cc/dd=="
    )
    assert cleaner.find_leak("x 0123456789") == "a key or password"
    assert cleaner.find_leak("nothing") == ""
