"""Whether tests notice: small changes to the code, drawn by a seed, and the tests that run the changed lines.

The code is that of the chart, the kernels, the platform, the gateway to LLMs, and the economy's validator and macro
model. A place is a piece of syntax that one of mutmut's operators changes: a number, a string, a comparison, an
argument, an assigned value, ... Places are drawn, all with the same chance, and of each place one of its changes. Left
out is what does nothing or is read by people only: annotations, type aliases, the type in `cast`, decorators,
`if TYPE_CHECKING`, `__repr__`, strings with a space in them (docstrings and messages), and the `description` of a
parameter.

Each change is made in a copy of the working tree, and the tests run there: those that ran the changed lines (kept in
results/ until a source or a test changes), from the package's own folder first, the fastest first, until one fails.
What runs while a module is imported is tested by what runs anything in it, else in what imports it; a compiled kernel
by what runs the lines that call it. What takes ten times as long as it should is stopped and counts as noticed.
Kernels are compiled anew for each change to one of them, in a cache of this benchmark's own.

It asserts that tests pass without a change, and that at least `--least` of the changes are noticed.

    uv run --all-extras --group mutants python benchmarks/mutants.py --seed 1 --n 40 --jobs 2
"""

import argparse
import ast
import random
import sys
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import unified_diff
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from time import perf_counter
from typing import Final, Literal

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from measuring import machine, say
from mutmut.mutation.mutators import mutation_operators
from touched import CACHE, ROOT, Touched, copy_of_tree, pytest, write

SOURCES: Final = (
    *(
        "prism_mesa/statechart/**/*.py",
        "prism_mesa/kernels/**/*.py",
        "prism_mesa/social/**/*.py",
        "prism_mesa/llm/**/*.py",
    ),
    *("prism_mesa/economy/validator.py", "prism_mesa/economy/macro.py"),
)
FEW_S, MOST_S = 5.0, 120.0  # of tests: in the first process, and in all for one change
START_S: Final = 90  # until the first test runs, on a busy machine, with kernels to compile


@dataclass(frozen=True)
class Place:
    """A node that can be changed.

    Attributes:
        lines: The first and the last.
        functions: The functions around it, the outermost first; none for code of a module or a class.
    """

    file: str
    lines: tuple[int, int]
    functions: tuple[str, ...]
    module: cst.Module
    node: cst.CSTNode
    changed: tuple[cst.CSTNode, ...]

    def tests(self, touched: Touched) -> list[str]:
        """Return the tests that run it, those to run first at the front."""
        function = self.functions[0] if self.functions else None
        return touched.of(self.file, range(self.lines[0], self.lines[1] + 1), function)

    def mutant(self, rng: random.Random) -> str | None:
        """Return the source with one of the changes, or None if all leave no code or the same."""
        for new in rng.sample(self.changed, len(self.changed)):
            source = self.module.deep_replace(self.node, new).code  # type: ignore[arg-type]
            try:
                if ast.dump(ast.parse(source)) != ast.dump(ast.parse(self.module.code)):
                    compile(source, self.file, "exec")
                    return source
            except SyntaxError:
                continue
        return None


class Finder(cst.CSTVisitor):
    """Collects the places of a file."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str, module: cst.Module) -> None:
        super().__init__()
        self.file, self.module = file, module
        self.places: list[Place] = []
        self._functions: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note what can be changed, and look into what counts."""
        if _left_out(node):
            return False
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "cast":
            for argument in node.args[1:]:
                argument.visit(self)
            return False
        changed = tuple(
            new
            for kind, operator in mutation_operators
            if isinstance(node, kind)
            for new in operator(node)
            if _described(new) == _described(node)
        )
        if changed:
            position = self.get_metadata(PositionProvider, node)
            lines = position.start.line, position.end.line
            self.places.append(Place(self.file, lines, tuple(self._functions), self.module, node, changed))
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node.name.value)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave a function."""
        if isinstance(original_node, cst.FunctionDef) and not _left_out(original_node):
            self._functions.pop()


def _left_out(node: cst.CSTNode) -> bool:
    match node:
        case cst.Annotation() | cst.Decorator() | cst.TypeAlias() | cst.TypeParameters():
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")) | cst.FunctionDef(name=cst.Name(value="__repr__")):
            return True
        case cst.SimpleString():
            return " " in str(node.evaluated_value)
    return False


def _described(node: cst.CSTNode) -> list[str]:
    """Return the code of a call's argument `description`."""
    arguments = node.args if isinstance(node, cst.Call) else ()
    return [cst.Module([]).code_for_node(a.value) for a in arguments if a.keyword and a.keyword.value == "description"]


def places(within: str) -> list[Place]:
    """Return the places of files whose paths begin so, in the order of files and lines."""
    found: list[Place] = []
    files = sorted({file for pattern in SOURCES for file in ROOT.glob(pattern)})
    for file in (file for file in files if str(file.relative_to(ROOT)).startswith(within)):
        wrapper = MetadataWrapper(cst.parse_module(file.read_text(encoding="utf-8")), unsafe_skip_copy=True)
        finder = Finder(str(file.relative_to(ROOT)), wrapper.module)
        wrapper.visit(finder)
        found += finder.places
    return found


@dataclass(frozen=True)
class Mutant:
    """One change."""

    place: Place
    source: str

    def diff(self) -> str:
        """Return what is changed."""
        before, after = self.place.module.code.splitlines(), self.source.splitlines()
        return "\n".join(unified_diff(before, after, self.place.file, self.place.file, n=1, lineterm=""))


