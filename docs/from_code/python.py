"""The reference of Python names, from the signatures and docstrings in the source."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from doctest import DocTestParser
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Final

import prism_mesa

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("statechart", "reasoner", "llm", "deliberation", "view.plots")
GROUPS: Final = {
    "Making runs": ("run", "run_economy", "resume", "branch", "replay"),
    "Reading runs": ("open_run", "list_runs", "RunResult", "measure", "why", "compare"),
    "Configurations": ("Config", "load_config"),
    "Models and agents": ("SocialModel", "SocialAgent", "EconomyModel", "cascades"),
    "Charts": (
        *("Statechart", "Transition", "AgentState", "StateTransition", "F", "ANY", "NEEDS_ORACLE"),
        *("agents_in_state", "state_distribution", "draw_chart"),
    ),
    "Who decides": ("Reasoner", "RuleReasoner", "OllamaChatClient", "Ledger"),
    "Studies and surveys": ("Study", "Calibration", "validate", "survey", "Interview", "distill"),
    "Errors": ("PrismError", "PrismWarning"),
}
"""Names of `prism_mesa` by subject. Names that are missing here go under "Others"."""
_FILE: Final = re.compile(r"^```(?:python|py)\n(?!>>> )(.*?)^```$", re.DOTALL | re.MULTILINE)
_TITLE: Final = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Warns):$")
_EXAMPLE: Final = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)
_TITLES: Final = {"Args": "Arguments"}
_SHORT: Final = 200

type Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign | ast.TypeAlias


def sections() -> str:
    """Return a section for each subject of `prism_mesa`, each imported module and each package."""
    grouped = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in prism_mesa.__all__ if name not in grouped)
    subjects = {**GROUPS, **({"Others": others} if others else {})}
    parts = [_section(f"`prism_mesa`: {title.lower()}", "prism_mesa", names) for title, names in subjects.items()]
    modules: dict[str, list[str]] = {}
    for dotted in documented_names():
        module, _, name = dotted.rpartition(".")
        if module != "prism_mesa":
            modules.setdefault(module, []).append(name)
    return "\n".join(parts + [_section(f"`{module}`", module, names) for module, names in modules.items()])


def documented_names() -> list[str]:
    """Return the dotted names of the reference: public names, and names that code for users imports from modules."""
    top = [f"prism_mesa.{name}" for name in prism_mesa.__all__]
    public = set(prism_mesa.__all__)
    packages = [
        f"prism_mesa.{package}.{name}"
        for package in PACKAGES
        for name in sorted(set(import_module(f"prism_mesa.{package}").__all__) - public)
    ]
    imported = sorted(imported_names(code_for_users()) - set(top) - set(packages))
    return [*top, *imported, *packages]


def code_for_users() -> list[Path]:
    """Return the pages, examples and notebooks, and what `prism new` writes."""
    docs = ROOT / "docs"
    pages = [page for page in sorted(docs.glob("*.md")) if page.name != "python.md"]
    new = (ROOT / "prism_mesa/cli/new_project").glob("*.*")
    return [ROOT / "README.md", *pages, *(docs / "examples").glob("*.py"), *(ROOT / "notebooks").glob("*.ipynb"), *new]


def imported_names(paths: Iterable[Path]) -> set[str]:
    """Return the names, other than modules, that the Python code in files imports from `prism_mesa`."""
    names = {
        f"{node.module}.{alias.name}"
        for path in paths
        for code in _code_in(path)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and re.match(r"prism_mesa\b", node.module or "")
        for alias in node.names
    }
    places = {name: ROOT.joinpath(*name.split(".")) for name in names}
    return {name for name, place in places.items() if not (place.is_dir() or place.with_suffix(".py").is_file())}


def _code_in(path: Path) -> list[str]:
    """Return the pieces of Python in a page, a script or a notebook."""
    if path.suffix not in (".md", ".ipynb", ".py"):
        return []
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [*_FILE.findall(text), *(example.source for example in DocTestParser().get_examples(text))]
    if path.suffix == ".ipynb":
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [text]


def _section(title: str, module: str, names: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(_entry(name, *_definition(module, name)) for name in names)


@cache
def _statements(module: str) -> tuple[list[ast.stmt], str]:
    """Return the statements of a module or its stub, and the package at which its relative imports start."""
    place = ROOT.joinpath(*module.split("."))
    files = (place / "__init__.pyi", place / "__init__.py", place.with_suffix(".py"))
    file = next(file for file in files if file.is_file())
    return ast.parse(file.read_text(encoding="utf-8")).body, module if place.is_dir() else module.rpartition(".")[0]


def _definition(module: str, name: str) -> tuple[str, Definition, str]:
    """Return the module that defines a name, the definition and its docstring; imports are followed."""
    statements, package = _statements(module)
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name == name:
                return module, statement, ast.get_docstring(statement) or ""
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)) if (
                target == name
            ):
                return module, statement, _text(following)
            case ast.TypeAlias(name=ast.Name(id=target)) if target == name:
                return module, statement, _text(following)
            case ast.ImportFrom(module=source, level=level):
                for alias in statement.names:
                    if (alias.asname or alias.name) == name:
                        return _definition(f"{package}.{source}" if level else str(source), alias.name)
    raise KeyError(f"{module}.{name} is not defined in its module")


def _text(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return cleandoc(text)
    return ""


def _entry(name: str, module: str, node: Definition, docstring: str) -> str:
    members = "".join(_members(name, node)) if isinstance(node, ast.ClassDef) else ""
    return f"### {name}\n\n{_signature(name, node, module)}{_markdown(docstring)}\n{members}"


def _members(owner: str, node: ast.ClassDef) -> Iterator[str]:
    """Yield a part for each public method and property that has a docstring."""
    for member in node.body:
        if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) or member.name.startswith("_"):
            continue
        if text := ast.get_docstring(member):
            decorators = {ast.unparse(decorator) for decorator in member.decorator_list}
            is_property = decorators & {"property", "cached_property"}
            signature = "" if is_property else _signature(member.name, member, "")
            yield f"\n#### {owner}.{member.name}\n\n{signature}{_markdown(text)}\n"


def _signature(name: str, node: Definition, module: str) -> str:
    """Return how a name is called, as a block of code; for data, its definition if it is short."""
    call = ""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            call = _call(name, node)
        case ast.ClassDef():
            fields = [ast.unparse(m) for m in node.body if isinstance(m, ast.AnnAssign) and not _is_private(m)]
            is_data = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
            init = _init(node, module)
            call = _call(name, init) if init else _lines(name, fields) if is_data else ""
        case _ if len(text := ast.unparse(node)) <= _SHORT:
            return f"```text\n{text}\n```\n\n"
    return f"```python3\n{call}\n```\n\n" if call else ""


def _init(node: ast.ClassDef, module: str) -> ast.FunctionDef | None:
    """Return the `__init__` of a class, or of its nearest base in this package."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            return member
    for base in node.bases:
        with suppress(KeyError, StopIteration):
            place, definition, _ = _definition(module, ast.unparse(base))
            if isinstance(definition, ast.ClassDef) and (init := _init(definition, place)):
                return init
    return None


