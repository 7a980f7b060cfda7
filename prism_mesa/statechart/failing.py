"""Guards that raised while a chart was fired, put together by guard."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from prism_mesa.statechart.transitions import Transition

type Kind = tuple[Transition, str]
"""A transition, and the kind of error that its guard raised, by its full name."""


@dataclass(frozen=True)
class FailingGuard:
    """A guard that raised.

    Attributes:
        transition: Whose guard.
        times: How often, at least 1.
        every_time: Whether it has never given a value: then `times` is how often it was asked.
        errors: What it raised, each kind once, with the first message.
        first: Which agent it raised for first, when, and on which line of the user's code.
    """

    transition: Transition
    times: int
    every_time: bool
    errors: tuple[str, ...]
    first: str = ""

    def __str__(self) -> str:
        often = f"each of the {self.times:,} times that it was asked" if self.every_time else f"{self.times:,} times"
        first = f", first for {self.first}" if self.first else ""
        return f"the guard of {self.transition} raised {often} ({'; '.join(self.errors)}){first}"


def failing_guards(
    transitions: Iterable[Transition],
    untried: Container[Transition],
    first: Mapping[Kind, str],
    raised: Mapping[Kind, int],
    places: Mapping[Transition, str],
) -> list[FailingGuard]:
    """Return the guards that raised, in the order of the chart's list.

    Args:
        transitions: Those of the chart.
        untried: Those whose guards have given no value so far.
        first: What each kind of error of a guard said first, behind the transition's own text.
        raised: How often each kind came.
        places: Where each one raised first, in words.
    """
    found = []
    for transition in dict.fromkeys(transitions):
        kinds = [kind for kind in raised if kind[0] == transition]
        if kinds:
            said = tuple(first[kind].removeprefix(f"{transition}: ") for kind in kinds)
            times = sum(raised[kind] for kind in kinds)
            found.append(FailingGuard(transition, times, transition in untried, said, places.get(transition, "")))
    return found