def draw(n: int, seed: int, within: str) -> list[Mutant]:
    """Return `n` changes at different places."""
    rng, found = random.Random(seed), []
    everywhere = places(within)
    say(f"{len(everywhere):,} places")
    for place in rng.sample(everywhere, len(everywhere)):
        source = place.mutant(rng)
        if source is not None:
            found.append(Mutant(place, source))
        if len(found) == n:
            break
    return found


# One change


@dataclass(frozen=True)
class Trial:
    """What came of one change: `failed` and `stopped` are noticed, `passed` and `untouched` (by any test) survive."""

    mutant: Mutant
    outcome: Literal["failed", "stopped", "passed", "untouched"]
    seconds: float

    @property
    def noticed(self) -> bool:
        """Whether a test failed, or ran for too long."""
        return self.outcome in ("failed", "stopped")


def portions(tests: Sequence[str], seconds: Mapping[str, float]) -> Iterator[list[str]]:
    """Split tests into those of the first process and, up to `MOST_S` in all, those of the second."""
    ends = list(accumulate(seconds[test] for test in tests))
    few, most = bisect(ends, FEW_S), bisect(ends, MOST_S)
    yield from (part for part in (list(tests[: max(1, few)]), list(tests[max(1, few) : most])) if part)


def tried(mutant: Mutant, touched: Touched, folder: Path) -> Literal["failed", "stopped", "passed", "untouched"]:
    """Return what the tests say to a change; the copy of the tree is then as it was."""
    file, tests = folder / mutant.place.file, mutant.place.tests(touched)
    try:
        write(file, mutant.source)
        for part in portions(tests, touched.seconds):
            (folder / "tests.txt").write_text("\n".join(part), encoding="utf-8")
            limit_s = START_S + 10 * sum(touched.seconds[test] for test in part)
            code = pytest(folder, "-n", "0", "-x", "@tests.txt", limit_s=limit_s)
            if code is None:
                return "stopped"
            if code != 0:
                return "failed"
        return "passed" if tests else "untouched"
    finally:
        write(file, mutant.place.module.code)


def trials(mutants: Sequence[Mutant], touched: Touched, jobs: int) -> list[Trial]:
    """Try all changes, several at a time, each in a copy of the tree that is its own."""
    with ExitStack() as stack:
        folders = SimpleQueue[Path]()
        for _ in range(jobs):
            folders.put(stack.enter_context(copy_of_tree()))

        def trial(mutant: Mutant) -> Trial:
            folder, start = folders.get(), perf_counter()
            outcome = tried(mutant, touched, folder)
            folders.put(folder)
            found = Trial(mutant, outcome, perf_counter() - start)
            say(f"{outcome:9} {found.seconds:4.0f} s  {mutant.place.file}:{mutant.place.lines[0]}")
            if not found.noticed:
                say(mutant.diff())
            return found

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(trial, mutants))


def assert_unchanged_passes(mutants: Sequence[Mutant], touched: Touched, jobs: int) -> None:
    """Assert that the first tests of each change pass where nothing is changed."""
    tests = sorted({test for mutant in mutants for test in mutant.place.tests(touched)[:5]})
    with copy_of_tree() as folder:
        (folder / "tests.txt").write_text("\n".join(tests), encoding="utf-8")
        code = pytest(folder, "-n", str(jobs), "@tests.txt")
        assert code == 0, f"without a change: {(folder / 'pytest.log').read_text()[-2000:]}"


def report(found: Sequence[Trial]) -> float:
    """Print the shares noticed, as Markdown, and the changes that were not; return the share of all."""
    packages: dict[str, list[Trial]] = defaultdict(list)
    for trial in found:
        packages[trial.mutant.place.file.split("/")[1]].append(trial)
    print("| package | changes | noticed | of these stopped |\n|---|--:|--:|--:|")
    for name, rows in [*sorted(packages.items()), ("all", list(found))]:
        stopped = sum(trial.outcome == "stopped" for trial in rows)
        print(f"| {name} | {len(rows)} | {sum(trial.noticed for trial in rows)} | {stopped} |")
    share = sum(trial.noticed for trial in found) / len(found)
    print(f"\n{share:.3f} noticed; {median(trial.seconds for trial in found):.0f} s each by the median")
    for trial in found:
        if not trial.noticed:
            said = "no test runs it" if trial.outcome == "untouched" else "all tests pass"
            print(f"\n{said}:\n\n```diff\n{trial.mutant.diff()}\n```")
    return share


def main() -> None:
    """Draw, try, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--n", type=int, default=40, help="changes")
    options.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options.add_argument("--marks", default="", help="which tests, as for pytest -m: 'not slow' for a first look")
    options.add_argument("--within", default="", help="only files whose paths begin so, as prism_mesa/llm")
    options.add_argument("--least", type=float, default=0.9, help="share that is to be noticed")
    given = options.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    touched = Touched.load(given.jobs, given.marks)
    mutants = draw(given.n, given.seed, given.within)
    assert_unchanged_passes(mutants, touched, given.jobs)
    print(f"{machine('mutmut')}; seed {given.seed}\n")
    share = report(trials(mutants, touched, given.jobs))
    if share < given.least:
        sys.exit(f"{share:.3f} noticed, and at least {given.least} are to be")


if __name__ == "__main__":
    main()
