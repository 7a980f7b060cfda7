"""Output of commands besides their results: progress, warnings, and the end of a run."""

import io
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_mesa.errors import PrismError, PrismWarning, RunError, printable, quote_path, redact_credentials, shorten
from prism_mesa.terminal import show, show_json, show_line

if TYPE_CHECKING:
    from rich.console import Console

    from prism_mesa.runs.lifecycle import RunResult

    type Lines = Callable[[dict[str, Any]], Iterable[tuple[str, str]]]


class InterruptedByUserError(PrismError):
    """Ctrl-C ended a command; the message says what is kept."""

    exit_code = 130


def warning_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as one line for stderr, without its file and line."""
    text = f"{message}" if issubclass(category, PrismWarning) else f"{category.__name__}: {message}"
    return f"prism: {printable(redact_credentials(text))}\n"


class _Output(io.FileIO):
    """Standard output or error; drops text if its reader has gone, and drops progress if the disk is full."""

    has_failed = False

    def write(self, data: Any, /) -> int:
        """Write bytes, and return their number."""
        try:
            return super().write(data)
        except OSError as error:
            if self.fileno() == 1 and not self.has_failed and not isinstance(error, ConnectionError):
                self.has_failed = True  # Python tries again at exit
                raise
            return memoryview(data).nbytes


def keep_streams_open() -> None:
    """Let a command finish even if its output is closed or a pipe without a reader."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # otherwise the next file to be opened gets this number
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__") and not (stream and stream.isatty()):
            encoding, errors = (stream.encoding, stream.errors) if stream else ("utf-8", "replace")
            buffer = io.BufferedWriter(_Output(number, "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(buffer, encoding, errors, line_buffering=True))


def print_status(text: str) -> None:
    """Print text on one line of stderr."""
    show_line(shorten(redact_credentials(text)), file=sys.stderr)


class FirstWarnings(logging.Handler):
    """Shows the first log record of each kind; the summary and the ledger count all records."""

    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record if it is the first of its kind."""
        if record.msg not in self._shown:
            self._shown.add(record.msg)
            text = printable(shorten(redact_credentials(record.getMessage())))
            line = f"prism: {text} (more of this kind are counted, not shown)"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def show_warnings(console: "Console | None" = None) -> Iterator[None]:
    """Show the first warning of each kind on stderr or a console while the block runs."""
    from rich.console import Console

    handler = FirstWarnings(console or Console(stderr=True))
    logging.getLogger("prism_mesa").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("prism_mesa").removeHandler(handler)


@contextmanager
def progress_bar(total: int, unit: str, end_text: str = "") -> Iterator[Any]:
    """Show a progress bar on stderr, with `end_text` at the end; yields a function of the counts done and planned."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(unit, total=total)

    def update_bar(done: int, planned: int = total) -> None:
        progress.start()  # started late, so that a failure before the first round shows no bar
        progress.update(task, completed=done, total=planned)
        if progress.finished:
            progress.update(task, description=end_text or unit)

    try:
        with show_warnings(progress.console):
            yield update_bar
    except KeyboardInterrupt as stop:
        raise InterruptedByUserError(str(stop) or "interrupted") from stop
    finally:
        progress.update(task, description=unit)
        if progress.live.is_started:  # otherwise stopping prints an empty line
            progress.stop()


@contextmanager
def summary_on_interrupt(show_result: Callable[[Any], None]) -> Iterator[None]:
    """Show the partial result of a run or survey if Ctrl-C ends it in the block."""
    try:
        yield
    except InterruptedByUserError as stop:
        result = getattr(stop.__cause__, "result", None)
        if result is not None:
            show_result(result)
        raise


def show_run(result: "RunResult", *, lines: "Lines", as_json: bool) -> None:
    """Print a run's summary with the clocks of the whole command; those of the run become `run_cpu_s`, `run_wall_s`."""
    from prism_mesa.runs.process.machine import process_clocks

    run_clocks = {f"run_{clock}": result.summary[clock] for clock in ("cpu_s", "wall_s")}
    summary = {**result.summary, **run_clocks, **process_clocks()}
    if as_json:
        show_json(summary)
    else:
        print_lines((name, with_prism_command(text) if name == "next" else text) for name, text in lines(summary))


def with_prism_command(commands: str) -> str:
    """Return text in which each ``prism`` is replaced by the command that starts it in this folder."""
    return re.sub(r"(^|[:;] )prism ", lambda match: f"{match[1]}{prism_command(Path.cwd())} ", commands)


def prism_command(folder: Path) -> str:
    """Return the command that starts `prism` in a folder: through uv if uv started this process."""
    project = Path(sys.prefix).parent
    if "UV_RUN_RECURSION_DEPTH" not in os.environ or not (project / "pyproject.toml").is_file():
        return "prism"
    is_inside = folder.resolve().is_relative_to(project.resolve())
    return "uv run prism" if is_inside else f"uv run --project {quote_path(project)} prism"


def run_failure(summary: dict[str, Any], kind: str = "run") -> PrismError:
    """Return the error of a command whose run failed."""
    return RunError(f"{summary['run_dir']}: the {kind} failed: {summary.get('error', '')}")


def print_lines(lines: Iterable[tuple[str, str]], indent: int = 12) -> None:
    """Print (name, text) in two columns, the second at column `indent`; lines are wrapped only in a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = " " * indent
    for name, text in lines:
        show(wrapper.fill(f"{name:<{indent}}{text}"))
