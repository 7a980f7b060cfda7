"""Validate a configuration: run it and its variants with several seeds, and compare measures with real values."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, isfinite, nan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError, RunError, one_line
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import code_version, digest, identify_config
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.collect import run_table
from prism_mesa.studies.design.study_design import StudyDesign, design_study
from prism_mesa.studies.driver import Engine, Progress
from prism_mesa.studies.folder import StudyFolder, open_folder, write_study_files, write_text
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.measures.curves import CURVES
from prism_mesa.studies.measures.measure import SHORTEST_H
from prism_mesa.studies.params import study_params
from prism_mesa.studies.statistics.significance import interval
from prism_mesa.studies.study import run_study
from prism_mesa.studies.validation.real import RealValues
from prism_mesa.studies.validation.targets import TARGETS, Target, assign_roles
from prism_mesa.studies.validation.variants import (
    FULL,
    MAX_STEPS,
    THRESHOLD_KEY,
    VARIANTS,
    Match,
    matched_threshold,
    reshare_rate,
    search_worlds,
)

MIN_AGENTS: Final = 10_000
MIN_FOLLOWEES: Final = 150  # with fewer followees, posts have too few impressions for both real rates and real sizes
WINDOW_MIN: Final = (20, 60)  # shortest and longest round, in minutes, to compare with a window of 30 minutes
MAX_ROUND_MIN: Final = 60  # longest round, in minutes, to measure delays of an hour
DAY_H: Final = 24
MIN_PERSONS: Final = 234  # the number of persons in the data on windows of use
MANY_AGENTS: Final = 60_000  # from this size on, too few cascades of 100 posts count as outside
_PERSON_NEEDS: Final = ("window", "rounds", "day", "days")  # these need `MIN_PERSONS` agents and a day
_SMALL_GRAPH_MEASURES: Final = (
    "post_reshares",
    *("window_liked", "window_reshared", "window_replied", "window_posted", "window_none"),
)
"""Measures that are compared with data even on a graph from a file with few followees."""


def exclusion_reason(target: Target, config: Config, agents: float, followees: float) -> str:
    """Return the reason why a target does not apply to a world; empty if it does.

    `agents` is the number of agents, `followees` their mean number of followees, both from runs. A variant has the
    targets of the configuration that it changes.
    """
    minutes, needs = config.clock.round_minutes, target.needs
    if needs in _PERSON_NEEDS and (reason := _size_fault(config, agents)):
        return reason
    is_sparse = followees < MIN_FOLLOWEES
    if config.network.kind == "edges" and is_sparse and target.required and target.measure not in _SMALL_GRAPH_MEASURES:
        return f"a graph with {followees:.1f} followees: only reshares per post and windows of use"
    if needs in ("sizes", "many"):
        if agents < MIN_AGENTS:
            return f"{agents:,.0f} agents: a post needs some 1,000 impressions ({MIN_AGENTS:,} agents)"
        if is_sparse:
            return f"{followees:.0f} followees: a post needs some 1,000 impressions ({MIN_FOLLOWEES} followees)"
    if needs == "graph" and agents < MIN_AGENTS:
        return f"{agents:,.0f} agents: too many mutual follows by chance (at least {MIN_AGENTS:,} agents)"
    if needs == "many" and agents < MANY_AGENTS:
        return f"{agents:,.0f} agents: enough large cascades need {MANY_AGENTS:,}"
    if needs == "window" and not WINDOW_MIN[0] <= minutes <= WINDOW_MIN[1]:
        return f"rounds of {minutes:g} minutes: the data are of windows of 30"
    if minutes > MAX_ROUND_MIN and (needs in ("rounds", "days") or target.measure == "hours_r"):
        return f"rounds of {minutes:g} minutes: too long for {'hours' if needs == 'day' else 'delays'}"
    if needs == "days" and config.rounds * minutes < SHORTEST_H * 60:
        n_rounds = ceil(SHORTEST_H * 60 / minutes)
        return f"{config.rounds * minutes / 60:.3g} hours: too short (at least {SHORTEST_H} hours, {n_rounds} rounds)"
    return ""


def _size_fault(config: Config, agents: float) -> str:
    """Return why a world is too small or too short for targets of persons; empty if it is not."""
    hours = config.rounds * config.clock.round_minutes / 60
    if agents < MIN_PERSONS:
        return f"{agents:,.0f} agents: too few to compare shares (at least {MIN_PERSONS} agents)"
    return f"{hours:.3g} hours: less than a day (at least {min_rounds(config)} rounds)" if hours < DAY_H else ""


def min_rounds(config: Config) -> int:
    """Return the number of rounds in a day."""
    return ceil(DAY_H * 60 / config.clock.round_minutes)


@dataclass(frozen=True)
class TargetRow:
    """A target and its simulated values.

    Attributes:
        simulated: Mean over the seeds with a value; NaN if no seed has a value.
        low: Lower end of the 95 % interval of the mean, cut to the measure's range; NaN for fewer than two seeds.
        high: Upper end.
        n: Number of seeds with a value.
        n_seeds: Number of all seeds.
        share_inside: The share of seeds whose value is inside the range.
        inside: Whether the mean is inside the range; None if the target does not apply, or is for information.
        exclusion_reason: Why the target does not apply; empty if it does.
        computed: Whether the real value was computed from data.
    """

    target: Target
    real: float
    simulated: float
    low: float
    high: float
    n: int
    n_seeds: int
    share_inside: float
    inside: bool | None
    exclusion_reason: str
    computed: bool

    @property
    def ratio(self) -> float:
        """The simulated value as a multiple of the real value; NaN if the real value is not above 0."""
        return self.simulated / self.real if self.real > 0 else nan

    @property
    def fails(self) -> bool:
        """Whether the configuration fails because of this target."""
        return self.target.required and self.inside is False


def target_rows(
    runs: pd.DataFrame, real: RealValues, find_exclusion: Callable[[Target], str], targets: Sequence[Target] = TARGETS
) -> tuple[TargetRow, ...]:
    """Return the rows of targets for one condition. `runs` has a row for each seed; failed runs are left out.

    A measure that is NaN in at least half of the runs is outside the range. `find_exclusion` returns why a target does
    not apply; empty if it does.
    """
    done = runs[runs["status"] == "done"]
    return tuple(
        _make_row(target, done[target.measure].to_numpy(np.float64), real, find_exclusion(target)) for target in targets
    )


def _make_row(target: Target, values: Floats, real: RealValues, exclusion: str) -> TargetRow:
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if len(finite) else nan
    measure = find_measure(target.measure)
    low, high = (float(np.clip(end, measure.low, measure.high)) for [end] in interval(finite[:, None]))
    is_inside_range = (values >= target.low) & (values <= target.high)  # False for NaN
    is_judged = target.required and not exclusion and len(values) > 0
    is_inside = len(finite) > len(values) / 2 and target.low <= mean <= target.high
    share, inside = (float(is_inside_range.mean()), is_inside) if is_judged else (nan, None)
    counts, computed = (len(finite), len(values)), target.measure in real.computed
    return TargetRow(target, real.values[target.measure], mean, low, high, *counts, share, inside, exclusion, computed)


def as_json(row: TargetRow) -> dict[str, object]:
    """Return a row as JSON values, with None in place of NaN and infinities."""
    target = row.target
    values: dict[str, object] = {
        "measure": target.measure,
        "real": row.real,
        "simulated": row.simulated,
        "low": row.low,
        "high": row.high,
        "inside": row.inside,
        "from": target.low,
        "to": target.high,
        "share_inside": row.share_inside,
        "ratio": row.ratio,
        "computed": row.computed,
        "of_seeds": row.n_seeds,
        "seeds": row.n,
        "required": target.required,
        "role": target.role,
        "source": target.source,
        "told": target.label,
        "not_applicable": row.exclusion_reason or None,
    }
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in values.items()}


VALIDATION: Final = "validation.json"
_MATCHED: Final = "matched.json"
_N_RECORDED: Final = 6_000  # agents with recorded transitions; views are recorded for the same share of posts
EXPLANATORY: Final = (
    *("agents", "followees_mean", "post_impressions", "reproduction_0", "reproduction_1", "reproduction_2"),
    *("reproduction_later", "large_breadth", "shape_depth", "shape_breadth", "shape_virality"),
    "reshares_per_impression",
)
"""Measures that help to explain the results: shapes and their causes."""
MEASURES: Final = tuple(dict.fromkeys([*(target.measure for target in TARGETS), *EXPLANATORY]))


@dataclass(frozen=True, repr=False)
class Validation:
    """The results of a validation, in the folder `path`.

    Attributes:
        seeds: The seeds of all conditions.
        rows: The rows of the configuration.
        variants: Variant -> its rows.
        matches: Matched variant -> its threshold.
        curves: Distributions in all runs (see `measures.curves`), with `arm` and `seed`.
        runs: A row for each run, with its measures.
    """

    path: Path
    config: Config
    seeds: tuple[int, ...]
    rows: tuple[TargetRow, ...]
    variants: Mapping[str, tuple[TargetRow, ...]]
    matches: Mapping[str, Match]
    curves: pd.DataFrame
    runs: pd.DataFrame
    real: RealValues
    notes: tuple[str, ...]

    @property
    def outside(self) -> tuple[TargetRow, ...]:
        """Required targets outside their range."""
        return tuple(row for row in self.rows if row.fails)

    @property
    def judged(self) -> int:
        """Number of required targets that apply."""
        return sum(row.inside is not None for row in self.rows)

    @property
    def rates(self) -> dict[str, float]:
        """Variant -> its reshares per impression in these runs, as a multiple of the full model's."""
        means = self.runs.groupby("arm")["reshares_per_impression"].mean()
        full = float(means[FULL])
        return {name: float(means[name]) / full if full else nan for name in self.variants}

    @property
    def passed(self) -> bool:
        """Whether all required targets that apply are inside their range; False if none applies."""
        return self.judged > 0 and not self.outside

    @one_line
    def __repr__(self) -> str:
        inside = self.judged - len(self.outside)
        return f"<Validation {inside} of {self.judged} targets inside, {len(self.seeds)} seeds, {self.path}>"


