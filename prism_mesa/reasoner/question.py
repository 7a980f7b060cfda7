"""What an oracle is given and what it gives back: plain, frozen, and free of live agents."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import TRAIT_MEANS, Post
from prism_mesa.llm.params import Source
from prism_mesa.statechart import AgentState


@dataclass(frozen=True)
class Persona:
    """Who is asked.

    Attributes:
        interests: Words, strongest first.
        personality: One sentence, for prompts.
        traits: Big Five on 1..5, in the order of `domain.BIG_FIVE`.
        propensities: Shares of like, reply and reshare among its engagements; they add up to 1.
        low: Relevance below which the agent ignores a post, 0..1.
        high: Relevance above which it engages.
        archetype: Which archetype stands for it in the prompt; -1 if it speaks for itself. Name,
            interests and personality are then those of the archetype, all numbers remain the agent's own.
    """

    name: str
    interests: tuple[str, ...] = ()
    personality: str = ""
    traits: tuple[float, ...] = TRAIT_MEANS
    propensities: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    low: float = 0.4
    high: float = 0.6
    archetype: int = -1


@dataclass(frozen=True)
class Question:
    """An open choice of one agent.

    Attributes:
        options: States to choose from, in the chart's order.
        history: The last few changes of state, oldest first, as ``idle -> scrolling (feed_ready)``.
        match: How near the post is to the nearest of the interests that are told of the agent, -1..1; 0 where nobody
            knows. It stands in no prompt: a distilled model goes by it.
    """

    persona: Persona
    state: AgentState
    trigger: str
    options: tuple[AgentState, ...]
    post: Post | None = None
    history: tuple[str, ...] = ()
    match: float = 0.0


@dataclass(frozen=True)
class PlacedQuestion:
    """A question with its place in the run and the agent's own keyed draw in [0, 1).

    Attributes:
        followers: Number of agents that follow the one who decides; a budget may go to the most followed first.
        llm: The agent's LLM if there are several; empty if one LLM serves all.
    """

    question: Question
    round: int = 0
    tick: int = 0
    agent: int = -1
    draw: float = 0.5
    followers: int = 0
    llm: str = ""


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        choice: One of the options; None stays in the state (only the fallback `stay` does).
        source: Who gave it. A fallback is an answer no LLM gave although one was asked; with `budget` none
            could be asked any more.
        reason: Why it is a fallback, in one word; else empty.
        attempts: How often the LLM was asked.
        key: The ledger's key of the answer; empty if no LLM was concerned.
        probabilities: What each option was given (a plain choice: 1 to one of them); empty with a fallback.
    """

    choice: AgentState | None
    source: Source
    reason: str = ""
    attempts: int = 0
    key: str = ""
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True)
class OpenChoices:
    """The open choices of many agents that share their options, as columns; arrays of one length n.

    Attributes:
        relevance: Of the post at hand, 0..1, float64; `utility` what it is worth to the agent.
        low: Lower end of the agent's band; `high` the upper end.
        velocity: The post's velocity, whole number.
        media: Whether the post has media (`Post.has_media`), boolean.
        traits: Big Five, 1..5, shape (n, 5).
        propensities: Shares of like, reply, reshare, shape (n, 3).
        draws: The agents' keyed draws in [0, 1).
    """

    options: tuple[AgentState, ...]
    relevance: npt.NDArray[np.float64]
    utility: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    velocity: npt.NDArray[np.int64]
    media: npt.NDArray[np.bool_]
    traits: npt.NDArray[np.float64]
    propensities: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]


@dataclass(frozen=True)
class DetailedChoices(OpenChoices):
    """Open choices with all that a distilled model looks at; without a post everything of it is 0.

    Attributes:
        match: As `Question.match`, float64.
        likes: Of the post's root, whole number; so `replies` and `reshares`.
        kind: What the post is, as an index into `domain.POST_KINDS`.
    """

    match: npt.NDArray[np.float64]
    likes: npt.NDArray[np.int64]
    replies: npt.NDArray[np.int64]
    reshares: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]

    @classmethod
    def of(cls, choices: OpenChoices, match: npt.NDArray[np.float64], post: Callable[[str], Any]) -> Self:
        """Return open choices with their details; `post` gives the whole numbers of the posts by field."""
        own = {field.name: getattr(choices, field.name) for field in fields(OpenChoices)}
        return cls(**own, match=match, **{name: post(name) for name in ("likes", "replies", "reshares", "kind")})
