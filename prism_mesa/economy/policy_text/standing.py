"""Whether what a text says of where an instrument stands is so."""

from collections.abc import Iterator, Mapping
from typing import Final

from prism_mesa.economy.policy import ROUNDING, Lever, Measure, in_words, moved
from prism_mesa.economy.policy_text.clauses import Clause
from prism_mesa.economy.policy_text.lexicon import DIRECTED
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError, quoted
from prism_mesa.economy.policy_text.sizes import Size, converted, direction_of

type Standing = Mapping[tuple[Lever, str | None], float]
"""Where a nation's instruments stand, by instrument and target: budgets and debt in percent of GDP, all others in
percent."""

_ROUNDING_OF_DEBT: Final = 0.51
"""Instead of `ROUNDING`: nations are told debts without decimals."""


def refuse_disagreement(measure: Measure, size: Size | None, clause: Clause, standing: Standing | None) -> None:
    """Refuse a clause that says more than where its instrument goes, unless all it says agrees.

    "By 25 basis points to 3%" agrees if the rate stands at 2.75%, "from 2% to 3%" if at 2%, "unchanged at 3%" if at
    3%; "raise to 3%" does not agree if it stands above.

    Args:
        measure: What is read out of the clause.
        size: The size in it.
        clause: What is said.
        standing: Where instruments stand; None, or without the measure's: it is not known.

    Raises:
        UnclearPolicyError: With reason `sizes`, also for two sizes if it is not known where the instrument stands;
            `contradiction` if it goes another way than the words say.
    """
    if size is None:
        return
    name = in_words(measure.lever)
    now = None if standing is None else standing.get((measure.lever, measure.target))
    if now is None:
        if size.start is not None or size.step is not None:
            message = f"gives two sizes, and where it stands is not known here ({name}): give one"
            raise UnclearPolicyError("sizes", f"{quoted(clause.tokens)} {message}")
        return
    rounding = _ROUNDING_OF_DEBT if measure.lever == "debt" else ROUNDING
    stands = f"where it stands ({name} {now:.4g})"
    if any(abs(said - so) > rounding for said, so in _claims(measure, size, clause, now)):
        raise UnclearPolicyError("sizes", f"{quoted(clause.tokens)}: the sizes do not agree with {stands}: give one")
    step = measure.size - now if measure.how == "to" else 0.0
    wrong_way = clause.has(*DIRECTED) and step * direction_of(measure.lever, clause) < -rounding
    if wrong_way or (clause.has("hold", "same") and abs(step) > rounding):
        raise UnclearPolicyError("contradiction", f"{quoted(clause.tokens)} contradicts {stands}")


def _claims(measure: Measure, size: Size, clause: Clause, now: float) -> Iterator[tuple[float, float]]:
    """Yield each level that a clause says beside where its instrument goes, and the level that it would have to be."""
    if size.start is not None:
        yield size.start.level, now
    if size.step is not None:
        number, unit = converted(measure.lever, size.step, clause, level=False)
        number = abs(number) * (direction_of(measure.lever, clause) or (-1 if number < 0 else 1))
        yield moved(now, number, unit), measure.size
