"""The command `prism`. It reads arguments and prints; what it does is done elsewhere, and imported when needed."""

import json
import logging
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_mesa.errors import BadInputError, NotedWarning, PrismError, PrismWarning, printable, said_openly, shortened
from prism_mesa.terminal import show, show_json, show_line
from prism_mesa.view.summaries import economy_lines, run_lines, survey_lines

if TYPE_CHECKING:
    from rich.console import Console

    from prism_mesa.analysis.interview.interview import Interview
    from prism_mesa.analysis.survey.survey import SurveyResult
    from prism_mesa.runs.config import Config
    from prism_mesa.runs.lifecycle import RunResult
    from prism_mesa.statechart import Statechart
    from prism_mesa.view.interview_terminal import Interrupts

    type Lines = Callable[[dict[str, Any]], Iterable[tuple[str, str]]]

app = typer.Typer(
    help="Simulate a social platform whose agents are statecharts, or nations; an LLM decides only what is left open.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# typer brings its own copy of click, whose names are private: this is its click.UsageError
_UsageError: Any = typer.BadParameter.__base__

DEFAULT_FILE = Path("configs/default.yaml")
"""What the commands take where no file is named, if it is there; it says the same as the defaults."""

_MOST_AGENTS, _MOST_ROUNDS = 50_000_000, 10_000_000  # as agents.n and rounds have it
_BIG = 100_000  # agents; it takes seconds to make so many

Configured = Annotated[
    list[str] | None,
    typer.Argument(metavar="CONFIG|KEY=VALUE", help="a YAML file first, if any, then keys to override: agents.n=100"),
]
ConfiguredNations = Annotated[
    list[str] | None,
    typer.Argument(metavar="CONFIG|KEY=VALUE", help="a YAML file first, if any, then keys: economy.policy=taylor"),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="parent folder of what is made; made if missing")]
