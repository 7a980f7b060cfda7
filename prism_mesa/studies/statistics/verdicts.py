"""Verdicts on the expectations of a study, corrected for their number, and the sentences that state them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.statistics.cells import EQUIVALENCE, Bools, Cells, level_key, make_table
from prism_mesa.studies.statistics.comparisons import Comparison, compare
from prism_mesa.studies.statistics.expectation import Expectation, Side, Verdict
from prism_mesa.studies.statistics.significance import ALPHA, Equivalence, holm, tost


@dataclass(frozen=True)
class _Case:
    """An expectation and what the runs say about it.

    Attributes:
        verdict: Open, without a sentence and without Holm's correction.
        equivalence: The test of an equality; None with > and <.
        sample_size: Number of tested values: one for each seed, or for each run of the smaller side.
        equal: Whether all pairs are the same.
    """

    expected: Expectation
    verdict: Verdict
    equivalence: Equivalence | None
    sample_size: int
    equal: bool
    paired: bool


def verdicts(cells: Cells, expected: Sequence[Expectation]) -> tuple[tuple[Verdict, ...], pd.DataFrame]:
    """Return a verdict on each expectation, and the table `equivalence` (see `analysis.Analysis`)."""
    by_sides: dict[tuple[str, str], list[int]] = {}
    for index, expectation in enumerate(expected):
        by_sides.setdefault((expectation.left.text, expectation.right.text), []).append(index)
    cases_by_index = {}
    for indices in by_sides.values():
        left, right = expected[indices[0]].left, expected[indices[0]].right
        named = {term for term, _ in (*left.named, *right.named)}
        averaged = [term for term in cells.terms if term not in named]
        measured = cells.select([expected[index].measure for index in indices])
        compared = compare(measured, _conditions(cells, left), _conditions(cells, right), averaged)
        for column, index in enumerate(indices):
            cases_by_index[index] = _case(expected[index], compared, column, cells.paired)
    cases = [cases_by_index[index] for index in range(len(expected))]
    corrected = holm([case.verdict.p for case in cases])
    n_tests = int(np.isfinite(corrected).sum())
    decided = tuple(_decide(case, float(p), n_tests) for case, p in zip(cases, corrected, strict=True))
    rows = [
        _equivalence_row(case.expected, verdict, case.equivalence)
        for case, verdict in zip(cases, decided, strict=True)
        if case.equivalence
    ]
    return decided, make_table(EQUIVALENCE, rows)


def _conditions(cells: Cells, side: Side) -> Bools:
    """Return for each condition whether it belongs to a side."""
    chosen = np.ones(len(cells.conditions), bool)
    for term, level in side.named:
        keys = [level_key(other) for other in cells.levels[term]]
        chosen &= cells.at(term, keys.index(level_key(level)))
    return chosen


def _case(expected: Expectation, compared: Comparison, column: int, paired: bool) -> _Case:
    samples = tuple(sample[:, column] for sample in compared.samples)
    equal, right_mean = bool(compared.equal[column]), float(compared.right_mean[column])
    difference, p = float(compared.difference[column]), float(compared.p[column])
    test, equivalence = compared.test, None
    if expected.relation == "=":
        margin = (expected.margin or 0.0) * (abs(right_mean) / 100 if expected.percent else 1)
        equivalence = tost(samples, margin, scale=float(compared.scale[column]), identical=paired and equal)
        p = equivalence.p_apart if equivalence.beyond else equivalence.p
        test = f"{test}, against the margin" if equivalence.beyond else f"two one-sided tests (TOST), each a {test}"
    verdict = Verdict(
        text=expected.text,
        verdict="open",
        difference=difference,
        interval=(float(compared.low[column]), float(compared.high[column])),
        p=p,
        p_holm=np.nan,
        n=int(compared.n[column]),
        missing=int(compared.missing[column]),
        test=test,
        sentence="",
        means=(right_mean + difference, right_mean),
    )
    sample_size = min(int(np.isfinite(sample).sum()) for sample in samples)
    return _Case(expected, verdict, equivalence, sample_size, equal, paired)


def _decide(case: _Case, p_holm: float, n_tests: int) -> Verdict:
    """Return the verdict after Holm's correction over `n_tests` expectations."""
    relation, verdict = case.expected.relation, replace(case.verdict, p_holm=p_holm)
    if case.equal and relation != "=":
        verdict = replace(verdict, verdict="fails")
    elif p_holm < ALPHA:
        is_larger = verdict.difference > 0
        holds = not case.equivalence.beyond if case.equivalence else is_larger == (relation == ">")
        verdict = replace(verdict, verdict="holds" if holds else "fails")
    return replace(verdict, sentence=f"{verdict.verdict.capitalize()}: {_finding(case, verdict, n_tests)}{_gaps(case)}")


