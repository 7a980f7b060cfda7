"""All that the runs of a study say, as tables: what the report shows, and users read in Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd


@dataclass(frozen=True)
class RunTable:
    """The runs of a study, and how they were designed.

    Attributes:
        runs: A row for each run that was planned: `run`, `arm`, `seed`, `status` (`done`, `failed`, `missing`),
            `reason`, the factors by dotted key, the measures (NaN where there is none).
        arms: In the order of the study; ("all",) if it has none.
        factors: Dotted keys that vary.
        measures: Names.
        design: How conditions were chosen.
        paired: Whether all conditions have the same seeds.
        sampling: What a sampled design was made from, for the indices: SALib's problem, its seed and size; None
            otherwise.
    """

    runs: pd.DataFrame
    arms: tuple[str, ...]
    factors: tuple[str, ...]
    measures: tuple[str, ...]
    design: Literal["factorial", "sobol", "lhs", "morris", "csv"] = "factorial"
    paired: bool = True
    sampling: dict[str, object] | None = None


@dataclass(frozen=True)
class Verdict:
    """What became of an expectation.

    Attributes:
        text: As the study has it, verbatim.
        verdict: `holds`; `fails`: the opposite holds, or there is no difference at all; `open`: the runs cannot tell.
        difference: The mean paired difference left minus right, over all conditions and seeds.
        interval: Of 95 %, of that difference.
        p: Two-sided, of the test named in `test`.
        p_holm: The same, corrected for all expectations of the study (Holm).
        n: Pairs, or runs of the smaller side where they are not paired.
        missing: Pairs, or runs, that are not there.
        test: In words.
        sentence: The verdict in a sentence, with figures.
    """

    text: str
    verdict: Literal["holds", "fails", "open"]
    difference: float
    interval: tuple[float, float]
    p: float
    p_holm: float
    n: int
    missing: int
    test: str
    sentence: str


@dataclass(frozen=True)
class Analysis:
    """Tables of what the runs say. One without rows is about something that the study does not have.

    Attributes:
        expectations: Their verdicts, in the order of the study.
        answers: A row for each condition and measure: `arm`, the factors, `measure`, `n`, `missing`, `mean`, `median`,
            `sd`, `low`, `high` (bootstrap interval of 95 % of the mean, BCa).
        differences: A row for each measure and pair of arms, or of levels of a factor with few of them: `measure`,
            `term` (`arm` or a factor), `left`, `right`, `n`, `missing`, `difference` (mean, left minus right, paired
            where seeds are), `low`, `high`, `p`, `p_holm`, `u` and `p_mann_whitney`, `rank_biserial`.
        groups: A row for each measure and term with three levels or more, and for all conditions together
            (`term` = `condition`): `measure`, `term`, `h`, `df`, `p`, `p_holm` (Kruskal-Wallis).
        dunn: Pairs of such: `measure`, `term`, `left`, `right`, `z`, `p`, `p_holm`.
        equivalence: Rows of expectations of equivalence: `text`, `measure`, `left`, `right`, `margin`, `low`, `high`
            (interval of 90 %), `p_low`, `p_high`, `p` (the larger), `equivalent`.
        effects: A row for each measure and main effect or interaction of a factorial design: `measure`, `effect`,
            `df`, `f`, `p`, `p_holm`, `partial_eta_squared`.
        sensitivity: A row for each measure and factor of a sobol or morris design: `measure`, `factor`, `index` (`s1`,
            `st`, `mu_star`, `mu`, `sigma`), `value`, `low`, `high`.
        precision: A row for each measure, pair as in `differences`, and number of seeds from 2 on: `measure`, `term`,
            `left`, `right`, `seeds`, `half_width` (of the 95 % interval of the difference).
        notes: What could not be computed, and why, in sentences.
    """

    expectations: tuple[Verdict, ...]
    answers: pd.DataFrame
    differences: pd.DataFrame
    groups: pd.DataFrame
    dunn: pd.DataFrame
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
    """
    raise NotImplementedError
