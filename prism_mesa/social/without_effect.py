"""Keys, and settings of interventions, that you set and that change nothing.

`ModelFacts` holds what is known of a model when it starts. `TABLE` says of each key when it changes nothing, and why.
The notes are about the tables of a run. Two keys matter in Python all the same: `clock.*` gives the times of agents'
histories, and `statechart.max_history_depth` their length.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from prism_mesa.llm.budget import Budget
from prism_mesa.llm.kinds import KINDS_THAT_ASK
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.params import explicit_values, leaf_values
from prism_mesa.reasoner import ReasonerParams, asks_llm, is_distilled
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.world.build import StartingWorld
from prism_mesa.without_effect import WithoutEffect, without_effect


@dataclass(frozen=True)
class ModelFacts:
    """What decides whether a key has an effect.

    Attributes:
        p: The parameters; `said` what was said of each key that was set.
        kind: Who decides, as in `reasoner.kind`; `given`: an object was given for it.
        choices: Whether the chart leaves anything open that is asked about.
        scores: Whether the LLM gives scores, from which the rule makes chances.
        answer: In which form it is asked; `persona`: as whom.
        unlearned: Whether the rule decides what a distilled model has not learned.
        writes: Whether an LLM writes.
        own_chart: Whether the chart is not the default one; `chart_given`: it was given as an object.
        authors: Whether the posts have authors; so `labels`, `media`.
        profiled: Columns of profiles that are given for every agent.
        close: Whether somebody has close ties; `active`: ever comes online; `posts`: ever posts of its own accord.
        n: Number of agents.
    """

    p: SocialParams
    said: Mapping[str, Any]
    kind: str
    given: bool
    choices: bool
    scores: bool
    answer: str
    persona: str
    unlearned: bool
    writes: bool
    own_chart: bool
    chart_given: bool
    authors: bool
    labels: bool
    media: bool
    profiled: frozenset[str]
    close: bool
    active: bool
    posts: bool
    n: int

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read, as `files` says."""
        named = (self.p.network.edges, self.p.posts.file, self.p.agents.profiles)
        return tuple(file for file in named if file is not None)

    @property
    def asks(self) -> bool:
        """Whether an LLM that the parameters name decides."""
        return self.choices and not self.given and self.kind not in ("rule", "distilled")

    @property
    def idle_llm(self) -> bool:
        """Whether no LLM is asked about anything."""
        return not self.given and not self.asks and not self.writes

    @property
    def weighs_posting(self) -> bool:
        """Whether rates of posting are drawn whose mean is weighted by activity."""
        own = self.p.agents
        shared = own.post_sigma is None or own.popularity > 0
        return own.posting == "online" and shared and "post_rate" not in self.profiled

    @property
    def draws_posting(self) -> bool:
        """Whether the draw of activity serves posting."""
        return self.p.agents.post_sigma is None and "post_rate" not in self.profiled


def model_facts(
    platform: Platform, world: StartingWorld, said: Mapping[str, Any], *, given: bool, chart_given: bool
) -> ModelFacts:
    """Return what is known of a platform that was made from a world, and of which keys this was said.

    Args:
        platform: The platform.
        world: What it was made from.
        said: What was said of each key that was set.
        given: Whether a reasoner was given for it in Python.
        chart_given: Whether a chart was.
    """
    asked, corpus = platform.reasoner, world.corpus
    llm = asked if asks_llm(asked) else None
    left = [options for options in platform.tables.option_sets if len(options) > 1]
    distilled = asked.batch_reasoner if is_distilled(asked.batch_reasoner) else None
    return ModelFacts(
        p=platform.params,
        said=said,
        kind=asked.kind,
        given=given,
        choices=bool(left),
        scores=llm is not None and "answer" not in llm.oracle.decoding,
        answer=str(llm.params.answer if llm is not None else ""),
        persona=str(llm.params.persona if llm is not None else ""),
        unlearned=distilled is not None and any(options not in distilled.model.by_options for options in left),
        writes=platform.writer is not None,
        own_chart=chart_given or platform.params.statechart.chart is not None,
        chart_given=chart_given,
        authors=corpus.authors is not None,
        labels=any(corpus.labels),
        media=any(corpus.media_types),
        profiled=world.profiled,
        close=bool(len(platform.drawn_network.close_indices)),
        active=bool(platform.population.activity.any()),
        posts=bool(platform.population.post_rate.any()),
        n=len(platform.population),
    )


