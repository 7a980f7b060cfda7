"""The report's section on the design of a study: conditions, seeds, runs, arms, factors and measures."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from prism_mesa.studies.params import flat, settings
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.contents import conditions, is_sampled, measure_meaning, measures_in_order, run_counts
from prism_mesa.view.study.numbers import level, number

_DESIGNS: Final = {
    "factorial": "full factorial: every combination of levels",
    "sobol": "Sobol sequence after Saltelli",
    "lhs": "Latin hypercube",
    "morris": "Morris trajectories",
    "csv": "points from a file",
}
_LEVELS_SHOWN: Final = 8


def design_section(result: StudyResult) -> b.Section:
    """Return the section on the design."""
    blocks: list[b.Block] = [b.Facts(tuple(_facts(result)))]
    if len(result.table.arms) > 1:
        arms = [(arm, _changes(_arms(result).get(arm))) for arm in result.table.arms]
        blocks.append(b.table((b.Column("arm"), b.Column("changes")), arms))
    if result.table.factors:
        blocks.append(_factors_table(result.table))
    meanings = {name: b.marked(measure_meaning(name)) for name in measures_in_order(result)}
    if any(meanings.values()):
        rows = [(b.Code(name), meaning or b.Quiet("your own measure")) for name, meaning in meanings.items()]
        blocks.append(b.table((b.Column("measure"), b.Column("meaning (unit)")), rows))
    return b.Section("design", "Design", tuple(blocks))


def _facts(result: StudyResult) -> list[tuple[str, b.Words]]:
    runs, base = result.table.runs, result.base
    pairing = "not paired: each condition has its own"
    if result.table.paired:
        pairing = "paired: every condition has the same seeds, so the same random numbers"
    facts: list[tuple[str, b.Words]] = [
        ("Conditions", f"{len(conditions(result.table)):,} ({_DESIGNS[result.table.design]})"),
        ("Seeds", f"{runs['seed'].nunique():,}, {pairing}"),
        ("Runs", f"{len(runs):,} planned: {', '.join(f'{n:,} {status}' for status, n in run_counts(runs).items())}"),
    ]
    sampling = result.table.sampling or {}
    if texts := [f"{key} {level(value)}" for key, value in sampling.items() if isinstance(value, str | int | float)]:
        facts.append(("Sample", ", ".join(texts)))
    varies = {"agents.n", "rounds", "ticks_per_round"} & set(changed_keys(result))
    size = f"{base.agents.n:,} agents, {base.rounds:,} rounds of {base.ticks_per_round:,} ticks"
    facts.append(("Each run", size + (", unless an arm or a factor changes them" if varies else "")))
    if len(result.facts):
        cpu, wall = result.facts["cpu_s"].sum(), result.facts["wall_s"].mean()
        facts.append(("Time", f"{cpu:,.0f} CPU s in all runs; {wall:,.1f} s a run on average"))
    return facts


def _arms(result: StudyResult) -> Mapping[str, Any]:
    """Return the settings of each arm in the study file."""
    arms = result.values.get("arms")
    return arms if isinstance(arms, Mapping) else {}


def _changes(keys: Any) -> b.Words:
    if not isinstance(keys, Mapping) or not keys:
        return b.Quiet("nothing")
    return b.code_list(f"{key}: {level(value)}" for key, value in flat(keys))


def changed_keys(result: StudyResult) -> tuple[str, ...]:
    """Return the dotted keys that arms and factors change, each once."""
    arms = [keys for keys in _arms(result).values() if isinstance(keys, Mapping)]
    return tuple(dict.fromkeys([*(key for keys in arms for key, _ in flat(settings(keys))), *result.table.factors]))


def _factors_table(table: RunTable) -> b.Table:
    """Return the factors, with their range if their levels are sampled numbers, or else their first levels."""
    sampled = is_sampled(table)
    rows: list[b.Row] = []
    for name in table.factors:
        values = table.runs[name].drop_duplicates()
        text = ", ".join(map(level, values[:_LEVELS_SHOWN]))
        text += f" and {len(values) - _LEVELS_SHOWN:,} more" if len(values) > _LEVELS_SHOWN else ""
        if sampled and pd.api.types.is_numeric_dtype(values):
            text = f"{level(values.min())} to {level(values.max())}"
        rows.append((b.Code(name), text, number(len(values))))
    columns = (b.Column("factor"), b.Column("range" if sampled else "levels"), b.Column("values", number=True))
    return b.table(columns, rows)