Trust = Annotated[
    bool, typer.Option("--trust", help="use a server, module or file that only the RUN's folder names (it runs code)")
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object on stdout, and nothing else there")]


class _InterruptedError(PrismError):
    """Ctrl-C ended something that has more to say about it than that."""

    exit_code = 130


def main() -> None:
    """Run the command line; every known error ends as one line on stderr and its exit code."""
    warnings.formatwarning = _warning_in_a_line
    warnings.simplefilter("ignore", NotedWarning)
    sys.path.append(str(Path.cwd()))  # where a chart of one's own is looked for, after everything installed
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="prism", standalone_mode=False)
    except PrismError as error:
        _say(f"prism: {error}")
        sys.exit(error.exit_code)
    except _UsageError as error:
        _say(f"prism: {error.format_message()} (see prism --help)")
        sys.exit(BadInputError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = _InterruptedError.exit_code
    except MemoryError as error:
        _say(f"prism: not enough memory: {error} (fewer agents, or a smaller feed.size or feed.window, need less)")
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a full disk, a picture's name taken by a folder
        _say(f"prism: {error}")
        sys.exit(1)
    if code == _InterruptedError.exit_code:  # typer itself makes that of an interrupt
        _say("prism: interrupted")
    sys.exit(code or 0)


def _warning_in_a_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as stderr shows it: without where in the program it comes from."""
    said = f"{message}" if issubclass(category, PrismWarning) else f"{category.__name__}: {message}"
    return f"prism: {printable(said_openly(said))}\n"


def _say(text: str) -> None:
    show_line(shortened(said_openly(text)), to=sys.stderr)


@app.command()
def run(arguments: Configured = None, out: Out = Path("results"), as_json: AsJson = False) -> None:
    """Run a simulation; keep its tables and pictures in OUT/<run-id>."""
    from prism_mesa.api import run as run_config

    config = _config(arguments)
    _say_building(config)
    tell = partial(_tell_run, lines=run_lines, as_json=as_json)
    with _summed_up(tell), _progress(config.rounds, "rounds", then="tables and pictures") as advance:
        result = run_config(config, out=out, on_round=lambda done: advance())
    tell(result)
    if result.status != "done":
        raise _failed(result.summary)


ECONOMY_FILE = Path("configs/economy.yaml")
"""The same for nations."""


@app.command()
def economy(arguments: ConfiguredNations = None, out: Out = Path("results"), as_json: AsJson = False) -> None:
    """Let nations set policy in words, in an economy that answers; keep tables and pictures in OUT/<run-id>."""
    from prism_mesa.api import run_economy
    from prism_mesa.runs.config import EconomyConfig, load

    file, given = _file_and_overrides(arguments, ECONOMY_FILE)
    config = load(EconomyConfig, file, given, defaults={"economy": {"policy": "llm"}})
    tell = partial(_tell_run, lines=economy_lines, as_json=as_json)
    with _summed_up(tell), _progress(config.rounds, "quarters", then="tables and pictures") as advance:
        result = run_economy(config, out=out, on_round=lambda done: advance(min(done, 1)))
    tell(result)


Run = Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run: results/<run-id>")]


@app.command()
def replay(
    run_dir: Run,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="keep the repetition in DIR/<run-id>; by default it is dropped")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a run from its ledger, without any LLM, and prove that every table is the same."""
    from prism_mesa.runs.recorded import recorded_rounds
    from prism_mesa.runs.replay import replay as repeat

    with _progress(recorded_rounds(run_dir), "rounds") as advance:
        found = repeat(run_dir, out=out, on_round=lambda done: advance(), trust=trust)
    if as_json:
        kept = {"run_dir": str(found.run_dir) if found.run_dir else None, "equal": found.equal}
        told = {"differences": found.differences, "rows": found.rows, "answered": found.answered, "calls": found.calls}
        told |= {"recomputed": found.recomputed, "texts": found.texts}
        show_json(kept | told)
    else:
        for table, rows in found.rows.items():
            show_line(f"{table:<12}{rows:>12,} rows  {found.differences.get(table, 'equal')}")
        again = f", {found.recomputed:,} decided again without an LLM" if found.recomputed else ""
        texts = f" and {found.texts:,} thoughts and texts" if found.texts else ""
        show_line(f"{found.answered:,} decisions{texts} answered from the ledger{again}, {found.calls} calls of an LLM")
    if not found.equal:
        table, difference = next(iter(found.differences.items()))
        raise PrismError(f"{run_dir}: repeated, {len(found.differences)} tables differ; {table}: {difference}")


@app.command()
def why(
    run_dir: Run,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="row, id, or name of an agent or nation")],
    at: Annotated[
        str | None,
        typer.Argument(
            metavar="ROUND",
            help="the round (from 0) or, of nations, the quarter (2011Q2); by default the last with most to tell",
        ),
    ] = None,
    trust: Trust = False,
) -> None:
    """Tell what an agent or nation did, and why: what it saw, who was asked, the answer, and what was made of it."""
    from prism_mesa.analysis.explain.economy import why_nation
    from prism_mesa.analysis.explain.report import report_lines
    from prism_mesa.analysis.explain.trace import why as explained
    from prism_mesa.params import whole_number
    from prism_mesa.runs.recorded import is_economy, recorded_config

    if is_economy(run_dir):
        for line in why_nation(run_dir, agent, at):
            show_line(line)
        return
    round_ = None if at is None else whole_number(at)
    if at is not None and round_ is None:
        raise BadInputError(f"ROUND: {at!r} is no round: give a whole number from 0")
    rounds = recorded_config(run_dir, trust=trust).rounds if round_ is None else round_ + 1
    with _progress(rounds, "rounds") as advance:
        explanation = explained(run_dir, agent, round_, on_round=lambda done: advance(), trust=trust)
    for line in report_lines(explanation):
        show_line(line)


Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="reasoner.* and deliberation.*: reasoner.kind=ollama")
]


