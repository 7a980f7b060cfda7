"""Commands that examine finished runs: compare, why, survey, distill, interview, ledger."""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument, Option

from prism_mesa.cli.arguments import MAX_AGENTS, MAX_ROUNDS, AsJson, OutOption, Run, Trust, check_unique
from prism_mesa.cli.console import (
    InterruptedByUserError,
    print_status,
    progress_bar,
    run_failure,
    show_warnings,
    summary_on_interrupt,
    with_prism_command,
)
from prism_mesa.errors import BadInputError, PrismError, did_you_mean, quote_path
from prism_mesa.terminal import show, show_json, show_line
from prism_mesa.view.summaries import survey_lines

if TYPE_CHECKING:
    from prism_mesa.analysis.interview.interview import Interview
    from prism_mesa.analysis.survey.survey import SurveyResult
    from prism_mesa.view.interview_terminal import Interrupts

Overrides = Annotated[
    list[str] | None, Argument(metavar="KEY=VALUE", help="reasoner.* and deliberation.* settings: reasoner.kind=ollama")
]
LedgerFile = Annotated[Path, Argument(metavar="LEDGER", help="a file decisions.sqlite, or the folder of a run")]
Runs = Annotated[list[Path], Argument(metavar="RUN", help="folders of runs with an LLM")]


WITH: Final = "--with"
_OPTIONS: Final = (WITH, "--out", "--all", "--why", "--no-why", "--trust", "--json", "--measure")

Sides = Annotated[
    list[str],
    Argument(
        metavar="BASE|--with OTHER",
        help="two runs, or runs of several seeds on both sides of --with, or folders of runs",
    ),
]


def compare(
    arguments: Sides,
    measure: Annotated[
        list[str] | None,
        Option(
            metavar="NAME", help="a measure from `prism study measures`; repeat the option for several; by default all"
        ),
    ] = None,
    show_all: Annotated[bool, Option("--all", help="show every measure that differs")] = False,
    why: Annotated[
        bool, Option("--why/--no-why", help="repeat both runs up to the point where they diverge, and explain why")
    ] = True,
    out: OutOption = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Compare runs: what differs, what diverged first, and why.

    It compares settings, measures and rounds. The report goes to OUT/compare-<names>.
    """
    base, other = split_sides(arguments)

    from prism_mesa.api.comparison import compare as compare_runs
    from prism_mesa.view.comparison.words import comparison_lines

    comparison = compare_runs(base, other, measures=measure, why=why, trust=trust)
    folder = comparison.write(out)
    if as_json:
        show_json(comparison.as_json() | {"folder": str(folder)})
        return
    for line in comparison_lines(comparison, show_all=show_all):
        show_line(line)
    show_line(f"kept: {folder} (report.md, comparison.json, rounds.png, rounds.pdf)")


def split_sides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the two sides: arguments before and after ``--with``, else two runs, or runs grouped by configuration."""
    for argument in arguments:
        if argument.startswith("-") and argument != WITH:
            raise BadInputError(f"no such option: {argument}.{did_you_mean(argument, _OPTIONS)}")
    if arguments.count(WITH) > 1:
        raise BadInputError("--with: is given more than once: BASE... --with OTHER... has two sides")
    if WITH in arguments:
        index = list(arguments).index(WITH)
        both_sides = list(arguments[:index]), list(arguments[index + 1 :])
        if not all(both_sides):
            raise BadInputError("--with: one side has no run: give prism compare BASE... --with OTHER...")
        return both_sides
    if len(arguments) < 2:
        raise BadInputError(f"{arguments[0]}: is one run: give a second run to compare it with: prism compare RUN RUN")
    if len(arguments) == 2:
        return [arguments[0]], [arguments[1]]

    from prism_mesa.studies.comparison.pairs import sides_by_settings

    left, right = sides_by_settings(arguments)
    return list(map(str, left)), list(map(str, right))


def why(
    run_dir: Run,
    agent: Annotated[str, Argument(metavar="AGENT", help="row, id or name of an agent or nation")],
    at: Annotated[
        str | None,
        Argument(
            metavar="ROUND", help="round (from 0), or quarter of nations (2011Q2); by default the one with most events"
        ),
    ] = None,
    post: Annotated[
        int | None,
        Option("--post", metavar="ID", min=0, help="explain why this post was or was not in the agent's feeds"),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="print everything: each tick, guard, prompt, answer and draw")
    ] = False,
    trust: Trust = False,
) -> None:
    """Explain what an agent or nation did in a round.

    Prints at most five lines. --all adds what the agent saw, each guard with its values, who was asked, the prompt and
    the answer.
    """
    from prism_mesa.api.runs import why as explain
    from prism_mesa.params import parse_whole_number
    from prism_mesa.runs.manifest import read_run

    round_, run = None if at is None else parse_whole_number(at), read_run(run_dir)
    rounds = run.manifest.planned_rounds if round_ is None else round_ + 1
    with progress_bar(rounds or 0, "rounds") as on_round:
        report = explain(run_dir, agent, at, post=post, on_round=on_round, trust=trust)
    for line in report.lines if everything else report.brief:
        show_line(line)
    if not everything:
        show_line("For everything that the agent saw and weighed, add --all to the command.")
    if run.state.is_unfinished:
        print_status(f"prism: {run_dir}: {run.state}{run.advice}")


