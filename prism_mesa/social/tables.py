"""Tables of a run of the platform."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from prism_mesa.domain import (
    ACTIONS,
    BIG_FIVE,
    CHURN_EVENTS,
    FOLLOW_EVENTS,
    FOLLOW_REASONS,
    POST_KINDS,
    SHARE,
    STATES,
    AgentState,
)
from prism_mesa.social.state.act_state import GROUPS
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.tables import Column, TableSchema, index_tables, make_schema

COUNTERS: Final = ("likes", "replies", "reshares")
"""The counters of posts, in the order of `domain.ACTIONS`."""

_ROUND = Column("round", "int", "the round, from 0")
_TICK = Column("tick", "int", "0 as the round opens, 1 to `ticks_per_round` for its ticks, one more as it closes")
_AGENT = Column("agent", "int", "row of the agent in `agents`")
_AGENT_IN_TICK = (_ROUND, _TICK, _AGENT)
_POST = Column("post", "int", "row of the post in `posts`")
_POST_OR_NONE = Column("post", "int", "row of the post in `posts`, or -1")
_ROOT = Column("root", "int", "row of the root of the post's cascade in `posts`")

ROUND_COUNTS: Final = (
    Column("online", "int", "number of agents that came online"),
    Column("posts", "int", "number of posts that appeared, without replies and reshares"),
    Column("impressions", "int", "number of posts that agents read"),
    *(Column(name, "int", f"number of {name}") for name in COUNTERS),
    Column("open", "int", "number of open choices, including choices to stay in the state"),
    Column("fallback", "int", "number of open choices answered by a fallback"),
)


def _state_columns(states: Iterable[AgentState]) -> dict[str, tuple[Column, ...]]:
    names = [state.value for state in states]
    return {
        "rounds": tuple(Column(SHARE + name, "float64", f"agent-ticks in state `{name}`", "share") for name in names),
        "ticks": tuple(
            Column(name, "int", f"number of agents in state `{name}` at the end of the tick") for name in names
        ),
        "accounts": tuple(Column(name, "int", f"agent-ticks in state `{name}`") for name in names),
    }


_OF_STATES: Final = _state_columns(STATES)
ROUND_SHARES: Final = _OF_STATES["rounds"]

ROUNDS: Final = make_schema("rounds", "a round", _ROUND, *ROUND_COUNTS, *ROUND_SHARES)
TICKS: Final = make_schema("ticks", "a tick", _ROUND, Column("tick", "int", "the tick, from 1"), *_OF_STATES["ticks"])
ACCOUNTS: Final = make_schema(
    "accounts",
    "a round and a kind of account",
    _ROUND,
    Column("account", "category", "the kind: a name in `accounts`, or `agent` for all other agents"),
    *_OF_STATES["accounts"],
)
TRANSITIONS: Final = make_schema(
    "transitions",
    "a transition of an agent",
    *_AGENT_IN_TICK,
    Column("trigger", "category", "the trigger of the transition"),
    Column("from_state", "category", "the state before the transition"),
    Column("to_state", "category", "the state after the transition"),
    _POST_OR_NONE,
    Column("open", "bool", "whether the transition was an open choice; choices to stay in a state have no row"),
)
_SOURCE_COUNT: Final = Column(
    "source", "int", "number of times that the agent has read this root so far (`feed.repeats`)", optional=True
)
_LABEL: Final = Column(
    "label", "category", "name or number of the first label on the post that the agent saw", blank=True, optional=True
)
IMPRESSIONS: Final = make_schema(
    "impressions", "a post that an agent read", *_AGENT_IN_TICK, _POST, _ROOT, _SOURCE_COUNT, _LABEL
)
ENGAGEMENTS: Final = make_schema(
    "engagements",
    "a like, reply or reshare",
    *_AGENT_IN_TICK,
    _POST,
    _ROOT,
    Column("action", "category", "the kind of engagement", one_of=ACTIONS),
)
VIEWS: Final = make_schema(
    "views",
    "a round in which agents read a post or its reshares (for posts drawn by `records.views`)",
    _ROUND,
    _ROOT,
    Column("impressions", "int", "number of impressions of the root and its reshares in that round"),
)
POSTS: Final = make_schema(
    "posts",
    "a post, reply or reshare",
    Column("post", "int", "row of the post, from 0"),
    Column("round", "int", "the first round in which readers can see it"),
    Column("written", "int", "the round in which it was written"),
    Column("author", "int", "row of the author in `agents`"),
    Column("kind", "category", "the kind of post", one_of=POST_KINDS),
    # blank in runs of version 0.1
    Column("parent", "int", "row of the post that it answers or reshares, or -1", blank=True),
    Column("root", "int", "row of the root of the cascade; for a post or reply, the same as `post`"),
    *(Column(name, "int", f"{name} of the post and its reshares (roots only)") for name in COUNTERS),
    Column("impressions", "int", "impressions of the post and its reshares (roots only)"),
    Column("velocity", "int", "engagements in the last `feed.velocity_window` rounds (roots only)"),
    Column("topic", "category", "name of the nearest topic, as in `interests`", blank=True),
    Column("text", "category", "the text; for a reshare, the text that it passes on", blank=True),
    Column("comment", "category", "the comment of a reshare", blank=True),
    Column("media_type", "category", "image, video, link, ...; empty without media", blank=True),
    Column("media_description", "category", "a description of the media", blank=True),
)
CASCADES: Final = make_schema(
    "cascades",
    "a post or reply with its tree of reshares (summaries, figures and measures leave out replies)",
    Column("root", "int", "row of the post in `posts`"),
    Column("size", "int", "number of posts: 1 + reshares"),
    Column("depth", "int", "number of reshares from the root to the farthest reshare"),
    Column("breadth", "int", "largest number of reshares at one depth; 1 without reshares"),
    Column("structural_virality", "float64", "mean distance between posts (Goel et al. 2016); 0 if alone", "steps"),
    Column("kind", "category", "the kind of the root", one_of=POST_KINDS),
)
AGENTS: Final = make_schema(
    "agents",
    "an agent",
    Column("agent", "int", "row of the agent, from 0"),
    Column("unique_id", "int", "`unique_id` in Mesa, which is `AgentID` in a DataCollector's frames: row + 1"),
    Column("id", "text", "your id for the agent"),
    Column("name", "text", "the name, which may not be unique"),
    Column("interests", "text", "names of interests, strongest first, separated by `;`"),
    *(Column(trait, "float32", f"Big Five trait: {trait}", "1 to 5") for trait in BIG_FIVE),
    *(Column(f.name, "int" if f.whole else "float64", f.meaning, f.unit) for f in AGENT_FIELDS.values()),
    *(
        Column(action, "float32", f"expected share of `{action}` among the agent's engagements", "share")
        for action in ACTIONS
    ),
    Column("followers", "int", "number of followers"),
    Column("followees", "int", "number of followees"),
    Column("posts", "int", "number of posts that the agent wrote, without replies and reshares"),
    Column("scripted", "bool", "whether the agent has a class of your own with a script"),
    Column("present", "bool", "whether the agent was on the platform at the end"),
    *(
        Column(f"recorded_{table.name}", "bool", f"whether table `{table.name}` includes the agent")
        for table in (TRANSITIONS, IMPRESSIONS, ENGAGEMENTS)
    ),
)
THOUGHTS: Final = make_schema(
    "thoughts",
    "a thought, tool call or text of an agent",
    *_AGENT_IN_TICK,
    _POST_OR_NONE,
    Column("action", "text", "the kind of text that the agent writes"),
    Column("event", "text", "the kind of event"),
    Column("text", "text", "the text of the event"),
)
NOTES: Final = make_schema(
    "notes",
    "a note of an agent to itself",
    *_AGENT_IN_TICK,
    Column("text", "text", "the note"),
    Column("importance", "int", "the agent's rating", "1 to 10"),
)

FOLLOWS: Final = make_schema(
    "follows",
    "a decision of an agent about another agent, which takes effect in the next round",
    Column("round", "int", "the round of the decision, -1: before round 0"),
    _AGENT,
    Column("other", "int", "row of the other agent in `agents`; for a report, the author of the post"),
    Column(
        "event",
        "category",
        "the decision; `block` ends the follows of both agents, and `unblock` does not restore them",
        one_of=FOLLOW_EVENTS,
    ),
    Column("post", "int", "row in `posts` of the post that led to the decision, or -1"),
    Column(
        "why",
        "category",
        "the reason: a rule (docs/living-networks.md), a script, a tool, or a block between the agents",
        one_of=FOLLOW_REASONS,
    ),
)

CHURN: Final = make_schema(
    "churn",
    "an agent that joined or left as a round opened",
    Column("round", "int", "the first round after the change"),
    _AGENT,
    Column(
        "event",
        "category",
        "join: a waiting agent, or an agent that a script added; removed: the agent left for good",
        one_of=CHURN_EVENTS,
    ),
)
OPINIONS: Final = make_schema(
    "opinions",
    "a round, with the stances of agents (`opinions.of`) at its end",
    Column("round", "int", "the round, -1: before round 0"),
    Column("mean", "float64", "mean stance of present agents", "the attribute's", finite=False),
    Column("sd", "float64", "standard deviation of these stances", "the attribute's", finite=False),
    Column(
        "bimodality",
        "float64",
        "Sarle's coefficient, 5/9 for a uniform distribution, 1 for two camps; NaN if all stances are equal",
        finite=False,
    ),
    Column("moved", "int", "number of agents whose stance changed in the round"),
    Column("drawn_on", "int", "number of impressions that moved the reader closer to the post"),
    Column("pushed_away", "int", "number of impressions that moved the reader away from the post"),
)
STANCES: Final = make_schema(
    "stances",
    "one of 50 equal parts of the range of `opinions.of`, at the end of a round",
    Column("round", "int", "the round, -1: before round 0"),
    Column("stance", "float64", "the middle of the part", "the attribute's"),
    Column("agents", "int", "number of present agents whose stance is in the part"),
)
INFLUENCES: Final = make_schema(
    "influences",
    "a post that moved an agent with recorded impressions, in reading order",
    _ROUND,
    _AGENT,
    _POST,
    Column("before", "float64", "the agent's stance before the post (`opinions.of`)", "the attribute's"),
    Column("after", "float64", "the agent's stance after the post", "the attribute's"),
)

DONE: Final = {
    "label": "posts labelled",
    "remove": "posts removed",
    "like": "posts with added likes",
    "suspend": "accounts suspended",
    "post": "posts published",
    "abandon": "actions given up",
    "soften": "replies made milder",
    "refuse": "reshares refused",
}
"""What acts of the platform do (table `acts`), with the words of notes."""
ACTS: Final = make_schema(
    "acts",
    "something that an intervention did to a post or an agent",
    _ROUND,
    Column(
        "act",
        "category",
        "label, remove or like a post; suspend an agent; post as an agent; abandon: the agent gave up an action; "
        "soften: it wrote a milder reply; refuse: a cap refused its reshare",
        one_of=tuple(DONE),
    ),
    Column("name", "category", "name of the intervention, or else its number, from 0"),
    _POST_OR_NONE,
    Column("agent", "int", "row of the agent in `agents`, or -1"),
    Column("action", "category", "the action that the agent gave up or was refused", one_of=ACTIONS, blank=True),
)

ALWAYS: Final = index_tables(ROUNDS, TICKS, TRANSITIONS, IMPRESSIONS, POSTS, ENGAGEMENTS, CASCADES, AGENTS)
"""The tables of every run of the platform."""

SOCIAL_TABLES: Final = ALWAYS | index_tables(
    ACCOUNTS, VIEWS, THOUGHTS, NOTES, FOLLOWS, CHURN, OPINIONS, STANCES, INFLUENCES, ACTS
)
"""All tables of a run of the platform. Some exist only under a condition: `accounts` with `accounts`; `views` with
`records.views`; `thoughts` and `notes` with `content: llm`; `follows` with `network.dynamics: live`, or decisions by
scripts or tools; `churn` with `agents.churn`, or scripts that add or remove agents; `opinions`, `stances` and
`influences` with `opinions.of`; `acts` with interventions that act on posts or accounts."""


def make_tables(
    declared: Attributes,
    llms: Sequence[str] = (),
    named: Sequence[str] = (),
    covering: Sequence[str] = (),
    states: Sequence[AgentState] = STATES,
) -> dict[str, TableSchema]:
    """Return the tables of a run, with columns for declared attributes, several LLMs, interventions, and more states.

    `named` are the names of interventions, and `covering` those of interventions with a `coverage`.
    """
    meaning = "the agent's group in the intervention of this name; empty: it was never eligible"
    agents = (
        *([Column("llm", "category", "the agent's LLM at the end of the run")] if llms else ()),
        *(attribute.to_table_column("the agent") for attribute in declared.agents.values()),
        *(Column(name, "category", meaning, one_of=GROUPS, blank=True) for name in named),
    )
    root = "the post, or of the root of a reshare"
    covered = "whether the intervention of this name covers the root; empty: it did not meet it"
    since = "round from which the intervention applies to the root, or would if it covered it; -1: it did not meet it"
    posts = tuple(attribute.to_table_column(root) for attribute in declared.posts.values())
    for name in covering:
        posts += (Column(name, "category", covered, one_of=GROUPS, blank=True), Column(f"{name}_round", "int", since))
    extra = _state_columns(states[len(STATES) :]) | {AGENTS.name: agents, POSTS.name: posts}
    return {name: replace(table, columns=table.columns + extra.get(name, ())) for name, table in SOCIAL_TABLES.items()}
