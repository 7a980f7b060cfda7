"""A `Source` gives the views all values of one round of a live or recorded run.

Returned arrays never change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from prism_mesa.analysis.explain.trace import fold_repeats
from prism_mesa.arrays import Floats, Rows, UInt8
from prism_mesa.domain import STATE_COLORS, STATES, AgentState
from prism_mesa.errors import shorten
from prism_mesa.statechart import Statechart

ABSENT = 255
"""In `Source.states`: not on the platform, or not recorded."""
_CODES_BY_RANK: Final = np.array([*(state.code for state in STATE_COLORS), *range(len(STATES), ABSENT)], np.uint8)
_RANKS_BY_CODE: Final = np.argsort(_CODES_BY_RANK).astype(np.uint8)


def most_active_states(initial: Rows, agents: Rows, entered: Rows) -> UInt8:
    """Return the code of each agent's most active state, shape (n,): the state that is last in `STATE_COLORS`.

    Args:
        initial: Codes of the states at the start of the round, shape (n,).
        agents: Row of the agent of each transition.
        entered: Code of the state entered in each transition.
    """
    ranks = _RANKS_BY_CODE[initial]
    np.maximum.at(ranks, agents, _RANKS_BY_CODE[entered])
    return np.asarray(_CODES_BY_RANK[ranks])


@dataclass(frozen=True)
class Follows:
    """Who follows whom: `dst[i]` follows `src[i]`; `followers` of each agent, shape (n,)."""

    src: Rows
    dst: Rows
    followers: Rows


@dataclass(frozen=True)
class AgentAttribute:
    """A column by which agents can be coloured: numbers, or codes into `names`, shape (n,); NaN if unknown."""

    values: Floats
    names: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True)
class PostColumns:
    """Posts written so far, by id.

    `kind` holds codes of `domain.POST_KINDS`, `parent` is -1 if there is none, `root` is the first post of the cascade,
    and `round` is when the post was written.
    """

    author: Rows
    kind: Rows
    parent: Rows
    root: Rows
    round: Rows

    def __len__(self) -> int:
        return len(self.author)


@dataclass(frozen=True)
class FeedPost:
    """A post in an agent's feed, with `rank` from 1, its `reason`, and the agent's `engagements`, separated by `, `."""

    rank: int
    post: int
    author: str
    text: str
    kind: str = "post"
    reason: str = ""
    was_read: bool | None = None
    engagements: str = ""


@dataclass(frozen=True)
class AgentMove:
    """A transition of an agent in the displayed round; `post` is -1 if there is none, `is_open` marks open choices."""

    tick: int
    trigger: str
    source: AgentState
    target: AgentState
    post: int = -1
    is_open: bool = False


@dataclass(frozen=True)
class AgentDetails:
    """One agent in the displayed round.

    Attributes:
        state: Its last state before the round closed.
        feed: Posts, best first or in reading order.
        why: Lines that explain its actions, indented with spaces.
        why_note: A note that replaces or limits `why`.
        ask_label: Label of the button that requests an explanation; empty if there is no button.
    """

    row: int
    name: str
    agent_id: str
    profile: tuple[tuple[str, str], ...]
    state: AgentState
    feed: tuple[FeedPost, ...] = ()
    feed_note: str = ""
    moves: tuple[AgentMove, ...] = ()
    why: tuple[str, ...] = ()
    why_note: str = ""
    ask_label: str = ""


def with_quote(words: str, kind: str, writer: str, text: str) -> str:
    """Return the `words` of a reply or reshare, followed by the quoted `text` of `writer`."""
    quote = f"({'in reply to' if kind == 'reply' else 'resharing'} {writer}: {text})"
    return f"{words} {quote}" if words else quote


def move_lines(moves: Iterable[AgentMove], post_text: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each transition or repeated cycle of transitions."""
    for ticks, cycle, times in fold_moves(moves):
        move, states = cycle[0], " -> ".join(state.value for state in (cycle[0].source, *(m.target for m in cycle)))
        choice = ", an open choice" if move.is_open else ""
        post = f": post {move.post}, “{shorten(post_text(move.post), 100)}”" if move.post >= 0 else ""
        details = f", on '{move.trigger}'{choice}{post}" if times == 1 else f", {times} times{choice}"
        yield f"tick{'s' if times > 1 else ''} {ticks}: {states}{details}"


def fold_moves(moves: Iterable[AgentMove]) -> Iterator[tuple[str, list[AgentMove], int]]:
    """Yield the ticks, the moves and the number of repetitions of each cycle of states."""
    remaining = list(moves)
    for cycle, times in fold_repeats(list(remaining), lambda move: (move.source, move.target, move.is_open)):
        last = len(cycle) * times - 1
        yield f"{cycle[0].tick}" if times == 1 else f"{cycle[0].tick} to {remaining[last].tick}", cycle, times
        remaining = remaining[last + 1 :]


@dataclass(frozen=True)
class OracleDetails:
    """Who decided the open choices up to the displayed round.

    Attributes:
        sources: Number of answers by source (`llm.params.Source`); None if unknown.
        spent: Calls, tokens and seconds, as name -> (amount, limit or None).
        reasons: Number of missing answers by reason.
    """

    label: str
    sources: Mapping[str, int] | None = None
    spent: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Source(Protocol):
    """A run of a platform at one round; all values are from that round.

    A live source shows its model's last round; a recorded source stays at its round.

    Attributes:
        run: The run, the same object for all its rounds; views cache layouts by it.
        title: Name of the run, on one line.
        rounds: Number of rounds that the run has or will have.
        chart: Function that returns the chart of the agent in a row.
    """

    run: object
    title: str
    rounds: int
    chart: Callable[[int], Statechart]

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """Facts about the run: (label, value), the most important first."""

    @property
    def round(self) -> int:
        """The displayed round; -1 before the first."""

    @property
    def n_agents(self) -> int:
        """Number of agents, present or not."""

    def at_round(self, round_: int) -> "Source":
        """Return the source of another round; a live source returns itself."""
        return self

    def round_columns(self) -> Mapping[str, Floats]:
        """Return the columns of the table `rounds` (`social.tables.ROUNDS`) for rounds 0 .. `round`."""

    def states(self) -> UInt8:
        """Return the code of each agent's most active state in the round (see `most_active_states`), or `ABSENT`."""

    def follows(self) -> Follows:
        """Return who follows whom in the round; the same object as before unless follows changed."""

    def attributes(self) -> Mapping[str, AgentAttribute]:
        """Return the columns by which agents can be coloured, by name."""

    def posts(self) -> PostColumns:
        """Return the posts written up to the round."""

    def post_text(self, post: int) -> str:
        """Return the text of a post on one line, with its quote (see `with_quote`); empty if unknown."""

    def agent_name(self, row: int) -> str:
        """Return the name of an agent."""

    def find_agent(self, text: str) -> int:
        """Return the row of an agent, given its row, id or name; no or several such agents raise a DataError."""

    def agent(self, row: int) -> AgentDetails:
        """Return one agent in the displayed round."""

    def explain_soon(self, row: int, on_change: Callable[[], None]) -> Callable[[], None]:
        """Explain an agent in the background if this is fast; return a function that cancels the explanation."""
        return lambda: None

    def explain_now(self, row: int, on_change: Callable[[], None]) -> None:
        """Explain an agent in the background after the user clicked the button (see `AgentDetails.ask_label`)."""
        return

    def oracle(self) -> OracleDetails:
        """Return who decided the open choices so far."""