type Row = WithoutEffect[ModelFacts]


def _llm(keys: str, when: Callable[[ModelFacts], bool], why: str) -> Row:
    """Return a row about keys of an LLM that the parameters name and that decides."""
    names = " ".join(f"reasoner.{name}" for name in keys.split())
    return WithoutEffect(names, lambda k: k.asks and when(k), why)


_ALL_OF_LLMS: Final = llm_keys(ReasonerParams)
_NO_WORDS: Final = "a decision model writes no words (reasoner.answer=decision)"
_IN_THE_RUN: Final = "in this run (interviews and surveys of it go by it)"

OF_DECIDERS: Final[tuple[Row, ...]] = (
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
        f"the rule decides {_IN_THE_RUN}, no LLM is asked: set reasoner.kind ({KINDS_THAT_ASK})",
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
        "reasoner.distilled reasoner.llm_share reasoner.rule.* reasoner.answer reasoner.reason reasoner.persona "
        "reasoner.archetypes reasoner.fallback reasoner.temperature reasoner.max_answer_tokens",
        lambda k: not k.choices,
        "no choice is left open; texts go by deliberation.temperature and .max_answer_tokens",
    ),
    _llm("distilled", lambda k: k.p.reasoner.llm_share == 1, "reasoner.llm_share=1 leaves it no choice"),
    *(_llm(*row) for row in WITHOUT_EFFECT),
    _llm("temperature max_answer_tokens reason", lambda k: k.scores, "the embedded LLM gives scores (answer=choice)"),
    _llm(
        "seed attempts backoff_s",
        lambda k: k.scores and not k.writes,
        "the embedded LLM gives scores, the same each time (reasoner.answer=choice)",
    ),
    _llm("temperature max_answer_tokens", lambda k: k.answer == "decision", _NO_WORDS),
    _llm("seed think num_ctx", lambda k: k.answer == "decision" and not k.writes, _NO_WORDS),
    _llm("decision_orders", lambda k: k.answer != "decision", "only a decision has orders (reasoner.answer=decision)"),
    _llm("archetypes", lambda k: k.persona == "individual", "each agent asks for itself (reasoner.persona=archetype)"),
    _llm(
        "spend_on",
        lambda k: not Budget(k.p.reasoner).limited,
        "there is no limit to spend (reasoner.max_calls, ...)",
    ),
    _llm(
        "rule.*",
        lambda k: not k.scores and not k.unlearned and k.p.reasoner.fallback != "rule",
        "the LLM decides, and reasoner.fallback={0.p.reasoner.fallback} stands in for it, not the rule",
    ),
    WithoutEffect("reasoner.rule.media", lambda k: not k.media, "the posts have no media (posts.media_share)"),
    # how agents think and write
    WithoutEffect(
        "deliberation.conversation_tokens deliberation.max_seconds", lambda k: True, f"agents do not talk {_IN_THE_RUN}"
    ),
    WithoutEffect("deliberation.*", lambda k: not k.writes, f"no LLM writes {_IN_THE_RUN}: content={{0.p.content}}"),
)


def _network(k: ModelFacts, *kinds: str) -> bool:
    return k.p.network.kind not in (*kinds, "edges")


def _is_all_the_same(k: ModelFacts) -> bool:
    """Return whether it changes nothing by which attribute agents are alike."""
    own = k.p.agents.homophily
    engaging, following = k.p.utility.sensitivity * own.engaging, k.p.network.dynamics == "live" and own.following
    return not (engaging or following)


