"""How the code lies: functions of a size that can be read at once, and no file that needs itself."""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "prism_mesa"
LONGEST_FILE = 350
MOST_FILES = 20
"""Python files in a folder."""
LONGEST = 50
"""Lines of a function, its docstring among them; kernels are loops over columns, and may be longer."""


@cache
def trees():
    """Return the syntax tree of each module by its name with dots."""
    files = {file.relative_to(ROOT).with_suffix(""): file for file in PACKAGE.rglob("*.py")}
    return {
        ".".join(path.parts).removesuffix(".__init__"): ast.parse(file.read_text("utf-8"))
        for path, file in files.items()
    }


def imported_by(tree, known):
    """Return which of the known modules a module imports, for types and inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in named} & known
    return found


def circle_of(imports):
    """Return modules that import each other in a circle, the first one twice; nothing if there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def too_long(tree):
    """Return the functions of a module that are too long, with their lines, decorators among them."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    firsts = [min(part.lineno for part in (f, *f.decorator_list)) for f in functions]
    lengths = [(f.name, f.end_lineno - first + 1) for f, first in zip(functions, firsts, strict=True)]
    return [(name, length) for name, length in lengths if length > LONGEST]


def test_no_file_imports_itself_by_way_of_others():
    imports = {name: imported_by(tree, trees().keys()) - {name} for name, tree in trees().items()}
    assert circle_of(imports) == []


def test_no_function_outside_of_kernels_is_longer_than_a_screen():
    found = {name: long for name, tree in trees().items() if ".kernels." not in name and (long := too_long(tree))}
    assert found == {}


def test_no_file_is_too_long_and_no_folder_too_full():
    files = list(PACKAGE.rglob("*.py"))
    lines = {str(file.relative_to(ROOT)): file.read_text("utf-8").count("\n") for file in files}
    assert {name: n for name, n in lines.items() if n > LONGEST_FILE} == {}
    held = Counter(str(file.parent.relative_to(ROOT)) for file in files if file.name != "__init__.py")
    assert {name: n for name, n in held.items() if n > MOST_FILES} == {}


def test_circles_and_long_functions_are_found():
    known = {"p.a", "p.b", "p.c"}
    a = "def f():\n    import p.b"
    b = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.c import thing"
    imports = {f"p.{name}": imported_by(ast.parse(text), known) for name, text in (("a", a), ("b", b), ("c", ""))}
    assert imports == {"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": set()}
    assert circle_of(imports) == []
    imports["p.c"] = imported_by(ast.parse("from p import a"), known)
    assert set(circle_of(imports)) == known
    assert too_long(ast.parse("def f():\n" + "    pass\n" * 50)) == [("f", 51)]
    assert too_long(ast.parse("@cache\n@cache\ndef f():\n" + "    pass\n" * 48)) == [("f", 51)]
