"""Keys of a platform that were set and change nothing: one table, by what the other keys and the files make of a model.

What is said is of the tables of a run, but for what only Python sees: `clock.*` are the times of agents' histories,
by which hours of the day (`agents.hours`) and ages of posts go, and `statechart.max_history_depth` is their length.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from prism_mesa.llm.without_effect import is_for_a_server, limited, llm_keys
from prism_mesa.params import WithoutEffect
from prism_mesa.reasoner import ReasonerParams
from prism_mesa.reasoner.params import LETTER_TOKENS
from prism_mesa.social.known import Known
from prism_mesa.social.world.readers import is_parquet

type Row = WithoutEffect[Known]


def _network(k: Known, *kinds: str) -> bool:
    return k.p.network.kind not in (*kinds, "edges")


def _factor(name: str, other: str) -> Row:
    """Return that a factor of the x_algo score does nothing beside another one that is 0."""
    group = "feed.x_algo"
    return WithoutEffect(
        f"{group}.{name}", lambda k: getattr(k.p.feed.x_algo, other) == 0, f"it is multiplied by {group}.{other}=0"
    )


def _none_outside(k: Known) -> bool:
    """Return whether no feed has candidates from outside the network."""
    own = k.p.feed.candidates
    return not (k.p.feed.x_algo.out_of_network or own.out_of_network or own.two_hops or own.trending)


def _profiles(keys: str, *columns: str, unless: Callable[[Known], bool] = lambda k: False) -> Row:
    return WithoutEffect(
        keys,
        lambda k: frozenset(columns) <= k.profiled and not unless(k),
        f"agents.profiles gives every agent its own ({', '.join(columns)})",
    )


def _llm(keys: str, when: Callable[[Known], bool], why: str) -> Row:
    """Return a row about keys of an LLM that the parameters name and that decides."""
    names = " ".join(f"reasoner.{name}" for name in keys.split())
    return WithoutEffect(names, lambda k: k.asks and when(k), why)


_ALL_OF_LLMS: Final = llm_keys(ReasonerParams)
_IN_THE_RUN: Final = "in this run (interviews and surveys of it go by it)"

TABLE: Final[tuple[Row, ...]] = (
    # who follows whom
    WithoutEffect(
        "network.kind",
        lambda k: k.said.get("network.kind") not in (None, k.p.network.kind),
        "network.edges brings the network, and kind is edges (network.edges=null: make one)",
    ),
    WithoutEffect(
        "agents.n",
        lambda k: k.p.network.edges is not None and k.p.agents.n != k.n,
        "network.edges brings its {0.n:,} agents",
    ),
    WithoutEffect(
        "network.mean_degree network.follower_sigma network.followee_sigma network.reciprocity network.rewire "
        "network.blocks network.within",
        lambda k: k.p.network.edges is not None,
        "network.edges brings the network (network.edges=null: make one)",
    ),
    *(
        WithoutEffect(
            keys,
            partial(lambda kind, k: _network(k, kind), kind),
            f"only network.kind={kind} has it, not {{0.p.network.kind}}",
        )
        for kind, keys in {
            "configuration": "network.follower_sigma network.followee_sigma",
            "barabasi_albert": "network.reciprocity",
            "watts_strogatz": "network.rewire",
            "stochastic_block": "network.blocks network.within",
        }.items()
    ),
    WithoutEffect("network.within", lambda k: k.p.network.blocks == 1, "there is one block (network.blocks)"),
    WithoutEffect(
        "network.direction", lambda k: k.p.network.edges is None, "it turns the rows of network.edges, which is not set"
    ),
    WithoutEffect(
        "network.close_ties",
        lambda k: k.p.network.edges is not None and not (k.p.utility.sensitivity and k.p.utility.closeness),
        "in network.edges they are told from other follows by utility.closeness alone, which does not count",
    ),
    WithoutEffect(
        "network.rates.*",
        lambda k: k.p.network.dynamics == "fixed",
        "network.dynamics=fixed: only scripts and tools change who follows whom (network.dynamics=live)",
    ),
    WithoutEffect(
        "network.rates.engaged", lambda k: k.p.network.rates.follow == 0, "it is multiplied by network.rates.follow=0"
    ),
    WithoutEffect(
        "network.rates.reciprocal",
        lambda k: k.p.network.rates.unfollow == 0,
        "it is multiplied by network.rates.unfollow=0",
    ),
    # which files are read
    WithoutEffect("files.*", lambda k: not k.files, "no file is read (network.edges, posts.file, agents.profiles)"),
    WithoutEffect(
        "files.encoding", lambda k: all(map(is_parquet, k.files)), "it is for CSV, and all files are Parquet"
    ),
    # who the agents are
    _profiles("agents.threshold_mean agents.threshold_sd", "engagement_threshold"),
    _profiles("agents.activity", "activity", unless=lambda k: k.weighs_posting),
    _profiles("agents.activity_sigma", "activity", unless=lambda k: k.weighs_posting or k.draws_posting),
    _profiles("agents.post_rate agents.post_sigma", "post_rate"),
    _profiles("agents.popularity", "activity", "post_rate"),
    WithoutEffect(
        "agents.popularity",
        lambda k: k.p.agents.activity_sigma == 0 and not (k.p.agents.post_sigma and k.p.agents.post_rate),
        "agents do not differ in activity and posting (agents.activity_sigma=0)",
    ),
    WithoutEffect("agents.post_sigma", lambda k: k.p.agents.post_rate == 0, "it spreads agents.post_rate, which is 0"),
    WithoutEffect("agents.posting", lambda k: not k.posts, "nobody posts of its own accord (agents.post_rate)"),
    WithoutEffect("agents.hours agents.persistence", lambda k: not k.active, "nobody comes online (agents.activity)"),
    WithoutEffect(
        "agents.hours",
        lambda k: k.p.clock.round_minutes % (24 * 60) == 0,
        "a round lasts whole days (clock.round_minutes)",
    ),
    WithoutEffect(
        "agents.session_sigma", lambda k: k.p.agents.session is None, "all of the feed is looked at (agents.session)"
    ),
    _profiles("agents.like agents.reply agents.reshare agents.propensity_sigma", "like", "reply", "reshare"),
    _profiles("statechart.default_timeout_ticks", "timeout_threshold"),
    WithoutEffect(
        "agents.propensity_sigma",
        lambda k: sum(share > 0 for share in (k.p.agents.like, k.p.agents.reply, k.p.agents.reshare)) == 1,
        "of agents.like, reply and reshare only one is above 0, so all engage in the same way",
    ),
    # what is written
    WithoutEffect("posts.authors", lambda k: not k.authors, "the posts have no authors (posts.file, column author)"),
    WithoutEffect("posts.label_weight", lambda k: not k.labels, "the posts have no labels (posts.file, column topic)"),
    WithoutEffect(
        "posts.embedder",
        lambda k: k.labels and k.p.posts.label_weight == 1,
        "posts.label_weight=1 leaves their words no weight",
    ),
    WithoutEffect(
        "posts.seeded.round posts.seeded.size posts.seeded.position",
        lambda k: k.p.posts.seeded.count == 0,
        "no post is placed (posts.seeded.count)",
    ),
    WithoutEffect(
        "posts.seeded.position",
        lambda k: k.p.network.kind == "stochastic_block" and k.p.network.blocks == 1,
        "there is one community (network.blocks)",
    ),
    # what is shown
    WithoutEffect(
        "feed.x_algo.*", lambda k: k.p.feed.ranking != "x_2023", "it is for feed.mode=x_2023, not {0.p.feed.mode}"
    ),
    WithoutEffect(
        "feed.x_algo.out_of_network_factor", _none_outside, "no posts from outside the network are candidates"
    ),
    *(
        _factor(f"{one}_{name}", f"{other}_{name}")
        for name in ("good_click", "profile_click", "negative", "report")
        for one, other in (("rate", "weight"), ("weight", "rate"))
    ),
    _factor("reply_engaged", "weight_reply_engaged"),
    _factor("weight_reply_engaged", "reply_engaged"),
    _factor("rate_like", "weight_like"),
    _factor("rate_reshare", "weight_reshare"),
    WithoutEffect(
        "feed.x_algo.author_floor",
        lambda k: k.p.feed.x_algo.author_decay == 1,
        "with author_decay=1 there is no floor",
    ),
    # what it is worth
    WithoutEffect(
        "utility.weight utility.appeal_sigma utility.gamma utility.reshared utility.theta utility.closeness "
        "utility.mood",
        lambda k: k.p.utility.sensitivity == 0,
        "utility.sensitivity=0: utility is relevance",
    ),
    WithoutEffect(
        "utility.gamma", lambda k: k.p.utility.appeal_sigma == 0, "all posts appeal alike (utility.appeal_sigma=0)"
    ),
    WithoutEffect("utility.closeness", lambda k: not k.close, "nobody has close ties (network.close_ties)"),
    # the chart
    WithoutEffect("statechart.chart", lambda k: k.chart_given, "the chart that was given in Python takes its place"),
    WithoutEffect(
        "statechart.strict", lambda k: not k.own_chart, "no guard of the default chart can raise (statechart.chart)"
    ),
    WithoutEffect(
        "reasoner.asks_action", lambda k: k.own_chart, "it changes the default chart, and this one is not that"
    ),
    # who decides
    WithoutEffect(
        "reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.* "
        + llm_keys(ReasonerParams, "max_fallback_share"),
        lambda k: k.given,
        "the reasoner that was given in Python has its own (Reasoner(..., attempts=2))",
    ),
    WithoutEffect(
        f"reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.* {_ALL_OF_LLMS}",
        lambda k: not k.choices and not k.writes,
        "no choice is left open (statechart.oracle_enabled, statechart.chart), so nobody decides one",
    ),
    WithoutEffect(
        _ALL_OF_LLMS,
        lambda k: k.kind == "rule" and k.p.reasoner.kind == "rule",
        f"the rule decides {_IN_THE_RUN}, no LLM is asked: set reasoner.kind (auto, ollama, embedded, openai)",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, place=False),
        lambda k: k.kind == "rule" and k.idle_llm,
        f"the rule decides {_IN_THE_RUN}, as no LLM was found",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, "persona", place=False),
        lambda k: k.kind == "distilled" and k.idle_llm,
        f"the distilled model decides {_IN_THE_RUN}, no LLM is asked, and it has its own archetypes",
    ),
    WithoutEffect(
        "reasoner.model reasoner.host",
        lambda k: k.kind == "distilled" and k.p.reasoner.kind == "distilled",
        f"the distilled model decides {_IN_THE_RUN}, no LLM is asked",
    ),
    WithoutEffect(
        "reasoner.llm_share", lambda k: k.kind == "distilled", "the distilled model decides alone, as no LLM was found"
    ),
    WithoutEffect(
        "reasoner.rule.*",
        lambda k: k.kind == "distilled" and not k.unlearned,
        "the distilled model decides all that is open",
    ),
    WithoutEffect(
        "reasoner.distilled reasoner.llm_share reasoner.rule.* reasoner.answer reasoner.persona reasoner.archetypes "
        "reasoner.fallback reasoner.temperature reasoner.max_answer_tokens",
        lambda k: not k.choices,
        "no choice is left open; texts go by deliberation.temperature and .max_answer_tokens",
    ),
    _llm("distilled", lambda k: k.p.reasoner.llm_share == 1, "reasoner.llm_share=1 leaves it no choice"),
    _llm("host", lambda k: k.p.reasoner.kind == "embedded", "the embedded LLM is on no server"),
    _llm("max_concurrency", lambda k: k.kind == "embedded", "the embedded LLM answers one question at a time"),
    _llm(
        "model",
        lambda k: k.kind == "embedded" and is_for_a_server(k.p.reasoner),
        "no server has it, and the embedded LLM is a file (.gguf)",
    ),
    _llm("timeout_s", lambda k: k.kind == "embedded" and not k.writes, "the embedded LLM is waited for"),
    _llm("temperature max_answer_tokens", lambda k: k.scores, "the embedded LLM gives scores (reasoner.answer=choice)"),
    _llm(
        "seed attempts backoff_s",
        lambda k: k.scores and not k.writes,
        "the embedded LLM gives scores, the same each time (reasoner.answer=choice)",
    ),
    _llm(
        "max_answer_tokens",
        lambda k: k.answer == "probabilities" and k.p.reasoner.max_answer_tokens >= LETTER_TOKENS,
        f"one letter is asked for, in {LETTER_TOKENS} tokens (reasoner.answer=choice)",
    ),
    _llm("backoff_s", lambda k: k.p.reasoner.attempts == 1, "reasoner.attempts=1: nothing is asked again"),
    _llm("archetypes", lambda k: k.persona == "individual", "each agent asks for itself (reasoner.persona=archetype)"),
    _llm("spend_on", lambda k: not limited(k.p.reasoner), "there is no limit to be spent (reasoner.max_calls, ...)"),
    _llm(
        "rule.*",
        lambda k: not k.scores and not k.unlearned and k.p.reasoner.fallback != "rule",
        "the LLM decides, and reasoner.fallback={0.p.reasoner.fallback} stands in for it, not the rule",
    ),
    WithoutEffect("reasoner.rule.media", lambda k: not k.media, "the posts have no media (posts.media_share)"),
    WithoutEffect(
        "reasoner.rule.slope",
        lambda k: k.kind == "rule" and k.p.agents.band == 0,
        "a band without width (agents.band=0) has no slope",
    ),
    # how agents think and write
    WithoutEffect(
        "deliberation.conversation_tokens deliberation.max_seconds", lambda k: True, f"agents do not talk {_IN_THE_RUN}"
    ),
    WithoutEffect("deliberation.*", lambda k: not k.writes, f"no LLM writes {_IN_THE_RUN}: content={{0.p.content}}"),
    WithoutEffect(
        "deliberation.result_chars deliberation.notes deliberation.notes_told",
        lambda k: k.p.deliberation.max_tool_calls == 0,
        "deliberation.max_tool_calls=0: no tool is called, not that for notes either",
    ),
)
"""Which keys change nothing, when, and why; the first entry that says so is told."""
