"""Turns a live agent and its context into a frozen `Question`, reading both by attribute. The agent is only read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import nan
from numbers import Real
from typing import Any

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, Post
from prism_mesa.reasoner.question import Persona, Question
from prism_mesa.statechart import AgentState

_DEFAULT = Persona(name="")
_HALF_BAND = (_DEFAULT.high - _DEFAULT.low) / 2
_TELLING = ("text", "author", "author_name", "post_id", "media_type", "relevance", "velocity", "likes")
_RECENT = 5
_MOST = 2.0**53
"""Counts and numbers beyond are none: a float does not hold them exactly, or at all."""


def question_of(
    agent: Any, current_state: AgentState, trigger: str, options: Iterable[AgentState], context: Any = None
) -> Question:
    """Return the open choice of `agent` as plain values.

    The agent is read by attribute: `name`, `interests`, `personality`, and where present `traits`,
    `propensities`, `low_threshold` and `high_threshold` (else a band of .2 around `engagement_threshold`)
    and `state_history`. Options may be states or their values; each counts once, in the order given. For
    `context` see `post_of`.

    Raises:
        ValueError: If there are no options.
    """
    states = tuple(dict.fromkeys(AgentState(option) for option in options))
    if not states:
        raise ValueError(f"no options for {trigger!r} in {current_state!s}: give at least one state to choose from")
    history = tuple(_entry_text(entry) for entry in list(getattr(agent, "state_history", None) or ())[-_RECENT:])
    return Question(persona_of(agent), AgentState(current_state), trigger, states, post_of(context), history)


def persona_of(agent: Any) -> Persona:
    """Return who `agent` is; what it does not say is taken from `Persona`."""
    interests = getattr(agent, "interests", None)
    words = (interests,) if isinstance(interests, str) else () if interests is None else interests
    low, high = _band(agent)
    likes, replies, reshares = _numbers(getattr(agent, "propensities", None), ACTIONS, _DEFAULT.propensities)
    return Persona(
        name=str(getattr(agent, "name", None) or f"agent {getattr(agent, 'unique_id', '')}".strip()),
        interests=tuple(str(word) for word in words),
        personality=str(getattr(agent, "personality", None) or ""),
        traits=_numbers(getattr(agent, "traits", None), BIG_FIVE, _DEFAULT.traits),
        propensities=(likes, replies, reshares),
        low=low,
        high=high,
    )


def _band(agent: Any) -> tuple[float, float]:
    """Return the ends of the agent's band of open choices."""
    middle = getattr(agent, "engagement_threshold", None)
    centre = (_DEFAULT.low + _DEFAULT.high) / 2 if middle is None else float(middle)
    low = getattr(agent, "low_threshold", None)
    high = getattr(agent, "high_threshold", None)
    return (
        max(centre - _HALF_BAND, 0.0) if low is None else float(low),
        min(centre + _HALF_BAND, 1.0) if high is None else float(high),
    )


def _numbers(given: Any, names: Sequence[str], default: tuple[float, ...]) -> tuple[float, ...]:
    """Return `given` (a sequence in the order of `names`, or a mapping by them) as floats."""
    if given is None:
        return default
    if isinstance(given, Mapping):
        return tuple(float(given.get(name, value)) for name, value in zip(names, default, strict=True))
    values = tuple(float(value) for value in given)
    if len(values) != len(names):
        raise ValueError(f"{len(values)} numbers given, but {', '.join(names)} are {len(names)}")
    return values


def _entry_text(entry: Any) -> str:
    """Return an entry of a `state_history` as ``idle -> scrolling (feed_ready)``; a text stays as it is."""
    if isinstance(entry, str):
        return entry
    read = _reader(entry)
    before, after = (_state_name(read(field, "?")) for field in ("from_state", "to_state"))
    return f"{before} -> {after} ({read('trigger', '?')})"


def _state_name(state: Any) -> str:
    return state.value if isinstance(state, AgentState) else str(state)


def _reader(thing: Any) -> Callable[[str, Any], Any]:
    return thing.get if isinstance(thing, Mapping) else partial(getattr, thing)


def post_of(context: Any) -> Post | None:
    """Return `context` as a `Post`.

    A mapping or an object is read by the fields of `Post`, and what is missing or of another kind takes
    their defaults. Anything that has none of those fields becomes the text of a post.
    """
    if context is None or isinstance(context, Post):
        return context
    read = _reader(context)
    if all(read(field, None) is None for field in _TELLING):
        return Post(text=_described(context))
    author = read("author", None)
    named = read("author_name", None) or (author if isinstance(author, str) else "")
    kind = read("kind", "post")
    return Post(
        post_id=_whole(read("post_id", None), -1),
        text=str(read("text", None) or ""),
        author=_whole(author, -1),
        author_name=str(named),
        relevance=min(max(_number(read("relevance", None), 0.5), 0.0), 1.0),
        utility=_number(read("utility", None), nan),
        kind=kind if kind in POST_KINDS else "post",
        likes=_whole(read("likes", None), 0),
        replies=_whole(read("replies", None), 0),
        reshares=_whole(read("reshares", None), 0),
        velocity=_whole(read("velocity", None), 0),
        media_type=str(read("media_type", None) or ""),
        media_description=str(read("media_description", None) or ""),
    )


def _described(context: Any) -> str:
    """Return any value in words that are the same in every process (no memory address)."""
    if isinstance(context, Mapping):
        return "; ".join(f"{key}: {value}" for key, value in islice(context.items(), 10))
    kind = type(context)
    anonymous = all(getattr(kind, name) is getattr(object, name) for name in ("__str__", "__repr__"))
    return kind.__name__ if anonymous else str(context)


def _number(value: Any, default: float) -> float:
    try:
        number = float(value) if isinstance(value, Real) else default
    except OverflowError:
        return default
    return number if -_MOST <= number <= _MOST else default


def _whole(value: Any, default: int) -> int:
    return max(int(_number(value, default)), default)
