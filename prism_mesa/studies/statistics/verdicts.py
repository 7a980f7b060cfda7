"""Verdicts on the expectations of a study, corrected for the number of expectations, with sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from prism_mesa.arrays import Mask
from prism_mesa.errors import format_count
from prism_mesa.studies.statistics.cells import EQUIVALENCE, Cells, level_key, make_table
from prism_mesa.studies.statistics.comparisons import Comparison, compare
from prism_mesa.studies.statistics.expectation import Expectation, Side, Verdict
from prism_mesa.studies.statistics.significance import ALPHA, Equivalence, holm, tost


@dataclass(frozen=True)
class _TestedExpectation:
    """An expectation and its test.

    Attributes:
        verdict: An open verdict, without sentence and Holm's correction.
        equivalence: The test of an equality; None for > and <.
        sample_size: Number of seeds, or of runs on the smaller side if seeds are not paired.
        equal: Whether all pairs are equal.
    """

    expectation: Expectation
    verdict: Verdict
    equivalence: Equivalence | None
    sample_size: int
    equal: bool
    paired: bool


def verdicts(cells: Cells, expectations: Sequence[Expectation]) -> tuple[tuple[Verdict, ...], pd.DataFrame]:
    """Return the verdicts on expectations, and the table `equivalence` (see `analysis.Analysis`)."""
    indices_by_sides: dict[tuple[str, str], list[int]] = {}
    for index, expectation in enumerate(expectations):
        indices_by_sides.setdefault((expectation.left.text, expectation.right.text), []).append(index)
    tests: dict[int, _TestedExpectation] = {}
    for indices in indices_by_sides.values():
        left, right = expectations[indices[0]].left, expectations[indices[0]].right
        shared_terms = [term for term in cells.terms if term not in dict((*left.terms, *right.terms))]
        selected_cells = cells.select([expectations[index].measure for index in indices])
        comparison = compare(selected_cells, _side_mask(cells, left), _side_mask(cells, right), shared_terms)
        for column, index in enumerate(indices):
            tests[index] = _test(expectations[index], comparison, column, cells.paired)
    all_tests = [tests[index] for index in range(len(expectations))]
    p_holm_values = holm([test.verdict.p for test in all_tests])
    n_tests = int(np.isfinite(p_holm_values).sum())
    results = tuple(_decide(test, float(p), n_tests) for test, p in zip(all_tests, p_holm_values, strict=True))
    pairs = zip(all_tests, results, strict=True)
    rows = [
        _equivalence_row(test.expectation, verdict, test.equivalence) for test, verdict in pairs if test.equivalence
    ]
    return results, make_table(EQUIVALENCE, rows)


def _side_mask(cells: Cells, side: Side) -> Mask:
    mask = np.ones(len(cells.conditions), bool)
    for term, level in side.terms:
        keys = [level_key(other) for other in cells.levels[term]]
        mask &= cells.has_level(term, keys.index(level_key(level)))
    return mask


def _test(expectation: Expectation, comparison: Comparison, column: int, paired: bool) -> _TestedExpectation:
    samples = tuple(sample[:, column] for sample in comparison.samples)
    equal, right_mean = bool(comparison.equal[column]), float(comparison.right_mean[column])
    difference, p = float(comparison.difference[column]), float(comparison.p[column])
    test, equivalence = comparison.test, None
    if expectation.relation == "=":
        margin = (expectation.margin or 0.0) * (abs(right_mean) / 100 if expectation.percent else 1)
        equivalence = tost(samples, margin, scale=float(comparison.scale[column]), identical=paired and equal)
        p = equivalence.p_beyond if equivalence.is_beyond else equivalence.p
        test = f"{test}, against the margin" if equivalence.is_beyond else f"two one-sided tests (TOST), each a {test}"
    verdict = Verdict(
        text=expectation.text,
        verdict="open",
        difference=difference,
        interval=(float(comparison.low[column]), float(comparison.high[column])),
        p=p,
        p_holm=np.nan,
        n=int(comparison.n[column]),
        missing=int(comparison.missing[column]),
        test=test,
        sentence="",
        means=(right_mean + difference, right_mean),
    )
    sample_size = min(int(np.isfinite(sample).sum()) for sample in samples)
    return _TestedExpectation(expectation, verdict, equivalence, sample_size, equal, paired)


def _decide(test: _TestedExpectation, p_holm: float, n_tests: int) -> Verdict:
    relation, verdict = test.expectation.relation, replace(test.verdict, p_holm=p_holm)
    if test.equal and relation != "=":
        verdict = replace(verdict, verdict="fails")
    elif p_holm < ALPHA:
        is_larger = verdict.difference > 0
        holds = not test.equivalence.is_beyond if test.equivalence else is_larger == (relation == ">")
        verdict = replace(verdict, verdict="holds" if holds else "fails")
    sentence = f"{verdict.verdict.capitalize()}: {_describe_finding(test, verdict, n_tests)}{_describe_missing(test)}"
    return replace(verdict, sentence=sentence)


def _equivalence_row(expectation: Expectation, verdict: Verdict, test: Equivalence) -> dict[str, Any]:
    return {
        "text": [expectation.text],
        "measure": expectation.measure,
        "left": expectation.left.text,
        "right": expectation.right.text,
        "n": verdict.n,
        "missing": verdict.missing,
        **{name: getattr(test, name) for name in ("margin", "low", "high", "p_low", "p_high", "p")},
        "p_apart": test.p_beyond,
        "p_holm": verdict.p_holm,
        "equivalent": verdict.p_holm < ALPHA and not test.is_beyond,
    }


def _describe_finding(test: _TestedExpectation, verdict: Verdict, n_tests: int) -> str:
    """Return the finding as a sentence, without missing runs."""
    expected = test.expectation
    measure, left, right = expected.measure, _describe_side(expected.left), _describe_side(expected.right)
    difference, (low, high) = verdict.difference, verdict.interval
    if not verdict.n:
        return f"no runs are available to compare {measure} {left} and {right}."
    is_reversed = not test.equivalence and verdict.verdict != "open" and difference < 0
    low, high = (-high, -low) if is_reversed else (low, high)
    interval = f"95 % interval {number(low)} to {number(high)}; " if np.isfinite([low, high]).all() else ""
    correction = f" over {n_tests:,} expectations" if n_tests > 1 else ""
    p = f"; Holm p {p_value(verdict.p_holm)}{correction}" if np.isfinite(verdict.p_holm) else ""
    figures = f"{interval}{_describe_sample(test)}{p}"
    if test.equivalence:
        percent = f" ({number(expected.margin or 0.0)} % of the mean {right})" if expected.percent else ""
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
        finding = f"the difference of {measure} {left} from that {right} is {number(difference)}"
        return f"{finding} ({figures}), {reason}."
    larger, smaller = ("larger", "smaller") if difference > 0 else ("smaller", "larger")
    comparison_text = f"not {smaller} but {larger}" if verdict.verdict == "fails" else larger
    return f"{measure} is {comparison_text} {left} than {right} by {number(abs(difference))} ({figures})."


def _describe_sample(test: _TestedExpectation) -> str:
    n = test.verdict.n
    if not test.paired:
        return f"{format_count(n, 'run')} a side"
    return format_count(n, "pair") + (f" of {format_count(test.sample_size, 'seed')}" if test.sample_size != n else "")


def _describe_missing(test: _TestedExpectation) -> str:
    missing = test.verdict.missing
    if not missing:
        return ""
    pairs = f"{missing:,} of {format_count(test.verdict.n + missing, 'pair')}"
    amount = pairs if test.paired else format_count(missing, "run")
    return f" {amount} {'is' if missing == 1 else 'are'} missing, and failed runs are not random."


def _describe_side(side: Side) -> str:
    levels = " and ".join(Side(None, side.levels).text.split(", ")) if side.levels else ""
    if side.arm is None:
        return f"with {levels}"
    return f"in {side.arm}" + (f" with {levels}" if levels else "")


def number(value: float) -> str:
    """Return a number as text with three significant digits.

    >>> number(0.031415), number(-12345.6), number(2.0), number(0.0)
    ('0.0314', '-12,346', '2', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def p_value(p: float) -> str:
    """Return a p-value as text, with ``=`` or ``<``.

    >>> p_value(0.0412), p_value(0.00002), p_value(1.0)
    ('= .041', '< .001', '= 1')
    """
    if p < 0.001:
        return "< .001"
    return "= 1" if p > 0.9995 else f"= {p:.3f}".replace("0.", ".", 1)