def _profiles(keys: str, *columns: str, unless: Callable[[ModelFacts], bool] = lambda k: False) -> Row:
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


def keys_without_effect(platform: Platform, world: StartingWorld, *, given: bool, chart_given: bool) -> tuple[str, ...]:
    """Return in words which keys were set and change nothing.

    Args:
        platform: The platform.
        world: What it was made from.
        given: Whether a reasoner was given for it in Python.
        chart_given: Whether a chart was.
    """
    said = explicit_values(platform.params)
    if platform.params.reasoner.kind == "auto":  # whoever is there decides, and the summary says who that was
        said.pop("reasoner.kind", None)
    known = model_facts(platform, world, said, given=given, chart_given=chart_given)
    keys = list(said)
    for place in range(len(platform.params.interventions)):  # what counts from a later round on does count
        later = _known_under(platform, world, place, given=given, chart_given=chart_given)
        idle = [entry for entry in TABLE if entry.when(later)]
        keys = [key for key in keys if any(entry.holds(key) for entry in idle)]
    return (*without_effect(TABLE, known, keys), *_never_told(known))


def _at(platform: Platform, place: int) -> SocialParams:
    """Return the parameters for all agents in the round of an intervention, without it and what comes after it."""
    params = platform.params
    earlier = params.model_copy(update={"interventions": params.interventions[:place]})
    return earlier.at(params.interventions[place].at)


def _never_told(known: ModelFacts) -> list[str]:
    """Return in words which attributes are to be told in prompts, and are not."""
    if known.given or known.writes or (known.asks and known.persona != "archetype"):
        return []
    why = "archetypes are asked, who speak for many agents" if known.asks else "no LLM is asked"
    told = {name: own.of for name, own in known.p.attributes.items() if own.told}
    return [f"attributes.{name}.told: no effect: {why}" for name, of in told.items() if of == "agent" or not known.asks]


def interventions_without_effect(
    platform: Platform, world: StartingWorld, *, given: bool, chart_given: bool
) -> tuple[str, ...]:
    """Return in words which settings of interventions change nothing; arguments are as above."""
    told, all_of, n = [], platform.params.interventions, len(platform.population)
    everybody, as_given = AgentColumns(platform, np.arange(n)), {"given": given, "chart_given": chart_given}
    under = [_known_under(platform, world, place, **as_given) for place in range(len(all_of))]
    idle = [[entry for entry in TABLE if entry.when(known)] for known in under]
    for place, (one, known) in enumerate(zip(all_of, under, strict=True)):
        before, after = leaf_values(_at(platform, place)), leaf_values(known.p)
        where = f"interventions: {place} (from round {one.at} on)"
        if one.agents is not None and not platform.feeds.named(place, everybody, n).any():
            told.append(f"{where}: no effect: of no agent it is true that {one.agents}, as the run begins")
        of_some = {key for other in all_of[:place] if other.agents and other.holds_in(one.at) for key in other.set}
        same = [key for key in one.set if before[key] == after[key] and key not in of_some]
        told += [f"{where}: {key}: no effect: it is so before" for key in same]
        after_it = zip(all_of[place + 1 :], idle[place + 1 :], strict=True)
        later = [own for other, own in after_it if one.holds_in(other.at)]  # what counts with them does count
        changed = [key for key in one.set if before[key] != after[key]]
        changed = [key for key in changed if all(any(entry.holds(key) for entry in own) for own in later)]
        told += [f"{where}: {said}" for said in without_effect(TABLE, known, changed)]
    return tuple(told)


def _known_under(platform: Platform, world: StartingWorld, place: int, *, given: bool, chart_given: bool) -> ModelFacts:
    """Return what is known for those whom an intervention names, as it begins."""
    shown = copy(platform)
    shown.params = _at(platform, place).changed_by(platform.params.interventions[place].set)
    return model_facts(shown, world, explicit_values(shown.params), given=given, chart_given=chart_given)