def add_records(config: Config) -> Config:
    """Return a configuration that records views, and with many agents only a sample of transitions.

    Results do not depend on this. Shares that are configured stay.
    """
    share = min(1.0, _N_RECORDED / config.agents.n)
    records: dict[str, float] = {} if config.records.views else {"views": share}
    if config.records.transitions is None and share < 1:
        records["transitions"] = share
    return config.model_copy(update={"records": config.records.model_copy(update=records)})


def validate(
    config: Config,
    name: str,
    real: RealValues,
    *,
    seeds: int = 3,
    variants: Sequence[str] = (),
    fitted: Collection[str] | None = None,
    out: str | Path = "results",
    engine: Engine,
    on_run: Callable[[Progress], object] = lambda progress: None,
    on_match: Callable[[int, int], object] = lambda n_done, n_steps: None,
) -> Validation:
    """Run the missing runs, write ``validation.json``, and return the results (see `api.validation.validate`)."""
    config = add_records(config)
    seed_range, identity = range(config.seed, config.seed + seeds), identify_config(config)
    study_name = f"validation-{name[:30]}-{digest(identity.config, identity.data)[:8]}"
    base_design = _make_design(config, study_name, seed_range, (), {})
    folder = open_folder(base_design, out)
    make_folder(folder.path)
    write_study_files(base_design, folder, "")
    matches = _find_matches(config, variants, folder.path, on_match)
    design = _make_design(config, base_design.name, seed_range, variants, matches)
    result = run_study(design, folder, engine, on_run=on_run)
    runs = run_table(design, folder).runs
    failed_runs = runs[runs["status"] != "done"]
    if len(failed_runs):
        reason = failed_runs["reason"].iloc[0]
        raise RunError(f"{folder.path}: {len(failed_runs)} of {len(runs)} runs failed; the first: {reason}")
    targets, full = assign_roles(fitted), runs[runs["arm"] == FULL]
    agents, followees = float(full["agents"].mean()), float(full["followees_mean"].mean())
    tables = {
        name: target_rows(
            runs[runs["arm"] == name], real, lambda target: exclusion_reason(target, config, agents, followees), targets
        )
        for name in (FULL, *variants)
    }
    rows = tables.pop(FULL)
    curves = pd.read_parquet(folder.table(CURVES))
    path, seeds_used = folder.path, tuple(seed_range)
    validation = Validation(path, config, seeds_used, rows, tables, matches, curves, runs, real, result.notes)
    _write_tables(validation, folder)
    return validation


