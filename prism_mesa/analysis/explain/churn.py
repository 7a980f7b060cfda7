"""When an agent came to the platform and left it, in words: of the rows of table `churn`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prism_mesa.social.model import SocialModel

_DID: Final = {"join": "joined", "leave": "left", "back": "came back", "removed": "was removed"}


@dataclass(frozen=True)
class Turn:
    """A row of the table `churn`, with the draw that led to it and what it lay below."""

    round: int
    event: str
    draw: float
    chance: float


def turns_of(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield those of some rows of `churn`, as they are recorded, that are of an agent."""
    own = np.flatnonzero(columns["agent"] == row)
    churn = model.params.agents.churn
    chances = {"join": churn.join, "leave": churn.leave, "back": churn.back}
    for round_, event in zip(columns["round"][own].tolist(), np.asarray(columns["event"])[own].tolist(), strict=True):
        draw = float(model.streams.uniform("churn", row, round_=round_)[0])
        yield Turn(round_, event, draw, chances.get(event, 0.0))


def turn_lines(model: SocialModel, turns: list[Turn], rounds_there: int) -> Iterator[str]:
    """Yield when an agent came and went, and in how many rounds it was there; nothing where nobody does."""
    if not model.params.has_churn:
        return
    told = [f"{_DID[one.event]} as round {one.round} opened{_why(one)}" for one in turns]
    if not turns and not rounds_there:
        told = ["waited to join"]
    there = f"It was there in {rounds_there} of {model.round + 1} rounds"
    yield f"{there}: it {', '.join(told)}." if told else f"{there}."


def _why(one: Turn) -> str:
    return "" if one.event == "removed" else f" (its draw {one.draw:.3g} lay below {one.chance:g})"