@app.command()
def survey(
    run_dir: Run,
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS", help="a YAML file, as configs/survey.yaml is")],
    overrides: Overrides = None,
    agents: Annotated[
        int, typer.Option(min=1, max=_MOST_AGENTS, help="how many agents are asked; all if there are no more")
    ] = 100,
    at: Annotated[
        int | None,
        typer.Option(metavar="ROUND", min=0, max=_MOST_ROUNDS, help="take the run as it was after this round, from 0"),
    ] = None,
    out: Out = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Ask agents of a run the same questions before and after it; tables and a picture go to OUT/survey-<time>."""
    from prism_mesa.analysis.survey.survey import survey as asked_of

    said = 0
    tell = partial(_tell_survey, as_json=as_json)
    with _summed_up(tell), _progress(0, "answers", then="tables") as advance:

        def on_answers(done: int, total: int) -> None:
            nonlocal said
            advance(done - said, total)
            said = done

        result = asked_of(
            run_dir, questions, overrides or (), agents=agents, at=at, out=out, on_answers=on_answers, trust=trust
        )
    tell(result)
    if result.status != "done":
        raise _failed({"run_dir": result.folder, **result.summary}, "survey")


def _tell_survey(result: "SurveyResult", *, as_json: bool) -> None:
    """Draw a survey, and print its summary."""
    from prism_mesa.view.plots import draw_survey

    asks = {question["id"]: question["ask"] for question in result.summary["questions"]}
    pictures = draw_survey(result.folder, result.table, asks)
    if as_json:
        show_json(result.summary | {"pictures": [str(path) for path in pictures]})
        return
    for line in survey_lines(result.summary):
        show_line(line)
    show(f"\ndrawn: {', '.join(map(str, pictures)) or 'nothing: no closed question'}")


Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="folders of runs in which an LLM was asked")]


@app.command()
def distill(
    run_dirs: Runs,
    kind: Annotated[str, typer.Option(help="what is kept: logistic or boosting (both are judged)")] = "logistic",
    drift: Annotated[
        bool, typer.Option("--drift", help="run the first RUN's scenario with LLM shares of 0, 25, 50 and 100 %")
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=1, max=10_000, help="with --drift: that many seeds, from the run's own on")
    ] = 1,
    out: Out = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit a small model of an LLM's choices to its ledgers; judge it on personas and posts that it never saw."""
    from prism_mesa.analysis.distill.dataset import rounds_of
    from prism_mesa.analysis.distill.distill import distill as distilled_from
    from prism_mesa.analysis.distill.fit import check_installed
    from prism_mesa.analysis.distill.share_sweep import drift as drift_of
    from prism_mesa.analysis.distill.share_sweep import rounds_of_drift
    from prism_mesa.view.plots import draw_distilled

    check_installed()
    with _progress(sum(map(rounds_of, run_dirs)), "rounds repeated") as advance:
        found = distilled_from(run_dirs, kind=kind, out=out, on_round=advance, trust=trust)
    moved = None
    if drift:
        with _progress(rounds_of_drift(run_dirs[0], seeds), "rounds run") as advance:
            where = found.folder / "drift"
            moved = drift_of(run_dirs[0], found.file, where, n_seeds=seeds, on_round=advance, trust=trust).table
    pictures = draw_distilled(found.folder, found.model.report, moved)
    if as_json:
        told = {"folder": str(found.folder), "file": str(found.file), "pictures": [str(path) for path in pictures]}
        table = {} if moved is None else {"drift": json.loads(moved.to_json(orient="records"))}
        show_json(told | {"provenance": found.model.provenance, "report": found.model.report} | table)
        return
    for choice in found.model.report["choices"]:
        _print_choice(choice)
    if moved is not None:
        _print_drift(moved)
    show_line(f"kept: {found.file} ({kind}); use it with reasoner.distilled={found.file}, and either")
    show_line("  reasoner.kind=distilled, or reasoner.llm_share=0.25 beside an LLM")
    show_line(f"drawn: {', '.join(map(str, pictures))}")


def _print_choice(choice: dict[str, Any]) -> None:
    """Print how well models of one choice do."""
    held = f"{choice['personas']} personas, {choice['posts']} posts, {choice['answers']:,} answers of the LLM"
    show_line(f"{' or '.join(choice['options'])}: {choice['rows']:,} decisions ({held})")
    columns = {"log_loss": "log loss", "auc": "AUC", "js": "JS (bits)", "calibration_error": "off by"}
    if "scores" in choice:
        show_line("  held out  " + "".join(f"{title:>11}" for title in columns.values()))
        for name, scores in choice["scores"].items():
            show_line(f"  {name:<10}" + "".join(f"{scores[column]:>11.4f}" for column in columns))
    show_line(f"  it {choice['verdict']}" if "scores" in choice else f"  {choice['verdict']}")


def _print_drift(table: Any) -> None:
    """Print how outcomes move with the share of the LLM: the mean over seeds."""
    wide = table.pivot_table(index="outcome", columns="share", values="value", sort=False)
    show_line("LLM share".ljust(24) + "".join(f"{share:>11.0%}" for share in wide.columns))
    for outcome, values in wide.iterrows():
        show_line(f"{outcome:<24}" + "".join(f"{value:>11,.4g}" for value in values))


@app.command()
def interview(
    run_dir: Run,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="row, id, or name of an agent")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="who plays the agent, where not as in the run: reasoner.kind=embedded"
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            metavar="ROUND", min=-1, max=_MOST_ROUNDS, help="the last round it remembers (-1: before the run)"
        ),
    ] = None,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="show what it thinks and looks up")] = False,
    ask: Annotated[
        list[str] | None, typer.Option(metavar="QUESTION", help="ask this, and end; may be repeated")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, max=20, help="most rounds of thinking and responding for a question")
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="let the small embedded LLM use words of its own, not only the agent's deeds")
    ] = False,
    out: Out = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Talk with an agent as its run left it; the talk is kept in OUT/interview-<time>, the run is not changed."""
    from prism_mesa.analysis.interview.interview import Interview
    from prism_mesa.analysis.interview.transcript import CONSTRAINED
    from prism_mesa.deliberation.deliberation import check_text
    from prism_mesa.view.interview_terminal import Interrupts

    for question in ask or ():
        check_text("--ask", question)
    given = [*(arguments or ()), *([] if iterations is None else [f"deliberation.iterations={iterations}"])]
    with (
        _warned(),
        Interview(run_dir, agent, at=at, overrides=given, free=free, out=out, trust=trust) as talk,
        Interrupts() as interrupts,
    ):
        held = f"; {CONSTRAINED}" if talk.constrained else ""
        _say(f"{talk.snapshot.name}, {_moment(talk.snapshot.at)}, played by {talk.llm.label}{held}")
        if talk.llm.note:
            _say(f"prism: {talk.llm.note}")
        try:
            _talk_with(talk, ask, interrupts, thoughts=thoughts, quiet=as_json)
        except KeyboardInterrupt:
            interrupts.came = True
        finally:  # whatever ended it: what was said is kept
            interrupts.held = True
            folder = talk.save()
        if interrupts.came:
            raise _InterruptedError(f"interrupted (kept: {folder})" if folder else "interrupted")
        if as_json:
            answers = [exchange.as_json() for exchange in talk.transcript]
            show_json({**talk.facts(), "answers": answers, "folder": str(folder) if folder else None})
        elif folder:
            _say(f"kept: {folder / 'transcript.md'}")
            _say(f"why it did what it did: prism why {run_dir} {talk.snapshot.row} ROUND")
        if ask and talk.transcript and not any(exchange.text for exchange in talk.transcript):
            raise PrismError(f"{talk.llm.label} answered none of the questions: {talk.transcript[-1].errors[-1]}")


def _moment(at: int) -> str:
    return "before the run" if at < 0 else f"after round {at}"


def _talk_with(
    talk: "Interview", questions: list[str] | None, interrupts: "Interrupts", *, thoughts: bool, quiet: bool
) -> None:
    """Put questions, or what is typed, or what comes from standard input; `quiet`: nothing on stdout."""
    from prism_mesa.view.interview_terminal import Session, piped_lines, typed_lines

    typed = questions is None and sys.stdin.isatty()
    to = sys.stderr if quiet else sys.stdout

    def shown(line: str) -> None:
        if typed or not quiet:
            show(line, to=to)

    dim = to.isatty() and "NO_COLOR" not in os.environ
    session = Session(talk, shown, thoughts=thoughts, dim=dim, echo=not typed)
    if questions is not None:
        session.take(interrupts.between(questions))
    elif typed:
        _say("ask something (/help: what else there is, /quit: end)")
        session.take(interrupts.between(typed_lines(prompt_to_stdout=not quiet)))
    else:
        session.take(interrupts.between(piped_lines()))


ledger = typer.Typer(help="Look into a ledger: what was asked of an LLM, and what it answered.")
app.add_typer(ledger, name="ledger")
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="a decisions.sqlite, or the folder of a run")]


@ledger.command()
def stats(file: LedgerFile, as_json: AsJson = False) -> None:
    """Count answers, questions, fallbacks, tokens and latencies."""
    from prism_mesa.runs.ledgers import ledger_stats

    found = ledger_stats(file)
    if as_json:
        show_json(found)
        return
    for name, value in found.items():
        text = ", ".join(f"{n:,} {what}" for what, n in value.items()) or 0 if isinstance(value, dict) else value
        show_line(f"{name:<12}{text}")


@ledger.command()
def export(
    file: LedgerFile,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder for the files; by default that of the ledger")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write both tables of a ledger as answers.parquet and asked.parquet."""
    from prism_mesa.runs.ledgers import export_ledger

    files = export_ledger(file, out)
    if as_json:
        show_json({table: {"file": str(path), "rows": rows} for table, (path, rows) in files.items()})
    else:
        for path, rows in files.values():
            show_line(f"{rows:>10,} rows  {path}")


