"""The map of the package: packages by layer, what each holds, and which imports which.

uv run python docs/pictures/map.py
"""

import ast
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

import grimp
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "prism_mesa"
WIDTH, GAP, HEAD, LINE = 15.0, 0.14, 0.46, 0.235
GREY = "#5d6b78"
PLAIN = "#eef2f6"
COLORS = {"social": "#dbe9f6", "economy": "#dbe9f6", "reasoner": "#e5f1dc", "deliberation": "#e5f1dc"}
COLORS |= {"statechart": "#fbf0d2", "llm": "#fbf0d2", "kernels": "#f0e4ee"}


@dataclass(frozen=True)
class Package:
    """A package or a module directly below `prism_mesa`.

    Attributes:
        folders: Name of each folder in it, what it holds, and its files.
        files: The files directly in it.
        imports: Which packages it imports.
    """

    name: str
    says: str
    folders: tuple[tuple[str, str, tuple[str, ...]], ...]
    files: tuple[str, ...]
    imports: tuple[str, ...]


def layers() -> list[list[str]]:
    """Return the names of the packages, the highest layer first, as import-linter holds them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip().removeprefix("prism_mesa.") for name in line.split("|")] for line in lines]


def packages() -> list[list[Package]]:
    """Return the packages, by layer."""
    graph = grimp.build_graph("prism_mesa", exclude_type_checking_imports=False)
    names = [name for line in layers() for name in line]
    modules = {name: {m for m in graph.modules if f"{m}.".startswith(f"prism_mesa.{name}.")} for name in names}

    def imports_of(name: str) -> tuple[str, ...]:
        imported = {other for module in modules[name] for other in graph.find_modules_directly_imported_by(module)}
        return tuple(other for other in names if other != name and imported & modules[other])

    return [[_package(name, imports_of(name)) for name in line] for line in layers()]


def _package(name: str, imports: tuple[str, ...]) -> Package:
    folder = PACKAGE / name
    if not folder.is_dir():
        return Package(name, _first_sentence(folder.with_suffix(".py")), (), (), imports)
    folders = (file.parent for file in sorted(folder.glob("*/__init__.py")))
    inner = tuple((inner.name, _first_sentence(inner / "__init__.py"), _files_in(inner)) for inner in folders)
    return Package(name, _first_sentence(folder / "__init__.py"), inner, _files_in(folder), imports)


def _files_in(folder: Path) -> tuple[str, ...]:
    return tuple(file.stem for file in sorted(folder.glob("*.py")) if not file.stem.startswith("__"))


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


def digest() -> str:
    """Return a digest of all that the map shows; it is kept in the picture, and a test compares it."""
    return hashlib.sha256(repr(packages()).encode()).hexdigest()


def _wrapped(text: str, width: float) -> list[str]:
    words, lines = text.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _lines_of(package: Package, width: float) -> list[tuple[str, str]]:
    """Return the lines of text in a box, each with its colour."""
    imports = f"imports {', '.join(package.imports)}" if package.imports else "imports nothing of the package"
    texts = [(package.says, "black")]
    for name, says, files in package.folders:
        texts += [(f"{name}/  {says}", "#1f4e79"), (", ".join(files), "#3d4b57")]
    texts += [(", ".join(package.files), "#3d4b57")] if package.files else []
    return [(line, color) for text, color in (*texts, (imports, GREY)) for line in _wrapped(text, width * 10.8)]


def _draw_package(axes: Axes, name: str, lines: list[tuple[str, str]], box: tuple[float, float, float, float]) -> None:
    left, top, width, height = box
    patch = FancyBboxPatch((left, top - height), width, height, boxstyle="round,pad=0,rounding_size=0.08")
    patch.set(facecolor=COLORS.get(name, PLAIN), edgecolor="#8795a3", linewidth=0.8)
    axes.add_patch(patch)
    axes.text(left + 0.12, top - 0.1, name, va="top", fontsize=11, fontweight="bold")
    for i, (line, color) in enumerate(lines):
        axes.text(left + 0.12, top - HEAD - i * LINE, line, va="top", fontsize=8, color=color)


def map_figure() -> Figure:
    """Return the map: layers from top to bottom; a package imports only packages that stand below it."""
    figure, axes = plt.subplots(layout="constrained")
    top = 0.0
    for row in packages():
        width = (WIDTH - GAP * (len(row) - 1)) / len(row)
        lines = [_lines_of(package, width) for package in row]
        height = HEAD + LINE * max(map(len, lines)) + 0.08
        for j, (package, own) in enumerate(zip(row, lines, strict=True)):
            _draw_package(axes, package.name, own, (j * (width + GAP), top, width, height))
        top -= height + GAP
    axes.set(xlim=(-0.1, WIDTH + 0.1), ylim=(top, 0.15))
    axes.set_axis_off()
    axes.set_title("prism_mesa: imports go down only; packages side by side never meet.", loc="left", fontsize=9)
    figure.set_size_inches(WIDTH * 0.72, (0.8 - top) * 0.72)
    return figure


if __name__ == "__main__":
    map_figure().savefig(Path(__file__).parent / "map.png", dpi=130, metadata={"Comment": digest()})
