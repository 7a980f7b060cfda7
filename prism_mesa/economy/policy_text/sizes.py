"""How far a clause moves an instrument, in a unit of it."""

from math import isclose
from typing import Literal, NamedTuple

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever, Unit, in_words
from prism_mesa.economy.policy_text.clauses import Clause
from prism_mesa.economy.policy_text.lexicon import DIRECTED, VERBS
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError, not_understood, quoted

_UNIT_EXAMPLES = "write 0.5 percentage points, 5%, or 1% of GDP"
_IN_GDP = "a change in percent of GDP or in percent, and a level in percent of GDP"
_UNITS_SAID: dict[Lever, str] = {
    "policy_rate": "a size in percentage points: give that",
    "tariff": "a size in percentage points: give that",
    "sanction": "a size in percent of trade",
    "spending": _IN_GDP,
    "taxes": _IN_GDP,
    "debt": _IN_GDP,
}


class Size(NamedTuple):
    """A size as written, and what else a clause says of it.

    Attributes:
        number: As written.
        unit: As that of a `Token`.
        after: The word before it: `by`, `to`, `at`, `from`, or empty.
        start: The level from which an instrument moves: "from 2%".
        step: By how much it moves to get there: "by 25 basis points to 3%".
    """

    number: float
    unit: str
    after: str = ""
    start: "Size | None" = None
    step: "Size | None" = None

    @property
    def level(self) -> float:
        """The number as a level: in percent, or percent of GDP."""
        return self.number / 100 if self.unit == "bp" else self.number


def size_of(clause: Clause) -> Size | None:
    """Return the one size of a clause, or None if it has none.

    Raises:
        UnclearPolicyError: With reason `sizes` if there are several, or `unit` if the number has none.
    """
    sizes = [
        Size(token.number, token.unit, _word_before(clause, at))
        for at, token in enumerate(clause.tokens)
        if token.kind in {"size", "number"}
    ]
    if not sizes:
        return None
    size = sizes[0]
    match [other.after for other in sizes]:
        case ["from", "to"]:
            size = sizes[1]._replace(start=sizes[0])
            sizes = [size]
        case ["by", "at" | "to" as after]:  # "by 25 basis points to 4.5%"
            if after == "to" and sizes[0].unit == sizes[1].unit:
                raise UnclearPolicyError("range", f"{quoted(clause.tokens)} gives a range: give one number")
            size = sizes[1]._replace(step=sizes[0])
            sizes = [size]
    if len(sizes) == 2 and not sizes[1].after and _same(*sizes):  # "by 50 basis points (0.5 percentage points)"
        sizes.pop()
    several = len(sizes) > 1 or size.after == "from"
    bare = not size.unit and size.number != 0
    if (several or bare) and clause.has("unknown"):
        raise not_understood(clause.tokens)
    if several:
        raise UnclearPolicyError("sizes", f"{quoted(clause.tokens)} gives several sizes: give one")
    if bare:
        raise UnclearPolicyError("unit", f"{quoted(clause.tokens)} gives a number without a unit: {_UNIT_EXAMPLES}")
    return size


def _same(one: Size, other: Size) -> bool:
    """Return whether two sizes are one, in basis points and in points."""
    points = [size.number / (100 if size.unit == "bp" else 1) for size in (one, other)]
    return {one.unit, other.unit} in ({"bp", "points"}, {"bp", "percent"}) and isclose(*points)


def _word_before(clause: Clause, at: int) -> str:
    for token in reversed(clause.tokens[:at]):
        if token.kind not in {"filler", "of", "more", "new"}:
            return token.kind if token.kind in {"by", "to", "at", "from"} else ""
    return ""


