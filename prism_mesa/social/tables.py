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
_TICK = Column("tick", "int", "0 opens the round, 1 to `ticks_per_round` are its ticks, the next one closes it")
_AGENT = Column("agent", "int", "row of the agent in `agents`")
_POST = Column("post", "int", "row of the post in `posts`")
_POST_IF_ANY = Column("post", "int", "row of the post in `posts`, -1: none")
_ROOT = Column("root", "int", "the post whose cascade it counts for")

ROUND_COUNTS: Final = (
    Column("online", "int", "agents that came online"),
    Column("posts", "int", "posts that appeared, replies and reshares not among them"),
    Column("impressions", "int", "posts read by agents"),
    *(Column(name, "int", name) for name in COUNTERS),
    Column("open", "int", "choices that the guards left open, also those to stay in the state"),
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
        Column("trigger", "category", "the trigger"),
        Column("from_state", "category", "the state before"),
        Column("to_state", "category", "the state after"),
        _POST_IF_ANY,
        Column("open", "bool", "whether the guards left it open; an open choice to stay has no row"),
    ),
)
_SOURCE: Final = Column(
    "source", "int", "times that the agent has read this root so far, inclusive (`feed.repeats`)", optional=True
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
    "a round in which agents read a post or its copies (for posts drawn by `records.views`)",
    (_ROUND, _ROOT, Column("impressions", "int", "impressions of the root and all its copies in that round")),
)
POSTS: Final = TableSchema(
    "posts",
    "a post, a reply or a reshare",
    (
        Column("post", "int", "its row, from 0"),
        Column("round", "int", "the round in which it is first shown"),
        Column("written", "int", "the round in which it was written"),
        Column("author", "int", "row of its author in `agents`"),
        Column("kind", "category", "the kind of post", one_of=POST_KINDS),
        Column("parent", "int", "the post that it answers or reshares, -1: none", blank=True),  # blanks: version 0.1
        Column("root", "int", "the post whose cascade it belongs to; its own row, except for a reshare"),
        *(Column(name, "int", f"{name} of it and all its copies, counted at the root") for name in COUNTERS),
        Column("impressions", "int", "impressions of it and all its copies, counted at the root"),
        Column("velocity", "int", "engagements with it in the last `feed.velocity_window` rounds"),
        Column("topic", "category", "the name of the nearest topic, as in interests", blank=True),
        Column("text", "category", "the words of a reply, or the text that a reshare passes on", blank=True),
        Column("comment", "category", "the comment of a reshare", blank=True),
        Column("media_type", "category", "image, video, link, ...; empty: none", blank=True),
        Column("media_description", "category", "a description of its media", blank=True),
    ),
)
CASCADES: Final = TableSchema(
    "cascades",
    "a post or a reply, with its tree of reshares (summaries, figures and measures count those of posts)",
    (
        Column("root", "int", "the post in `posts`"),
        Column("size", "int", "1 + reshares"),
        Column("depth", "int", "reshares from the root to the farthest one"),
        Column("breadth", "int", "most reshares at one depth, 1 for a lone post"),
        Column("structural_virality", "float64", "mean distance of pairs (Goel et al. 2016), 0 without", "steps"),
        Column("kind", "category", "the kind of its root", one_of=POST_KINDS),
    ),
)
AGENTS: Final = TableSchema(
    "agents",
    "an agent",
    (
        Column("agent", "int", "its row, from 0"),
        Column("unique_id", "int", "its `unique_id` in Mesa, `AgentID` in a DataCollector's frames: row + 1"),
        Column("id", "text", "your id for it"),
        Column("name", "text", "its name, not always unique"),
        Column("interests", "text", "the names of its interests, strongest first, separated by `;`"),
        *(Column(trait, "float32", trait, "1 to 5") for trait in BIG_FIVE),
        *(Column(f.name, "int" if f.whole else "float64", f.meaning, f.unit) for f in AGENT_FIELDS.values()),
        *(Column(action, "float32", f"of {action} among its engagements, as drawn", "share") for action in ACTIONS),
        Column("followers", "int", "number of followers"),
        Column("followees", "int", "number of followees"),
        Column("posts", "int", "posts that it wrote, without replies and reshares"),
        Column("scripted", "bool", "whether its class is yours and has a script"),
        Column("present", "bool", "whether it was on the platform at the end"),
        *(
            Column(f"recorded_{table.name}", "bool", f"whether `{table.name}` has its rows")
            for table in (TRANSITIONS, IMPRESSIONS, ENGAGEMENTS)
        ),
    ),
)
THOUGHTS: Final = TableSchema(
    "thoughts",
    "a thought, a tool call or a text of an agent that writes",
    (
        _ROUND,
        _TICK,
        _AGENT,
        _POST_IF_ANY,
        Column("action", "text", "the kind of text that it writes"),
        Column("event", "text", "the kind of event"),
        Column("text", "text", "the words"),
    ),
)
NOTES: Final = TableSchema(
    "notes",
    "a note of an agent to itself",
    (_ROUND, _TICK, _AGENT, Column("text", "text", "the words"), Column("importance", "int", "its rating", "1 to 10")),
)

FOLLOWS: Final = TableSchema(
    "follows",
    "a decision of an agent about another, which takes effect in the next round",
    (
        Column("round", "int", "the round of the decision, -1: before the first"),
        _AGENT,
        Column("other", "int", "row of the other agent in `agents`; for a report, the author of the post"),
        Column(
            "event",
            "category",
            "the decision; a block ends follows both ways, and an unblock restores none",
            one_of=FOLLOW_EVENTS,
        ),
        Column("post", "int", "the post that led to it, row in `posts`, -1: none"),
        Column(
            "why",
            "category",
            "the rule (docs/living-networks.md), a script or a tool; `block`: one of the two has blocked the other",
            one_of=FOLLOW_REASONS,
        ),
    ),
)

CHURN: Final = TableSchema(
    "churn",
    "an agent that joined or left as a round opened",
    (
        Column("round", "int", "the first round with or without the agent"),
        _AGENT,
        Column(
            "event",
            "category",
            "join: the agent waited, or a script added it; removed: it left for good",
            one_of=CHURN_EVENTS,
        ),
    ),
)
OPINIONS: Final = TableSchema(
    "opinions",
    "a round, with the stances of agents after it (`opinions.of`)",
    (
        Column("round", "int", "the round, -1: before the first"),
        Column("mean", "float64", "mean stance of present agents", "the attribute's", finite=False),
        Column("sd", "float64", "its standard deviation", "the attribute's", finite=False),
        Column(
            "bimodality",
            "float64",
            "Sarle's coefficient, 5/9 for a uniform distribution, 1 for two camps; NaN if all stances are equal",
            finite=False,
        ),
        Column("moved", "int", "agents whose stance changed in the round"),
        Column("drawn_on", "int", "impressions that drew the reader nearer"),
        Column("pushed_away", "int", "impressions that pushed the reader away"),
    ),
)
STANCES: Final = TableSchema(
    "stances",
    "one of 50 equal parts of the range of `opinions.of`, after a round",
    (
        Column("round", "int", "the round, -1: before the first"),
        Column("stance", "float64", "the middle of the part", "the attribute's"),
        Column("agents", "int", "present agents with a stance in it"),
    ),
)
INFLUENCES: Final = TableSchema(
    "influences",
    "a post that moved an agent whose impressions are recorded, in order",
    (
        _ROUND,
        _AGENT,
        _POST,
        Column("before", "float64", "its stance before that post (`opinions.of`)", "the attribute's"),
        Column("after", "float64", "its stance after it", "the attribute's"),
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
