"""Names and classes that several packages share."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import isnan, nan
from typing import Any, Final, Literal, NoReturn

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.markup import card_html, facts_html, html_or_repr, note_html, quote_html

type PostKind = Literal["post", "reply", "reshare"]
type FollowEvent = Literal["follow", "unfollow", "mute", "block", "report", "unmute", "unblock"]
type ActionName = Literal["like", "reply", "reshare"]

ACTIONS: tuple[ActionName, ...] = ("like", "reply", "reshare")
POST_KINDS: tuple[PostKind, ...] = ("post", "reply", "reshare")
FOLLOW_EVENTS: tuple[FollowEvent, ...] = ("follow", "unfollow", "mute", "block", "report", "unmute", "unblock")
"""Decisions of one agent about another. If several rules apply, the strongest wins: block, mute, unfollow, follow.
Only scripts and tools unmute and unblock."""
FOLLOW_REASONS: tuple[str, ...] = tuple("engaged exposure follow_back triad ignored script tool block".split())
"""Reasons for follow events: the first rule that applied, a script, a tool, or a block that ended a follow."""
CHURN_EVENTS: tuple[str, ...] = ("join", "leave", "back", "removed")
"""Events of churn. Agents that a script or an action removes do not come back."""
NOTHING_HAPPENED = "nothing happened"
"""Start of the note about a run in which no agent saw a post."""
BIG_FIVE: tuple[str, ...] = ("extraversion", "agreeableness", "conscientiousness", "neuroticism", "openness")

# 252 US Twitter users, on a scale of 1..5, in the order of BIG_FIVE: Oldemburgo de Mello, Cheung, Inzlicht 2024,
# Communications Psychology 2:15.
TRAIT_MEANS: tuple[float, ...] = (3.1, 3.86, 3.64, 2.68, 3.91)
TRAIT_SDS: tuple[float, ...] = (0.78, 0.59, 0.77, 0.87, 0.7)


class AgentState(str, Enum):  # noqa: UP042 - the contract asks for a `str` enum whose str() is the member
    """The state of an agent of the platform. The values are lowercase, for JSON and tables.

    Charts may have more states (`make_state`), which are no members of the enum but of its type.
    """

    _code: int
    _resembled: "AgentState"

    IDLE = "idle"
    SCROLLING = "scrolling"
    EVALUATING = "evaluating"
    COMPOSING = "composing"
    ENGAGING_LIKE = "engaging_like"
    ENGAGING_REPLY = "engaging_reply"
    ENGAGING_RESHARE = "engaging_reshare"
    RESTING = "resting"

    @property
    def code(self) -> int:
        """The number that columns store: the state's index in this enum, 0..7; from 8 on for more states."""
        return self._code

    @property
    def resembled(self) -> "AgentState":
        """The state whose rules a further state follows; for the members of this enum, the state itself."""
        return self._resembled

    @property
    def color(self) -> str:
        """The state's color in pictures."""
        return STATE_COLORS.get(self) or MORE_COLORS[(self.code - len(STATES)) % len(MORE_COLORS)]

    @property
    def position(self) -> tuple[float, float]:
        """The state's position in pictures of charts, in inches; more states are beside those that they resemble."""
        (x, y), n = _POSITIONS[self.resembled], max(0, self.code - len(STATES) + 1)
        return x + 2.35 * n, y - 0.65 * n

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        made = AgentState, (self.value,)
        return made if self.code < len(STATES) else (make_state, (self.value, self.code, self.resembled))

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = [state.value for state in cls]
        raise ChartError(f"{value!r} is not a state (allowed: {', '.join(names)}).{did_you_mean(str(value), names)}")


STATES: Final = tuple(AgentState)
STATE_COLORS: Final = {
    AgentState.IDLE: "#e6e6e6",
    AgentState.RESTING: "#a5a5a5",
    AgentState.SCROLLING: "#7fcaff",
    AgentState.EVALUATING: "#2652ac",
    AgentState.COMPOSING: "#732860",
    AgentState.ENGAGING_LIKE: "#e6093d",
    AgentState.ENGAGING_REPLY: "#06975a",
    AgentState.ENGAGING_RESHARE: "#ff6f15",
}
"""Colors of states in all pictures, at least 23 apart in CIE Lab, also for color-blind readers."""

MORE_COLORS: Final = ("#c9a227", "#8a5a2b", "#00a3a3", "#b05fd6")
"""Colors of more states, by code; they repeat."""
for _code, _state in enumerate(STATES):
    _state._code, _state._resembled = _code, _state
