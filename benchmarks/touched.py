"""Copies of the working tree, tests that run there, and which tests run which lines of the tree (`touched_lines`)."""

import ast
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from measuring import say

ROOT: Final = Path(__file__).parents[1]
CACHE: Final = ROOT / "results" / "mutants"
KERNELS: Final = "prism_mesa/kernels/"

type Found = dict[str, tuple[float, dict[str, set[int]]]]
"""Tests, with their CPU seconds and the lines that they run, by file."""


def tracked() -> list[str]:
    """Return the files of the working tree that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def pytest(folder: Path, *arguments: str, limit_s: float | None = None, **more: str) -> int | None:
    """Run tests in a copy of the tree and return the exit code, or None if it had to be stopped."""
    env = os.environ | {"PYTHONPATH": f"{folder}:{ROOT / 'benchmarks'}", "NUMBA_CACHE_DIR": str(CACHE), **more}
    # what the garbage collector finds unclosed is blamed on whichever test runs then
    plugins = ["-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "--hypothesis-seed=0", *arguments]
    with (folder / "pytest.log").open("w") as log:
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


@contextmanager
def copy_of_tree() -> Iterator[Path]:
    """Give a copy of the working tree for a while."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in tracked():
            copied = Path(folder) / name
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copied)
        yield Path(folder)


def write(file: Path, source: str) -> None:
    """Write a module, and forget its bytecode: two changes of one size within a second look alike to Python."""
    file.write_text(source, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


class Touched:
    """Which tests run which lines."""

    def __init__(self, found: Found) -> None:
        self.seconds = {test: seconds for test, (seconds, _) in found.items()}
        self._by_line: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for test, (_, files) in found.items():
            for file, lines in files.items():
                for line in lines:
                    self._by_line[file][line].add(test)

    @classmethod
    def load(cls, jobs: int, marks: str) -> "Touched":
        """Return what is known of the tree; changed tests are run again, and all tests if anything else has changed."""
        digests = {name: blake2b((ROOT / name).read_bytes()).hexdigest() for name in tracked() if _matters(name)}
        tests = {name: digest for name, digest in digests.items() if Path(name).name.startswith("test_")}
        rest = repr([marks, *sorted(digests.items() - tests.items())])
        kept = CACHE / f"touched-{blake2b(rest.encode(), digest_size=8).hexdigest()}.pickle"
        known, found = pickle.loads(kept.read_bytes()) if kept.exists() else ({}, {})
        changed = sorted(tests.items() - known.items())
        if changed:
            say(f"running {len(changed) if known else 'all'} files of tests to see which lines they run")
            gone = {name for name in known if tests.get(name) != known[name]}
            found = {test: lines for test, lines in found.items() if test.split("::")[0] not in gone}
            found |= _run(jobs, marks, [name for name, _ in changed] if known else [])
            kept.write_bytes(pickle.dumps((tests, found)))
        return cls(found)

    def at(self, file: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run one of the lines."""
        known = self._by_line.get(file, {})
        return set().union(*(known.get(line, ()) for line in lines))

    def of(self, file: str, lines: Iterable[int], function: str | None) -> list[str]:
        """Return the tests of lines: those of their own folder first, then the fastest first.

        Args:
            file: The file of the lines.
            lines: Which.
            function: The function that they are in, the outermost; None in a class or a module. What runs while it is
                imported is tested by what runs anything in the file, else in those that import it.
        """
        found = set[str]()
        if function is not None:
            found = self.at(file, lines) | (self._of_callers(function) if file.startswith(KERNELS) else set())
        found = found or self.at(file, self._by_line.get(file, ())) or self._of_importers(file)
        own = f"tests/{Path(file).parts[1]}/"
        return sorted(found, key=lambda test: (not test.startswith(own), self.seconds[test]))

    def _of_callers(self, kernel: str) -> set[str]:
        """Return the tests of lines that name a kernel, or one that calls it, and those of test files that do."""
        names, before = {kernel}, set[str]()
        while names != before:
            before = set(names)
            for file, tree in self._trees.items():
                if file.startswith(KERNELS):
                    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
                    names |= {function.name for function in functions if _lines_with(function, names)}
        found = set[str]()
        for file, tree in self._trees.items():
            lines = _lines_with(tree, names)
            if lines and not file.startswith(KERNELS):
                found |= self.at(file, lines) | {test for test in self.seconds if test.startswith(f"{file}::")}
        return found

    def _of_importers(self, file: str) -> set[str]:
        """Return the tests that run anything in a file that imports this one."""
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        importers = [
            other
            for other, tree in self._trees.items()
            if any(isinstance(node, ast.ImportFrom) and node.module == module for node in ast.walk(tree))
        ]
        return set().union(*(self.at(other, self._by_line.get(other, ())) for other in importers))

    @cached_property
    def _trees(self) -> dict[str, ast.Module]:
        return {name: ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in tracked() if _matters(name)}


def _lines_with(tree: ast.AST, names: Collection[str]) -> set[int]:
    """Return the lines that use one of the names."""
    return {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names}


def _matters(name: str) -> bool:
    return name.endswith(".py") and name.startswith(("prism_mesa/", "tests/"))


def _run(jobs: int, marks: str, tests: Iterable[str]) -> Found:
    """Run files of tests, or all tests, in a copy of the tree, and return which lines those that pass have run."""
    with copy_of_tree() as folder, tempfile.TemporaryDirectory() as parts:
        more = {"TOUCHED_PACKAGE": f"{folder}/prism_mesa/", "TOUCHED_DIR": parts}
        code = pytest(folder, "-p", "touched_lines", "-n", str(jobs), "-m", marks, *tests, **more)
        found: Found = {}
        for part in Path(parts).iterdir():
            with part.open("rb") as file, suppress(EOFError):
                while True:
                    test, seconds, lines = pickle.load(file)
                    found[test] = seconds, {str(Path(name).relative_to(folder)): lines[name] for name in lines}
        say(f"{len(found):,} tests passed; pytest ended with {code}, {(folder / 'pytest.log').read_text()[-200:]!r}")
    return found
