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
    Column("impressions", "int", "posts that somebody read"),
    *(Column(name, "int", name) for name in COUNTERS),
    Column("open", "int", "choices that the guards left open, also those after which the agent stayed where it was"),
    Column("fallback", "int", "of these, answered by a fallback"),
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
        Column("trigger", "category", "what fired it"),
        Column("from_state", "category", "the state before"),
        Column("to_state", "category", "the state after"),
        _POST_IF_ANY,
        Column("open", "bool", "whether the guards left it open; an open choice to stay (`stay`) has no row here"),
    ),
)
_SOURCE: Final = Column(
    "source", "int", "how many have shown the agent this root by now, this one included (`feed.repeats`)", optional=True
)
IMPRESSIONS: Final = TableSchema(
    "impressions", "a post that an agent read", (_ROUND, _TICK, _AGENT, _POST, _ROOT, _SOURCE)
)
ENGAGEMENTS: Final = TableSchema(
    "engagements",
    "a like, a reply or a reshare",
    (_ROUND, _TICK, _AGENT, _POST, _ROOT, Column("action", "category", "what it is", one_of=ACTIONS)),
)
VIEWS: Final = TableSchema(
    "views",
    "a round in which agents read a post or its copies (of the posts that `records.views` draws)",
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
        Column("kind", "category", "what it is", one_of=POST_KINDS),
        Column("parent", "int", "what it answers or passes on, -1: nothing", blank=True),  # blanks: version 0.1
        Column("root", "int", "the post whose cascade it belongs to; its own row, but for a reshare"),
        *(Column(name, "int", f"{name} of it and all its copies, counted at the root") for name in COUNTERS),
        Column("impressions", "int", "impressions of it and all its copies, counted at the root"),
        Column("velocity", "int", "engagements with it in the last `feed.velocity_window` rounds"),
        Column("topic", "category", "the name of a topic that it is nearest to, as interests have them", blank=True),
        Column("text", "category", "of a reply its own words, of a reshare what it passes on or quotes", blank=True),
        Column("comment", "category", "what a reshare adds", blank=True),
        Column("media_type", "category", "image, video, link, ...; empty: none", blank=True),
        Column("media_description", "category", "what its media show, in words", blank=True),
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
        Column(
            "structural_virality",
            "float64",
            "mean distance of all pairs (Goel et al. 2016), 0 for a lone post",
            "steps",
        ),
        Column("kind", "category", "what it began with", one_of=POST_KINDS),
    ),
)
AGENTS: Final = TableSchema(
    "agents",
    "an agent",
    (
        Column("agent", "int", "its row, from 0"),
        Column("unique_id", "int", "Mesa's `unique_id` of it, which is `AgentID` in a DataCollector's frames: row + 1"),
        Column("id", "text", "your id for it"),
        Column("name", "text", "its name, which others may have too"),
        Column("interests", "text", "words for its interests, what it likes best first, with `;` between them"),
        *(Column(trait, "float32", trait, "1 to 5") for trait in BIG_FIVE),
        *(Column(f.name, "int" if f.whole else "float64", f.meaning, f.unit) for f in AGENT_FIELDS.values()),
        *(Column(action, "float32", f"of its engagements that are to be a {action}", "share") for action in ACTIONS),
        Column("followers", "int", "who follow it"),
        Column("followees", "int", "whom it follows"),
        Column("posts", "int", "posts that it wrote, replies and reshares not among them"),
        Column("scripted", "bool", "whether a class of yours plays it"),
        Column("present", "bool", "whether it was there at the end"),
        *(
            Column(f"recorded_{table.name}", "bool", f"whether its rows stand in `{table.name}`")
            for table in (TRANSITIONS, IMPRESSIONS, ENGAGEMENTS)
        ),
    ),
)
THOUGHTS: Final = TableSchema(
    "thoughts",
    "what an agent thought, called or said when it wrote",
    (
        _ROUND,
        _TICK,
        _AGENT,
        _POST_IF_ANY,
        Column("action", "text", "what it was about to do"),
        Column("event", "text", "what kind of event it is"),
        Column("text", "text", "its words"),
    ),
)
NOTES: Final = TableSchema(
    "notes",
    "what an agent noted for itself",
    (_ROUND, _TICK, _AGENT, Column("text", "text", "its words"), Column("importance", "int", "as it says", "1 to 10")),
)

FOLLOWS: Final = TableSchema(
    "follows",
    "something that an agent decided about another one, and that holds from the next round on",
    (
        Column("round", "int", "the round in which it was decided, -1: before the first"),
        _AGENT,
        Column("other", "int", "row of the other one in `agents`; of a report, the author of the post"),
        Column(
            "event",
            "category",
            "what it is; a block ends follows both ways, and to take it back restores none",
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
    "an agent that came or went as a round opened",
    (
        Column("round", "int", "the first round in which it is there, or is not"),
        _AGENT,
        Column(
            "event",
            "category",
            "how; join: one who waited, or whom a script made; removed: for good",
            one_of=CHURN_EVENTS,
        ),
    ),
)
OPINIONS: Final = TableSchema(
    "opinions",
    "a round, with what agents hold after it (`opinions.of`)",
    (
        Column("round", "int", "the round, -1: before the first"),
        Column("mean", "float64", "mean stance of the agents that are there", "the attribute's", finite=False),
        Column("sd", "float64", "its standard deviation", "the attribute's", finite=False),
        Column(
            "bimodality",
            "float64",
            "Sarle's coefficient, 5/9 if all stances are as frequent, 1 of two camps; NaN where all hold the same",
            finite=False,
        ),
        Column("moved", "int", "agents whose stance is another one after the round"),
        Column("drawn_on", "int", "posts that drew a reader on, each as often as it did"),
        Column("pushed_away", "int", "posts that pushed a reader away"),
    ),
)
STANCES: Final = TableSchema(
    "stances",
    "one of 50 equal parts of the range of `opinions.of`, after a round",
    (
        Column("round", "int", "the round, -1: before the first"),
        Column("stance", "float64", "the middle of the part", "the attribute's"),
        Column("agents", "int", "agents that are there and whose stance lies in it"),
    ),
)
INFLUENCES: Final = TableSchema(
    "influences",
    "a post that moved an agent (of those whose impressions are recorded), in the order in which it did",
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
"""The tables of a run of the platform; `views` only with `records.views`, `thoughts` and `notes` only where an LLM
writes (`content: llm`), `follows` only where the network moves (`network.dynamics: live`, or a script or a tool that
decides about others), `churn` only where agents come and go (`agents.churn`, or a script that makes or removes some),
`opinions`, `stances` and `influences` only where an attribute moves (`opinions.of`)."""


def tables_with(declared: Attributes, llms: Sequence[str] = ()) -> dict[str, TableSchema]:
    """Return the tables of a run: `agents` gets a column `llm` if there are several LLMs, then the attributes."""
    agents = (
        *([Column("llm", "category", "the agent's LLM at the end of the run")] if llms else ()),
        *(attribute.in_table("the agent") for attribute in declared.agents.values()),
    )
    root = "the post, of a reshare that of its root"
    posts = tuple(attribute.in_table(root) for attribute in declared.posts.values())
    more = {AGENTS.name: agents, POSTS.name: posts}
    return {name: replace(table, columns=table.columns + more.get(name, ())) for name, table in SOCIAL_TABLES.items()}
