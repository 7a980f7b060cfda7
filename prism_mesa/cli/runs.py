"""Commands that run, continue or repeat a model, or show its chart."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from prism_mesa.cli.arguments import (
    DEFAULT_FILE,
    AsJson,
    ConfigArguments,
    NationsArguments,
    OutOption,
    Run,
    Trust,
    check_unique,
    config_from_arguments,
    file_and_overrides,
)
from prism_mesa.cli.console import print_status, progress_bar, run_failure, show_run, summary_on_interrupt
from prism_mesa.errors import BadInputError, PrismError
from prism_mesa.terminal import show, show_json, show_line
from prism_mesa.view.summaries import economy_lines, run_lines

if TYPE_CHECKING:
    from prism_mesa.api.runs import RunResult
    from prism_mesa.runs.config import Config
    from prism_mesa.statechart import Statechart
    from prism_mesa.statechart.checks import Finding

ECONOMY_FILE = Path("configs/economy.yaml")
"""The configuration file that `prism economy` uses by default, if it exists."""

_SLOW_N_AGENTS = 100_000  # a world with more agents takes seconds to make
_MAX_LABEL = 60  # maximum length of a label in a picture's file name, in characters


def run(arguments: ConfigArguments = None, out: OutOption = Path("results"), as_json: AsJson = False) -> None:
    """Simulate a platform: one run, with its tables and pictures.

    Results are kept in OUT/<run-id>.
    """
    from prism_mesa.api.runs import run as run_config

    config = config_from_arguments(arguments)
    announce_building(config)
    _run_with_bar(partial(run_config, config, out=out), config.rounds, is_nations=False, as_json=as_json)


def announce_building(config: "Config") -> None:
    """Announce that a large world is being built, because that takes a while."""
    if config.network.edges is None and config.agents.n >= _SLOW_N_AGENTS:
        print_status(f"building {config.agents.n:,} agents ...")


def economy(arguments: NationsArguments = None, out: OutOption = Path("results"), as_json: AsJson = False) -> None:
    """Simulate nations whose policy an LLM proposes in words.

    A macroeconomic model computes the effects. Tables and pictures go to OUT/<run-id>.
    """
    from prism_mesa.api.runs import run_economy
    from prism_mesa.runs.config import EconomyConfig, load

    file, overrides = file_and_overrides(arguments, ECONOMY_FILE)
    config = load(EconomyConfig, file, overrides, defaults={"economy": {"policy": "llm"}})
    _run_with_bar(partial(run_economy, config, out=out), config.rounds, is_nations=True, as_json=as_json)


def resume(
    run_dir: Run,
    overrides: Annotated[
        list[str] | None,
        Argument(metavar="KEY=VALUE", help="settings of the server: reasoner.host, .timeout_s, .max_concurrency"),
    ] = None,
    from_start: Annotated[
        bool, Option("--from-start", help="start again from round 0; answers of LLMs are reused")
    ] = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was stopped or that crashed.

    The tables equal those of an uninterrupted run.
    """
    from prism_mesa.api.runs import resume as resume_run
    from prism_mesa.runs.manifest import read_run

    if (recorded := read_run(run_dir)).is_finished(from_start=from_start):
        print_status(f"{run_dir} has already ended (status {recorded.state}), so nothing is computed. Its summary:")
    run_function = partial(resume_run, run_dir, check_unique(overrides), trust=trust, from_start=from_start)
    _continue(run_dir, run_function, as_json=as_json)


