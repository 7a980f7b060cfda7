"""Hooks of MkDocs: the navigation comes from index.md, and files that pages link to become pages."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from site_files import ROOT, linked_files, page_of, uri_of, with_links_of_the_site

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PROMPTED = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
_HEADING = re.compile(r"^(##+) (.+)$")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\)")
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>[^<]*</code>")
_paths: dict[str, str] = {}
"""Paths in the repository of the pages of the site from outside docs/."""


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Take the navigation from the index: headings are groups, links are pages."""
    index = Path(config.docs_dir) / "index.md"
    config.nav = [{"Home": "index.md"}, *nav_of(index.read_text(encoding="utf-8"))]
    return config


def nav_of(index: str) -> list[Any]:
    """Return the navigation of an index: `##` headings are groups, `###` headings are groups in them."""
    groups: list[Any] = []
    inner: list[Any] = groups
    for line in index.splitlines():
        if heading := _HEADING.match(line):
            outer = groups if heading[1] == "##" else next(iter(groups[-1].values()))
            inner = []
            outer.append({heading[2]: inner})
        elif (row := _ROW.match(line)) and groups:
            inner.append({row[1]: uri_of(linked_files(row[0], "docs/index.md")[0])})
    return [group for group in groups if any(group.values())]


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the files that pages link to, and the files that these link to."""
    from mkdocs.structure.files import File

    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        uri = uri_of(path)
        if (ROOT / path).is_dir():
            continue
        text, pictures = page_of(path) if uri.endswith(".md") else ("", {})
        if files.get_file_from_path(uri) is None:
            is_page = uri.endswith(".md")
            content = text if is_page else (ROOT / path).read_bytes()
            files.append(File.generated(config, uri, content=content))
            _paths[uri] = path
        for name, picture in pictures.items():
            files.append(File.generated(config, f"{uri.rpartition('/')[0]}/{name}", content=picture))
        for target in linked_files(text, path) if path.endswith((".md", ".ipynb")) else ():
            if target not in seen and (ROOT / target).exists():
                seen.add(target)
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: "Page", **_: Any) -> str:
    """Turn links to files of the repository into links of the site."""
    uri = page.file.src_uri
    path = _paths.get(uri, f"docs/{uri}")
    if uri.startswith("repository/"):
        page.meta["search"] = {"boost": 0.5}  # pages that explain a key come first
    if path.endswith((".md", ".ipynb")):
        markdown = with_links_of_the_site(markdown, path)
    return PROMPTED.sub("```pycon\n", markdown)


def on_page_content(html: str, **_: Any) -> str:
    r"""Show `\|` in code in tables as `|`, as GitHub does."""
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: code[0].replace(r"\|", "|"), cell[0]), html)