@app.command()
def chart(arguments: Configured = None, out: Out = Path("results"), as_json: AsJson = False) -> None:
    """Check the statechart without running it, and draw it: OUT/<name>-chart.png and .mmd (Mermaid)."""
    from prism_mesa.social.behavior import FIRED, chosen_chart
    from prism_mesa.social.round.guard_faults import READABLE

    config = _config(arguments)
    drawn = chosen_chart(config.statechart, asks_action=config.reasoner.asks_action)
    findings = drawn.check(FIRED, READABLE)
    picture, text = _draw_chart(drawn, out)
    errors = [finding for finding in findings if finding.level == "error"]
    if as_json:
        found = [{"level": f.level, "kind": f.kind, "where": f.where, "message": f.message} for f in findings]
        show_json({"chart": drawn.name, "findings": found, "picture": str(picture), "mermaid": str(text)})
    else:
        show(text.read_text(encoding="utf-8"))
        for finding in findings:
            show_line(finding)
        show_line(f"drawn: {picture}, {text}")
    if errors:
        raise BadInputError(f"chart {drawn.name}: {errors[0].where}: {errors[0].message}")


@app.command(name="app")
def browser_page(
    arguments: Configured = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port of the page")] = 8765,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="open the page in the browser")] = True,
) -> None:
    """Open Mesa's browser page on the model: a small one, or that of CONFIG; ends with Ctrl-C."""
    import subprocess
    import tempfile

    import yaml

    from prism_mesa.social.model import SocialModel

    config = _config(arguments)
    SocialModel(config)  # so that bad input is said here, not as a traceback in the browser
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        yaml.safe_dump(config.model_dump(mode="json"), file)
        file.flush()
        command = [
            sys.executable,
            "-m",
            "solara",
            "run",
            str(Path(__file__).parents[1] / "view" / "dashboard.py"),
            f"--port={port}",
        ]
        command += ["--production"] + ([] if open_browser else ["--no-open"])
        show_line(f"the page is at http://localhost:{port} (end with Ctrl-C)", to=sys.stderr)
        named = {"PRISM_APP_CONFIG": file.name} if arguments else {}
        done = subprocess.run(command, env=os.environ | named, check=False)
    sys.exit(done.returncode)


