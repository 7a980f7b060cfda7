"""The conditions, measures, pairs and counts of runs of a study, as its report names them."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd
from pandas.api.types import is_numeric_dtype

from prism_mesa.errors import counted
from prism_mesa.studies.measures.catalogue import MEASURES, find_measure
from prism_mesa.studies.measures.exposure import measures_by_attribute
from prism_mesa.studies.measures.measure import Measure
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study.blocks import Code, Column, Part, Quiet, Words
from prism_mesa.view.study.numbers import level


def condition_columns(table: RunTable) -> tuple[str, ...]:
    """Return the columns that identify conditions: the arm, if there are several, and the factors."""
    return (*(("arm",) if len(table.arms) > 1 else ()), *table.factors)


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence: ``arm``, ``arm and agents.band``; ``all runs`` without any."""
    *first, last = [*names] or ["all runs"]
    return f"{', '.join(first)} and {last}" if first else last


def conditions(table: RunTable) -> list[dict[str, Any]]:
    """Return the conditions as arms with levels, in the order of the study's arms, then of the plan."""
    columns = ["arm", *table.factors]
    order = {arm: place for place, arm in enumerate(table.arms)}
    unique = table.runs[columns].drop_duplicates()
    unique = unique.sort_values("arm", key=lambda arms: arms.map(lambda arm: order.get(arm, len(order))), kind="stable")
    return [dict(zip(columns, row, strict=True)) for row in unique.values]


def is_sampled(table: RunTable) -> bool:
    """Return whether the conditions are sampled points rather than all combinations of levels."""
    return table.design in ("sobol", "lhs", "morris") or (table.design == "csv" and len(conditions(table)) > 24)


def rows_of_condition(frame: pd.DataFrame, table: RunTable, condition: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a condition; a null factor matches missing values."""
    kept = pd.Series(True, index=frame.index)
    for name in ("arm", *table.factors):
        value = condition[name]
        kept &= frame[name].isna() if pd.isna(value) else frame[name] == value
    return frame[kept]


def condition_label(table: RunTable, condition: Mapping[str, Any], terms: Sequence[str] = ()) -> str:
    """Return a condition, or some of its terms, as a label for figures: ``ranked, band 0.1``."""
    values = {name: level(condition[name]) for name in terms or condition_columns(table)}
    parts = [value if name == "arm" else f"{short_key(name)} {value}" for name, value in values.items()]
    return ", ".join(parts) or "all runs"


def short_key(key: str) -> str:
    """Return the last part of a dotted key."""
    return key.rpartition(".")[2]


def measures_in_order(result: StudyResult) -> list[str]:
    """Return the measures, with those of expectations first."""
    texts = [verdict.text.strip() for verdict in result.analysis.expectations]
    names = sorted(result.table.measures, key=len, reverse=True)
    expected = [next((name for name in names if text.startswith(name)), "") for text in texts]
    return [*dict.fromkeys([*filter(None, expected), *result.table.measures])]


def _known(name: str) -> Measure | None:
    """Return a measure of the catalogue, of an attribute, or of the user if its module is loaded; else None."""
    module, _, function = name.partition(":")
    if function and hasattr(sys.modules.get(module), function):
        return find_measure(name)
    base, at, attribute = name.partition("@")
    return measures_by_attribute(attribute).get(base) if at else MEASURES.get(name)


def measure_meaning(measure: str) -> str:
    """Return the meaning of a measure with its unit; for a user's measure its docstring, if its module is loaded."""
    if (known := _known(measure)) is None:
        return ""
    if not known.unit or re.search(rf"\b{re.escape(known.unit)}\b", known.meaning):
        return known.meaning
    return f"{known.meaning} ({known.unit})"


def measure_title(measure: str) -> Words:
    """Return the name of a measure with its meaning."""
    meaning = measure_meaning(measure)
    return (Code(measure), Quiet(f"  {meaning.replace('`', '')}")) if meaning else Code(measure)


def axis_label(measure: str) -> str:
    """Return the name of a measure with its unit, for an axis."""
    known = _known(measure)
    if known is None or not known.unit or known.unit.replace(" ", "_") in measure:
        return measure
    return f"{measure} ({known.unit})"


def condition_heads(table: RunTable) -> tuple[Column, ...]:
    """Return the columns of a condition."""
    names = condition_columns(table)
    return tuple(
        Column("arm")
        if name == "arm"
        else Column(Code(name), number=is_sampled(table) and is_numeric_dtype(table.runs[name]))
        for name in names
    ) or (Column(""),)


def condition_cells(table: RunTable, row: Mapping[str, Any]) -> tuple[Words, ...]:
    """Return the cells of a condition."""
    names = condition_columns(table)
    return tuple(str(row[name]) if name == "arm" else level(row[name]) for name in names) or ("all runs",)


def pair(row: Mapping[str, Any]) -> Words:
    """Return the two sides of a comparison: ``ranked - chronological``, or ``band: 0.1 - 0.02``."""
    sides: tuple[Part, ...] = (side_name(row, "left"), " \u2212 ", side_name(row, "right"))
    return sides if row["term"] in ("arm", "condition") else (Code(str(row["term"])), ": ", *sides)


def side_name(row: Mapping[str, Any], side: str) -> str:
    """Return the name of one side of a comparison, with the last parts of its keys.

    >>> side_name({"left": "posts.media_share=0.1, feed.mode=x_algo"}, "left")
    'media_share=0.1, mode=x_algo'
    """
    value = row[side]
    return _GROUPS.sub("", value) if isinstance(value, str) else level(value)


_GROUPS: Final = re.compile(r"(?:\w+\.)+(?=\w+=)")


def run_counts(runs: pd.DataFrame) -> dict[str, int]:
    """Count the runs by status: `done`, `failed`, `missing`, and `skipped` if there are any."""
    counts = runs["status"].value_counts()
    statuses = ("done", "failed", *(["skipped"] if "skipped" in counts else []), "missing")
    return {status: int(counts.get(status, 0)) for status in statuses}


def status_counts(runs: pd.DataFrame) -> str:
    """Return a sentence with the numbers of runs that are planned, done, failed and missing.

    >>> status_counts(pd.DataFrame({"status": ["done", "done", "failed"]}))
    '3 runs planned: 2 done, 1 failed, 0 missing'
    """
    by_status = ", ".join(f"{n:,} {status}" for status, n in run_counts(runs).items())
    return f"{counted(len(runs), 'run')} planned: {by_status}"
