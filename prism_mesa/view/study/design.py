"""The report's section on the design of a study: conditions, seeds, runs, arms, factors and measures."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from prism_mesa.params import flatten
from prism_mesa.studies.params import settings
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.contents import conditions, is_sampled, measure_meaning, measures_in_order, run_counts
from prism_mesa.view.study.numbers import level, number

_DESIGNS: Final = {
    "factorial": "full factorial: every combination of levels",
    "sobol": "Sobol sequence after Saltelli",
    "lhs": "Latin hypercube",
    "morris": "Morris trajectories",
    "csv": "points from a file",
}
_MAX_LEVELS: Final = 8


def design_section(result: StudyResult) -> doc.Section:
    """Return the section on the design."""
    blocks: list[doc.Block] = [doc.Facts(tuple(_facts(result)))]
    if len(result.table.arms) > 1:
        arms = [(arm, _changes(_arms(result).get(arm))) for arm in result.table.arms]
        blocks.append(doc.simple_table((doc.Column("arm"), doc.Column("changes")), arms))
    if result.table.factors:
        blocks.append(_factors_table(result.table))
    meanings = {name: doc.code_spans(measure_meaning(name)) for name in measures_in_order(result)}
    if any(meanings.values()):
        rows = [(doc.Code(name), meaning or doc.Quiet("your own measure")) for name, meaning in meanings.items()]
        blocks.append(doc.simple_table((doc.Column("measure"), doc.Column("meaning (unit)")), rows))
    return doc.Section("design", "Design", tuple(blocks))


def _facts(result: StudyResult) -> list[tuple[str, doc.Words]]:
    runs, base = result.table.runs, result.base
    pairing = "not paired: each condition has its own"
    if result.table.paired:
        pairing = "paired: every condition has the same seeds, so the same random numbers"
    facts: list[tuple[str, doc.Words]] = [
        ("Conditions", f"{len(conditions(result.table)):,} ({_DESIGNS[result.table.design]})"),
        ("Seeds", f"{runs['seed'].nunique():,}, {pairing}"),
        ("Runs", f"{len(runs):,} planned: {', '.join(f'{n:,} {status}' for status, n in run_counts(runs).items())}"),
    ]
    sampling = result.table.sampling or {}
    if texts := [f"{key} {level(value)}" for key, value in sampling.items() if isinstance(value, str | int | float)]:
        facts.append(("Sample", ", ".join(texts)))
    has_varying_size = {"agents.n", "rounds", "ticks_per_round"} & set(changed_keys(result))
    size = f"{base.agents.n:,} agents, {base.rounds:,} rounds of {base.ticks_per_round:,} ticks"
    facts.append(("Each run", size + (", unless an arm or a factor changes them" if has_varying_size else "")))
    if len(result.facts):
        cpu, wall = result.facts["cpu_s"].sum(), result.facts["wall_s"].mean()
        facts.append(("Time", f"{cpu:,.0f} CPU s in all runs; {wall:,.1f} s a run on average"))
    return facts


def _arms(result: StudyResult) -> Mapping[str, Any]:
    arms = result.values.get("arms")
    return arms if isinstance(arms, Mapping) else {}


def _changes(keys: Any) -> doc.Words:
    if not isinstance(keys, Mapping) or not keys:
        return doc.Quiet("nothing")
    return doc.code_list(f"{key}: {level(value)}" for key, value in flatten(keys))


def changed_keys(result: StudyResult) -> tuple[str, ...]:
    """Return the dotted keys that arms and factors change, without duplicates."""
    arms = [keys for keys in _arms(result).values() if isinstance(keys, Mapping)]
    return tuple(dict.fromkeys([*(key for keys in arms for key, _ in flatten(settings(keys))), *result.table.factors]))


def _factors_table(table: RunTable) -> doc.Table:
    """Return a table of the factors, with ranges of sampled numbers or else the first levels."""
    show_ranges = is_sampled(table)
    rows: list[doc.Row] = []
    for name in table.factors:
        values = table.runs[name].drop_duplicates()
        text = ", ".join(map(level, values[:_MAX_LEVELS]))
        text += f" and {len(values) - _MAX_LEVELS:,} more" if len(values) > _MAX_LEVELS else ""
        if show_ranges and pd.api.types.is_numeric_dtype(values):
            text = f"{level(values.min())} to {level(values.max())}"
        rows.append((doc.Code(name), text, number(len(values))))
    columns = (doc.Column("factor"), doc.Column("range" if show_ranges else "levels"), *doc.number_columns("values"))
    return doc.simple_table(columns, rows)