def moves(clause: Clause, size: Size | None, inherited: str) -> list[tuple[Lever, Literal["by", "to"], float, Unit]]:
    """Return how each instrument of a clause is moved, as `move` does.

    Raises:
        UnclearPolicyError: As `move`; with reason `unit` if the one size would be of different units.
    """
    found = [(lever, *move(lever, clause, size, inherited)) for lever in clause.levers]
    if len({unit for *_, unit in found}) > 1:  # 1% more of a rate is a point, of taxes a hundredth of them
        names = " and ".join(in_words(lever) for lever, *_ in found)
        message = f"one size for {names}, which have different units: give each its own"
        raise UnclearPolicyError("unit", f"{quoted(clause.tokens)}: {message}")
    return found


def move(lever: Lever, clause: Clause, size: Size | None, inherited: str) -> tuple[Literal["by", "to"], float, Unit]:
    """Return how an instrument is moved, the number, and its unit.

    Args:
        lever: The instrument.
        clause: What is said of it.
        size: The size in the clause.
        inherited: The direction of the clause before: `up`, `down` or empty.

    Raises:
        UnclearPolicyError: If the clause does not say which way or how far, or contradicts itself.
    """
    refuse_odd_words(lever, clause, size)
    if size is None:
        return "to", _level_without_number(lever, clause), "points"
    if clause.has("same") and size.after != "at":  # "do not change rates to 3%", but "rates unchanged at 3%"
        raise UnclearPolicyError("contradiction", f"{quoted(clause.tokens)} contradicts itself")
    direction = direction_of(lever, clause)
    if not direction and size.after == "by":
        direction = {"up": 1, "down": -1}.get(inherited, 0)
    if size.after in {"to", "at"} or (not size.after and not direction and _sets_level(lever, clause)):
        if size.start is not None and (size.level - size.start.level) * direction < 0:
            raise UnclearPolicyError("contradiction", f"{quoted(clause.tokens)} contradicts itself")
        return "to", *converted(lever, size, clause, level=True)
    number, unit = converted(lever, size, clause, level=False)
    if number < 0 and direction:
        raise UnclearPolicyError("contradiction", f"{quoted(clause.tokens)} contradicts itself: drop the minus sign")
    if number < 0 and size.after != "by":
        raise not_understood(clause.tokens)
    if number > 0 and not direction:
        message = f"{quoted(clause.tokens)} says neither up nor down: write raise, cut, or set to"
        raise UnclearPolicyError("direction", message)
    return "by", number * (direction or 1), unit


def direction_of(lever: Lever, clause: Clause) -> int:
    """Return 1 for up, -1 for down, 0 if a clause says neither."""
    if clause.has("up", "lift"):
        return 1
    if clause.has("down", "drop"):
        return -1
    new = clause.has("new") and lever not in AGAINST_NATIONS
    if clause.has("hold"):
        return 0
    return 1 if new or spends_on(clause) or clause.has("borrow", "stimulus", "more") else 0


def spends_on(clause: Clause) -> bool:
    """Return whether money is spent on something: "invest 2% of GDP in roads" comes on top of what is spent already."""
    return clause.has("spend") and clause.has("part") and not clause.has("hold")


def refuse_odd_words(lever: Lever, clause: Clause, size: Size | None) -> None:
    """Refuse words that do not go together with an instrument, or with each other.

    Raises:
        UnclearPolicyError: (not plain) If there are any.
    """
    down, up = clause.has("down", "drop"), clause.has("up", "lift")
    odd = (
        (up and down)
        or sum(token.kind in DIRECTED for token in clause.tokens) > 1  # "reduce the tax cut"
        or (clause.has("hold") and (up or down))
        or (clause.has("tight") and size and lever in {"spending", "taxes", "debt"})  # a tighter budget is smaller
        or (clause.has("stance") and (up or down) and not clause.has("tight"))
        or (clause.has("borrow") and (lever != "debt" or down or (size and size.after in {"to", "at"})))
        or (clause.has("repay") and lever != "debt")
        or (clause.has("remove", "block") and (size or up or down) and not _stops_trade(clause))
        or _starts_from_size(clause)
        or (clause.has("ratio") and lever not in {"spending", "taxes", "debt"})
        or (clause.has("part") and lever != "spending" and not clause.has("borrow"))
        or (clause.has("is") and not clause.has(*VERBS))  # "tariffs are 10%" tells how things are
    )
    if odd:
        raise not_understood(clause.tokens)


