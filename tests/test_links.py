"""Links, paths and names in pages, configurations, notebooks and docstrings exist."""

import ast
import importlib.util
import json
import os
import re
import runpy
from functools import cache
from pathlib import Path

from PIL import Image
from statements import statements_of

from prism_mesa.runs.config import Config, EconomyConfig

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())
PACKAGE = ROOT / "prism_mesa"
NOT_OURS = {"results", "__pycache__"}
HISTORY = "CHANGELOG.md"
FOLDERS = "benchmarks|configs|docs|notebooks|prism_mesa|tests"

FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
KEPT = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*[\w/]")
NAMED = re.compile(r"`((?:[\w-]+/)*(?:[\w-]+\.(?:py|md|yaml|ipynb)|[\w-]+/))`")
GROUPS = {*Config.model_fields, *EconomyConfig.model_fields}
MODULES = {
    str(file.relative_to(PACKAGE).with_suffix("")).replace(os.sep, ".").removesuffix(".__init__"): file.read_text(
        encoding="utf-8"
    )
    for file in PACKAGE.rglob("*.py")
}
DOTTED = re.compile(r"\bprism_mesa(?:\.\w+)+")
TICKED = re.compile(r"(?<!`)`([A-Za-z]\w+)`(?!`)")


def files(*endings):
    """Return our files with these endings, without hidden folders and results."""
    paths = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in NOT_OURS]
        paths += [Path(folder) / name for name in names if name.endswith(endings)]
    return sorted(paths)


def full_text(path):
    """Return the text of a file; of a notebook, the text of its cells without outputs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def prose(path):
    """Return the Markdown of a page or notebook, without code."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = path.read_text(encoding="utf-8")
    return FENCED.sub("", text)


@cache
def anchors(path):
    """Return the anchors that headings of a page make, as GitHub names them: the second of two equal ones gets -1."""
    names = set()
    for heading in HEADING.findall(prose(path)):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        names.add(next(name for n in range(99) if (name := f"{slug}-{n}" if n else slug) not in names))
    return names


def dead_links(page):
    """Return the relative links of a page that lead to no file or heading."""
    dead = []
    for link in LINK.findall(CODE.sub("", prose(page))):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        where, _, anchor = link.partition("#")
        target = (page.parent / where).resolve() if where else page
        has_anchors = target.suffix in (".md", ".ipynb")
        if not target.exists() or (anchor and not (has_anchors and anchor in anchors(target))):
            dead.append(link)
    return dead


@cache
def is_a_path(name):
    """Return whether a file or folder has this path from the root or in the package, or this name in the package."""
    if (ROOT / name).exists() or (PACKAGE / name).exists():
        return True
    return "/" not in name.rstrip("/") and any(PACKAGE.rglob(name.rstrip("/")))


@cache
def is_importable(name):
    """Return whether a name, with slashes for dots, is a module, or occurs in one."""
    *parents, last = name.split("/")
    whole, parent = ROOT.joinpath(*parents, last), ROOT.joinpath(*parents)
    if whole.is_dir() or whole.with_suffix(".py").exists():
        return True
    sources = [source for source in (parent.with_suffix(".py"), *parent.glob("__init__.py*")) if source.exists()]
    return any(re.search(rf"\b{last}\b", source.read_text(encoding="utf-8")) for source in sources)


def by_file(find, paths):
    """Return what a function finds in files, by file."""
    return {str(path.relative_to(ROOT)): names for path in paths if (names := find(path))}


def test_every_relative_link_leads_to_a_file_and_a_heading():
    assert by_file(dead_links, files(".md", ".ipynb")) == {}


def test_every_path_from_the_root_that_a_file_names_is_there():
    def missing(path):
        return [named for named in KEPT.findall(full_text(path)) if not (ROOT / named).exists()]

    checked = files(".md", ".ipynb", ".yaml", ".toml", ".py")
    assert by_file(missing, [path for path in checked if path.name not in (HISTORY, Path(__file__).name)]) == {}


def test_every_source_file_that_a_page_names_is_there():
    packages = "|".join(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists())
    modules = re.compile(rf"(?<![\w/.-])(?:{packages})/\w+(?![\w/.])")  # as in a diagram: without the ending

    def missing(path):
        named = [name for name in NAMED.findall(prose(path)) if not is_a_path(name)]
        return named + [name for name in modules.findall(full_text(path)) if not is_importable(f"prism_mesa/{name}")]

    assert (
        by_file(
            missing, [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("design", "oracle", "round"))]
        )
        == {}
    )


