"""Agents' open choices and their answers, as frozen values and as columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from math import nan
from numbers import Real
from typing import Any, Self

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, TRAIT_MEANS, AgentState, Post
from prism_mesa.llm.params import Source
from prism_mesa.statechart import State
from prism_mesa.statechart.states import state_name


@dataclass(frozen=True)
class Persona:
    """The agent that a question is about.

    Attributes:
        interests: Words, strongest first.
        personality: One sentence, for prompts.
        traits: Big Five on 1..5, in the order of `domain.BIG_FIVE`.
        propensities: Shares of like, reply and reshare among the agent's engagements; they sum to 1.
        low: Relevance below which the agent ignores a post, 0..1; above `high` it engages.
        archetype: The archetype that the prompt describes instead of the agent; -1 for none.
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
        history: The last transitions, oldest first, as ``idle -> scrolling (feed_ready)``.
        situation: The agent and its situation, in a model of your own.
        match: Cosine of the post and the nearest interest in the prompt; 0 if unknown. Distilled models use it.
    """

    persona: Persona
    state: State
    trigger: str
    options: tuple[State, ...]
    post: Post | None = None
    history: tuple[str, ...] = ()
    match: float = 0.0
    situation: str = ""


@dataclass(frozen=True)
class PlacedQuestion:
    """A question with its position in the run and the agent's keyed draw in [0, 1).

    Attributes:
        followers: Number of the agent's followers, for `ReasonerParams.spend_on`.
        llm: The agent's LLM if there are several, else empty.
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
    """The answer to a question.

    Attributes:
        choice: One of the options; None (only with the fallback `stay`) keeps the state.
        source: Who answered. The sources `fallback` and `budget` replace an LLM's answer.
        reason: Why the LLM did not answer, in one word; empty if it did.
        attempts: Number of times the LLM was asked.
        key: The answer's key in the ledger; empty if no LLM was asked.
        probabilities: Probability of each option (1 for a plain choice); empty for a fallback.
    """

    choice: State | None
    source: Source
    reason: str = ""
    attempts: int = 0
    key: str = ""
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True)
class OpenChoices:
    """The open choices of n agents with the same options, as columns.

    Attributes:
        relevance: The post's relevance, 0..1; `utility`, `velocity` and `media` are as in `Post`.
        low: Lower end of the agent's band; `high` is the upper end.
        traits: Big Five, 1..5, shape (n, 5).
        propensities: Shares of like, reply, reshare, shape (n, 3).
        draws: The agents' keyed draws in [0, 1).
    """

    options: tuple[State, ...]
    relevance: Floats
    utility: Floats
    low: Floats
    high: Floats
    velocity: Ints
    media: Mask
    traits: Floats
    propensities: Floats
    draws: Floats


@dataclass(frozen=True)
class DetailedChoices(OpenChoices):
    """Open choices with the details that distilled models need; without a post all details are 0.

    Attributes:
        match: As in `Question`.
        likes: Likes of the post's root; `replies` and `reshares` also count for the root.
        kind: The post's kind, as an index into `domain.POST_KINDS`.
    """

    match: Floats
    likes: Ints
    replies: Ints
    reshares: Ints
    kind: Ints

    @classmethod
    def from_open_choices(cls, choices: OpenChoices, match: Floats, post_field: Callable[[str], Any]) -> Self:
        """Add details to open choices. `post_field(name)` returns a field of the posts as whole numbers."""
        details = {name: post_field(name) for name in ("likes", "replies", "reshares", "kind")}
        return cls(**vars(choices), match=match, **details)


_DEFAULT = Persona(name="")
_HALF_BAND = (_DEFAULT.high - _DEFAULT.low) / 2
_IDENTIFYING_FIELDS = ("text", "author", "author_name", "post_id", "media_type", "relevance", "velocity", "likes")
_MAX_HISTORY = 5
_MAX_EXACT = 2.0**53
"""Maximum absolute value of numbers; floats do not represent larger integers exactly."""


type Describe = Callable[[Any, Any], str]


def make_question(
    agent: Any, current_state: State, trigger: str, options: Iterable[State], context: Any = None
) -> Question:
    """Return an agent's open choice as plain values.

    The agent has the attributes `name`, `interests` and `personality`. It may have `traits`, `propensities`,
    `low_threshold` and `high_threshold` (otherwise the band is .2 wide around `engagement_threshold`), and
    `state_history`. Options may be states or the values of states. For `context` see `read_post`.

    Raises:
        ValueError: If there are no options.
    """
    current_state, states = _read_states(current_state, trigger, options)
    history = tuple(_entry_text(entry) for entry in list(getattr(agent, "state_history", None) or ())[-_MAX_HISTORY:])
    return Question(read_persona(agent), current_state, trigger, states, read_post(context), history)


