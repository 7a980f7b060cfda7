"""All that the runs of a study say, as tables: what the report shows, and users read in Python."""

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
    """Tables of what the runs say. One without rows is about something that the study does not have.

    Attributes:
        expectations: Their verdicts, in the order of the study.
        answers: A row for each condition and measure: `arm`, the factors, `measure`, `n`, `missing`, `mean`, `median`,
            `sd`, `low`, `high` (Student's 95 % interval of the mean).
        differences: A row for each measure and pair of arms, or of levels of a factor with few of them: `measure`,
            `term` (`arm` or a factor), `left`, `right`, `n`, `missing`, `difference` (mean, left minus right, paired
            where seeds are), `low`, `high`, `d_z` (paired effect size), `p`, `p_holm`, `family` (what Holm's correction
            is over), `u` and `p_mann_whitney`, `rank_biserial`. The later of two levels is on the left.
        groups: A row for each measure and term with three levels or more, and for all conditions together
            (`term` = `condition`): `measure`, `term`, `n`, `missing`, `h`, `df`, `p`, `p_holm` (Kruskal-Wallis).
        equivalence: Rows of expectations of equivalence: `text`, `measure`, `left`, `right`, `n`, `missing`, `margin`,
            `low`, `high` (interval of 90 %), `p_low`, `p_high`, `p` (the larger), `p_apart` (that the difference lies
            beyond the margin), `p_holm` (of the smaller of both, over all expectations), `equivalent` (by `p_holm`).
        effects: A row for each measure and main effect or interaction of a factorial design: `measure`, `effect` (terms
            with `` x `` between them), `n`, `missing`, `df`, `f`, `p`, `p_holm`, `partial_eta_squared`.
        sensitivity: A row for each measure, factor and index: `measure`, `factor`, `index`, `value`, `low`, `high`. The
            index is `s1`, `st`, `mu_star`, `mu` or `sigma` in a sobol or morris design. In a factorial design it is
            `share`: the share of the variance from `arm`, each factor, `interactions` and `seed`.
        precision: A row for each measure, pair as in `differences`, and number of seeds from 2 on: `measure`, `term`,
            `left`, `right`, `seeds`, `half_width` (of the 95 % interval of the difference, as the standard deviation
            over all seeds lets expect it).
        notes: What could not be computed, and why, in sentences.
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
    """Return what the runs of a study say.

    Args:
        table: The runs, complete or not; missing ones are counted beside every number.
        expectations: Their texts.

    Raises:
        ConfigError: If an expectation cannot be understood, or is about what the study has not.
    """
    # scipy.stats, statsmodels and SALib take seconds to load, and whoever only looks at a result needs none of them
    from prism_mesa.studies.statistics.comparisons import differences, pairs_of_terms, precision
    from prism_mesa.studies.statistics.effects import answers, effects, groups
    from prism_mesa.studies.statistics.sensitivity import sensitivity
    from prism_mesa.studies.statistics.verdicts import verdicts

    cells = make_cells(table)
    levels = {factor: cells.levels[factor] for factor in table.factors}
    expected = [
        parse_expectation(text, measures=table.measures, arms=table.arms, factors=levels) for text in expectations
    ]
    found, equivalence = verdicts(cells, expected)
    pairs, left_out = pairs_of_terms(cells, table.design)
    explained, unexplained = effects(cells, table.design)
    indices, refused = sensitivity(table, cells)
    return Analysis(
        expectations=found,
        answers=answers(cells),
        differences=differences(cells, pairs, zip(expected, found, strict=True)),
        groups=groups(cells, table.design),
        equivalence=equivalence,
        effects=explained,
        sensitivity=indices,
        precision=precision(cells, pairs),
        notes=(*_missing_runs(table, cells), *left_out, *unexplained, *refused),
    )


def _missing_runs(table: RunTable, cells: Cells) -> list[str]:
    """Return sentences on runs that are not there, and measures that finished runs have not."""
    notes = []
    planned, done = int(cells.planned.sum()), int(cells.done.sum())
    if done < planned:
        where = _by_arm(cells, (cells.planned & ~cells.done).sum(axis=1)) if len(table.arms) > 1 else ""
        failed = int((table.runs["status"] == "failed").sum())
        notes.append(
            f"{planned - done:,} of {counted(planned, 'run')} are not there{where}, {failed:,} of them because they "
            "failed; failed runs are not random, so all numbers are of those runs that could be finished."
        )
    undefined = (cells.done[:, :, None] & ~np.isfinite(cells.values)).sum(axis=1)
    for measure, counts in zip(cells.measures, undefined.T, strict=True):
        if n := int(counts.sum()):
            where = _by_arm(cells, counts) if len(table.arms) > 1 else ""
            notes.append(f"{measure}: {counted(n, 'finished run')} without this measure{where}, which is not a number.")
    return notes


def _by_arm(cells: Cells, counts: Ints) -> str:
    arms = (f"{arm} {counts[cells.at(ARM, place)].sum()}" for place, arm in enumerate(cells.texts(ARM)))
    return f" ({', '.join(arms)})"
