"""Expectations (`MEASURE: LEFT > RIGHT`) and their verdicts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.params import shown
from prism_mesa.studies.params import parse_value
from prism_mesa.studies.statistics.cells import ARM, level_key, level_text

ALL: Final = "all"  # name of the only arm of a study without arms; sides cannot name it

_FORM: Final = (
    "write MEASURE: LEFT > RIGHT, MEASURE: LEFT < RIGHT or MEASURE: LEFT = RIGHT within 25 %; "
    "a side is an arm, or levels without blanks, as in feed.mode=x_algo"
)
_WITHIN: Final = re.compile(r"^(?P<sides>.*\S)\s+within\s+(?P<margin>\S+?)\s*(?P<percent>%?)$")
_UNEQUAL: Final = re.compile(r"(?<![<>=])[<>](?![<>=])")
_EQUAL: Final = re.compile(r"\s+=\s+")


@dataclass(frozen=True)
class Side:
    """A side of an expectation: some conditions of a study.

    Attributes:
        levels: Factors and their levels, as the study has them, in the order of the text.
    """

    arm: str | None
    levels: tuple[tuple[str, Any], ...]

    @property
    def named(self) -> tuple[tuple[str, Any], ...]:
        """The terms that it names, with their levels: the arm first."""
        return self.levels if self.arm is None else ((ARM, self.arm), *self.levels)

    @property
    def text(self) -> str:
        """The side as you would write it."""
        return ", ".join(level if term == ARM else f"{term}={level_text(level)}" for term, level in self.named)


@dataclass(frozen=True)
class Expectation:
    """An expectation about a measure.

    Attributes:
        relation: Whether the left side is larger, smaller, or equal up to `margin`.
        margin: In the measure's unit or, if `percent`, in percent of the right side's mean; None with `>` and `<`.
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
    """Read an expectation.

    Args:
        text: ``MEASURE: LEFT > RIGHT``, ``<``, or ``MEASURE: LEFT = RIGHT within 25 %`` (of the right side's mean) or
            ``within 0.5`` (in the measure's unit). A measure's name may hold colons. A side is an arm, or levels
            of factors (``feed.mode=x_algo, posts.media_share=0.5``), or an arm with levels after it.
        measures: The measures of the study.
        arms: Its arms; none, or ("all",), if it has none.
        factors: Dotted key -> its levels.

    Raises:
        ConfigError: If it cannot be read, or names something that the study lacks.

    >>> parsed = parse_expectation("gini: ranked > feed.size=5", measures=["gini"], arms=["ranked"],
    ...                            factors={"feed.size": [5, 10]})
    >>> parsed.left.text, parsed.relation, parsed.right.text
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
        raise _unknown(where, measure, "is no measure of this study", measures)
    left, relation, right, margin, percent = _split(rest.strip(), where)
    named = [arm for arm in arms if tuple(arms) != (ALL,)]
    sides = [_side(side, named, factors, where) for side in (left, right)]
    if sides[0].arm == sides[1].arm and dict(sides[0].levels) == dict(sides[1].levels):
        raise ConfigError(f"{where}: both sides are the same")
    return Expectation(text, measure, sides[0], relation, sides[1], margin, percent)


def _split(rest: str, where: str) -> tuple[str, Literal[">", "<", "="], str, float | None, bool]:
    """Return left side, relation, right side, margin, and whether the margin is in percent."""
    operators, within = _UNEQUAL.findall(rest), _WITHIN.match(rest)
    if len(operators) == 1:
        left, operator, right = rest.partition(operators[0])
        return left.strip(), ">" if operator == ">" else "<", right.strip(), None, False
    sides = _EQUAL.split(within["sides"]) if within and not operators else []
    if within and len(sides) == 2:
        return sides[0], "=", sides[1], _margin(within["margin"], where), bool(within["percent"])
    raise ConfigError(f"{where}: has no relation, or more than one; {_FORM}")


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
    for part in map(str.strip, text.split(",")):
        factor, equals, value = map(str.strip, part.partition("="))
        if part in arms and arm is None:
            arm = part
        elif not equals and arms:
            raise _unknown(where, part, "is no arm of this study", arms)
        elif not equals:
            known = [f"{factor}={level_text(values[0])}" for factor, values in factors.items() if len(values)]
            raise _unknown(where, part, "is no arm: this study has none; name levels of factors", known)
        elif factor not in factors:
            raise _unknown(where, factor, "is no factor of this study", factors)
        elif factor in levels:
            raise ConfigError(f"{where}: a side names {factor} twice")
        else:
            levels[factor] = _level(factor, value, factors[factor], where)
    return Side(arm, tuple(levels.items()))


def _level(factor: str, text: str, levels: Sequence[Any], where: str) -> Any:
    """Return the level of a factor that a text means: what YAML reads from it, or a level that is written like it."""
    meant = level_key(parse_value(text))
    ways: tuple[Callable[[Any], bool], ...] = (
        lambda level: level_key(level) == meant,
        lambda level: level_text(level) == text,
        lambda level: isinstance(level, str) and level_key(parse_value(level)) == meant,  # in a column of several types
    )
    for same in ways:
        for level in levels:
            if same(level):
                return level
    raise _unknown(where, text, f"is no level of {factor}", [level_text(level) for level in levels])


def _unknown(where: str, name: str, fault: str, known: Iterable[str], most: int = 8) -> ConfigError:
    names = list(known)
    listed = ", ".join(names[:most]) + (f", ... {len(names)} in all" if len(names) > most else "")
    return ConfigError(f"{where}: {name!r} {fault} ({listed or 'there is none'}).{did_you_mean(name, names)}")


@dataclass(frozen=True)
class Verdict:
    """The verdict on an expectation.

    Attributes:
        text: The expectation, verbatim.
        verdict: `holds`; `fails`: the opposite holds, or there is no difference at all; `open`: the runs cannot tell.
        difference: The mean of left minus right over all pairs of conditions and seeds.
        interval: The 95 % interval of that difference.
        p: Two-sided, of `test`; for an equality the larger of two one-sided p-values, or, if the difference lies
            beyond the margin, the p of that.
        p_holm: p after Holm's correction over all expectations of the study.
        n: Number of pairs, or of runs of the smaller side if they are not paired.
        missing: Pairs, or runs, that are missing.
        test: The name of the test.
        sentence: The verdict as a sentence with figures.
        means: The means of the left and of the right side.
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
    means: tuple[float, float] = (np.nan, np.nan)
