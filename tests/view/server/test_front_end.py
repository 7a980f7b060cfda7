"""The page's front end: fetched once, each file checked, and a line where it is not there."""

import io
import json
import stat
import tarfile

import httpx
import pytest

from prism_mesa.view.server import front_end
from prism_mesa.view.server.front_end import (
    FrontEndError,
    fetch_front_end,
    find_faults,
    needed_files,
    read_packages,
    sha512_digest,
)
from prism_mesa.view.server.serving import unknown_files, with_notices

CONTENT = {"a.js": b"const a = 1;", "dist/b.css": b"b { color: red }"}


def packed(content=CONTENT):
    """Return the archive of a package with some files, as npm makes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture
def pinned(tmp_path):
    """Packages that a file pins, and the archive of the one among them."""
    archive = packed()
    pins = tmp_path / "pins.json"
    files = {name: sha512_digest(data) for name, data in CONTENT.items()}
    pins.write_text(json.dumps({"@of/it@1.0.0": {"integrity": sha512_digest(archive), "files": files}}))
    return read_packages(pins), archive


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Let a script play npm, which gives an archive."""

    def play(archive):
        tgz = tmp_path / "packed.tgz"
        tgz.write_bytes(archive)
        command = tmp_path / "bin" / "npm"
        command.parent.mkdir(exist_ok=True)
        gives = f'for one in "$@"; do case $one in --pack-destination=*) cp {tgz} "${{one#*=}}/it.tgz";; esac; done'
        command.write_text(f"#!/bin/sh\n{gives}\n")
        command.chmod(command.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setattr(front_end.shutil, "which", lambda name: str(command))

    return play


def test_a_file_that_was_changed_is_found_and_fetched_again(tmp_path, pinned, npm):
    of, archive = pinned
    npm(archive)
    fetch_front_end(tmp_path, of)
    (tmp_path / "@of/it@1.0.0/a.js").write_text("steal();")
    assert find_faults(tmp_path, of) == {"@of/it@1.0.0/a.js": "damaged"}
    assert fetch_front_end(tmp_path, of) == ["@of/it@1.0.0/a.js"]
    assert find_faults(tmp_path, of) == {}


def test_another_package_under_the_same_name_is_not_kept(tmp_path, pinned, npm):
    of, _ = pinned
    npm(packed({"a.js": b"steal();", "dist/b.css": b""}))
    with pytest.raises(FrontEndError, match=r"^@of/it@1.0.0: the package that npm fetched is not the one"):
        fetch_front_end(tmp_path / "cdn", of)
    assert not any((tmp_path / "cdn").rglob("*.js"))


@pytest.mark.parametrize("copies", [1, 2])
def test_without_npm_its_files_come_from_where_solara_is_set_to(tmp_path, pinned, monkeypatch, copies):
    def answer(request):
        return httpx.Response(200, content=CONTENT[request.url.path.removeprefix("/npm/@of/it@1.0.0/")] * copies)

    client, (of, _) = httpx.Client, pinned
    monkeypatch.setattr(front_end.shutil, "which", lambda name: None)
    monkeypatch.setattr("solara.settings.assets.cdn", "https://cdn.example/npm/")
    monkeypatch.setattr(httpx, "Client", lambda **options: client(transport=httpx.MockTransport(answer), **options))
    if copies == 1:
        assert len(fetch_front_end(tmp_path, of)) == 2
        assert find_faults(tmp_path, of) == {}
    else:
        with pytest.raises(FrontEndError, match=r"a.js is not the file that PRISM was tested with"):
            fetch_front_end(tmp_path, of)


PAGE = '<html><head><meta name="viewport" content="user-scalable=no"></head><body data-x="1">it</body></html>'


def test_a_page_of_solara_gets_a_line_for_browsers_in_which_it_stays_white():
    page = with_notices(PAGE)
    assert page.startswith('<html lang="en">')
    assert "user-scalable=no" not in page
    assert (
        page.index('<body data-x="1"><noscript>') < page.index("This page needs JavaScript") < page.index("it</body>")
    )


def test_files_of_another_front_end_are_noticed_before_the_page_stays_white():
    known = next(iter(needed_files()))
    assert unknown_files(f'<script src="/_solara/cdn/{known}"></script>') == []
    other = "@widgetti/solara-vuetify3-app@9.9.9/dist/fonts.css"
    assert unknown_files(f'<link href="/_solara/cdn/{other}?v=1">') == [other]