def branch(
    run_dir: Run,
    at: Annotated[int, Option("--at", metavar="ROUND", help="first round with the new settings, from 0")],
    overrides: Annotated[
        list[str] | None, Argument(metavar="KEY=VALUE", help="settings to change: agents.band=0.01")
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="parent folder of the branch; by default that of the run")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a run up to a round, then go on with other settings.

    From ROUND on, the branch uses the other settings and the same random numbers.
    """
    from prism_mesa.api.runs import branch as branch_run

    run_function = partial(branch_run, run_dir, at, check_unique(overrides), out=out, trust=trust)
    _continue(run_dir, run_function, as_json=as_json)


def _continue(run_dir: Path, run_function: Callable[..., "RunResult"], *, as_json: bool) -> None:
    from prism_mesa.runs.recorded import is_economy, recorded_rounds

    _run_with_bar(run_function, recorded_rounds(run_dir), is_nations=is_economy(run_dir), as_json=as_json)


def _run_with_bar(run_function: Callable[..., "RunResult"], rounds: int, *, is_nations: bool, as_json: bool) -> None:
    show_result = partial(show_run, lines=economy_lines if is_nations else run_lines, as_json=as_json)
    bar = progress_bar(rounds, "quarters" if is_nations else "rounds", end_text="tables and pictures")
    with summary_on_interrupt(show_result), bar as on_round:
        result = run_function(on_round=on_round)
    show_result(result)
    if result.status != "done":
        raise run_failure(result.summary)


def replay(
    run_dir: Run,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="keep the repeated run in DIR/<run-id>; by default it is deleted")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a run without any LLM, and compare every table.

    Answers come from its ledger.
    """
    from prism_mesa.runs.recorded import recorded_rounds
    from prism_mesa.runs.replay import replay as repeat

    with progress_bar(recorded_rounds(run_dir), "rounds") as on_round:
        result = repeat(run_dir, out=out, on_round=on_round, trust=trust)
    if as_json:
        run_path = str(result.run_dir) if result.run_dir else None
        show_json(vars(result) | {"run_dir": run_path, "equal": result.equal, "notes": list(result.notes)})
    else:
        for note in result.notes:
            show_line(f"{'note':<12}{note}")
        for table, rows in result.rows.items():
            show_line(f"{table:<12}{rows:>12,} rows  {result.differences.get(table, 'equal')}")
        recomputed = f", {result.recomputed:,} decided again without an LLM" if result.recomputed else ""
        thoughts = f" and {result.texts:,} thoughts and texts" if result.texts else ""
        decisions = f"{result.answered:,} decisions{thoughts} answered from the ledger{recomputed}"
        show_line(f"{decisions}, {result.calls} calls of an LLM")
    if not result.equal:
        table, difference = next(iter(result.differences.items()))
        fault = f"{run_dir}: repeated, {len(result.differences)} tables differ; {table}: {difference}"
        raise PrismError("; ".join([fault, *result.notes]))


def chart(arguments: ConfigArguments = None, out: OutOption = Path("results"), as_json: AsJson = False) -> None:
    """Check a statechart without running it, and draw it.

    For a study file, it shows the chart of each arm. The pictures are OUT/<name>-chart.png and .mmd (Mermaid).
    """
    faults, charts = [], []
    for n, (arms, account, statechart, findings) in enumerate(_checked_charts(arguments), 1):
        label = "; ".join(filter(None, (arms, account)))
        title = f"{label}: chart {statechart.name}" if label else f"chart {statechart.name}"
        picture, text = _draw_chart(statechart, out, label if len(label) <= _MAX_LABEL else f"{label[:_MAX_LABEL]}-{n}")
        faults += [f"{title}: {finding.where}: {finding.message}" for finding in findings if finding.level == "error"]
        entries = [{"level": f.level, "kind": f.kind, "where": f.where, "message": f.message} for f in findings]
        files = {"picture": str(picture), "mermaid": str(text)}
        place = {key: text for key, text in (("arms", arms), ("account", account)) if text}
        charts.append(place | {"chart": statechart.name, "findings": entries} | files)
        if not as_json:
            show_line(f"{title}: drawn in {picture}, and as Mermaid text in {text} and below.")
            show_line("Findings of the check (error: must be fixed; warning: may be a mistake; note: good to know):")
            for finding in findings:
                show_line(f"  {finding}")
            show_line("As Mermaid text, which GitHub, GitLab and mermaid.live draw:")
            show(text.read_text(encoding="utf-8"))
    if as_json:
        show_json({"charts": charts} if "arms" in charts[0] or len(charts) > 1 else charts[0])
    if faults:
        raise BadInputError(faults[0])


def _configs_with_charts(arguments: list[str] | None) -> "dict[str, Config]":
    """Return configurations by label: one for each chart of a study's arms, or a single one without a label."""
    from prism_mesa.api.studies import configs_by_condition
    from prism_mesa.runs.yaml_text import read_yaml

    file, overrides = file_and_overrides(arguments, DEFAULT_FILE)
    if file is None or not {"question", "arms"} & read_yaml(Path(file)).keys():
        return {"": config_from_arguments(arguments)}
    if overrides:
        raise BadInputError(f"{file}: holds a study: edit its arms instead of giving keys ({overrides[0]})")
    labels: dict[str, tuple[list[str], Config]] = {}
    for label, config in configs_by_condition(Path(file)).items():
        chart_key = (
            f"{config.statechart}{config.reasoner.asks_action}{config.attributes}{config.accounts}{config.feed.glances}"
        )
        labels.setdefault(chart_key, ([], config))[0].append(label)
    return {"; ".join(names): config for names, config in labels.values()}


def _checked_charts(arguments: list[str] | None) -> Iterator["tuple[str, str, Statechart, list[Finding]]"]:
    """Yield the arms of a study, the kind of account, their chart, and the findings of its check."""
    from prism_mesa.social.behavior import configure_chart
    from prism_mesa.social.chart_checks import GUARD_FIELDS, find_chart_problems
    from prism_mesa.social.round.walk_tables import WalkTables
    from prism_mesa.social.state.attributes import Attributes
    from prism_mesa.social.world.accounts import own_charts

    for arms, config in _configs_with_charts(arguments).items():
        attributes = Attributes(config.attributes)
        charts = {"": configure_chart(config.statechart, asks_action=config.reasoner.asks_action)}
        for account, statechart in (charts | own_charts(config)).items():
            tables = WalkTables(statechart, attributes)
            yield arms, account, statechart, find_chart_problems(statechart, tables, GUARD_FIELDS | attributes.fields)


def _draw_chart(chart: "Statechart", out: Path, label: str) -> tuple[Path, Path]:
    from prism_mesa.runs.records.folder import make_folder
    from prism_mesa.statechart import draw_chart, mermaid
    from prism_mesa.view.plots.files import save

    make_folder(out)
    name = re.sub(r"[^\w.-]+", "-", f"{label}-{chart.name}" if label else chart.name)
    picture, text = out / f"{name}-chart.png", out / f"{name}-chart.mmd"
    save(draw_chart(chart), picture)
    text.write_text(mermaid(chart), encoding="utf-8")
    return picture, text
