"""The tables of a run of the platform."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from prism_mesa.domain import ACTIONS, BIG_FIVE, CHURN_EVENTS, FOLLOW_EVENTS, FOLLOW_REASONS, POST_KINDS
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.statechart import STATES
from prism_mesa.tables import Column, TableSchema, by_name

COUNTERS: Final = ("likes", "replies", "reshares")
"""The counters of posts, in the order of `domain.ACTIONS`."""

_ROUND = Column("round", "int", "the round, from 0")
_TICK = Column("tick", "int", "0: the round opens; 1 to `ticks_per_round`: its ticks; one more: it closes")
_AGENT = Column("agent", "int", "row of the agent in `agents`")
_POST = Column("post", "int", "row of the post in `posts`")
_POST_IF_ANY = Column("post", "int", "row of the post in `posts`, -1: none")
_ROOT = Column("root", "int", "row of the root of the post's cascade in `posts`")

ROUND_COUNTS: Final = (
    Column("online", "int", "agents that came online"),
    Column("posts", "int", "posts that appeared, without replies and reshares"),
    Column("impressions", "int", "posts read by agents"),
    *(Column(name, "int", f"{name} in the round") for name in COUNTERS),
    Column("open", "int", "choices that the guards left open, including choices to stay in the state"),
    Column("fallback", "int", "open choices answered by a fallback"),
)
ROUND_SHARES: Final = tuple(
    Column(f"share_{state.value}", "float64", f"agent-ticks in state `{state.value}`", "share") for state in STATES
)
STATE_COUNTS: Final = tuple(
    Column(state.value, "int", f"agents in state `{state.value}` at the end of the tick") for state in STATES
)

ROUNDS: Final = TableSchema("rounds", "a round", (_ROUND, *ROUND_COUNTS, *ROUND_SHARES))
TICKS: Final = TableSchema("ticks", "a tick", (_ROUND, Column("tick", "int", "the tick, from 1"), *STATE_COUNTS))
TRANSITIONS: Final = TableSchema(
    "transitions",
    "a transition of an agent",
    (
        _ROUND,
        _TICK,
        _AGENT,
        Column("trigger", "category", "the trigger of the transition"),
        Column("from_state", "category", "the state before the transition"),
        Column("to_state", "category", "the state after the transition"),
        _POST_IF_ANY,
        Column("open", "bool", "whether it was an open choice; a choice to stay has no row"),
    ),
)
_SOURCE: Final = Column(
    "source", "int", "number of times that the agent has read this root, now included (`feed.repeats`)", optional=True
)
IMPRESSIONS: Final = TableSchema(
    "impressions", "a post that an agent read", (_ROUND, _TICK, _AGENT, _POST, _ROOT, _SOURCE)
)
ENGAGEMENTS: Final = TableSchema(
    "engagements",
    "a like, a reply or a reshare",
    (_ROUND, _TICK, _AGENT, _POST, _ROOT, Column("action", "category", "the kind of engagement", one_of=ACTIONS)),
)
VIEWS: Final = TableSchema(
    "views",
    "a round in which agents read a post or its reshares (for posts drawn by `records.views`)",
    (_ROUND, _ROOT, Column("impressions", "int", "impressions of the root and its reshares in that round")),
)
POSTS: Final = TableSchema(
    "posts",
    "a post, a reply or a reshare",
    (
        Column("post", "int", "its row, from 0"),
        Column("round", "int", "the first round in which readers can see it"),
        Column("written", "int", "the round in which it was written"),
        Column("author", "int", "row of its author in `agents`"),
        Column("kind", "category", "its kind", one_of=POST_KINDS),
        Column(
            "parent", "int", "row of the post that it answers or reshares, -1: none", blank=True
        ),  # blanks: version 0.1
        Column("root", "int", "row of the root of its cascade; for a post or a reply, its own row"),
        *(Column(name, "int", f"{name} of it and its reshares, counted at the root") for name in COUNTERS),
        Column("impressions", "int", "impressions of it and its reshares, counted at the root"),
        Column("velocity", "int", "engagements with it in the last `feed.velocity_window` rounds"),
        Column("topic", "category", "the topic nearest to it, by the names that `interests` uses", blank=True),
        Column("text", "category", "its text, or the text that a reshare passes on", blank=True),
        Column("comment", "category", "the comment of a reshare", blank=True),
        Column("media_type", "category", "image, video, link, ...; empty: none", blank=True),
        Column("media_description", "category", "a description of its media", blank=True),
    ),
)
CASCADES: Final = TableSchema(
    "cascades",
    "a post or a reply with its tree of reshares (summaries, figures and measures leave out replies)",
    (
        Column("root", "int", "row of the post in `posts`"),
        Column("size", "int", "number of posts: 1 + reshares"),
        Column("depth", "int", "reshares from the root to the farthest one"),
        Column("breadth", "int", "largest number of reshares at one depth; 1 without reshares"),
        Column("structural_virality", "float64", "mean distance between posts (Goel et al. 2016); 0 if alone", "steps"),
        Column("kind", "category", "the kind of the root", one_of=POST_KINDS),
    ),
)
AGENTS: Final = TableSchema(
    "agents",
    "an agent",
    (
        Column("agent", "int", "its row, from 0"),
        Column("unique_id", "int", "its `unique_id` in Mesa, and `AgentID` in a DataCollector's frames: row + 1"),
        Column("id", "text", "your id for it"),
        Column("name", "text", "its name, which may not be unique"),
        Column("interests", "text", "the names of its interests, strongest first, separated by `;`"),
        *(Column(trait, "float32", f"Big Five trait: {trait}", "1 to 5") for trait in BIG_FIVE),
        *(Column(f.name, "int" if f.whole else "float64", f.meaning, f.unit) for f in AGENT_FIELDS.values()),
        *(
            Column(action, "float32", f"expected share of action `{action}` in its engagements", "share")
            for action in ACTIONS
        ),
        Column("followers", "int", "number of followers"),
        Column("followees", "int", "number of followees"),
        Column("posts", "int", "posts that it wrote, without replies and reshares"),
        Column("scripted", "bool", "whether it is of your own class with a script"),
        Column("present", "bool", "whether it was on the platform at the end"),
        *(
            Column(f"recorded_{table.name}", "bool", f"whether table `{table.name}` has its rows")
            for table in (TRANSITIONS, IMPRESSIONS, ENGAGEMENTS)
        ),
    ),
)
THOUGHTS: Final = TableSchema(
    "thoughts",
    "a thought, a tool call or a text of an agent",
    (
        _ROUND,
        _TICK,
        _AGENT,
        _POST_IF_ANY,
        Column("action", "text", "the kind of text that the agent writes"),
        Column("event", "text", "the kind of event"),
        Column("text", "text", "the text of the event"),
    ),
)
NOTES: Final = TableSchema(
    "notes",
    "a note of an agent to itself",
    (
        _ROUND,
        _TICK,
        _AGENT,
        Column("text", "text", "the note"),
        Column("importance", "int", "the agent's rating", "1 to 10"),
    ),
)

FOLLOWS: Final = TableSchema(
    "follows",
    "a decision of an agent about another, which takes effect in the next round",
    (
        Column("round", "int", "the round of the decision, -1: before round 0"),
        _AGENT,
        Column("other", "int", "row of the other agent in `agents`; for a report, the author of the post"),
        Column(
            "event",
            "category",
            "the decision; `block` ends the follows of both agents, and `unblock` does not restore them",
            one_of=FOLLOW_EVENTS,
        ),
        Column("post", "int", "row of the post that led to it in `posts`, -1: none"),
        Column(
            "why",
            "category",
            "the rule (docs/living-networks.md), a script, a tool, or a block of either agent by the other",
            one_of=FOLLOW_REASONS,
        ),
    ),
)

CHURN: Final = TableSchema(
    "churn",
    "an agent that joined or left as a round opened",
    (
        Column("round", "int", "the first round after the change"),
        _AGENT,
        Column(
            "event",
            "category",
            "join: a waiting agent, or one that a script added; removed: the agent left for good",
            one_of=CHURN_EVENTS,
        ),
    ),
)
OPINIONS: Final = TableSchema(
    "opinions",
    "a round, and the stances of agents (`opinions.of`) at its end",
    (
        Column("round", "int", "the round, -1: before round 0"),
        Column("mean", "float64", "mean stance of present agents", "the attribute's", finite=False),
        Column("sd", "float64", "standard deviation of their stances", "the attribute's", finite=False),
        Column(
            "bimodality",
            "float64",
            "Sarle's coefficient, 5/9 for a uniform distribution, 1 for two camps; NaN if all stances are equal",
            finite=False,
        ),
        Column("moved", "int", "agents whose stance changed in the round"),
        Column("drawn_on", "int", "impressions that moved the reader closer to the post"),
        Column("pushed_away", "int", "impressions that moved the reader away from the post"),
    ),
)
STANCES: Final = TableSchema(
    "stances",
    "one of 50 equal parts of the range of `opinions.of`, at the end of a round",
    (
        Column("round", "int", "the round, -1: before round 0"),
        Column("stance", "float64", "the middle of the part", "the attribute's"),
        Column("agents", "int", "present agents whose stance is in the part"),
    ),
)
INFLUENCES: Final = TableSchema(
    "influences",
    "a post that moved an agent with recorded impressions, in the order of reading",
    (
        _ROUND,
        _AGENT,
        _POST,
        Column("before", "float64", "the agent's stance before the post (`opinions.of`)", "the attribute's"),
        Column("after", "float64", "the agent's stance after the post", "the attribute's"),
    ),
)

ALWAYS: Final = by_name(ROUNDS, TICKS, TRANSITIONS, IMPRESSIONS, POSTS, ENGAGEMENTS, CASCADES, AGENTS)
"""The tables of every run of the platform."""

SOCIAL_TABLES: Final = ALWAYS | by_name(VIEWS, THOUGHTS, NOTES, FOLLOWS, CHURN, OPINIONS, STANCES, INFLUENCES)
"""The tables of a run of the platform: `views` only with `records.views`, `thoughts` and `notes` only with
`content: llm`, `follows` only with `network.dynamics: live` or decisions by scripts or tools, `churn` only with
`agents.churn` or scripts that add or remove agents, `opinions`, `stances` and `influences` only with `opinions.of`."""


def tables_with(declared: Attributes, llms: Sequence[str] = ()) -> dict[str, TableSchema]:
    """Return the tables of a run, with a column `llm` in `agents` if there are several LLMs, and attributes."""
    agents = (
        *([Column("llm", "category", "the agent's LLM at the end of the run")] if llms else ()),
        *(attribute.in_table("the agent") for attribute in declared.agents.values()),
    )
    root = "the post, or of the root of a reshare"
    posts = tuple(attribute.in_table(root) for attribute in declared.posts.values())
    more = {AGENTS.name: agents, POSTS.name: posts}
    return {name: replace(table, columns=table.columns + more.get(name, ())) for name, table in SOCIAL_TABLES.items()}