def _is_private(field: ast.AnnAssign) -> bool:
    return ast.unparse(field.target).startswith("_") or "ClassVar" in ast.unparse(field.annotation)


def _call(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    args = node.args
    if args.args and args.args[0].arg in ("self", "cls"):
        args = ast.arguments(**{**dict(ast.iter_fields(args)), "args": args.args[1:]})
    arguments = [part for part in _split(ast.unparse(args)) if not part.startswith("_")]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return _lines(f"{'async ' * isinstance(node, ast.AsyncFunctionDef)}{name}", arguments, returns)


def _split(text: str) -> list[str]:
    """Split arguments at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text else []


def _lines(name: str, arguments: list[str], returns: str = "") -> str:
    if len(line := f"{name}({', '.join(arguments)}){returns}") <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"


def _markdown(docstring: str) -> str:
    """Return a docstring in Google's style as Markdown: sections become lists, and examples blocks of code."""
    lines: list[str] = []
    title, indent = "", ""
    for line in docstring.splitlines():
        if match := _TITLE.match(line):
            title = match[1]
            lines += [f"**{_TITLES.get(title, title)}**", ""]
        elif title and line and not line.startswith("    "):
            title = ""
            lines.append(line)
        elif title and line.strip():
            is_first = not line.startswith("     ") and (title not in ("Returns", "Yields") or lines[-1] == "")
            head = re.match(r"    ([\w., *\[\]]+): (.*)", line) if title not in ("Returns", "Yields") else None
            indent = "- " if is_first else "  "
            lines.append(f"{indent}`{head[1]}`: {head[2]}" if is_first and head else f"{indent}{line.strip()}")
        else:
            lines.append(line)
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", "\n".join(lines)).strip()
