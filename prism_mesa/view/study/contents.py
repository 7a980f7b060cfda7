"""What a study has, as its report words it: conditions, measures, pairs, counts of runs."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd
from pandas.api.types import is_numeric_dtype

from prism_mesa.errors import counted
from prism_mesa.studies.measures.by_attribute import measures_by_attribute
from prism_mesa.studies.measures.catalogue import MEASURES, find_measure
from prism_mesa.studies.measures.measure import Measure
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study.blocks import Code, Column, Part, Quiet, Words
from prism_mesa.view.study.numbers import level


def condition_columns(table: RunTable) -> tuple[str, ...]:
    """Return the columns that tell conditions apart: the arm, if there are several, and the factors."""
    return (*(("arm",) if len(table.arms) > 1 else ()), *table.factors)


def in_words(names: Iterable[str]) -> str:
    """Return what conditions differ in: ``arm``, ``arm and agents.band``, ``all runs`` if in nothing."""
    *first, last = [*names] or ["all runs"]
    return f"{', '.join(first)} and {last}" if first else last


def conditions(table: RunTable) -> list[dict[str, Any]]:
    """Return the conditions, each as its arm and levels, in the order of the study's arms and then as planned."""
    columns = ["arm", *table.factors]
    found = table.runs[columns].drop_duplicates()
    order = {arm: place for place, arm in enumerate(table.arms)}
    places = found["arm"].map(lambda arm: order.get(arm, len(order)))
    return [dict(zip(columns, row, strict=True)) for row in found.loc[places.sort_values(kind="stable").index].values]


def is_sampled(table: RunTable) -> bool:
    """Return whether the conditions are points of a sample, and not all combinations of a few levels."""
    return table.design in ("sobol", "lhs", "morris") or (table.design == "csv" and len(conditions(table)) > 24)


def of_condition(frame: pd.DataFrame, table: RunTable, condition: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a condition; of one with a factor that was set to nothing, those where there is nothing."""
    kept = pd.Series(True, index=frame.index)
    for name in ("arm", *table.factors):
        value = condition[name]
        kept &= frame[name].isna() if pd.isna(value) else frame[name] == value
    return frame[kept]


def condition_label(table: RunTable, condition: Mapping[str, Any], terms: Sequence[str] = ()) -> str:
    """Return a condition on one line, or only some terms of it: ``ranked, band 0.1``; for figures."""
    told = []
    for name in terms or condition_columns(table):
        value = level(condition[name])
        told.append(value if name == "arm" else f"{short_key(name)} {value}")
    return ", ".join(told) or "all runs"


def short_key(key: str) -> str:
    """Return the last name of a dotted key."""
    return key.rpartition(".")[2]


def measures_in_order(result: StudyResult) -> list[str]:
    """Return the measures, those of expectations first."""
    texts = [verdict.text.strip() for verdict in result.analysis.expectations]
    names = sorted(result.table.measures, key=len, reverse=True)
    asked = [next((name for name in names if text.startswith(name)), "") for text in texts]
    return [*dict.fromkeys([*filter(None, asked), *result.table.measures])]


def _known(name: str) -> Measure | None:
    """Return a measure of the catalogue, one by an attribute, or a user's own if its module is loaded; else None."""
    module, _, own = name.partition(":")
    if own and hasattr(sys.modules.get(module), own):
        return find_measure(name)
    base, at, attribute = name.partition("@")
    return measures_by_attribute(attribute).get(base) if at else MEASURES.get(name)


def meaning_of(measure: str) -> str:
    """Return what a measure means, with its unit; for a user's own its docstring, or nothing if it is not loaded."""
    known = _known(measure)
    if known is None:
        return ""
    return (
        known.meaning
        if not known.unit or re.search(rf"\b{re.escape(known.unit)}\b", known.meaning)
        else f"{known.meaning} ({known.unit})"
    )


def measure_title(measure: str) -> Words:
    """Return a measure with what it is of."""
    meaning = meaning_of(measure)
    return (Code(measure), Quiet(f"  {meaning.replace('`', '')}")) if meaning else Code(measure)


def axis_label(measure: str) -> str:
    """Return a measure with its unit, for the axis of a figure."""
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
    """Return which side is compared with which: ``ranked - chronological``, or ``band: 0.1 - 0.02``."""
    sides: tuple[Part, ...] = (side_name(row, "left"), " \u2212 ", side_name(row, "right"))
    return sides if row["term"] in ("arm", "condition") else (Code(str(row["term"])), ": ", *sides)


def side_name(row: Mapping[str, Any], side: str) -> str:
    """Return one side of a comparison in words; of a condition with the last names of its keys.

    >>> side_name({"left": "posts.media_share=0.1, feed.mode=x_algo"}, "left")
    'media_share=0.1, mode=x_algo'
    """
    value = row[side]
    return _GROUPS.sub("", value) if isinstance(value, str) else level(value)


_GROUPS: Final = re.compile(r"(?:\w+\.)+(?=\w+=)")


def run_counts(runs: pd.DataFrame) -> dict[str, int]:
    """Count the runs that are `done`, `failed` and `missing`, and `skipped` if there are any."""
    found = runs["status"].value_counts()
    statuses = ("done", "failed", *(["skipped"] if "skipped" in found else []), "missing")
    return {status: int(found.get(status, 0)) for status in statuses}


def runs_in_words(runs: pd.DataFrame) -> str:
    """Return how many runs there are, and how many are not there.

    >>> runs_in_words(pd.DataFrame({"status": ["done", "done", "failed"]}))
    '3 runs planned: 2 done, 1 failed, 0 missing'
    """
    told = ", ".join(f"{n:,} {status}" for status, n in run_counts(runs).items())
    return f"{counted(len(runs), 'run')} planned: {told}"
