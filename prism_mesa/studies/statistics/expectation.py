"""Expectations (`MEASURE: LEFT > RIGHT`) and their verdicts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.params import short_repr
from prism_mesa.studies.params import parse_value
from prism_mesa.studies.statistics.cells import ARM, level_key, level_text

ALL: Final = "all"  # the arm of a study without arms; expectations cannot name it

_FORM: Final = (
    "write MEASURE: LEFT > RIGHT, MEASURE: LEFT < RIGHT or MEASURE: LEFT = RIGHT within 25 %; "
    "a side is an arm, or levels without blanks, as in feed.mode=x_algo"
)
_WITHIN: Final = re.compile(r"^(?P<sides>.*\S)\s+within\s+(?P<margin>\S+?)\s*(?P<percent>%?)$")
_UNEQUAL: Final = re.compile(r"(?<![<>=])[<>](?![<>=])")
_EQUAL: Final = re.compile(r"\s+=\s+")


@dataclass(frozen=True)
class Side:
    """A side of an expectation: an arm, levels of factors, or both."""

    arm: str | None
    levels: tuple[tuple[str, Any], ...]

    @property
    def terms(self) -> tuple[tuple[str, Any], ...]:
        """The terms with their levels; the arm comes first."""
        return self.levels if self.arm is None else ((ARM, self.arm), *self.levels)

    @property
    def text(self) -> str:
        """The side as users write it."""
        return ", ".join(level if term == ARM else f"{term}={level_text(level)}" for term, level in self.terms)


@dataclass(frozen=True)
class Expectation:
    """An expectation; `margin` is in the measure's unit, or in percent of the right mean; None for `>` and `<`."""

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
    """Parse an expectation; raise ConfigError if the text cannot be read or does not fit the study.

    The text is ``MEASURE: LEFT > RIGHT``, ``<``, or ``MEASURE: LEFT = RIGHT within 25 %`` (of the right side's mean) or
    ``within 0.5`` (in the measure's unit). A side is an arm, or levels of factors (``feed.mode=x_algo,
    posts.media_share=0.5``), or an arm followed by levels. `factors` has the levels of each factor.

    >>> parsed = parse_expectation("gini: ranked > feed.size=5", measures=["gini"], arms=["ranked"],
    ...                            factors={"feed.size": [5, 10]})
    >>> parsed.left.text, parsed.relation, parsed.right.text
    ('ranked', '>', 'feed.size=5')
    """
    if not isinstance(text, str):
        raise ConfigError(f"expect: {short_repr(text)} is not a string; {_FORM}")
    where = f"expect: {text.strip()!r}"
    measure, colon, relation_text = text.strip().rpartition(": ")
    if not colon:
        raise ConfigError(f"{where}: has no measure with a colon and a space; {_FORM}")
    measure = measure.strip()
    if measure not in measures:
        raise _unknown_name_error(where, measure, "is not a measure of this study", measures)
    left, relation, right, margin, percent = _split_relation(relation_text.strip(), where)
    arms = [arm for arm in arms if tuple(arms) != (ALL,)]
    sides = [_parse_side(side, arms, factors, where) for side in (left, right)]
    if sides[0].arm == sides[1].arm and dict(sides[0].levels) == dict(sides[1].levels):
        raise ConfigError(f"{where}: both sides are the same")
    return Expectation(text, measure, sides[0], relation, sides[1], margin, percent)


def _split_relation(relation_text: str, where: str) -> tuple[str, Literal[">", "<", "="], str, float | None, bool]:
    """Return left side, relation, right side, margin, and whether the margin is a percentage."""
    operators, margin_match = _UNEQUAL.findall(relation_text), _WITHIN.match(relation_text)
    if len(operators) == 1:
        left, operator, right = relation_text.partition(operators[0])
        return left.strip(), ">" if operator == ">" else "<", right.strip(), None, False
    sides = _EQUAL.split(margin_match["sides"]) if margin_match and not operators else []
    if margin_match and len(sides) == 2:
        return sides[0], "=", sides[1], _parse_margin(margin_match["margin"], where), bool(margin_match["percent"])
    raise ConfigError(f"{where}: give exactly one relation; {_FORM}")


def _parse_margin(text: str, where: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = float("nan")
    if not 0 < margin < float("inf"):
        raise ConfigError(f"{where}: within {text!r}: the margin must be a number above 0")
    return margin


def _parse_side(text: str, arms: Sequence[str], factors: Mapping[str, Sequence[Any]], where: str) -> Side:
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
            raise _unknown_name_error(where, part, "is not an arm of this study", arms)
        elif not equals:
            known = [f"{factor}={level_text(values[0])}" for factor, values in factors.items() if len(values)]
            raise _unknown_name_error(where, part, "is not a level, and this study has no arms", known)
        elif factor not in factors:
            raise _unknown_name_error(where, factor, "is not a factor of this study", factors)
        elif factor in levels:
            raise ConfigError(f"{where}: a side names {factor} twice")
        else:
            levels[factor] = _find_level(factor, value, factors[factor], where)
    return Side(arm, tuple(levels.items()))


def _find_level(factor: str, text: str, levels: Sequence[Any], where: str) -> Any:
    """Return the level of a factor with the same YAML value as a text, or else with the same text."""
    key = level_key(parse_value(text))
    tests: tuple[Callable[[Any], bool], ...] = (
        lambda level: level_key(level) == key,
        lambda level: level_text(level) == text,
        lambda level: isinstance(level, str) and level_key(parse_value(level)) == key,  # in a column of several types
    )
    for is_match in tests:
        if matches := [level for level in levels if is_match(level)]:
            return matches[0]
    raise _unknown_name_error(where, text, f"is not a level of {factor}", [level_text(level) for level in levels])


def _unknown_name_error(where: str, name: str, fault: str, known: Iterable[str], limit: int = 8) -> ConfigError:
    names = list(known)
    names_text = ", ".join(names[:limit]) + (f", ... {len(names)} in all" if len(names) > limit else "")
    return ConfigError(f"{where}: {name!r} {fault} ({names_text or 'it has none'}).{did_you_mean(name, names)}")


@dataclass(frozen=True)
class Verdict:
    """The verdict on an expectation.

    Attributes:
        text: The expectation, verbatim.
        verdict: `holds`; `fails` if the opposite holds, or if there is no difference at all; `open` if the runs cannot
            tell.
        difference: The mean of left minus right over all pairs of conditions and seeds.
        interval: The 95 % interval of the difference.
        p: Two-sided p of `test`. For an equality, the larger of two one-sided p-values, or the p of a difference beyond
            the margin if the difference lies there.
        p_holm: p after Holm's correction over all expectations of the study.
        n: Number of pairs, or of runs on the smaller side if seeds are not paired.
        missing: Number of missing pairs or runs.
        sentence: The verdict as a sentence with numbers.
        means: The means of the left and the right side.
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
