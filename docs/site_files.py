"""Files of the repository as pages of the site: notebooks with their output, and sources that pages link to.

Links in pages name files by their place in the repository, so they work in a clone too. The site uses other names.
"""

import base64
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = "docs/"
LINK: Final = re.compile(
    r"(?P<code>^(```|~~~).*?^\2|`[^`\n]*`)|(?P<open>\]\()(?P<to>[^)\s#]+)", re.DOTALL | re.MULTILINE
)
_OUTSIDE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|/")
_PICTURES: Final = (".png", ".svg", ".jpg")
_LANGUAGES: Final = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".sh": "bash"}
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def uri_of(path: str) -> str:
    """Return the address in the site of a file; `path` starts at the root of the repository."""
    suffix = PurePosixPath(path).suffix
    if path.startswith(DOCS) and suffix in (".md", *_PICTURES):
        return path.removeprefix(DOCS)
    if suffix == ".ipynb":
        return path.removesuffix(suffix) + ".md"
    return f"repository/{path}" + ("" if suffix in (".md", *_PICTURES) else ".md")


def linked_files(text: str, path: str) -> list[str]:
    """Return the files that a page links to, as paths from the root of the repository."""
    return [target for link in LINK.finditer(text) if (target := _target(link, path))]


def with_links_of_the_site(text: str, path: str) -> str:
    """Return a page whose links point to the site's files; `path` is the page's own."""
    here = posixpath.dirname(uri_of(path)) or "."

    def site_link(link: re.Match[str]) -> str:
        target = _target(link, path)
        if not target or not (ROOT / target).exists():  # pictures of notebooks lie beside their page
            return link[0]
        return f"{link['open']}{posixpath.relpath(uri_of(target), here)}"

    return LINK.sub(site_link, text)


def _target(link: re.Match[str], path: str) -> str | None:
    if link["code"] or _OUTSIDE.match(link["to"]):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link["to"]))
    readme = f"{target}/README.md"
    return readme if (ROOT / readme).is_file() else target


def page_of(path: str) -> tuple[str, dict[str, bytes]]:
    """Return a file as Markdown, and its pictures by their names beside the page."""
    file = ROOT / path
    if file.suffix == ".ipynb":
        return _notebook(json.loads(file.read_text(encoding="utf-8")), file.stem)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text, {}
    return f"# {path}\n\n{_fenced(text, _LANGUAGES.get(file.suffix, 'text'))}\n", {}


def _notebook(notebook: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source.strip():
            parts.append(_fenced(source, "python"))
        for output in cell.get("outputs", ()):
            parts += _output(output, stem, pictures)
    return "\n\n".join(parts) + "\n", pictures


def _output(output: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Yield the picture of a cell, else its table, else its text."""
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode("".join(data["image/png"]))
        yield f"![What the cell above draws]({name})"
    elif "text/html" in data:
        yield f'<div class="output">{_one_block("".join(data["text/html"]))}</div>'
    elif text := "".join(output.get("text", data.get("text/plain", ""))):
        yield _fenced(_COLOURS.sub("", text), "text")


def _one_block(html: str) -> str:
    """Return HTML without blank lines, which end a block in Markdown, and without styles."""
    return re.sub(r"\n\s*\n", "\n", re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)).strip()


def _fenced(text: str, language: str) -> str:
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"