def _make_design(
    config: Config, name: str, seeds: Sequence[int], variants: Sequence[str], matches: Mapping[str, Match]
) -> StudyDesign:
    arms: dict[str, dict[str, Any]] = {FULL: {}}
    for variant in variants:
        threshold = {THRESHOLD_KEY: matches[variant].threshold} if variant in matches else {}
        arms[variant] = {**VARIANTS[variant].overrides, **threshold}
    values = {
        "question": f"Is {name} inside what is known of real platforms?",
        "base": config.model_dump(mode="json", exclude={"seed": True}),
        "arms": arms,
        "seeds": list(seeds),
        "measures": list(MEASURES),
        "keep": "measures",
        "collect": [CURVES],
    }
    return design_study(study_params(values, "validate"), name, "validate")


def _find_matches(
    config: Config, variants: Sequence[str], folder: Path, on_match: Callable[[int, int], object]
) -> dict[str, Match]:
    """Return the thresholds of matched variants by name; read the thresholds in the folder, and search the others."""
    names = [name for name in variants if VARIANTS[name].matched]
    if not names:
        return {}
    if null_model := next((name for name in names if config.utility.sensitivity == 0 and VARIANTS[name].null), None):
        raise ConfigError(f"--variant: {null_model}: needs utility.sensitivity above 0")
    file = folder / _MATCHED
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if content.get("code") != code_version():
        content = {"code": code_version(), "variants": {}}
    overrides = {name: json.dumps(dict(VARIANTS[name].overrides), sort_keys=True) for name in names}
    missing_names = [name for name in names if content["variants"].get(name, {}).get("overrides") != overrides[name]]
    for name, match in _search_matches(config, missing_names, on_match):
        content["variants"][name] = {"overrides": overrides[name], **asdict(match)}
        write_text(file, json.dumps(content, indent=1) + "\n")
    entries = {name: content["variants"][name] for name in names}
    return {name: Match(float(entry["threshold"]), float(entry["ratio"])) for name, entry in entries.items()}


