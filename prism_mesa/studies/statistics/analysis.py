"""The statistics of a study as tables, for the report and for users of Python."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.streams import Ints
from prism_mesa.studies.statistics.cells import ARM, Cells, RunTable, make_cells
from prism_mesa.studies.statistics.expectation import Verdict, parse_expectation

__all__ = ["Analysis", "RunTable", "Verdict", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """The tables of a study's statistics. A table is empty if the study has nothing of its kind.

    Columns `n` and `missing` count runs or pairs with and without a value; `p_holm` is p after Holm's correction.

    Attributes:
        expectations: Verdicts on expectations, in order.
        answers: A row for each condition and measure: `arm`, the factors, `measure`, `n`, `missing`, `mean`, `median`,
            `sd`, `low`, `high` (Student's 95 % interval of the mean).
        differences: A row for each measure and pair of arms, or of levels of a factor with few of them: `measure`,
            `term` (`arm` or a factor), `left` (the later level), `right`, `n`, `missing`, `difference` (mean, left
            minus right, paired if seeds are), `low`, `high`, `d_z` (paired effect size), `p`, `p_holm`, `family` (what
            the correction covers), `u`, `p_mann_whitney`, `rank_biserial`.
        groups: Kruskal-Wallis tests for each measure and term with three levels or more, and for all conditions
            (`term` = `condition`): `measure`, `term`, `n`, `missing`, `h`, `df`, `p`, `p_holm`.
        equivalence: Rows of expectations of equivalence: `text`, `measure`, `left`, `right`, `n`, `missing`, `margin`,
            `low`, `high` (90 % interval), `p_low`, `p_high`, `p` (the larger), `p_apart` (of a difference beyond the
            margin), `p_holm` (of the smaller of both, over all expectations), `equivalent` (by `p_holm`).
        effects: A row for each measure and main effect or interaction of a factorial design: `measure`, `effect` (terms
            with `` x `` between them), `n`, `missing`, `df`, `f`, `p`, `p_holm`, `partial_eta_squared`.
        sensitivity: A row for each measure, factor and index: `measure`, `factor`, `index`, `value`, `low`, `high`. The
            index is `s1`, `st`, `mu_star`, `mu` or `sigma` in a sobol or morris design. In a factorial design it is
            `share`: the share of the variance from `arm`, each factor, `interactions` and `seed`.
        precision: A row for each measure, pair as in `differences`, and number of seeds from 2 on: `measure`, `term`,
            `left`, `right`, `seeds`, `half_width` (expected, of the 95 % interval of the difference).
        notes: What could not be computed, and why.
    """

    expectations: tuple[Verdict, ...]
    answers: pd.DataFrame
    differences: pd.DataFrame
    groups: pd.DataFrame
    equivalence: pd.DataFrame
    effects: pd.DataFrame
    sensitivity: pd.DataFrame
    precision: pd.DataFrame
    notes: tuple[str, ...]


def analyse(table: RunTable, expectations: Sequence[str]) -> Analysis:
    """Compute the statistics of a study.

    Args:
        table: The runs, complete or not; every statistic counts missing ones.
        expectations: Texts of expectations.

    Raises:
        ConfigError: If an expectation cannot be read, or names something that the study lacks.
    """
    # scipy.stats, statsmodels and SALib take seconds to load
    from prism_mesa.studies.statistics.comparisons import differences, pairs_of_terms, precision
    from prism_mesa.studies.statistics.effects import answers, effects, groups
    from prism_mesa.studies.statistics.sensitivity import sensitivity
    from prism_mesa.studies.statistics.verdicts import verdicts

    cells = make_cells(table)
    levels = {factor: cells.levels[factor] for factor in table.factors}
    expected = [
        parse_expectation(text, measures=table.measures, arms=table.arms, factors=levels) for text in expectations
    ]
    decided, equivalence = verdicts(cells, expected)
    pairs, pair_notes = pairs_of_terms(cells, table.design)
    effect_table, effect_notes = effects(cells, table.design)
    indices, sensitivity_notes = sensitivity(table, cells)
    return Analysis(
        expectations=decided,
        answers=answers(cells),
        differences=differences(cells, pairs, zip(expected, decided, strict=True)),
        groups=groups(cells, table.design),
        equivalence=equivalence,
        effects=effect_table,
        sensitivity=indices,
        precision=precision(cells, pairs),
        notes=(*_notes_on_missing(table, cells), *pair_notes, *effect_notes, *sensitivity_notes),
    )


def _notes_on_missing(table: RunTable, cells: Cells) -> list[str]:
    """Return notes on missing runs, and on measures that finished runs lack."""

    def by_arm(counts: Ints) -> str:
        arms = (f"{arm} {counts[cells.at(ARM, place)].sum()}" for place, arm in enumerate(cells.texts(ARM)))
        return f" ({', '.join(arms)})" if len(table.arms) > 1 else ""

    notes = []
    planned, done = int(cells.planned.sum()), int(cells.done.sum())
    if done < planned:
        failed = int((table.runs["status"] == "failed").sum())
        notes.append(
            f"{planned - done:,} of {counted(planned, 'run')} are not there"
            f"{by_arm((cells.planned & ~cells.done).sum(axis=1))}, {failed:,} of them because they failed; failed runs "
            "are not random, so all numbers are of those runs that could be finished."
        )
    undefined = (cells.done[:, :, None] & ~np.isfinite(cells.values)).sum(axis=1)
    for measure, counts in zip(cells.measures, undefined.T, strict=True):
        if n := int(counts.sum()):
            runs = counted(n, "finished run")
            notes.append(f"{measure}: {runs} without this measure{by_arm(counts)}, which is not a number.")
    return notes