def _config(arguments: list[str] | None) -> "Config":
    """Return the configuration that arguments name."""
    from prism_mesa.runs.config import load_config

    file, given = _file_and_overrides(arguments, DEFAULT_FILE)
    return load_config(file, given, defaults={"reasoner": {"kind": "auto"}})


def _file_and_overrides(arguments: list[str] | None, default: Path) -> tuple[str | Path | None, list[str]]:
    """Return the file that arguments name first, if any, else the default one if it is there; and the overrides."""
    given = arguments or []
    if given and ("=" not in given[0] or _is_file(given[0])):
        return given[0], given[1:]
    return (default if default.is_file() else None), given


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # a name longer than the system allows is none
        return False


def _say_building(config: "Config") -> None:
    """Say that a big world is being built: it takes a while before the first round is done."""
    if config.network.edges is None and config.agents.n >= _BIG:
        _say(f"building {config.agents.n:,} agents ...")


def _draw_chart(chart: "Statechart", out: Path) -> tuple[Path, Path]:
    from prism_mesa.runs.folder import make_folder
    from prism_mesa.statechart import draw_chart, mermaid
    from prism_mesa.view.plots import DPI

    make_folder(out)
    name = re.sub(r"[^\w.-]+", "-", chart.name)
    picture, text = out / f"{name}-chart.png", out / f"{name}-chart.mmd"
    draw_chart(chart).savefig(picture, dpi=DPI)
    text.write_text(mermaid(chart), encoding="utf-8")
    return picture, text