def make_own_question(
    agent: Any, current_state: State, trigger: str, options: Iterable[State], context: Any, describe: Describe | None
) -> Question:
    """Return an agent's open choice in a model of your own; without `describe` the situation is the context."""
    current_state, states = _read_states(current_state, trigger, options)
    persona = Persona(f"agent {getattr(agent, 'unique_id', '')}".strip())
    situation = "" if context is None else _describe(context)
    if describe is not None:
        try:
            situation = str(describe(agent, context))
        except Exception as error:
            error.add_note(f"agent {getattr(agent, 'unique_id', '')}: describe(agent, context) of the Reasoner")
            raise
    return Question(persona, current_state, trigger, states, situation=situation)


def _read_states(current_state: State, trigger: str, options: Iterable[State]) -> tuple[State, tuple[State, ...]]:
    kind: Any = type(current_state) if isinstance(current_state, Enum) else AgentState
    states = tuple(dict.fromkeys(option if isinstance(option, Enum) else kind(option) for option in options))
    if not states:
        raise ValueError(f"no options for {trigger!r} in {current_state!s}: give at least one state to choose from")
    return kind(current_state), states


def read_persona(agent: Any) -> Persona:
    """Return the persona of `agent`. Missing attributes have the defaults of `Persona`."""
    interests = getattr(agent, "interests", None)
    words = (interests,) if isinstance(interests, str) else () if interests is None else interests
    low, high = _band(agent)
    likes, replies, reshares = _numbers(getattr(agent, "propensities", None), ACTIONS, _DEFAULT.propensities)
    return Persona(
        name=str(getattr(agent, "name", None) or f"agent {getattr(agent, 'unique_id', '')}".strip()),
        interests=tuple(map(str, words)),
        personality=str(getattr(agent, "personality", None) or ""),
        traits=_numbers(getattr(agent, "traits", None), BIG_FIVE, _DEFAULT.traits),
        propensities=(likes, replies, reshares),
        low=low,
        high=high,
    )


def _band(agent: Any) -> tuple[float, float]:
    middle = getattr(agent, "engagement_threshold", None)
    centre = (_DEFAULT.low + _DEFAULT.high) / 2 if middle is None else float(middle)
    low, high = (getattr(agent, name, None) for name in ("low_threshold", "high_threshold"))
    low = max(centre - _HALF_BAND, 0.0) if low is None else float(low)
    return low, min(centre + _HALF_BAND, 1.0) if high is None else float(high)


def _numbers(values: Any, names: Sequence[str], default: tuple[float, ...]) -> tuple[float, ...]:
    """Return `values` (a sequence in the order of `names`, or a mapping with these keys) as floats."""
    if values is None:
        return default
    if isinstance(values, Mapping):
        return tuple(float(values.get(name, value)) for name, value in zip(names, default, strict=True))
    numbers = tuple(map(float, values))
    if len(numbers) != len(names):
        raise ValueError(f"{len(numbers)} numbers given, but {', '.join(names)} are {len(names)}")
    return numbers


def _entry_text(entry: Any) -> str:
    """Return an entry of `state_history` as ``idle -> scrolling (feed_ready)``; strings are unchanged."""
    if isinstance(entry, str):
        return entry
    read = _reader(entry)
    states = (read(field, "?") for field in ("from_state", "to_state"))
    from_name, to_name = (str(state_name(state)) for state in states)
    return f"{from_name} -> {to_name} ({read('trigger', '?')})"


def _reader(value: Any) -> Callable[[str, Any], Any]:
    return value.get if isinstance(value, Mapping) else partial(getattr, value)


def read_post(context: Any) -> Post | None:
    """Return `context` as a `Post`.

    A mapping or an object with fields of `Post` becomes a post with these fields; missing and invalid fields have their
    defaults. Any other value becomes the text of a post.
    """
    if context is None or isinstance(context, Post):
        return context
    read = _reader(context)
    if all(read(field, None) is None for field in _IDENTIFYING_FIELDS):
        return Post(text=_describe(context))
    author, kind = read("author", None), read("kind", "post")
    texts: dict[str, Any] = {
        name: str(read(name, None) or "") for name in ("text", "author_name", "media_type", "media_description")
    }
    texts["author_name"] = texts["author_name"] or (author if isinstance(author, str) else "")
    counts: Any = {name: _whole_number(read(name, None), 0) for name in ("likes", "replies", "reshares", "velocity")}
    return Post(
        post_id=_whole_number(read("post_id", None), -1),
        author=_whole_number(author, -1),
        relevance=min(max(_number(read("relevance", None), 0.5), 0.0), 1.0),
        utility=_number(read("utility", None), nan),
        kind=kind if kind in POST_KINDS else "post",
        **counts,
        **texts,
    )


def _describe(context: Any) -> str:
    """Describe a value without memory addresses, which differ between processes."""
    if isinstance(context, Mapping):
        return "; ".join(f"{key}: {value}" for key, value in islice(context.items(), 10))
    kind = type(context)
    has_default_text = all(getattr(kind, name) is getattr(object, name) for name in ("__str__", "__repr__"))
    return kind.__name__ if has_default_text else str(context)


def _number(value: Any, default: float) -> float:
    try:
        number = float(value) if isinstance(value, Real) else default
    except OverflowError:
        return default
    return number if -_MAX_EXACT <= number <= _MAX_EXACT else default


def _whole_number(value: Any, default: int) -> int:
    return max(int(_number(value, default)), default)
