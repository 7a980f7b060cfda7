"""Conditions, measures, comparisons and counts of runs as text for the report of a study."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from prism_mesa.domain import SHARE
from prism_mesa.errors import format_count
from prism_mesa.studies.measures.catalogue import MEASURES, find_measure
from prism_mesa.studies.measures.exposure import measures_by_attribute
from prism_mesa.studies.measures.measure import Measure
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study.blocks import Code, Column, Quiet, Words
from prism_mesa.view.study.numbers import level


def condition_columns(table: RunTable) -> tuple[str, ...]:
    """Return the columns that identify conditions: the arm, if there are several, and the factors."""
    return ("arm", *table.factors) if len(table.arms) > 1 else table.factors


def format_list(names: Iterable[str]) -> str:
    """Return names as a list in a sentence: ``arm and agents.band``; or ``all runs`` if there are no names."""
    *first, last = [*names] or ["all runs"]
    return f"{', '.join(first)} and {last}" if first else last


def conditions(table: RunTable) -> list[dict[str, Any]]:
    """Return the conditions (an arm and levels of factors), ordered by the study's arms and then by its plan."""
    columns, arms = ["arm", *table.factors], [*table.arms]
    rows = sorted(table.runs[columns].drop_duplicates().values, key=lambda row: arms.index(row[0]))
    return [dict(zip(columns, row, strict=True)) for row in rows]


def is_sampled(table: RunTable) -> bool:
    """Return whether the conditions are sampled points rather than all combinations of levels."""
    return table.design in ("sobol", "lhs", "morris") or (table.design == "csv" and len(conditions(table)) > 24)


def rows_of_condition(frame: pd.DataFrame, table: RunTable, condition: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a condition; a null level matches missing values."""
    for name in ("arm", *table.factors):
        value = condition[name]
        frame = frame[frame[name].isna() if pd.isna(value) else frame[name] == value]
    return frame


def condition_label(table: RunTable, condition: Mapping[str, Any], terms: Sequence[str] = ()) -> str:
    """Return a condition, or only some of its terms, as a label for figures: ``ranked, band 0.1``."""
    values = {name: level(condition[name]) for name in terms or condition_columns(table)}
    parts = [value if name == "arm" else f"{short_key(name)} {value}" for name, value in values.items()]
    return ", ".join(parts) or "all runs"


def short_key(key: str) -> str:
    """Return the last part of a dotted key."""
    return key.rpartition(".")[2]


def measures_in_order(result: StudyResult) -> list[str]:
    """Return the measures, with the measures of expectations first."""
    expected = [verdict.text.strip().rpartition(": ")[0] for verdict in result.analysis.expectations]
    names = result.table.measures
    return [*dict.fromkeys([*(name for name in expected if name in names), *names])]


def _find_entry(name: str) -> Measure | None:
    """Return a measure from the catalogue, for an attribute, or from a loaded module; None if unknown."""
    module, _, function = name.partition(":")
    if name.startswith(SHARE) or (function and hasattr(sys.modules.get(module), function)):
        return find_measure(name)
    base, separator, attribute = name.partition("@")
    return measures_by_attribute(attribute, base).get(base) if separator else MEASURES.get(name)


def measure_meaning(measure: str) -> str:
    """Return the meaning of a measure with its unit; empty for a user's measure whose module is not loaded."""
    if (entry := _find_entry(measure)) is None:
        return ""
    if not entry.unit or re.search(rf"\b{re.escape(entry.unit)}\b", entry.meaning):
        return entry.meaning
    return f"{entry.meaning} ({entry.unit})"


def measure_title(measure: str) -> Words:
    """Return the name of a measure with its meaning."""
    meaning = measure_meaning(measure)
    return (Code(measure), Quiet(f"  {meaning.replace('`', '')}")) if meaning else Code(measure)


def axis_label(measure: str) -> str:
    """Return the name of a measure with its unit, for an axis."""
    entry = _find_entry(measure)
    if entry is None or not entry.unit or entry.unit.replace(" ", "_") in measure:
        return measure
    return f"{measure} ({entry.unit})"


def condition_headers(table: RunTable) -> tuple[Column, ...]:
    """Return the columns of a report's table that identify conditions."""
    is_sampled_design = is_sampled(table)
    return tuple(
        Column("arm" if name == "arm" else Code(name), number=is_sampled_design and is_numeric_dtype(table.runs[name]))
        for name in condition_columns(table)
    ) or (Column(""),)


def condition_cells(table: RunTable, row: Mapping[str, Any]) -> tuple[Words, ...]:
    """Return the cells of a condition."""
    return tuple(level(row[name]) for name in condition_columns(table)) or ("all runs",)


def comparison_words(row: Mapping[str, Any]) -> Words:
    """Return the two sides of a comparison: ``ranked - chronological``, or ``band: 0.1 - 0.02``."""
    text = sides_text(row["left"], row["right"])
    return text if row["term"] in ("arm", "condition") else (Code(str(row["term"])), f": {text}")


def sides_text(*values: Any) -> str:
    """Return the sides of a comparison as text, with shortened keys.

    >>> sides_text("posts.media_share=0.1, feed.mode=x_algo", 0.5)
    'media_share=0.1, mode=x_algo \u2212 0.5'
    """
    names = (re.sub(r"(?:\w+\.)+(?=\w+=)", "", side) if isinstance(side, str) else level(side) for side in values)
    return " \u2212 ".join(names)


def run_counts(runs: pd.DataFrame) -> dict[str, int]:
    """Count the runs by status: `done`, `failed`, `missing`, and `skipped` if there are any."""
    counts = runs["status"].value_counts()
    statuses = ("done", "failed", *(["skipped"] if "skipped" in counts else []), "missing")
    return {status: int(counts.get(status, 0)) for status in statuses}


def status_counts(runs: pd.DataFrame) -> str:
    """Return the number of planned runs, and their numbers by status.

    >>> status_counts(pd.DataFrame({"status": ["done", "done", "failed"]}))
    '3 runs planned: 2 done, 1 failed, 0 missing'
    """
    by_status = ", ".join(f"{n:,} {status}" for status, n in run_counts(runs).items())
    return f"{format_count(len(runs), 'run')} planned: {by_status}"