def _equivalence_row(expected: Expectation, verdict: Verdict, test: Equivalence) -> dict[str, Any]:
    return {
        "text": [expected.text],
        "measure": expected.measure,
        "left": expected.left.text,
        "right": expected.right.text,
        "n": verdict.n,
        "missing": verdict.missing,
        **{name: getattr(test, name) for name in ("margin", "low", "high", "p_low", "p_high", "p", "p_apart")},
        "p_holm": verdict.p_holm,
        "equivalent": verdict.p_holm < ALPHA and not test.beyond,
    }


def _finding(case: _Case, verdict: Verdict, n_tests: int) -> str:
    """Return the finding as a sentence, without the note on missing runs."""
    measure, left, right = case.expected.measure, _where(case.expected.left), _where(case.expected.right)
    difference, (low, high) = verdict.difference, verdict.interval
    if not verdict.n:
        return f"no runs are available to compare {measure} {left} and {right}."
    if case.equivalence:
        percent = f" ({number(case.expected.margin or 0.0)} % of the mean {right})" if case.expected.percent else ""
        unsure = "the runs cannot tell whether " if verdict.verdict == "open" else ""
        comparison = "is not the same" if verdict.verdict == "fails" else "is the same"
        figures = f"the difference is {number(difference)} ({_figures(case, verdict, low, high, n_tests)})"
        margin = f"{number(case.equivalence.margin)}{percent}"
        return f"{unsure}{measure} {left} {comparison} as {right} within {margin}: {figures}."
    if case.equal:
        return f"{measure} is exactly the same {left} and {right}, in all {_sample(case)}."
    if verdict.verdict == "open":
        why = "which may be chance"
        if case.sample_size < 2:
            why = f"and one {'seed' if case.paired else 'run'} is too few to tell"
        figures = _figures(case, verdict, low, high, n_tests)
        return f"the difference of {measure} {left} from that {right} is {number(difference)} ({figures}), {why}."
    larger, smaller = ("larger", "smaller") if difference > 0 else ("smaller", "larger")
    low, high = (low, high) if difference > 0 else (-high, -low)
    size = f"not {smaller} but {larger}" if verdict.verdict == "fails" else larger
    figures = _figures(case, verdict, low, high, n_tests)
    return f"{measure} is {size} {left} than {right} by {number(abs(difference))} ({figures})."


def _figures(case: _Case, verdict: Verdict, low: float, high: float, n_tests: int) -> str:
    interval = f"95 % interval {number(low)} to {number(high)}; " if np.isfinite([low, high]).all() else ""
    correction = f" over {n_tests:,} expectations" if n_tests > 1 else ""
    p = f"; Holm p {p_value(verdict.p_holm)}{correction}" if np.isfinite(verdict.p_holm) else ""
    return f"{interval}{_sample(case)}{p}"


def _sample(case: _Case) -> str:
    n = case.verdict.n
    if not case.paired:
        return f"{counted(n, 'run')} a side"
    return counted(n, "pair") + (f" of {counted(case.sample_size, 'seed')}" if case.sample_size != n else "")


def _gaps(case: _Case) -> str:
    missing = case.verdict.missing
    if not missing:
        return ""
    of_pairs = f"{missing:,} of {counted(case.verdict.n + missing, 'pair')}"
    amount = of_pairs if case.paired else counted(missing, "run")
    return f" {amount} {'is' if missing == 1 else 'are'} missing, and failed runs are not random."


def _where(side: Side) -> str:
    levels = " and ".join(Side(None, side.levels).text.split(", ")) if side.levels else ""
    if side.arm is None:
        return f"with {levels}"
    return f"in {side.arm}" + (f" with {levels}" if levels else "")


def number(value: float) -> str:
    """Return a number with three significant digits.

    >>> number(0.031415), number(-12345.6), number(2.0), number(0.0)
    ('0.0314', '-12,346', '2', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def p_value(p: float) -> str:
    """Return a p-value with its relation.

    >>> p_value(0.0412), p_value(0.00002), p_value(1.0)
    ('= .041', '< .001', '= 1')
    """
    if p < 0.001:
        return "< .001"
    return "= 1" if p > 0.9995 else f"= {p:.3f}".replace("0.", ".", 1)
