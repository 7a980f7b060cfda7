"""How the code lies: functions of a size that can be read at once, and no file that needs itself."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from statements import statements_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "prism_mesa"
LONGEST = 60
"""Lines of a function, its docstring among them; kernels are loops over columns, and may be longer."""


@cache
def statements():
    """Return the imports and functions of each module, wherever they stand in it, by its name with dots."""
    files = {file.relative_to(ROOT).with_suffix(""): file for file in PACKAGE.rglob("*.py")}
    return {
        ".".join(path.parts).removesuffix(".__init__"): imports_and_functions_of(file.read_text("utf-8"))
        for path, file in files.items()
    }


def imports_and_functions_of(source):
    """Return the imports of a module, and its functions by name with how long they are, decorators among their lines.

    Its syntax tree is not kept: those of all modules take hundreds of MB.
    """
    found = list(statements_of(ast.parse(source)))
    functions = [one for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    firsts = [min(part.lineno for part in (f, *f.decorator_list)) for f in functions]
    lengths = [(f.name, f.end_lineno - first + 1) for f, first in zip(functions, firsts, strict=True)]
    return [one for one in found if isinstance(one, ast.Import | ast.ImportFrom)], lengths


def imported_by(imports, known):
    """Return which of the known modules a module imports, for types and inside functions too."""
    found = set()
    for node in imports:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
        elif node.module:
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


def too_long(functions):
    """Return the functions of a module that are too long, with their lines."""
    return [(name, length) for name, length in functions if length > LONGEST]


def test_no_file_imports_itself_by_way_of_others():
    known = statements().keys()
    assert circle_of({name: imported_by(imports, known) - {name} for name, (imports, _) in statements().items()}) == []


def test_no_function_outside_of_kernels_is_longer_than_a_screen():
    found = {
        name: long
        for name, (_, functions) in statements().items()
        if ".kernels." not in name and (long := too_long(functions))
    }
    assert found == {}


def test_circles_and_long_functions_are_found():
    def imports_of(text):
        return imported_by(imports_and_functions_of(text)[0], known)

    def long_in(text):
        return too_long(imports_and_functions_of(text)[1])

    known = {"p.a", "p.b", "p.c"}
    a = "def f():\n    import p.b"
    b = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.c import thing"
    imports = {f"p.{name}": imports_of(text) for name, text in (("a", a), ("b", b), ("c", ""))}
    assert imports == {"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": set()}
    assert circle_of(imports) == []
    imports["p.c"] = imports_of("try:\n    pass\nexcept OSError:\n    with open(f) as g:\n        from p import a")
    assert set(circle_of(imports)) == known
    assert long_in("def f():\n" + "    pass\n" * 60) == [("f", 61)]
    assert long_in("@cache\n@cache\ndef f():\n" + "    pass\n" * 58) == [("f", 61)]
