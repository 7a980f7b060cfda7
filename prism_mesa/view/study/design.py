"""The design of a study: arms, factors, seeds, runs, and from what they were made."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from prism_mesa.studies.params import flat, settings
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study.blocks import Block, Code, Column, Facts, Quiet, Section, Table, Words, marked, table
from prism_mesa.view.study.contents import conditions, is_sampled, meaning_of, measures_in_order, run_counts
from prism_mesa.view.study.numbers import count, level

_DESIGNS: Final = {
    "factorial": "full factorial: every combination of levels",
    "sobol": "Sobol sequence after Saltelli",
    "lhs": "Latin hypercube",
    "morris": "Morris trajectories",
    "csv": "points from a file",
}
_LEVELS_SHOWN: Final = 8


def design_section(result: StudyResult) -> Section:
    """Return how the study was designed, and how many of its runs are there."""
    blocks: list[Block] = [Facts(tuple(_facts(result)))]
    if len(result.table.arms) > 1:
        blocks.append(arms_table(result))
    if result.table.factors:
        blocks.append(_factors_table(result.table))
    if any(meaning_of(name) for name in result.table.measures):
        rows = [
            (Code(name), marked(meaning_of(name)) or Quiet("the study's own")) for name in measures_in_order(result)
        ]
        blocks.append(table((Column("measure"), Column("what it is of (unit)")), rows))
    return Section("design", "Design", tuple(blocks))


def _facts(result: StudyResult) -> list[tuple[str, Words]]:
    runs = result.table.runs
    seeds = runs["seed"].nunique()
    paired = "paired: every condition has the same seeds, and so the same random numbers"
    counts = run_counts(runs)
    told = f"{len(runs):,} planned: " + ", ".join(f"{n:,} {status}" for status, n in counts.items())
    found: list[tuple[str, Words]] = [
        ("Conditions", f"{len(conditions(result.table)):,} ({_DESIGNS[result.table.design]})"),
        ("Seeds", f"{seeds:,}, {paired if result.table.paired else 'not paired: each condition has its own'}"),
        ("Runs", told),
    ]
    sampling = result.table.sampling or {}
    if plain := {key: value for key, value in sampling.items() if isinstance(value, str | int | float)}:
        found.append(("Sample", ", ".join(f"{key} {level(value)}" for key, value in plain.items())))
    p = result.base
    sizes = {"agents.n", "rounds", "ticks_per_round"} & set(changed_keys(result))
    otherwise = ", unless an arm or a factor says otherwise" if sizes else ""
    found.append(
        (
            "Each run",
            f"{p.agents.n:,} agents, {p.rounds:,} rounds of {p.ticks_per_round:,} ticks{otherwise}",
        )
    )
    if len(result.facts):
        cpu, wall = result.facts["cpu_s"].sum(), result.facts["wall_s"].mean()
        found.append(("Time", f"{cpu:,.0f} CPU s in all runs; one took {wall:,.1f} wall s on average"))
    return found


def arms_table(result: StudyResult) -> Table:
    """Return the arms with the keys that each changes."""
    given = result.values.get("arms")
    given = given if isinstance(given, Mapping) else {}
    rows = [(arm, _changes(given.get(arm))) for arm in result.table.arms]
    return table((Column("arm"), Column("changes")), rows)


def _changes(keys: Any) -> Words:
    """Return what an arm sets, by dotted key."""
    if not isinstance(keys, Mapping) or not keys:
        return Quiet("nothing: the base")
    parts: list[Words] = []
    for key, value in flat(keys):
        parts += [", ", Code(f"{key}: {level(value)}")]
    return tuple(parts[1:])  # type: ignore[arg-type]


def changed_keys(result: StudyResult) -> tuple[str, ...]:
    """Return the dotted keys that arms and factors change, each once."""
    given = result.values.get("arms")
    arms = [keys for keys in given.values() if isinstance(keys, Mapping)] if isinstance(given, Mapping) else []
    return tuple(dict.fromkeys([*(key for keys in arms for key, _ in flat(settings(keys))), *result.table.factors]))


def _factors_table(runs: RunTable) -> Table:
    title = "range" if is_sampled(runs) else "levels"
    rows: list[tuple[Words, ...]] = [(Code(name), *_levels(runs.runs[name], title)) for name in runs.factors]
    return table((Column("factor"), Column(title), Column("values", number=True)), rows)


def _levels(values: pd.Series, title: str) -> tuple[Words, Words]:
    found = list(values.drop_duplicates())
    if title == "range" and pd.api.types.is_numeric_dtype(values):
        return f"{level(values.min())} to {level(values.max())}", count(len(found))
    shown = ", ".join(map(level, found[:_LEVELS_SHOWN]))
    more = len(found) - _LEVELS_SHOWN
    return shown + (f" and {more:,} more" if more > 0 else ""), count(len(found))
