"""The report's section on the design of a study: arms, factors, seeds, runs and their origin."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from prism_mesa.studies.params import flat, settings
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.contents import conditions, is_sampled, measure_meaning, measures_in_order, run_counts
from prism_mesa.view.study.numbers import count, level

_DESIGNS: Final = {
    "factorial": "full factorial: every combination of levels",
    "sobol": "Sobol sequence after Saltelli",
    "lhs": "Latin hypercube",
    "morris": "Morris trajectories",
    "csv": "points from a file",
}
_LEVELS_SHOWN: Final = 8


def design_section(result: StudyResult) -> b.Section:
    """Return the section on the design, with the number of completed runs."""
    blocks: list[b.Block] = [b.Facts(tuple(_facts(result)))]
    if len(result.table.arms) > 1:
        blocks.append(arms_table(result))
    if result.table.factors:
        blocks.append(_factors_table(result.table))
    if any(measure_meaning(name) for name in result.table.measures):
        meanings = {name: b.marked(measure_meaning(name)) for name in measures_in_order(result)}
        rows = [(b.Code(name), meaning or b.Quiet("the study's own")) for name, meaning in meanings.items()]
        blocks.append(b.table((b.Column("measure"), b.Column("what it is of (unit)")), rows))
    return b.Section("design", "Design", tuple(blocks))


def _facts(result: StudyResult) -> list[tuple[str, b.Words]]:
    runs, p = result.table.runs, result.base
    paired = "paired: every condition has the same seeds, and so the same random numbers"
    paired = paired if result.table.paired else "not paired: each condition has its own"
    facts: list[tuple[str, b.Words]] = [
        ("Conditions", f"{len(conditions(result.table)):,} ({_DESIGNS[result.table.design]})"),
        ("Seeds", f"{runs['seed'].nunique():,}, {paired}"),
        ("Runs", f"{len(runs):,} planned: {', '.join(f'{n:,} {status}' for status, n in run_counts(runs).items())}"),
    ]
    sampling = result.table.sampling or {}
    if simple := [f"{key} {level(value)}" for key, value in sampling.items() if isinstance(value, str | int | float)]:
        facts.append(("Sample", ", ".join(simple)))
    varies = {"agents.n", "rounds", "ticks_per_round"} & set(changed_keys(result))
    size = f"{p.agents.n:,} agents, {p.rounds:,} rounds of {p.ticks_per_round:,} ticks"
    facts.append(("Each run", size + (", unless an arm or a factor says otherwise" if varies else "")))
    if len(result.facts):
        cpu, wall = result.facts["cpu_s"].sum(), result.facts["wall_s"].mean()
        facts.append(("Time", f"{cpu:,.0f} CPU s in all runs; one took {wall:,.1f} wall s on average"))
    return facts


def arms_table(result: StudyResult) -> b.Table:
    """Return a table of arms and the keys that each changes."""
    arms = _arms(result)
    return b.table(
        (b.Column("arm"), b.Column("changes")), [(arm, _changes(arms.get(arm))) for arm in result.table.arms]
    )


def _arms(result: StudyResult) -> Mapping[str, Any]:
    """Return the settings of each arm in the study file."""
    arms = result.values.get("arms")
    return arms if isinstance(arms, Mapping) else {}


def _changes(keys: Any) -> b.Words:
    """Return the settings of an arm, by dotted key."""
    if not isinstance(keys, Mapping) or not keys:
        return b.Quiet("nothing: the base")
    return b.code_list(f"{key}: {level(value)}" for key, value in flat(keys))


def changed_keys(result: StudyResult) -> tuple[str, ...]:
    """Return the dotted keys that arms and factors change, each once."""
    arms = [keys for keys in _arms(result).values() if isinstance(keys, Mapping)]
    return tuple(dict.fromkeys([*(key for keys in arms for key, _ in flat(settings(keys))), *result.table.factors]))


def _factors_table(runs: RunTable) -> b.Table:
    title = "range" if is_sampled(runs) else "levels"
    rows = [(b.Code(name), *_levels(runs.runs[name], title)) for name in runs.factors]
    return b.table((b.Column("factor"), b.Column(title), b.Column("values", number=True)), rows)


def _levels(values: pd.Series, title: str) -> tuple[b.Words, b.Words]:
    levels = list(values.drop_duplicates())
    if title == "range" and pd.api.types.is_numeric_dtype(values):
        return f"{level(values.min())} to {level(values.max())}", count(len(levels))
    shown, more = ", ".join(map(level, levels[:_LEVELS_SHOWN])), len(levels) - _LEVELS_SHOWN
    return shown + (f" and {more:,} more" if more > 0 else ""), count(len(levels))
