"""Keys of a platform that were set and change nothing: one table, by what the other keys and the files make of a model.

What is said is of the tables of a run, but for what only Python sees: `clock.*` are the times of agents' histories,
by which hours of the day (`agents.hours`) and ages of posts go, and `statechart.max_history_depth` is their length.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from prism_mesa.social.idle_deciders import OF_DECIDERS
from prism_mesa.social.known import Known
from prism_mesa.without_effect import WithoutEffect

type Row = WithoutEffect[Known]


def _network(k: Known, *kinds: str) -> bool:
    return k.p.network.kind not in (*kinds, "edges")


def _is_all_the_same(k: Known) -> bool:
    """Return whether it changes nothing by which attribute agents are alike."""
    own = k.p.agents.homophily
    engaging, following = k.p.utility.sensitivity * own.engaging, k.p.network.dynamics == "live" and own.following
    return not (engaging or following)


def _profiles(keys: str, *columns: str, unless: Callable[[Known], bool] = lambda k: False) -> Row:
    return WithoutEffect(
        keys,
        lambda k: frozenset(columns) <= k.profiled and not unless(k),
        f"agents.profiles gives every agent its own ({', '.join(columns)})",
    )


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
        "network.mean_degree network.follower_sigma network.followee_sigma network.correlation network.mutual "
        "network.reciprocity network.rewire network.blocks network.within network.seed",
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
            "configuration": "network.follower_sigma network.followee_sigma network.correlation network.mutual",
            "barabasi_albert": "network.reciprocity",
            "watts_strogatz": "network.rewire",
            "stochastic_block": "network.blocks network.within",
        }.items()
    ),
    WithoutEffect(
        "network.direction", lambda k: k.p.network.edges is None, "it turns the rows of network.edges, which is not set"
    ),
    WithoutEffect(
        "network.correlation",
        lambda k: 0 in (k.p.network.follower_sigma, k.p.network.followee_sigma),
        "it relates two lognormal numbers (network.follower_sigma and network.followee_sigma above 0)",
    ),
    WithoutEffect(
        "network.close_ties",
        lambda k: not k.p.utility.sensitivity or k.p.utility.closeness is None,
        "close ties differ from other follows by utility.closeness alone, which does not count",
    ),
    WithoutEffect(
        "network.rates.*",
        lambda k: k.p.network.dynamics == "fixed",
        "network.dynamics=fixed: only scripts and tools change who follows whom (network.dynamics=live)",
    ),
    # who is liked
    WithoutEffect(
        "agents.homophily.*", lambda k: k.p.agents.homophily.by is None, "it goes by nothing (agents.homophily.by)"
    ),
    WithoutEffect(
        "agents.homophily.following",
        lambda k: k.p.network.dynamics == "fixed",
        "network.dynamics=fixed: only scripts and tools change who follows whom (network.dynamics=live)",
    ),
    WithoutEffect("agents.homophily.by", _is_all_the_same, "neither engaging nor following goes by it"),
    # what agents hold
    WithoutEffect(
        "opinions.rule opinions.by opinions.when opinions.rate opinions.confidence opinions.repulsion",
        lambda k: k.p.opinions.of is None,
        "opinions.of names no attribute that moves",
    ),
    WithoutEffect(
        "opinions.confidence",
        lambda k: k.p.opinions.rule != "bounded_confidence",
        "it is for opinions.rule=bounded_confidence, not {0.p.opinions.rule}",
    ),
    WithoutEffect(
        "opinions.repulsion",
        lambda k: k.p.opinions.rule != "assimilation_repulsion",
        "it is for opinions.rule=assimilation_repulsion, not {0.p.opinions.rule}",
    ),
    WithoutEffect(
        "opinions.rate", lambda k: k.p.opinions.own is not None, "a rule of your own says itself how far agents move"
    ),
    # which files are read
    WithoutEffect("files.*", lambda k: not k.files, "no file is read (network.edges, posts.file, agents.profiles)"),
    WithoutEffect("posts.dates", lambda k: k.p.posts.file is None, "no dates are read (posts.file)"),
    # who the agents are
    _profiles("agents.threshold_mean agents.threshold_sd", "engagement_threshold"),
    _profiles("agents.activity", "activity", unless=lambda k: k.weighs_posting),
    _profiles("agents.activity_sigma", "activity", unless=lambda k: k.weighs_posting or k.draws_posting),
    _profiles("agents.post_rate agents.post_sigma", "post_rate"),
    _profiles("agents.popularity", "activity", "post_rate"),
    WithoutEffect("agents.posting", lambda k: not k.posts, "nobody posts of its own accord (agents.post_rate)"),
    WithoutEffect(
        "agents.hours agents.time_zone agents.rhythm agents.persistence",
        lambda k: not k.active,
        "nobody comes online (agents.activity)",
    ),
    WithoutEffect(
        "agents.time_zone",
        lambda k: k.p.agents.hours is None and not k.p.agents.rhythm,
        "all hours are alike (agents.hours)",
    ),
    WithoutEffect(
        "agents.session_sigma", lambda k: k.p.agents.session is None, "all of the feed is looked at (agents.session)"
    ),
    _profiles("agents.like agents.reply agents.reshare agents.propensity_sigma", "like", "reply", "reshare"),
    _profiles("statechart.default_timeout_ticks", "timeout_threshold"),
    WithoutEffect(
        "agents.churn.join", lambda k: k.p.agents.churn.waiting == 0, "nobody waits to join (agents.churn.waiting)"
    ),
    WithoutEffect("agents.churn.back", lambda k: not k.p.has_leavers, "nobody leaves (agents.churn.leave)"),
    # what is written
    WithoutEffect("posts.authors", lambda k: not k.authors, "the posts have no authors (posts.file, column author)"),
    WithoutEffect("posts.label_weight", lambda k: not k.labels, "the posts have no labels (posts.file, column topic)"),
    WithoutEffect(
        "posts.seeded.round posts.seeded.size posts.seeded.position",
        lambda k: k.p.posts.seeded.count == 0,
        "no post is placed (posts.seeded.count)",
    ),
    # what is shown
    WithoutEffect(
        "feed.x_algo.*", lambda k: k.p.feed.ranking != "x_2023", "it is for feed.mode=x_2023, not {0.p.feed.mode}"
    ),
    WithoutEffect(
        "feed.attribute",
        lambda k: k.p.feed.mode not in ("bridging", "diverse"),
        "it is for feed.mode=bridging and diverse, not {0.p.feed.mode}",
    ),
    WithoutEffect(
        "feed.slots.every",
        lambda k: not (k.p.feed.slots.trending or k.p.feed.slots.search),
        "there are no slots (feed.slots.trending, feed.slots.search)",
    ),
    # what it is worth
    WithoutEffect(
        "utility.weight utility.appeal_sigma utility.gamma utility.reshared utility.theta utility.closeness "
        "utility.mood utility.per_source agents.homophily.engaging",
        lambda k: k.p.utility.sensitivity == 0,
        "utility.sensitivity=0: utility is relevance",
    ),
    WithoutEffect(
        "utility.gamma", lambda k: k.p.utility.appeal_sigma == 0, "all posts appeal alike (utility.appeal_sigma=0)"
    ),
    WithoutEffect("utility.closeness", lambda k: not k.close, "nobody has close ties (network.close_ties)"),
    WithoutEffect("utility.per_source", lambda k: not k.p.feed.repeats, "no root is shown again (feed.repeats)"),
    # the chart
    WithoutEffect("statechart.chart", lambda k: k.chart_given, "the chart that was given in Python takes its place"),
    WithoutEffect(
        "statechart.strict", lambda k: not k.own_chart, "no guard of the default chart can raise (statechart.chart)"
    ),
    WithoutEffect(
        "reasoner.asks_action", lambda k: k.own_chart, "it changes the default chart, and this one is not that"
    ),
    *OF_DECIDERS,
)
"""Which keys change nothing, when, and why; the first entry that says so is told."""
