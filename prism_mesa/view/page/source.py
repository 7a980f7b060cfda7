"""One moment of a run, live or recorded. Views read only a `Source`.

Returned arrays never change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from prism_mesa.analysis.explain.trace import folded
from prism_mesa.errors import shortened
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState, Statechart

type Ints = npt.NDArray[np.integer[Any]]
type Floats = npt.NDArray[np.float64]

NOT_THERE = 255
"""In `Source.states`: not on the platform, or nothing of it was recorded."""
_RANK: Final = np.array([list(STATE_COLORS).index(state) for state in STATES], np.uint8)
_BY_RANK: Final = np.array([state.code for state in STATE_COLORS], np.uint8)


def most_done(before: Ints, agents: Ints, entered: Ints) -> npt.NDArray[np.uint8]:
    """Return each agent's most active state as a code, shape (n,): the last of its states in `STATE_COLORS`.

    Args:
        before: Codes of the states in which agents begin, shape (n,).
        agents: Rows of the agents that entered another state.
        entered: Codes of the states that they entered.
    """
    most = _RANK[before]
    np.maximum.at(most, agents, _RANK[entered])
    return np.asarray(_BY_RANK[most])


@dataclass(frozen=True)
class Follows:
    """Who follows whom: `dst[i]` follows `src[i]`; `followers` of each agent, shape (n,)."""

    src: Ints
    dst: Ints
    followers: Ints


@dataclass(frozen=True)
class AgentAttribute:
    """A column by which agents can be coloured.

    Attributes:
        values: Numbers, or codes into `names` if there are any, shape (n,); NaN if unknown.
        names: Names of the codes.
        unit: Unit of the numbers.
    """

    values: Floats
    names: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True)
class PostColumns:
    """Posts written so far, by id; `kind` holds codes of `domain.POST_KINDS`, `parent` is -1 if there is none.

    Attributes:
        round: The round in which it was written; readers see replies and reshares from the next round on.
        root: The post at the root of its cascade.
    """

    author: Ints
    kind: Ints
    parent: Ints
    root: Ints
    round: Ints

    def __len__(self) -> int:
        return len(self.author)


@dataclass(frozen=True)
class FeedPost:
    """A post in an agent's feed.

    Attributes:
        place: Rank, from 1.
        author: Name of the author.
        told: Why it has this rank; empty if unknown.
        was_read: Whether the agent read it in the round; None if unknown.
        did: The agent's engagements: empty, `like`, `reply`, `reshare`, or several joined by `, `.
    """

    place: int
    post: int
    author: str
    text: str
    kind: str = "post"
    told: str = ""
    was_read: bool | None = None
    did: str = ""


@dataclass(frozen=True)
class AgentMove:
    """A transition of an agent in the displayed round; `post` is -1 without a post, `is_open` marks open choices."""

    tick: int
    trigger: str
    source: AgentState
    target: AgentState
    post: int = -1
    is_open: bool = False


@dataclass(frozen=True)
class AgentOnShow:
    """One agent in the displayed round.

    Attributes:
        profile: Its attributes, as (label, value).
        state: Its last state before the round closed.
        feed: Posts, best first or in the order of reading.
        feed_note: What is unknown about the feed.
        moves: Transitions by tick.
        why: Its actions and their reasons as lines, indented with blanks.
        why_note: A note that replaces or limits `why`.
        ask: Label of the button that asks for `why`; empty if there is nothing to ask.
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
    ask: str = ""


def with_quote(words: str, kind: str, writer: str, text: str) -> str:
    """Return the text of a reply or reshare with the text by `writer` that it quotes."""
    quote = f"({'in reply to' if kind == 'reply' else 'resharing'} {writer}: {text})"
    return f"{words} {quote}" if words else quote


def moves_lines(moves: Iterable[AgentMove], text_of: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each transition; `text_of` returns the text of a post."""
    for ticks, part, times in folded_moves(moves):
        move, states = part[0], " -> ".join(state.value for state in (part[0].source, *(move.target for move in part)))
        choice = ", a choice that was left open" if move.is_open else ""
        post = f": post {move.post}, “{shortened(text_of(move.post), 100)}”" if move.post >= 0 else ""
        rest = f", on '{move.trigger}'{choice}{post}" if times == 1 else f", {times} times{choice}"
        yield f"tick{'s' if times > 1 else ''} {ticks}: {states}{rest}"


def folded_moves(moves: Iterable[AgentMove]) -> Iterator[tuple[str, list[AgentMove], int]]:
    """Yield moves with their ticks; a repeated cycle of states is yielded once, with the number of repeats."""
    listed, at = list(moves), 0
    for part, times in folded(listed, lambda move: (move.source, move.target, move.is_open)):
        last = at + len(part) * times - 1
        ticks = f"{listed[at].tick}" if times == 1 else f"{listed[at].tick} to {listed[last].tick}"
        yield ticks, part, times
        at = last + 1


@dataclass(frozen=True)
class Spent:
    """An amount with its limit; `limit` is None if there is none."""

    what: str
    spent: float
    limit: float | None = None


@dataclass(frozen=True)
class OracleOnShow:
    """Who has decided the open choices up to the displayed round.

    Attributes:
        label: Name of the decider.
        sources: Number of open choices by who answered (`llm.params.Source`); None if known only for whole runs.
        spent: Calls, tokens and seconds, with their limits.
        reasons: Number of missing answers by reason.
        notes: Remarks, a line each.
    """

    label: str
    sources: Mapping[str, int] | None = None
    spent: Sequence[Spent] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Source(Protocol):
    """One moment of a run of a platform.

    A live source follows its model; a recorded one is set to a round. All values belong to the round `at`.
    """

    @property
    def run(self) -> object:
        """The run, the same object at every moment; views cache layouts by it."""

    @property
    def title(self) -> str:
        """Name of the run, on one line."""

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """Facts about the run: (label, value), the most important first."""

    @property
    def rounds(self) -> int:
        """Number of rounds that the run has or will have."""

    @property
    def at(self) -> int:
        """The displayed round; -1 before the first."""

    @property
    def n_agents(self) -> int:
        """Number of agents, present or not."""

    @property
    def chart(self) -> Statechart:
        """The chart of the agents."""

    def round_columns(self) -> Mapping[str, Floats]:
        """Return the columns of the table `rounds` (`social.tables.ROUNDS`) for rounds 0 .. `at`; empty before."""

    def states(self) -> npt.NDArray[np.uint8]:
        """Return the code of each agent's most active state in the round (in the order of `STATE_COLORS`).

        `NOT_THERE` if it is not on the platform, or not recorded.
        """

    def follows(self) -> Follows:
        """Return who follows whom in the round; the same object until follows change."""

    def attributes(self) -> Mapping[str, AgentAttribute]:
        """Return the columns that can colour agents, by name."""

    def posts(self) -> PostColumns:
        """Return the posts written up to the round."""

    def post_text(self, post: int) -> str:
        """Return the text of a post on one line, with its quote (see `with_quote`); empty if unknown."""

    def agent_name(self, row: int) -> str:
        """Return the name of an agent."""

    def find_agent(self, text: str) -> int:
        """Return the row of an agent, given its row, id or name.

        Raises:
            DataError: If there is no such agent, or several have that name.
        """

    def agent(self, row: int) -> AgentOnShow:
        """Return one agent in the displayed round."""

    def oracle(self) -> OracleOnShow:
        """Return who has decided the open choices so far."""
