"""Verdicts on the expectations of a study, corrected for their number, and their sentences."""

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
class _TestedExpectation:
    """An expectation and its test.

    Attributes:
        verdict: Open, without a sentence and without Holm's correction.
        equivalence: The test of an equality; None with > and <.
        sample_size: Number of seeds, or of runs of the smaller side if seeds are not paired.
        equal: Whether all pairs are equal.
    """

    expected: Expectation
    verdict: Verdict
    equivalence: Equivalence | None
    sample_size: int
    equal: bool
    paired: bool


def verdicts(cells: Cells, expected: Sequence[Expectation]) -> tuple[tuple[Verdict, ...], pd.DataFrame]:
    """Return the verdicts on expectations, and the table `equivalence` (see `analysis.Analysis`)."""
    by_sides: dict[tuple[str, str], list[int]] = {}
    for index, expectation in enumerate(expected):
        by_sides.setdefault((expectation.left.text, expectation.right.text), []).append(index)
    tests: dict[int, _TestedExpectation] = {}
    for indices in by_sides.values():
        left, right = expected[indices[0]].left, expected[indices[0]].right
        averaged = [term for term in cells.terms if term not in dict((*left.terms, *right.terms))]
        measured = cells.select([expected[index].measure for index in indices])
        compared = compare(measured, _conditions(cells, left), _conditions(cells, right), averaged)
        tests |= {index: _test(expected[index], compared, column, cells.paired) for column, index in enumerate(indices)}
    tested = [tests[index] for index in range(len(expected))]
    p_holm_values = holm([test.verdict.p for test in tested])
    n_tests = int(np.isfinite(p_holm_values).sum())
    results = tuple(_decide(test, float(p), n_tests) for test, p in zip(tested, p_holm_values, strict=True))
    rows = [
        _equivalence_row(test.expected, verdict, test.equivalence)
        for test, verdict in zip(tested, results, strict=True)
        if test.equivalence
    ]
    return results, make_table(EQUIVALENCE, rows)


def _conditions(cells: Cells, side: Side) -> Bools:
    """Return which conditions belong to a side."""
    mask = np.ones(len(cells.conditions), bool)
    for term, level in side.terms:
        keys = [level_key(other) for other in cells.levels[term]]
        mask &= cells.has_level(term, keys.index(level_key(level)))
    return mask


def _test(expected: Expectation, compared: Comparison, column: int, paired: bool) -> _TestedExpectation:
    samples = tuple(sample[:, column] for sample in compared.samples)
    equal, right_mean = bool(compared.equal[column]), float(compared.right_mean[column])
    difference, p = float(compared.difference[column]), float(compared.p[column])
    test, equivalence = compared.test, None
    if expected.relation == "=":
        margin = (expected.margin or 0.0) * (abs(right_mean) / 100 if expected.percent else 1)
        equivalence = tost(samples, margin, scale=float(compared.scale[column]), identical=paired and equal)
        p = equivalence.p_beyond if equivalence.is_beyond else equivalence.p
        test = f"{test}, against the margin" if equivalence.is_beyond else f"two one-sided tests (TOST), each a {test}"
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
    return _TestedExpectation(expected, verdict, equivalence, sample_size, equal, paired)


def _decide(test: _TestedExpectation, p_holm: float, n_tests: int) -> Verdict:
    """Return the verdict after Holm's correction over `n_tests` expectations."""
    relation, verdict = test.expected.relation, replace(test.verdict, p_holm=p_holm)
    if test.equal and relation != "=":
        verdict = replace(verdict, verdict="fails")
    elif p_holm < ALPHA:
        is_larger = verdict.difference > 0
        holds = not test.equivalence.is_beyond if test.equivalence else is_larger == (relation == ">")
        verdict = replace(verdict, verdict="holds" if holds else "fails")
    sentence = f"{verdict.verdict.capitalize()}: {_describe_finding(test, verdict, n_tests)}{_describe_missing(test)}"
    return replace(verdict, sentence=sentence)


def _equivalence_row(expected: Expectation, verdict: Verdict, test: Equivalence) -> dict[str, Any]:
    return {
        "text": [expected.text],
        "measure": expected.measure,
        "left": expected.left.text,
        "right": expected.right.text,
        "n": verdict.n,
        "missing": verdict.missing,
        **{name: getattr(test, name) for name in ("margin", "low", "high", "p_low", "p_high", "p")},
        "p_apart": test.p_beyond,
        "p_holm": verdict.p_holm,
        "equivalent": verdict.p_holm < ALPHA and not test.is_beyond,
    }


def _describe_finding(test: _TestedExpectation, verdict: Verdict, n_tests: int) -> str:
    """Return the finding as a sentence, without the note on missing runs."""
    measure, left, right = (
        test.expected.measure,
        _describe_side(test.expected.left),
        _describe_side(test.expected.right),
    )
    difference, (low, high) = verdict.difference, verdict.interval
    if not verdict.n:
        return f"no runs are available to compare {measure} {left} and {right}."
    reversed_ = not test.equivalence and verdict.verdict != "open" and difference < 0
    low, high = (-high, -low) if reversed_ else (low, high)
    interval = f"95 % interval {number(low)} to {number(high)}; " if np.isfinite([low, high]).all() else ""
    correction = f" over {n_tests:,} expectations" if n_tests > 1 else ""
    p = f"; Holm p {p_value(verdict.p_holm)}{correction}" if np.isfinite(verdict.p_holm) else ""
    figures = f"{interval}{_describe_sample(test)}{p}"
    if test.equivalence:
        percent = f" ({number(test.expected.margin or 0.0)} % of the mean {right})" if test.expected.percent else ""
        uncertainty = "the runs cannot tell whether " if verdict.verdict == "open" else ""
        comparison = "is not the same" if verdict.verdict == "fails" else "is the same"
        margin = f"{number(test.equivalence.margin)}{percent}"
        finding = f"{uncertainty}{measure} {left} {comparison} as {right} within {margin}"
        return f"{finding}: the difference is {number(difference)} ({figures})."
    if test.equal:
        return f"{measure} is exactly the same {left} and {right}, in all {_describe_sample(test)}."
    if verdict.verdict == "open":
        reason = "which may be chance"
        if test.sample_size < 2:
            reason = f"and one {'seed' if test.paired else 'run'} is too few to tell"
        return f"the difference of {measure} {left} from that {right} is {number(difference)} ({figures}), {reason}."
    larger, smaller = ("larger", "smaller") if difference > 0 else ("smaller", "larger")
    comparison_text = f"not {smaller} but {larger}" if verdict.verdict == "fails" else larger
    return f"{measure} is {comparison_text} {left} than {right} by {number(abs(difference))} ({figures})."


def _describe_sample(test: _TestedExpectation) -> str:
    n = test.verdict.n
    if not test.paired:
        return f"{counted(n, 'run')} a side"
    return counted(n, "pair") + (f" of {counted(test.sample_size, 'seed')}" if test.sample_size != n else "")


def _describe_missing(test: _TestedExpectation) -> str:
    missing = test.verdict.missing
    if not missing:
        return ""
    pairs = f"{missing:,} of {counted(test.verdict.n + missing, 'pair')}"
    amount = pairs if test.paired else counted(missing, "run")
    return f" {amount} {'is' if missing == 1 else 'are'} missing, and failed runs are not random."


def _describe_side(side: Side) -> str:
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