def _starts_from_size(clause: Clause) -> bool:
    """Return whether the size is where an instrument stands: "raise the 3% policy rate", "lift the 10% tariff"."""
    kinds = ["filler" if token.kind == "nation" else token.kind for token in clause.tokens]
    for at, token in enumerate(clause.tokens):
        after = next(
            (kind for kind in kinds[at + 1 :] if kind not in {"filler", "one_tax", "tax_rate", "part", "trade"}), ""
        )
        if token.kind == "size" and after in LEVERS and not clause.has("spend"):
            before = kinds[:at]
            if "lift" in before or (not DIRECTED.isdisjoint(before) and clause.tokens[at - 1].text.lower() == "the"):
                return True
    return False


def _stops_trade(clause: Clause) -> bool:
    """Return whether trade itself is stopped, not sanctions on it."""
    return clause.has("trade") and (clause.has("block") or (clause.has("remove") and not clause.has("sanction")))


def _sets_level(lever: Lever, clause: Clause) -> bool:
    """Return whether a size without "by" or "to" is a level: "a 10% tariff", "set a policy rate of 3%"."""
    return lever in AGAINST_NATIONS or clause.has("set") or (lever == "policy_rate" and clause.has("do"))


def _level_without_number(lever: Lever, clause: Clause) -> float:
    """Return 100 for all trade stopped, 0 for tariffs or sanctions lifted; nothing else is a size without a number."""
    if clause.has("block") and not clause.has("remove") and not _stops_trade(clause):
        raise not_understood(clause.tokens)
    if lever in AGAINST_NATIONS and not clause.has("up", "down", "unknown", "more"):
        if _stops_trade(clause):
            return 100.0
        if clause.has("remove", "lift", "drop"):
            return 0.0
        if clause.has("embargo"):
            return 100.0
    example = "30% of trade" if lever == "sanction" else "0.5 percentage points or 1% of GDP"
    raise UnclearPolicyError(
        "size", f"{quoted(clause.tokens)} does not say by how much: give a size, such as {example}"
    )


def converted(lever: Lever, size: Size, clause: Clause, *, level: bool) -> tuple[float, Unit]:
    """Return a size in a unit of the instrument.

    Raises:
        UnclearPolicyError: With reason `part` if it is a share of something that is not set on its own, or `unit`.
    """
    number = size.number / 100 if size.unit == "bp" else size.number
    if lever in AGAINST_NATIONS or lever == "policy_rate":
        if size.unit == "whole" and lever == "sanction" and level:
            return number * 100, "points"
        if size.unit in {"points", "bp", "percent"} or (level and number == 0):
            return number, "points"
    else:
        if clause.has("tax_rate") and size.unit != "gdp":
            message = "taxes are a share of GDP here and have no rate: say by how many percent of GDP they change"
            raise UnclearPolicyError("unit", f"{quoted(clause.tokens)}: {message}")
        if clause.has("one_tax") and (level or size.unit != "gdp"):
            message = f"{quoted(clause.tokens)}: there is one tax here: say by how many percent of GDP it changes"
            raise UnclearPolicyError("part", message)
        if clause.has("part", "stimulus") and (level or size.unit != "gdp"):
            message = (
                f"{quoted(clause.tokens)}: only all spending can be set: say by how many percent of GDP it changes"
            )
            raise UnclearPolicyError("part", message)
        in_gdp = size.unit == "gdp" or (not level and size.unit in {"points", "bp"})
        if in_gdp or (level and clause.has("ratio") and size.unit == "percent"):
            return number, "percent_of_gdp"
        if size.unit in {"percent", "whole"} and not (level or clause.has("ratio", "borrow")):
            return number * 100 if size.unit == "whole" else number, "percent"
    raise UnclearPolicyError("unit", f"{quoted(clause.tokens)}: {in_words(lever)} has {_UNITS_SAID[lever]}")