_POSITIONS: Final = {
    AgentState.IDLE: (0.0, 6.8),
    AgentState.SCROLLING: (0.0, 5.6),
    AgentState.EVALUATING: (0.0, 3.8),
    AgentState.COMPOSING: (0.0, 2.2),
    AgentState.ENGAGING_LIKE: (-2.35, 0.5),
    AgentState.ENGAGING_REPLY: (0.0, 0.5),
    AgentState.ENGAGING_RESHARE: (2.35, 0.5),
    AgentState.RESTING: (0.0, -1.1),
}


SHARE: Final = "share_"
"""Columns and measures with the share of agent-ticks in a state are named by this and the value of the state."""


@cache
def make_state(name: str, code: int, resembled: AgentState = AgentState.SCROLLING) -> AgentState:
    """Return a further state, which has the type of `AgentState`; equal arguments give the same object."""
    state = str.__new__(AgentState, name)
    state._name_, state._value_ = name.upper(), name
    state._code, state._resembled = code, resembled
    return state


def states_in(columns: Iterable[str]) -> tuple[AgentState, ...]:
    """Return the states of which a table `rounds` has the shares: those of `AgentState`, and more states in order."""
    names = [name.removeprefix(SHARE) for name in columns if name.startswith(SHARE)]
    more = [name for name in names if name not in STATES]
    return (*STATES, *(make_state(name, len(STATES) + i) for i, name in enumerate(more)))


def color_order(states: Iterable[AgentState]) -> list[AgentState]:
    """Return the states of a platform in the order of pictures, from idle to the most active; more states come last."""
    return [*STATE_COLORS, *(state for state in states if state not in STATE_COLORS)]


@dataclass(frozen=True, repr=False)
class Post:
    """A post as an agent sees it at the start of a round.

    Attributes:
        post_id: The post's row in the table of posts.
        author: The author's row in the table of agents, or -1.
        relevance: Similarity of the post's topics and the reader's interests, 0..1.
        utility: The post's value to the reader, in units of relevance; by default the relevance.
        round: The round in which the post appeared.
        parent: The post that a reply answers, or that a reshare passes on.
        root: The first post of the cascade; the post itself unless it is a reshare.
        likes: Likes of the root; `replies` and `reshares` also count for the root.
        velocity: Engagements with the root in the last `feed.velocity_window` rounds.
        media_type: image, video, link, ..., or an empty string.
        about: A description of the post's attributes for prompts.
        words: The words that the author added to a reply or reshare; `text` contains them.
    """

    post_id: int = -1
    text: str = ""
    author: int = -1
    author_name: str = ""
    relevance: float = 0.5
    utility: float = nan
    round: int = 0
    kind: PostKind = "post"
    parent: int | None = None
    root: int = -1
    likes: int = 0
    replies: int = 0
    reshares: int = 0
    impressions: int = 0
    velocity: int = 0
    media_type: str = ""
    media_description: str = ""
    words: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if isnan(self.utility):
            object.__setattr__(self, "utility", self.relevance)

    @property
    def has_media(self) -> bool:
        """Whether the post has media."""
        return bool(self.media_type)

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= _MAX_REPR_TEXT else f"{self.text[:_MAX_REPR_TEXT]}..."
        author = f" by {self.author} {self.author_name!r}" if self.author >= 0 else ""
        counts = f"{self.likes} likes, {self.replies} replies, {self.reshares} reshares"
        return f"<Post {self.post_id}{author}: {self.kind} {text!r}, relevance {self.relevance:.2f}, {counts}>"

    @html_or_repr
    def _repr_html_(self) -> str:
        author = f"by {self.author_name or 'agent'} ({self.author})" if self.author >= 0 else ""
        original = "" if self.parent is None else f" of {self.parent}"
        media = f"{self.media_type}: {self.media_description}" if self.media_description else self.media_type
        engagements = f"{self.likes:,} likes, {self.replies:,} replies, {self.reshares:,} reshares"
        utility = "" if self.utility == self.relevance else f", worth {self.utility:.2f}"
        facts = {
            "to its reader": f"relevance {self.relevance:.2f}{utility}",
            "engagement": f"{engagements} from {self.impressions:,} impressions; {self.velocity:,} recently",
            "media": media,
            "about": self.about,
        }
        text = quote_html(self.text) if self.text else note_html("no text")
        remark = f"{author}, round {self.round}" if author else f"round {self.round}"
        return card_html(self.kind + original, self.post_id, text, facts_html(facts.items()), remark=remark)


_MAX_REPR_TEXT: Final = 60
"""Maximum length of the text in a post's `repr`, in characters."""
