"""Functions for users: run, open, resume and branch runs, measure them, and ask why."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.analysis.explain.economy import why_nation
from prism_mesa.analysis.explain.report import Report, brief_lines, report_lines
from prism_mesa.analysis.explain.why import why as explain_agent
from prism_mesa.api.results import RunResult, run_and_draw
from prism_mesa.errors import BadInputError, ConfigError, DataError
from prism_mesa.params import parse_whole_number, short_repr
from prism_mesa.reasoner import AnyReasoner, DistilledReasoner, Reasoner, RuleReasoner
from prism_mesa.runs.branch import Overrides
from prism_mesa.runs.branch import branch as branch_run
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.runs.economy import run_economy as run_nations
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.process.state import STATUSES
from prism_mesa.runs.recorded import is_economy
from prism_mesa.runs.resume import ResumeOptions, warn_without_effect
from prism_mesa.runs.resume import resume as resume_run
from prism_mesa.runs.run_files import MANIFEST, read_manifest, run_folder
from prism_mesa.runs.social import run as run_platform
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import Statechart
from prism_mesa.studies.listing import ListedFolder, list_folders
from prism_mesa.studies.measures.catalogue import check_states, compute_measures, measure_names
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.measures.treatment import check_interventions

__all__ = ["RunResult", "branch", "measure", "open_run", "resume", "run", "run_economy", "why"]


def run(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    out: str | Path = "results",
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
) -> RunResult:
    """Run a configuration and keep its records and pictures in ``out/<run-id>``, like ``prism run``.

    Args:
        config: A `Config`, nested values for one, a YAML file (see `load_config`), or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        chart: Your own chart, as an object.
        reasoner: Your own reasoner (``Reasoner(function)``); with `content: llm` it also writes.
        prepare: Called with the model before its first round, to add your own agents. A run with a `chart`, `reasoner`
            or `prepare` from Python cannot be repeated from the command line.
        on_round: Called after each round, with the number of completed rounds.
        pictures: Whether states.png, cascades.png, engagement.png and, for a live network, network.png are drawn.

    Returns:
        The result; its status is `failed` if more answers were fallbacks than `reasoner.max_fallback_share` allows, or
        a guard failed in every call (the tables are kept).

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If the run cannot continue. KeyboardInterrupt ends a run with the status `interrupted`. After either
            error, the folder keeps the records, and the attribute `result` has the partial result.
    """
    if reasoner is not None and not isinstance(reasoner, Reasoner | RuleReasoner | DistilledReasoner):
        raise ConfigError(
            "reasoner: give a Reasoner over a client or a function (Reasoner(function)), a RuleReasoner, or a "
            f"DistilledReasoner, not {short_repr(reasoner)}"
        )
    objects: dict[str, Any] = {"chart": chart, "reasoner": reasoner, "prepare": prepare}
    return run_and_draw(partial(run_platform, config, out=out, **objects, on_round=on_round), pictures=pictures)


def run_economy(
    config: EconomyConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    out: str | Path = "results",
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
) -> RunResult:
    """Run nations and keep their records and pictures in ``out/<run-id>``, like ``prism economy``.

    Args:
        config: An `EconomyConfig`, nested values for one, a YAML file, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        llm: The LLM to ask, as for `EconomyModel`; None: the LLM that the configuration names.
        on_round: Called after each quarter, with the number of completed quarters, and with 0 before the first quarter,
            which may take a minute.
        pictures: Whether indicators.png, policies.png and responses.png are drawn.

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If an LLM gave no usable answer, or the run cannot continue, as for `run`.
    """
    return run_and_draw(partial(run_nations, config, out=out, llm=llm, on_round=on_round), pictures=pictures)


def open_run(path: str | os.PathLike[str]) -> RunResult:
    """Return a run of a platform or of nations from its folder; the run may have any status.

    Args:
        path: The run's folder, ``results/<run-id>``.

    Returns:
        The run. Its status is `done`, `failed`, `interrupted`, `running`, or `died` if its process is gone. If it is
        running or died, the summary is empty, the tables have the rounds written so far, and `state` gives the round.

    Raises:
        DataError: If there is no run, or the folder is damaged or holds a survey, an interview or a study.
    """
    folder = run_folder(path)
    recorded = read_run(folder)
    manifest, state = recorded.manifest, recorded.state
    if manifest.status not in STATUSES or manifest.config is None:
        missing = "status" if manifest.status not in STATUSES else "configuration"
        raise DataError(f"{folder}: {MANIFEST} holds no {missing} of a run: it is damaged, or another version wrote it")
    summary, pictures = read_manifest(folder).get("summary", {}), tuple(sorted(folder.glob("*.png")))
    if summary:  # the folder may have moved
        summary |= {"run_dir": str(folder), "pictures": [str(path) for path in pictures]}
    return RunResult(folder, state.status, summary, pictures, str(state) if state.is_unfinished else "")


def resume(
    run: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
    trust: bool = False,
    from_start: bool = False,
) -> RunResult:
    """Continue a run that was stopped or crashed, in its folder, like ``prism resume``.

    The run continues from its last checkpoint. Without a checkpoint, as for all runs of nations, it starts again with
    the answers in its ledger. Its tables equal those of an uninterrupted run. A run that has ended stays unchanged.

    Args:
        run: A result, or the run's folder.
        overrides: ``key=value`` for the connection to the LLM: `reasoner.host`, `.timeout_s`, `.max_concurrency`.
        chart: The chart that was passed to `run`, if any; likewise `reasoner` and `prepare`. Agents and reasoners whose
            state is more than numbers and strings need ``snapshot()``, which returns plain data, and ``restore(data)``.
        reasoner: See `chart`.
        prepare: See `chart`.
        llm: The LLM that was passed to `run_economy`, if any.
        on_round: Called after each round or quarter, with the number completed.
        pictures: As for `run`.
        trust: Whether to resume a run that someone else made, using its checkpoints, modules, servers and files.
        from_start: Whether to start again despite a checkpoint.

    Returns:
        The result, as `run` returns it.

    Warns:
        PrismWarning: If a file is damaged, package versions have changed, or an argument has no effect.

    Raises:
        BadInputError: If the run cannot be resumed, or another process writes to it; nothing is changed.
        RunError: As for `run`, as is KeyboardInterrupt.
    """
    recorded = read_run(run_folder(run))
    if recorded.is_finished(from_start=from_start):
        warn_without_effect(recorded, [*(["from_start"] if from_start else []), *overrides])
        return open_run(run)
    options = ResumeOptions(chart, reasoner, prepare, llm, on_round, trust, from_start, overrides)
    return run_and_draw(partial(resume_run, run, options), pictures=pictures)


def branch(
    run: str | os.PathLike[str],
    at: int,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
    trust: bool = False,
) -> RunResult:
    """Run a counterfactual of a run, as ``prism branch`` does: the same up to round `at`, then under other settings.

    Both use the same random numbers and answers, so all differences come from the new settings; `compare` shows them.

    Args:
        run: A result, or the run's folder, which is only read.
        at: The first round with the new settings, from 0.
        overrides: Changes, as values by dotted key or ``key=value`` strings; docs/interventions.md lists the keys
            that can change. Without changes, the branch has the tables of the run.
        out: Parent folder of the branch; None: the parent folder of the run.
        chart: As for `resume`; likewise `reasoner` and `prepare`.
        reasoner: See `chart`.
        prepare: See `chart`.
        on_round: Called after each round, with the number of completed rounds.
        pictures: As for `run`.
        trust: As for `resume`.

    Raises:
        BadInputError: If there is no such run or round, or a key cannot change; no folder is made.
        RunError: As for `run`, as is KeyboardInterrupt.
    """
    options = ResumeOptions(chart, reasoner, prepare, None, on_round, trust)
    return run_and_draw(partial(branch_run, run, at, overrides, out=out, options=options), pictures=pictures)


def why(
    run: str | os.PathLike[str],
    agent: str | int,
    at: str | int | None = None,
    *,
    post: int | None = None,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
) -> Report:
    """Explain the actions of an agent or nation in a round, like ``prism why``.

    Args:
        run: A result, or the run's folder, which is only read.
        agent: Row, id or name of an agent or nation.
        at: The round, from 0, or the quarter (``"2011Q2"``); None: the one with the most events.
        post: The id of a post; the report says why it was or was not in the agent's feeds, in each round up to `at`.
        on_round: Called after each repeated round, with the number repeated; runs of nations are not repeated.
        trust: As for `replay`.

    Returns:
        The report, which prints as text; `brief` has the lines (at most five) that the command prints.

    Raises:
        BadInputError: If there is no such run, agent, round or post, or the run cannot be repeated or is not trusted.
        OracleError: If the ledger lacks an answer.
    """
    run_dir, round_text = run_folder(run), None if at is None else str(at)
    if is_economy(run_dir):
        if post is not None:
            raise BadInputError(f"{run_dir} is a run of nations, which has no posts")
        brief = tuple(why_nation(run_dir, str(agent), round_text, brief=True))
        return Report(brief, (*brief, "", *why_nation(run_dir, str(agent), round_text)))
    round_ = None if round_text is None else parse_whole_number(round_text)
    if round_text is not None and round_ is None:
        raise BadInputError(f"ROUND: {round_text!r} is not a round: give a whole number from 0")
    explanation = explain_agent(run_dir, str(agent), round_, post=post, on_round=on_round, trust=trust)
    brief = tuple(brief_lines(explanation))
    return Report(brief, (*brief, "", *report_lines(explanation)), explanation)


def measure(
    run: RunResult | str | os.PathLike[str], names: str | Sequence[str] | None = None, *, trust: bool = False
) -> "pd.Series[float]":
    """Return measures of a finished run of a platform, by name; NaN if undefined.

    Args:
        run: A result, or the run's folder, which is only read.
        names: Names from the catalogue (``prism study measures``), or ``module:function`` for your own function of a
            `studies.measures.catalogue.FinishedRun`; None: the whole catalogue.
        trust: As for `replay`, because measures of follows rebuild the network from the configuration.

    Raises:
        BadInputError: If there is no such run or measure, or the run has not ended.
        RunError: If a measure raises, or returns no number.
    """
    finished = finished_run(run, trust=trust)
    selected = [names] if isinstance(names, str) else list(measure_names(finished) if names is None else names)
    check_interventions(selected, [finished.config])
    check_states(selected, finished.summary["state_shares"])
    return pd.Series(compute_measures(finished, selected), dtype=float, name=run_folder(run).name)


def list_runs(out: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """Return the runs, studies, calibrations and validations in a folder, newest first, like ``prism runs``.

    Args:
        out: The folder that contains them, or the folder of a study that keeps tables.

    Returns:
        A row for each entry, with the columns of `studies.listing.ListedFolder`: `run_dir`, `kind`, `config`, `seed`,
        `status` (`done`, `failed`, `interrupted`, `running`, `died`, `damaged`; for many runs also `incomplete`),
        `state` (with the round), `round`, `rounds`, `started`, `age_s` (seconds), `size_bytes`, `error`.

    Raises:
        DataError: If there is no such folder.
    """
    columns = [field.name for field in fields(ListedFolder)]
    table = pd.DataFrame([asdict(entry) for entry in list_folders(out)], columns=columns)
    integer_types = dict.fromkeys(("seed", "round", "rounds"), "Int64")
    return table.astype({**integer_types, "size_bytes": "int64", "age_s": "float64"})