class _Warnings(logging.Handler):
    """Shows the first warning of each kind; how many there were stands in the summary and in the ledger."""

    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg not in self._shown:
            self._shown.add(record.msg)
            said = printable(shortened(said_openly(record.getMessage())))
            text = f"prism: {said} (more of this kind are counted, not shown)"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _warned() -> Iterator[None]:
    """Show the first warning of each kind on stderr while the block runs."""
    from rich.console import Console

    warnings = _Warnings(Console(stderr=True))
    logging.getLogger("prism_mesa").addHandler(warnings)
    try:
        yield
    finally:
        logging.getLogger("prism_mesa").removeHandler(warnings)


@contextmanager
def _progress(total: int, unit: str, then: str = "") -> Iterator[Any]:
    """Show a progress bar on stderr while the block runs; yields what advances it by one.

    `then` is what still goes on when the bar is full.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(unit, total=total)
    warnings = _Warnings(progress.console)
    logging.getLogger("prism_mesa").addHandler(warnings)

    def advance(rounds: int = 1, of: int = total) -> None:
        progress.start()  # only now: what fails before the first round is not half a bar
        progress.update(task, total=of)
        progress.advance(task, rounds)
        if progress.finished:
            progress.update(task, description=then or unit)

    try:
        yield advance
    except KeyboardInterrupt as stop:
        raise _InterruptedError(str(stop) or "interrupted") from stop
    finally:
        progress.update(task, description=unit)
        if progress.live.is_started:  # else stopping would print an empty line
            progress.stop()
        logging.getLogger("prism_mesa").removeHandler(warnings)


@contextmanager
def _summed_up(tell: Callable[[Any], None]) -> Iterator[None]:
    """Tell what a run or survey came to that Ctrl-C ends in the block."""
    try:
        yield
    except _InterruptedError as stop:
        result = getattr(stop.__cause__, "result", None)
        if result is not None:
            tell(result)
        raise


def _tell_run(result: "RunResult", *, lines: "Lines", as_json: bool) -> None:
    """Print a run's summary with the clocks of the whole command; the run's own are then `run_cpu_s`, `run_wall_s`."""
    from prism_mesa.runs.lifecycle import whole_process

    own = {f"run_{clock}": result.summary[clock] for clock in ("cpu_s", "wall_s")}
    summary = {**result.summary, **own, **whole_process()}
    if as_json:
        show_json(summary)
    else:
        _print_lines(lines(summary))


def _failed(summary: dict[str, Any], what: str = "run") -> PrismError:
    from prism_mesa.errors import RunError

    return RunError(f"{summary['run_dir']}: the {what} failed: {summary.get('error', '')}")


def _print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print (what, text) as two columns, wrapped in a terminal only."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for name, text in lines:
        show(
            textwrap.fill(
                f"{name:<12}{text}", width, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False
            )
        )


if __name__ == "__main__":
    main()
