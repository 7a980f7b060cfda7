"""The map of the package: its rooms by layer, what each holds, and which rooms import which.

uv run python docs/pictures/map.py
"""

import ast
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
class Room:
    """A package or a module directly below `prism_mesa`, and what each of its folders holds."""

    name: str
    says: str
    folders: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    n_files: int
    n_lines: int


def layers() -> list[list[str]]:
    """Return the names of the rooms, the highest layer first, as import-linter holds them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip().removeprefix("prism_mesa.") for name in line.split("|")] for line in lines]


def room_of(name: str) -> Room:
    """Return what a room holds: first sentences of docstrings, its folders and files, its size."""
    folder = PACKAGE / name
    if not folder.is_dir():
        lines = folder.with_suffix(".py").read_text(encoding="utf-8").splitlines()
        return Room(name, _first_sentence(folder.with_suffix(".py")), (), (), 1, len(lines))
    files = sorted(folder.rglob("*.py"))
    folders = tuple((file.parent.name, _first_sentence(file)) for file in sorted(folder.glob("*/__init__.py")))
    own = tuple(file.stem for file in sorted(folder.glob("*.py")) if not file.stem.startswith("__"))
    n_lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return Room(name, _first_sentence(folder / "__init__.py"), folders, own, len(files), n_lines)


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


def imports(rooms: list[str]) -> list[tuple[str, str, int]]:
    """Return which room imports which, and by how many of its modules."""
    graph = grimp.build_graph("prism_mesa", exclude_type_checking_imports=False)
    modules = {room: {m for m in graph.modules if f"{m}.".startswith(f"prism_mesa.{room}.")} for room in rooms}
    found = []
    for one in rooms:
        for other in rooms:
            n = sum(bool(graph.find_modules_directly_imported_by(m) & modules[other]) for m in modules[one])
            if one != other and n:
                found.append((one, other, n))
    return found


def _wrapped(text: str, width: float) -> list[str]:
    words, lines = text.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _lines_of(room: Room, uses: str, width: float) -> list[tuple[str, str]]:
    """Return the lines of text in a box, each with its colour."""
    found = [(line, "black") for line in _wrapped(room.says, width * 10.8)]
    for name, says in room.folders:
        found += [(line, "#1f4e79") for line in _wrapped(f"{name}/ {says}", width * 10.8)]
    files = _wrapped(", ".join(room.files), width * 10.8) if room.files else []
    return found + [(line, "#3d4b57") for line in files] + [(line, GREY) for line in _wrapped(uses, width * 10.8)]


def _draw_room(axes: Axes, room: Room, lines: list[tuple[str, str]], box: tuple[float, float, float, float]) -> None:
    left, top, width, height = box
    patch = FancyBboxPatch((left, top - height), width, height, boxstyle="round,pad=0,rounding_size=0.08")
    patch.set(facecolor=COLORS.get(room.name, PLAIN), edgecolor="#8795a3", linewidth=0.8)
    axes.add_patch(patch)
    axes.text(left + 0.12, top - 0.1, room.name, va="top", fontsize=11, fontweight="bold")
    size = f"{room.n_files} files, {room.n_lines:,} lines" if room.n_files > 1 else f"{room.n_lines:,} lines"
    axes.text(left + width - 0.12, top - 0.12, size, va="top", ha="right", fontsize=7.5, color=GREY)
    for i, (line, color) in enumerate(lines):
        axes.text(left + 0.12, top - HEAD - i * LINE, line, va="top", fontsize=8, color=color)


def map_figure() -> Figure:
    """Return the map: layers from top to bottom; a room imports only rooms that stand below it."""
    rows = [[room_of(name) for name in line] for line in layers()]
    counts = imports([room.name for row in rows for room in row])
    uses = {room.name: "imports nothing of the package" for row in rows for room in row}
    for one, _, _ in counts:
        uses[one] = "imports " + ", ".join(f"{other} {n}" for name, other, n in counts if name == one)
    figure, axes = plt.subplots(layout="constrained")
    top = 0.0
    for row in rows:
        width = (WIDTH - GAP * (len(row) - 1)) / len(row)
        lines = [_lines_of(room, uses[room.name], width) for room in row]
        height = HEAD + LINE * max(map(len, lines)) + 0.08
        for j, (room, own) in enumerate(zip(row, lines, strict=True)):
            _draw_room(axes, room, own, (j * (width + GAP), top, width, height))
        top -= height + GAP
    axes.set(xlim=(-0.1, WIDTH + 0.1), ylim=(top, 0.15))
    axes.set_axis_off()
    axes.set_title(
        "prism_mesa: imports go down only; rooms side by side never meet. "
        "Numbers: so many modules of the room import from there.",
        loc="left",
        fontsize=9,
    )
    figure.set_size_inches(WIDTH * 0.72, (0.8 - top) * 0.72)
    return figure


if __name__ == "__main__":
    map_figure().savefig(Path(__file__).parent / "map.png", dpi=130)
