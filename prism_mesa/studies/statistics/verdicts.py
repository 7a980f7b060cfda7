"""Verdicts on the expectations of a study, corrected for how many there are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from prism_mesa.studies.statistics.cells import ARM, EQUIVALENCE, Bools, Cells, level_key, make_table
from prism_mesa.studies.statistics.comparisons import Comparison, compare
from prism_mesa.studies.statistics.expectation import Expectation, Finding, Side, Verdict, decided, sentence
from prism_mesa.studies.statistics.significance import ALPHA, Equivalence, holm, tost


def verdicts(cells: Cells, expected: Sequence[Expectation]) -> tuple[tuple[Verdict, ...], pd.DataFrame]:
    """Return a verdict on each expectation, and the table `equivalence` (see `analysis.Analysis`)."""
    findings: dict[int, Finding] = {}
    tests: dict[int, Equivalence] = {}
    for places in _by_sides(expected):
        first = expected[places[0]]
        over = [term for term in cells.terms if term not in first.left.terms | first.right.terms]
        measured = cells.of([expected[place].measure for place in places])
        compared = compare(measured, _conditions(cells, first.left), _conditions(cells, first.right), over)
        for column, place in enumerate(places):
            if expected[place].relation == "=":
                tests[place] = _equivalence(expected[place], compared, column, cells.paired)
            findings[place] = _finding(expected[place], compared, column, tests.get(place), cells.paired)
    ordered = [findings[place] for place in range(len(expected))]
    corrected = holm([finding.p for finding in ordered])
    family = int(np.isfinite(corrected).sum())
    ordered = [replace(f, p_holm=float(p), family=family) for f, p in zip(ordered, corrected, strict=True)]
    rows = [_equivalence_row(ordered[place], test) for place, test in sorted(tests.items())]
    return tuple(map(_verdict, ordered)), make_table(EQUIVALENCE, rows)


def _by_sides(expected: Sequence[Expectation]) -> list[list[int]]:
    """Return the places of expectations, those with the same two sides together."""
    together: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(expected):
        together.setdefault((one.left.text, one.right.text), []).append(place)
    return list(together.values())


def _conditions(cells: Cells, side: Side) -> Bools:
    """Return for each condition whether it is of a side."""
    named = [*side.levels] if side.arm is None else [(ARM, side.arm), *side.levels]
    of = np.ones(len(cells.conditions), bool)
    for term, level in named:
        keys = [level_key(one) for one in cells.levels[term]]
        of &= cells.at(term, keys.index(level_key(level)))
    return of


def _equivalence(expected: Expectation, compared: Comparison, column: int, paired: bool) -> Equivalence:
    margin = expected.margin or 0.0
    if expected.percent:
        margin *= abs(float(compared.right_mean[column])) / 100
    samples = tuple(sample[:, column] for sample in compared.samples)
    identical = paired and bool(compared.equal[column])
    return tost(samples, margin, scale=float(compared.scale[column]), identical=identical)


def _finding(
    expected: Expectation, compared: Comparison, column: int, test: Equivalence | None, paired: bool
) -> Finding:
    return Finding(
        expected=expected,
        difference=float(compared.difference[column]),
        interval=(float(compared.low[column]), float(compared.high[column])),
        p=(test.p_apart if test.beyond else test.p) if test else float(compared.p[column]),
        p_holm=np.nan,
        n=int(compared.n[column]),
        missing=int(compared.missing[column]),
        seeds=min(int(np.isfinite(sample[:, column]).sum()) for sample in compared.samples),
        equal=bool(compared.equal[column]),
        margin=test.margin if test else np.nan,
        beyond=test.beyond if test else False,
        test=_named(test, compared.test),
        paired=paired,
        right_mean=float(compared.right_mean[column]),
    )


def _named(test: Equivalence | None, kind: str) -> str:
    if not test:
        return kind
    return f"{kind}, against the margin" if test.beyond else f"two one-sided tests (TOST), each a {kind}"


def _verdict(found: Finding) -> Verdict:
    word = decided(found, ALPHA)
    return Verdict(
        text=found.expected.text,
        verdict=word,
        difference=found.difference,
        interval=found.interval,
        p=found.p,
        p_holm=found.p_holm,
        n=found.n,
        missing=found.missing,
        test=found.test,
        sentence=sentence(found, word),
        means=(found.right_mean + found.difference, found.right_mean),
    )


def _equivalence_row(found: Finding, test: Equivalence) -> dict[str, Any]:
    return {
        "text": [found.expected.text],
        "measure": found.expected.measure,
        "left": found.expected.left.text,
        "right": found.expected.right.text,
        "n": found.n,
        "missing": found.missing,
        "margin": test.margin,
        "low": test.low,
        "high": test.high,
        "p_low": test.p_low,
        "p_high": test.p_high,
        "p": test.p,
        "p_apart": test.p_apart,
        "p_holm": found.p_holm,
        "equivalent": found.p_holm < ALPHA and not test.beyond,
    }