def survey(
    run_dir: Run,
    questions: Annotated[Path, Argument(metavar="QUESTIONS", help="a YAML file such as configs/survey.yaml")],
    overrides: Overrides = None,
    agents: Annotated[int, Option(min=1, max=MAX_AGENTS, help="number of agents to ask, at most all agents")] = 100,
    at: Annotated[
        int | None, Option(metavar="ROUND", min=0, max=MAX_ROUNDS, help="use the run up to this round, from 0")
    ] = None,
    out: OutOption = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Ask agents the same questions before and after their run.

    Tables and a picture go to OUT/survey-<time>.
    """
    from prism_mesa.analysis.survey.survey import survey as ask

    texts, show_result = check_unique(overrides), partial(_show_survey, as_json=as_json)
    with summary_on_interrupt(show_result), progress_bar(0, "answers", end_text="tables") as on_answers:
        result = ask(run_dir, questions, texts, agents=agents, at=at, out=out, on_answers=on_answers, trust=trust)
    show_result(result)
    if result.status != "done":
        raise run_failure({"run_dir": result.folder, **result.summary}, "survey")


def _show_survey(result: "SurveyResult", *, as_json: bool) -> None:
    from prism_mesa.view.plots.answers import draw_survey

    question_texts = {question["id"]: question["ask"] for question in result.summary["questions"]}
    pictures = draw_survey(result.folder, result.table, question_texts)
    if as_json:
        show_json(result.summary | {"pictures": [str(path) for path in pictures]})
        return
    for line in survey_lines(result.summary):
        show_line(line)
    show(f"\ndrawn: {', '.join(map(str, pictures)) or 'nothing: no closed question'}")


def distill(
    run_dirs: Runs,
    kind: Annotated[str, Option(help="model to keep: logistic or boosting (both are evaluated)")] = "logistic",
    drift: Annotated[
        bool, Option("--drift", help="run the first RUN's scenario with LLM shares of 0, 25, 50 and 100 %")
    ] = False,
    seeds: Annotated[
        int, Option(min=1, max=10_000, help="with --drift: number of seeds, starting from the run's seed")
    ] = 1,
    out: OutOption = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit a small model of an LLM's choices to its ledgers.

    It is evaluated on personas and posts that were not used to fit it.
    """
    from prism_mesa.analysis.distill.dataset import completed_rounds
    from prism_mesa.analysis.distill.distill import distill as distill_runs
    from prism_mesa.analysis.distill.fit import check_installed
    from prism_mesa.analysis.distill.share_sweep import drift as measure_drift
    from prism_mesa.analysis.distill.share_sweep import drift_rounds
    from prism_mesa.view.plots.answers import draw_distilled

    check_installed()
    with progress_bar(sum(map(completed_rounds, run_dirs)), "rounds repeated") as update_bar:
        counter = count(1)
        result = distill_runs(run_dirs, kind=kind, out=out, on_round=lambda: update_bar(next(counter)), trust=trust)
    table = None
    if drift:
        with progress_bar(drift_rounds(run_dirs[0], seeds), "rounds run") as update_bar:
            counter, folder = count(1), result.folder / "drift"
            sweep_result = measure_drift(
                run_dirs[0], result.file, folder, n_seeds=seeds, on_round=lambda: update_bar(next(counter)), trust=trust
            )
            table = sweep_result.table
    pictures = draw_distilled(result.folder, result.model.report, table)
    if as_json:
        paths = {"folder": str(result.folder), "file": str(result.file), "pictures": list(map(str, pictures))}
        drift_rows = {} if table is None else {"drift": json.loads(table.to_json(orient="records"))}
        show_json(paths | {"provenance": result.model.provenance, "report": result.model.report} | drift_rows)
        return
    for choice in result.model.report["choices"]:
        _print_choice(choice)
    if table is not None:
        _print_drift(table)
    show_line(f"kept: {result.file} ({kind}); use it with reasoner.distilled={result.file}, and either")
    show_line("  reasoner.kind=distilled, or reasoner.llm_share=0.25 together with an LLM")
    show_line(f"drawn: {', '.join(map(str, pictures))}")


def _print_choice(choice: dict[str, Any]) -> None:
    counts = f"{choice['personas']} personas, {choice['posts']} posts, {choice['answers']:,} answers of the LLM"
    show_line(f"{' or '.join(choice['options'])}: {choice['rows']:,} decisions ({counts})")
    columns = {"log_loss": "log loss", "auc": "AUC", "js": "JS (bits)", "calibration_error": "off by"}
    if "scores" in choice:
        show_line("  held out  " + "".join(f"{title:>11}" for title in columns.values()))
        for name, scores in choice["scores"].items():
            show_line(f"  {name:<10}" + "".join(f"{scores[column]:>11.4f}" for column in columns))
    show_line(f"  it {choice['verdict']}" if "scores" in choice else f"  {choice['verdict']}")


def _print_drift(table: Any) -> None:
    table_by_share = table.pivot_table(index="outcome", columns="share", values="value", sort=False)
    show_line("LLM share".ljust(24) + "".join(f"{share:>11.0%}" for share in table_by_share.columns))
    for outcome, values in table_by_share.iterrows():
        show_line(f"{outcome:<24}" + "".join(f"{value:>11,.4g}" for value in values))


def interview(
    run_dir: Run,
    agent: Annotated[str, Argument(metavar="AGENT", help="row, id or name of an agent")],
    arguments: Annotated[
        list[str] | None, Argument(metavar="KEY=VALUE", help="another LLM to play the agent: reasoner.kind=embedded")
    ] = None,
    at: Annotated[
        int | None,
        Option(
            metavar="ROUND", min=-1, max=MAX_ROUNDS, help="last round that the agent remembers (-1: before the run)"
        ),
    ] = None,
    thoughts: Annotated[bool, Option("--thoughts", help="show the agent's thoughts and tool calls")] = False,
    ask: Annotated[
        list[str] | None, Option(metavar="QUESTION", help="ask this question and exit; may be repeated")
    ] = None,
    iterations: Annotated[
        int | None, Option(min=1, max=20, help="maximum rounds of thinking and responding per question")
    ] = None,
    free: Annotated[
        bool, Option("--free", help="let the small embedded LLM answer in free text, not only with an activity")
    ] = False,
    out: OutOption = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Interview an agent at the end of its run.

    The interview is kept in OUT/interview-<time>; the run is not changed.
    """
    from prism_mesa.analysis.interview.interview import Interview
    from prism_mesa.deliberation.deliberation import check_text
    from prism_mesa.view.interview_terminal import Interrupts

    for question in ask or ():
        check_text("--ask", question)
    limit_overrides = [] if iterations is None else [f"deliberation.iterations={iterations}"]
    overrides = check_unique([*(arguments or ()), *limit_overrides])
    with (
        show_warnings(),
        Interview(run_dir, agent, at=at, overrides=overrides, free=free, out=out, trust=trust) as talk,
        Interrupts() as interrupts,
    ):
        _introduce(talk)
        folder = _talk_and_keep(talk, ask, interrupts, thoughts=thoughts, quiet=as_json)
        _show_interview(talk, folder, as_json=as_json)
        if ask and talk.transcript and not any(exchange.text for exchange in talk.transcript):
            raise PrismError(f"{talk.llm.label} answered none of the questions: {talk.transcript[-1].errors[-1]}")


def _introduce(talk: "Interview") -> None:
    from prism_mesa.analysis.interview.transcript import CONSTRAINED

    limits = f"; {CONSTRAINED}" if talk.constrained else ""
    moment = "before the run" if talk.snapshot.last_round < 0 else f"after round {talk.snapshot.last_round}"
    print_status(f"{talk.snapshot.name}, {moment}, played by {talk.llm.label}{limits}")
    if talk.llm.note:
        print_status(f"prism: {talk.llm.note}")


def _talk_and_keep(
    talk: "Interview", questions: list[str] | None, interrupts: "Interrupts", *, thoughts: bool, quiet: bool
) -> Path | None:
    """Conduct the interview, and return the folder in which it is saved; None if nothing was asked."""
    try:
        _talk_with(talk, questions, interrupts, thoughts=thoughts, quiet=quiet)
    except KeyboardInterrupt:
        interrupts.was_pressed = True
    finally:
        interrupts.is_saving = True
        folder = talk.save()
    if interrupts.was_pressed:
        raise InterruptedByUserError(f"interrupted (kept: {folder})" if folder else "interrupted")
    return folder


def _show_interview(talk: "Interview", folder: Path | None, *, as_json: bool) -> None:
    if as_json:
        answers = [exchange.as_json() for exchange in talk.transcript]
        show_json({**talk.facts(), "answers": answers, "folder": str(folder) if folder else None})
    elif folder:
        print_status(f"kept: {folder / 'transcript.md'}")
        command = f"prism why {quote_path(talk.snapshot.run_dir)} {talk.snapshot.row} ROUND"
        print_status(with_prism_command(f"for its reasons: {command}"))


def _talk_with(
    talk: "Interview", questions: list[str] | None, interrupts: "Interrupts", *, thoughts: bool, quiet: bool
) -> None:
    """Ask questions from arguments, the terminal or standard input; `quiet` prints nothing on stdout."""
    from prism_mesa.view.interview_terminal import Session, piped_lines, typed_lines

    is_interactive = questions is None and sys.stdin.isatty()
    stream = sys.stderr if quiet else sys.stdout

    def print_line(line: str) -> None:
        if is_interactive or not quiet:
            show(line, file=stream)

    dim = stream.isatty() and "NO_COLOR" not in os.environ
    session = Session(talk, print_line, thoughts=thoughts, dim=dim, echo=not is_interactive)
    if questions is not None:
        session.handle_lines(interrupts.until_pressed(questions))
    elif is_interactive:
        print_status("ask a question (/help: commands, /quit: end)")
        session.handle_lines(interrupts.until_pressed(typed_lines(prompt_to_stdout=not quiet)))
    else:
        session.handle_lines(interrupts.until_pressed(piped_lines()))


ledger = typer.Typer(help="Read a ledger of questions to an LLM and its answers.")


@ledger.command()
def stats(file: LedgerFile, as_json: AsJson = False) -> None:
    """Count answers, questions, fallbacks, tokens and latencies."""
    from prism_mesa.runs.ledgers import ledger_stats

    counts = ledger_stats(file)
    if as_json:
        show_json(counts)
        return
    for name, value in counts.items():
        text = ", ".join(f"{n:,} {kind}" for kind, n in value.items()) or 0 if isinstance(value, dict) else value
        show_line(f"{name:<12}{text}")


@ledger.command()
def export(
    file: LedgerFile,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="folder for the files; by default that of the ledger")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a ledger as answers.parquet and asked.parquet."""
    from prism_mesa.runs.ledgers import export_ledger

    files = export_ledger(file, out)
    if as_json:
        show_json({table: {"file": str(path), "rows": rows} for table, (path, rows) in files.items()})
    else:
        for path, rows in files.values():
            show_line(f"{rows:>10,} rows  {path}")
