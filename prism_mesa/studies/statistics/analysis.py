"""Compute the statistics of a study as tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from prism_mesa.arrays import Ints
from prism_mesa.errors import format_count
from prism_mesa.studies.statistics.cells import ARM, Cells, RunTable, make_cells
from prism_mesa.studies.statistics.expectation import Verdict, parse_expectation

__all__ = ["Analysis", "RunTable", "Verdict", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """The tables of a study's statistics; tables that do not apply are empty.

    Columns `n` and `missing` count the runs or pairs with and without a value; `p_holm` is p after Holm's correction.

    Attributes:
        expectations: Verdicts on expectations, in order.
        answers: The mean of each measure in each condition: `arm`, the factors, `measure`, `n`, `missing`, `mean`,
            `median`, `sd`, `low`, `high` (Student's 95 % interval of the mean).
        differences: A row for each measure and pair of arms or levels: `measure`, `term` (`arm` or a factor), `left`
            (the later level), `right`, `n`, `missing`, `difference` (mean of left minus right), `low`, `high`, `d_z`
            (paired effect size), `p`, `p_holm`, `family` (the tests that the correction covers), `u`,
            `p_mann_whitney`, `rank_biserial`.
        groups: Kruskal-Wallis tests for each measure and each term with three levels or more, and for all conditions
            (`term` = `condition`): `measure`, `term`, `n`, `missing`, `h`, `df`, `p`, `p_holm`.
        equivalence: A row for each expectation of equivalence: `text`, `measure`, `left`, `right`, `n`, `missing`,
            `margin`, `low`, `high` (90 % interval), `p_low`, `p_high`, `p` (the larger of the two), `p_apart` (test
            of a difference beyond the margin), `p_holm` (over all expectations), `equivalent` (by `p_holm`).
        effects: A row for each measure and main effect or interaction of a factorial design: `measure`, `effect` (terms
            joined by `` x ``), `n`, `missing`, `df`, `f`, `p`, `p_holm`, `partial_eta_squared`.
        sensitivity: A row for each measure, factor and index: `measure`, `factor`, `index`, `value`, `low`, `high`. The
            index is `s1`, `st`, `mu_star`, `mu` or `sigma` in a sobol or morris design, and in a factorial design
            `share`, the share of the variance due to `arm`, a factor, `interactions` or `seed`.
        treatments: Rows for each measure of an intervention with arms that treat some, all and no agents: `measure`,
            `effect` (`within`: treated minus control agents in `arm`; `platform`: all agents, `whole` minus `none`;
            `difference`: within minus platform), the arms `arm`, `whole` and `none`, `n`, `missing`, `mean`, `low`,
            `high` (95 % interval).
        precision: A row for each measure, pair and number of seeds: `measure`, `term`, `left`, `right`, `seeds`,
            `half_width` (expected for the 95 % interval of the difference).
        notes: Remarks on missing values, and on statistics that could not be computed.
    """

    expectations: tuple[Verdict, ...]
    answers: pd.DataFrame
    differences: pd.DataFrame
    groups: pd.DataFrame
    equivalence: pd.DataFrame
    effects: pd.DataFrame
    sensitivity: pd.DataFrame
    treatments: pd.DataFrame
    precision: pd.DataFrame
    notes: tuple[str, ...]


def analyse(table: RunTable, expectations: Sequence[str]) -> Analysis:
    """Return the statistics of a study, even if it is incomplete; raise ConfigError for an unreadable expectation."""
    # scipy.stats, statsmodels and SALib take seconds to load
    from prism_mesa.studies.statistics.comparisons import differences, pairs_of_terms, precision, treatment_effects
    from prism_mesa.studies.statistics.effects import answers, effects, groups
    from prism_mesa.studies.statistics.sensitivity import sensitivity
    from prism_mesa.studies.statistics.verdicts import verdicts

    cells = make_cells(table)
    levels = {factor: cells.levels[factor] for factor in table.factors}
    parsed_expectations = [
        parse_expectation(text, measures=table.measures, arms=table.arms, factors=levels) for text in expectations
    ]
    results, equivalence = verdicts(cells, parsed_expectations)
    pairs, pair_notes = pairs_of_terms(cells, table.design)
    effect_table, effect_notes = effects(cells, table.design)
    indices, sensitivity_notes = sensitivity(table, cells)
    return Analysis(
        expectations=results,
        answers=answers(cells),
        differences=differences(cells, pairs, zip(parsed_expectations, results, strict=True)),
        groups=groups(cells, table.design),
        equivalence=equivalence,
        effects=effect_table,
        sensitivity=indices,
        treatments=treatment_effects(cells, table.treatments),
        precision=precision(cells, pairs),
        notes=(*_notes_on_missing(table, cells), *pair_notes, *effect_notes, *sensitivity_notes),
    )


def _notes_on_missing(table: RunTable, cells: Cells) -> list[str]:

    def counts_by_arm(counts: Ints) -> str:
        arms = (f"{arm} {counts[cells.has_level(ARM, index)].sum()}" for index, arm in enumerate(cells.texts(ARM)))
        return f" ({', '.join(arms)})" if len(table.arms) > 1 else ""

    notes = []
    planned, done = int(cells.planned.sum()), int(cells.done.sum())
    if done < planned:
        failed = int((table.runs["status"] == "failed").sum())
        missing = f"{planned - done:,} of {format_count(planned, 'run')} are missing"
        arms = counts_by_arm((cells.planned & ~cells.done).sum(axis=1))
        notes.append(f"{missing}{arms}; {failed:,} failed: failures are not random and may bias all numbers.")
    n_undefined = (cells.done[:, :, None] & ~np.isfinite(cells.values)).sum(axis=1)
    for measure, counts in zip(cells.measures, n_undefined.T, strict=True):
        if n := int(counts.sum()):
            notes.append(f"{measure}: not a number in {format_count(n, 'finished run')}{counts_by_arm(counts)}.")
    return notes
