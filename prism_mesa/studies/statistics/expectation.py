"""Expectations (`MEASURE: LEFT > RIGHT`) and verdicts on them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from prism_mesa.errors import ConfigError, counted, did_you_mean
from prism_mesa.params import shown
from prism_mesa.studies.params import parse_value
from prism_mesa.studies.statistics.cells import level_key, level_text

ALL: Final = "all"  # the only arm of a study without arms; no side can name it

_FORM: Final = (
    "write MEASURE: LEFT > RIGHT, MEASURE: LEFT < RIGHT or MEASURE: LEFT = RIGHT within 25 %; "
    "a side is an arm, or levels as in feed.mode=x_algo"
)
_WITHIN: Final = re.compile(r"^(?P<sides>.*\S)\s+within\s+(?P<margin>\S+?)\s*(?P<percent>%?)$")
_UNEQUAL: Final = re.compile(r"(?<![<>=])[<>](?![<>=])")
_EQUAL: Final = re.compile(r"\s+=\s+")


@dataclass(frozen=True)
class Side:
    """Some conditions of a study.

    Attributes:
        levels: Factors and their levels there, as the study has them, in the order in which they were named.
    """

    arm: str | None
    levels: tuple[tuple[str, Any], ...]

    @property
    def text(self) -> str:
        """What one would write for it."""
        arms = [] if self.arm is None else [self.arm]
        return ", ".join(arms + [f"{factor}={level_text(level)}" for factor, level in self.levels])

    @property
    def terms(self) -> frozenset[str]:
        """What it names: `arm`, factors."""
        return frozenset([factor for factor, _ in self.levels] + ([] if self.arm is None else ["arm"]))


@dataclass(frozen=True)
class Expectation:
    """What a study expects of a measure.

    Attributes:
        relation: What the left side is expected to be: larger, smaller, or the same but for `margin`.
        margin: How far apart they may lie, in the measure's unit or, if `percent`, in percent of the right side's
            mean; None with `>` and `<`.
    """

    text: str
    measure: str
    left: Side
    relation: Literal[">", "<", "="]
    right: Side
    margin: float | None = None
    percent: bool = False


def parse_expectation(
    text: str, *, measures: Sequence[str], arms: Sequence[str], factors: Mapping[str, Sequence[Any]]
) -> Expectation:
    """Return what an expectation says.

    Args:
        text: ``MEASURE: LEFT > RIGHT``, ``<``, or ``MEASURE: LEFT = RIGHT within 25 %`` (of the right side's mean) or
            ``within 0.5`` (in the measure's unit). A measure's name may hold colons. A side is an arm, or levels
            of factors (``feed.mode=x_algo, posts.media_share=0.5``), or an arm with levels after it.
        measures: Those that the study takes.
        arms: Those of the study; none, or ("all",), if it has none.
        factors: Dotted key -> its levels.

    Raises:
        ConfigError: In one line, if it cannot be understood, or names what the study has not.

    >>> found = parse_expectation("gini: ranked > feed.size=5", measures=["gini"], arms=["ranked"],
    ...                           factors={"feed.size": [5, 10]})
    >>> found.left.text, found.relation, found.right.text
    ('ranked', '>', 'feed.size=5')
    """
    if not isinstance(text, str):
        raise ConfigError(f"expect: {shown(text)} is no text; {_FORM}")
    where = f"expect: {text.strip()!r}"
    measure, colon, rest = text.strip().rpartition(": ")
    if not colon:
        raise ConfigError(f"{where}: has no measure with a colon and a space; {_FORM}")
    measure = measure.strip()
    if measure not in measures:
        raise ConfigError(
            f"{where}: {measure!r} is no measure of this study ({_listed(measures)}).{did_you_mean(measure, measures)}"
        )
    left, relation, right, margin, percent = _split(rest.strip(), where)
    named = [arm for arm in arms if tuple(arms) != (ALL,)]
    sides = [_side(side, named, factors, where) for side in (left, right)]
    if sides[0].arm == sides[1].arm and dict(sides[0].levels) == dict(sides[1].levels):
        raise ConfigError(f"{where}: both sides are the same")
    return Expectation(text, measure, sides[0], relation, sides[1], margin, percent)


def _split(rest: str, where: str) -> tuple[str, Literal[">", "<", "="], str, float | None, bool]:
    """Return left side, relation, right side, margin, and whether that is in percent."""
    within = _WITHIN.match(rest)
    if within and not _UNEQUAL.search(rest):
        sides = _EQUAL.split(within["sides"])
        if len(sides) != 2:
            raise ConfigError(f"{where}: needs one ' = ' between two sides, and levels without blanks; {_FORM}")
        return sides[0], "=", sides[1], _margin(within["margin"], where), bool(within["percent"])
    found = _UNEQUAL.findall(rest)
    if len(found) != 1:
        fault = "has more than one operator" if found else "has no operator (>, <, =)"
        if not found and _EQUAL.search(rest):
            fault = "an equality needs its margin, as 'within 25 %'"
        raise ConfigError(f"{where}: {fault}; {_FORM}")
    left, _, right = rest.partition(found[0])
    return left.strip(), ">" if found[0] == ">" else "<", right.strip(), None, False


def _margin(text: str, where: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = float("nan")
    if not 0 < margin < float("inf"):
        raise ConfigError(f"{where}: within {text!r}: the margin has to be a number above 0")
    return margin


def _side(text: str, arms: Sequence[str], factors: Mapping[str, Sequence[Any]], where: str) -> Side:
    if not text:
        raise ConfigError(f"{where}: a side is empty; {_FORM}")
    if text in arms:
        return Side(text, ())
    arm, levels = None, {}
    for part in (one.strip() for one in text.split(",")):
        factor, equals, value = (piece.strip() for piece in part.partition("="))
        if part in arms and arm is None:
            arm = part
        elif not equals:
            raise ConfigError(f"{where}: {_unknown_arm(part, arms, factors)}")
        elif factor not in factors:
            known = _listed(factors) or "none vary"
            raise ConfigError(
                f"{where}: {factor!r} is no factor of this study ({known}).{did_you_mean(factor, factors)}"
            )
        elif factor in levels:
            raise ConfigError(f"{where}: a side names {factor} twice")
        else:
            levels[factor] = _level(factor, value, factors[factor], where)
    return Side(arm, tuple(levels.items()))


def _unknown_arm(part: str, arms: Sequence[str], factors: Mapping[str, Sequence[Any]]) -> str:
    if arms:
        return f"{part!r} is no arm of this study ({_listed(arms)}).{did_you_mean(part, arms)}"
    levels = ", ".join(f"{factor}={level_text(values[0])}" for factor, values in factors.items() if len(values))
    return f"{part!r} is no arm: this study has none; name levels of factors, as in {levels or 'key=value'}"


def _level(factor: str, text: str, levels: Sequence[Any], where: str) -> Any:
    """Return the level of a factor that a text means: what YAML reads from it, or what is written like it."""
    meant = level_key(parse_value(text))
    ways: tuple[Callable[[Any], bool], ...] = (
        lambda level: level_key(level) == meant,
        lambda level: level_text(level) == text,
        lambda level: isinstance(level, str) and level_key(parse_value(level)) == meant,  # in a table of several types
    )
    for same in ways:
        found = [level for level in levels if same(level)]
        if found:
            return found[0]
    known = [level_text(level) for level in levels]
    raise ConfigError(f"{where}: {factor} has no level {text!r} ({_listed(known)}).{did_you_mean(text, known)}")


def _listed(names: Iterable[str], most: int = 8) -> str:
    every = list(names)
    return ", ".join(every[:most]) + (f", ... {len(every)} in all" if len(every) > most else "")


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
    """The results for an expectation, from which its verdict and sentence are made.

    Fields are those of `Verdict`, and: `seeds`, the numbers that were tested (seeds, or runs of the smaller side);
    `equal`, whether all pairs are the same; `margin` and `beyond` of an equality; `family`, the expectations that
    Holm's correction covers.
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