def _search_matches(
    config: Config, names: Sequence[str], on_match: Callable[[int, int], object]
) -> Iterator[tuple[str, Match]]:
    """Yield variants with their thresholds. `on_match` is called with the number of steps so far, and the maximum."""
    if not names:
        return
    searched_worlds = search_worlds(config)
    steps, max_steps = 0, len(searched_worlds) * (1 + MAX_STEPS * len(names))

    def count_step() -> None:
        nonlocal steps
        steps += 1
        on_match(steps, max_steps)

    on_match(0, max_steps)
    rates = []
    for world, seeds in searched_worlds:
        rates.append(reshare_rate(world, seeds))
        count_step()
    for n_done, name in enumerate(names, 1):
        yield name, matched_threshold(config, VARIANTS[name].overrides, rates, on_step=count_step)
        steps = len(searched_worlds) * (1 + MAX_STEPS * n_done)
        on_match(steps, max_steps)


def _write_tables(validation: Validation, folder: StudyFolder) -> None:
    content = {
        "config": validation.config.name,
        "seeds": list(validation.seeds),
        "passed": validation.passed,
        "targets": [as_json(row) for row in validation.rows],
        "variants": {name: [as_json(row) for row in rows] for name, rows in validation.variants.items()},
        "matches": {name: asdict(match) for name, match in validation.matches.items()},
        "rates": {name: rate if isfinite(rate) else None for name, rate in validation.rates.items()},
        "notes": list(validation.notes),
    }
    write_text(folder.path / VALIDATION, json.dumps(content, indent=1) + "\n")
