"""What the page shows: one moment of a run, live or recorded. Views read a `Source` and nothing else.

No array changes after it was returned.
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
    """Return the code of the most that each agent did, shape (n,): the last in `STATE_COLORS` of all that it was in.

    Args:
        before: Codes of states that agents begin with, shape (n,).
        agents: Who entered another one, by row.
        entered: Which one that was.
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
        values: Of each agent, shape (n,): numbers, or, where there are `names`, codes into these; NaN: not known.
        names: What the codes stand for.
        unit: What the numbers are.
    """

    values: Floats
    names: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True)
class PostColumns:
    """Posts written so far, by id; `kind` are codes of `domain.POST_KINDS`, `parent` -1: none.

    Attributes:
        round: In which each one was written; readers see replies and reshares from the next round on.
        root: The post whose cascade each belongs to.
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
        place: From 1.
        author: In words.
        told: Why it stands there; empty where that is not known.
        was_read: Whether the agent has read it in the round; None where nobody knows.
        did: What the agent did with it: empty, `like`, `reply`, `reshare`, or several with `, `.
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
    """A change of state of an agent in the round on show; `post` -1: none; `is_open`: the guards left it open."""

    tick: int
    trigger: str
    source: AgentState
    target: AgentState
    post: int = -1
    is_open: bool = False


@dataclass(frozen=True)
class AgentOnShow:
    """One agent in the round on show.

    Attributes:
        profile: What it is, as (label, value).
        state: In which state the round found it last, before it closed.
        feed: Best first, or in the order in which it was read.
        feed_note: What of the feed is not known, in words.
        moves: By tick.
        why: What it did and why, line by line; indented with blanks as a report is.
        why_note: What stands in place of `why`, or what of it is not known.
        ask: What a button says that asks for `why`; empty: there is nothing to ask for.
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
    """Return what a reply or a reshare shows: its own words, if any, and the text of `writer` that it is about."""
    quote = f"({'in reply to' if kind == 'reply' else 'resharing'} {writer}: {text})"
    return f"{words} {quote}" if words else quote


def moves_lines(moves: Iterable[AgentMove], text_of: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each change of state; `text_of` returns the text of a post."""
    for ticks, part, times in folded_moves(moves):
        move, states = part[0], " -> ".join(state.value for state in (part[0].source, *(move.target for move in part)))
        choice = ", a choice that was left open" if move.is_open else ""
        post = f": post {move.post}, “{shortened(text_of(move.post), 100)}”" if move.post >= 0 else ""
        rest = f", on '{move.trigger}'{choice}{post}" if times == 1 else f", {times} times{choice}"
        yield f"tick{'s' if times > 1 else ''} {ticks}: {states}{rest}"


def folded_moves(moves: Iterable[AgentMove]) -> Iterator[tuple[str, list[AgentMove], int]]:
    """Yield moves with their ticks; a cycle of states that repeats at once comes once, with its number of repeats."""
    listed, at = list(moves), 0
    for part, times in folded(listed, lambda move: (move.source, move.target, move.is_open)):
        last = at + len(part) * times - 1
        ticks = f"{listed[at].tick}" if times == 1 else f"{listed[at].tick} to {listed[last].tick}"
        yield ticks, part, times
        at = last + 1


@dataclass(frozen=True)
class Spent:
    """Something that is limited or counted; `limit` None: there is no limit."""

    what: str
    spent: float
    limit: float | None = None


@dataclass(frozen=True)
class OracleOnShow:
    """Who decided the open choices up to the round on show.

    Attributes:
        label: The name of the decider.
        sources: Who answered -> how many open choices (`llm.params.Source`); None: it is only known of whole runs.
        spent: Calls, tokens, seconds, and their limits.
        reasons: Why answers did not come -> how many.
        notes: Remarks, a line each.
    """

    label: str
    sources: Mapping[str, int] | None = None
    spent: Sequence[Spent] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Source(Protocol):
    """One moment of a run of a platform.

    A live source follows its model; a recorded one is set to a round. What is read of it is of the round `at`.
    """

    @property
    def run(self) -> object:
        """The run, the same object at all of its moments: views keep layouts by it."""

    @property
    def title(self) -> str:
        """What the run is called, on one line."""

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """Facts about the run: (label, value), the most important first."""

    @property
    def rounds(self) -> int:
        """How many rounds the run has, or will have."""

    @property
    def at(self) -> int:
        """The round on show; -1 before the first."""

    @property
    def n_agents(self) -> int:
        """How many agents there are, present or not."""

    @property
    def chart(self) -> Statechart:
        """The chart of the agents."""

    def round_columns(self) -> Mapping[str, Floats]:
        """Return the columns of the table `rounds` (`social.tables.ROUNDS`) for rounds 0 .. `at`; empty before."""

    def states(self) -> npt.NDArray[np.uint8]:
        """Return for each agent the code of the most that it did in the round (`STATE_COLORS` has the order).

        `NOT_THERE` where it is not on the platform, or not recorded.
        """

    def follows(self) -> Follows:
        """Return who follows whom in the round; the same object as long as nothing of it has changed."""

    def attributes(self) -> Mapping[str, AgentAttribute]:
        """Return the columns by which agents can be coloured, by name."""

    def posts(self) -> PostColumns:
        """Return the posts that have been written up to the round."""

    def post_text(self, post: int) -> str:
        """Return the text of a post on one line, with what it quotes (see `with_quote`); empty if it is not known."""

    def agent_name(self, row: int) -> str:
        """Return the name of an agent."""

    def find_agent(self, said: str) -> int:
        """Return the row of an agent that is named by its row, its id or its name.

        Raises:
            DataError: If there is none, or several are called so.
        """

    def agent(self, row: int) -> AgentOnShow:
        """Return one agent in the round on show."""

    def oracle(self) -> OracleOnShow:
        """Return who decided what was left open so far."""