def test_every_module_that_a_document_names_is_there():
    def missing(path):
        return [name for name in DOTTED.findall(full_text(path)) if not is_importable(name.replace(".", "/"))]

    assert by_file(missing, [path for path in files(".md", ".ipynb", ".yaml") if path.name != HISTORY]) == {}


@cache
def docstrings_and_code(module):
    """Return the docstrings of a module and of its parts, and the rest of its lines."""
    lines, docstrings = MODULES[module].split("\n"), []
    for node in statements_of(ast.parse(MODULES[module])):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.append(node.value.value)
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return docstrings, "\n".join(lines)


@cache
def names_something(dotted):
    """Return whether a dotted name is a key, one of our modules, a name in one, or a name from elsewhere."""
    head, *_, last = dotted.split(".")
    if head in GROUPS and last.islower():
        return True  # a key of the configuration
    parts = dotted.removeprefix("prism_mesa.").split(".")
    for k in range(len(parts), 0, -1):
        modules = [m for m in MODULES if f".{m}".endswith(f".{'.'.join(parts[:k])}")]
        if any(k == len(parts) or re.search(rf"\b{parts[k]}\b", MODULES[m]) for m in modules):
            return True
    return not any(f".{m}".endswith(f".{head}") for m in MODULES) and importlib.util.find_spec(head) is not None


def test_every_name_with_dots_that_a_docstring_names_is_there():
    def missing(module):
        names = re.findall(r"(?<!`)`([a-z_]+(?:\.\w+)+)`(?!`)", "\n".join(docstrings_and_code(module)[0]))
        return [name for name in names if not names_something(name) and not name.endswith((".pyi", ".parquet"))]

    assert names_something("social.state.population.Population")
    assert not names_something("words.unsupported")
    assert not names_something("records.BIG_FIVE")
    assert {module: names for module in sorted(MODULES) if (names := missing(module))} == {}


def test_the_map_of_the_design_page_shows_the_packages_as_they_are():
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "map.py"))
    with Image.open(ROOT / "docs" / "pictures" / "map.png") as picture:
        assert picture.text["Comment"] == drawn["digest"](), "draw it again: uv run python docs/pictures/map.py"


def test_every_page_of_the_docs_is_in_their_index():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(prose(index))}
    assert set((ROOT / "docs").glob("*.md")) - {index} <= linked


def test_dead_links_and_anchors_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# One `x` & two\n\n```\n# no heading\n```\n\n# Twice\n\n# Twice\n")
    (tmp_path / "page.md").write_text(
        "[a](other.md#one-x--two) [b](other.md#twice-1) [c](#here) [d](https://example.org/none) `[e](none.md)`\n\n"
        '![f](none.png) [g](other.md#no-heading) [h](#there) [i](none.md "title")\n\n## Here\n'
    )
    assert dead_links(tmp_path / "page.md") == ["none.png", "other.md#no-heading", "#there", "none.md"]


def test_every_name_in_backticks_in_a_docstring_is_used_somewhere_in_the_code_or_explained_there():
    """A name is explained if a formula in the same docstring or a test has it; totals are measures."""
    parts = {module: docstrings_and_code(module) for module in MODULES}
    tests = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    used = set(re.findall(r"\w+", tests + "\n".join(code for _, code in parts.values())))

    def unknown(text):
        unused = [name for name in TICKED.findall(text) if name.removeprefix("total_") not in used]
        explained = set(re.findall(r"\w+", TICKED.sub("", text))) if unused else set()
        return sorted(name for name in unused if name.removeprefix("total_") not in explained)

    gone = {module: [name for text in texts for name in unknown(text)] for module, (texts, _) in parts.items()}
    assert {module: names for module, names in gone.items() if names} == {}


def names_in(node):
    """Return the names of arguments, and the names and attributes that a class or function sets or reads."""
    for inner in ast.walk(node):
        yield getattr(inner, "arg", None) or getattr(inner, "attr", None) or getattr(inner, "id", None)


def test_what_docstrings_list_as_attributes_or_arguments_is_there():
    missing = []
    for path in sorted((ROOT / "prism_mesa").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            section = re.search(r"^(?:Attributes|Args):\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.M)
            entries = re.findall(r"^    ([A-Za-z_][\w, *]*):", section[1], re.M) if section else []
            bases = [classes[base.id] for base in getattr(node, "bases", []) if getattr(base, "id", "") in classes]
            known = {name for part in (node, *bases) for name in names_in(part)}
            known |= {inner.name for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)}
            listed = {name.strip(" *") for entry in entries for name in entry.split(",")}
            missing += [(path.name, node.name, name) for name in listed - known]
    assert missing == []
