"""What became of an expectation, and how that is said."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from prism_mesa.errors import counted
from prism_mesa.studies.statistics.expectation import Expectation, Side

type Word = Literal["holds", "fails", "open"]


@dataclass(frozen=True)
class Verdict:
    """What became of an expectation.

    Attributes:
        text: As the study has it, verbatim.
        verdict: `holds`; `fails`: the opposite holds, or there is no difference at all; `open`: the runs cannot tell.
        difference: The mean paired difference left minus right, over all conditions and seeds.
        interval: Of 95 %, of that difference.
        p: Two-sided, of the test named in `test`; of an equality the larger of two one-sided ones, or, where the
            difference lies beyond the margin, that of its lying there.
        p_holm: The same, corrected for all expectations of the study (Holm).
        n: Pairs, or runs of the smaller side where they are not paired.
        missing: Pairs, or runs, that are not there.
        test: In words.
        sentence: The verdict in a sentence, with figures.
        means: Of the left and of the right side, over the pairs, or runs, that are there.
    """

    text: str
    verdict: Word
    difference: float
    interval: tuple[float, float]
    p: float
    p_holm: float
    n: int
    missing: int
    test: str
    sentence: str
    means: tuple[float, float] = (np.nan, np.nan)


@dataclass(frozen=True)
class Finding:
    """What the runs say of an expectation, before it is put into words.

    Attributes:
        expected: What was expected.
        difference: Left minus right.
        interval: Of 95 %.
        p: As in `Verdict`.
        p_holm: As in `Verdict`.
        n: As in `Verdict`.
        missing: As in `Verdict`.
        seeds: Numbers that were tested: seeds, or runs of the smaller side.
        equal: Whether all pairs are the same.
        margin: Of an equality, in the measure's unit.
        beyond: Of an equality, whether the difference lies beyond the margin.
        test: In words.
        paired: Whether seeds are paired.
        right_mean: The mean of the right side.
        family: How many expectations Holm's correction covers.
    """

    expected: Expectation
    difference: float
    interval: tuple[float, float]
    p: float
    p_holm: float
    n: int
    missing: int
    seeds: int
    equal: bool
    margin: float
    beyond: bool
    test: str
    paired: bool
    right_mean: float = np.nan
    family: int = 1


def decided(finding: Finding, alpha: float) -> Word:
    """Return the verdict."""
    clear = finding.p_holm < alpha  # never of one that is not a number
    if finding.equal and finding.expected.relation != "=":
        return "fails"
    if not clear:
        return "open"
    if finding.expected.relation == "=":
        return "fails" if finding.beyond else "holds"
    return "holds" if (finding.difference > 0) == (finding.expected.relation == ">") else "fails"


def sentence(finding: Finding, word: Word) -> str:
    """Return a verdict in words, with figures."""
    told = _told(finding, word)
    return f"{word.capitalize()}: {told}{_missing(finding)}"


def _told(finding: Finding, word: Word) -> str:
    expected = finding.expected
    left, right = _where(expected.left), _where(expected.right)
    if not finding.n:
        return f"no run is there that tells {expected.measure} {left} from {right}."
    if expected.relation == "=":
        return _told_of_equality(finding, word, left, right)
    if finding.equal:
        return f"{expected.measure} is exactly the same {left} and {right}, in all {_counted(finding)}."
    low, high = finding.interval
    if word == "open":
        apart = f"the difference of {expected.measure} {left} from that {right} is {number(finding.difference)}"
        why = "which the runs cannot tell from none"
        if finding.seeds < 2:
            why = f"and one {'seed' if finding.paired else 'run'} cannot tell"
        return f"{apart} ({_figures(finding, low, high)}), {why}."
    larger = finding.difference > 0
    low, high = (low, high) if larger else (-high, -low)
    is_not = f"not {'smaller' if larger else 'larger'} but " if word == "fails" else ""
    size = f"{is_not}{'larger' if larger else 'smaller'}"
    by = number(abs(finding.difference))
    return f"{expected.measure} is {size} {left} than {right} by {by} ({_figures(finding, low, high)})."


def _told_of_equality(finding: Finding, word: Word, left: str, right: str) -> str:
    expected = finding.expected
    of = f" ({number(expected.margin or 0.0)} % of the mean {right})" if expected.percent else ""
    within = f"within {number(finding.margin)}{of}"
    apart = f"the difference is {number(finding.difference)} ({_figures(finding, *finding.interval)})"
    unsure, is_ = "the runs cannot tell whether " * (word == "open"), "is not" if word == "fails" else "is"
    return f"{unsure}{expected.measure} {left} {is_} the same as {right} {within}: {apart}."


def _figures(finding: Finding, low: float, high: float) -> str:
    interval = f"95 % interval {number(low)} to {number(high)}; " if np.isfinite([low, high]).all() else ""
    family = f" over {finding.family:,} expectations" if finding.family > 1 else ""
    p = f"; Holm p {p_value(finding.p_holm)}{family}" if np.isfinite(finding.p_holm) else ""
    return f"{interval}{_counted(finding)}{p}"


def _counted(finding: Finding) -> str:
    if not finding.paired:
        return f"{counted(finding.n, 'run')} a side"
    seeds = f" of {counted(finding.seeds, 'seed')}" if finding.seeds != finding.n else ""
    return f"{counted(finding.n, 'pair')}{seeds}"


def _missing(finding: Finding) -> str:
    if not finding.missing:
        return ""
    of = f"{finding.missing:,} of {counted(finding.n + finding.missing, 'pair')}"
    what = of if finding.paired else counted(finding.missing, "run")
    are = "is" if finding.missing == 1 else "are"
    return f" {what} {are} missing, and failed runs are not random."


def _where(side: Side) -> str:
    levels = " and ".join(side.text.split(", ")[side.arm is not None :])
    if side.arm is None:
        return f"with {levels}"
    return f"in {side.arm}" + (f" with {levels}" if levels else "")


def number(value: float) -> str:
    """Return a number with three digits that count.

    >>> number(0.031415), number(-12345.6), number(2.0), number(0.0)
    ('0.0314', '-12,346', '2', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def p_value(p: float) -> str:
    """Return a p-value with its sign of relation.

    >>> p_value(0.0412), p_value(0.00002), p_value(1.0)
    ('= .041', '< .001', '= 1')
    """
    if p < 0.001:
        return "< .001"
    return "= 1" if p > 0.9995 else f"= {p:.3f}".replace("0.", ".", 1)
