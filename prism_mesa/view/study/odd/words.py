"""Sentences of the ODD protocol about the settings of a configuration."""

from collections.abc import Iterator
from math import exp
from typing import Final

from prism_mesa.errors import PrismError
from prism_mesa.llm.kinds import KINDS
from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.social.params import FEED_MODES
from prism_mesa.social.user_objects import load_object
from prism_mesa.statechart import Expression
from prism_mesa.studies.measures.measure import first_sentence
from prism_mesa.view.study.blocks import Words

NETWORKS: Final = {
    "configuration": "a configuration model with lognormal numbers of followers and followees, and mutual follows",
    "erdos_renyi": "everybody follows everybody else with the same probability (Gilbert 1959)",
    "barabasi_albert": "preferential attachment (Barab\u00e1si and Albert 1999), with some follows returned",
    "watts_strogatz": "a small world (Watts and Strogatz 1998)",
    "stochastic_block": "a directed stochastic block model of equal blocks",
    "edges": "read from a file",
}

WRITING: Final = {
    "none": "replies and reshares have none; agents' own posts are on subjects of the corpus, near to their interests",
    "template": "replies and reshares get sentences about the topic from templates",
    "llm": "an LLM writes replies, reshares and agents' own posts",
}

_DECIDERS: Final = {
    "auto": "an LLM where one is found, else the rule; the part on who decided says which it was",
    **{kind.name: kind.words for kind in KINDS.values()},
    "rule": "the rule below, by a keyed draw of each agent",
    "distilled": "a small model distilled from an LLM's choices",
}

_FILES: Final = {
    "network.edges": "who follows whom",
    "posts.file": "the texts that are posted",
    "agents.profiles": "agents' own profiles",
}
POPULATION: Final = {
    "interests": "what the agent likes: a unit vector over topics",
    "traits": "personality: Big Five, each from 1 to 5",
    "propensities": "shares of likes, replies and reshares among its engagements",
    "present": "whether the agent is on the platform",
    "membership": "whether one who is not there waits to join, may come back, or is gone for good",
    "state": "state of its chart, one of eight",
    "ticks_in_state": "ticks since it entered that state",
    "pending_action": "what its draft becomes: like, reply or reshare",
    "current_post": "the post that it is judging",
}
"""What the columns of `social.state.population` are, for readers who do not read code."""

POST_FIELDS: Final = {
    "`author`": "the agent that wrote or reshared it",
    "`topics`": "what it is about: a unit vector over topics",
    "`kind`": "post, reply or reshare",
    "`parent`, `root`": "what it answers or reshares, and the post where its cascade began",
    "`round`": "when it appeared",
    "`likes`, `replies`, `reshares`, `impressions`": "counts so far",
    "`velocity`": "engagements of the last rounds",
}
_GIVES: Final = {
    "probabilities": "probabilities, from which agents draw",
    "decision": "probabilities (a decision model), from which agents draw",
}


def decided_by(config: Config) -> str:
    """Return who answers open choices, and what replaces a missing answer."""
    if not config.statechart.oracle_enabled:
        return "nobody is asked: the first option is taken"
    r = config.reasoner
    who = _DECIDERS.get(r.kind, r.kind)
    if r.kind in ("rule", "distilled"):
        return who
    share = f", asked for a share of {r.llm_share:g}" if r.llm_share < 1 else ""
    llms = r.model.items() if isinstance(r.model, dict) else ()
    total = sum(part for _, part in llms if not isinstance(part, str))
    each = [
        f"{part} where {r.model_by} is {name}" if isinstance(part, str) else f"{name} for {part / total:.0%}"
        for name, part in llms
    ]
    name = ", ".join(each) or r.model
    name = f" ({name})" if name else ""
    gives = f", which gives {_GIVES[r.answer]}" if r.answer in _GIVES else ""
    return f"{who}{name}{gives}{share}; an answer that does not come is replaced by {r.fallback}"


def activity(config: Config) -> str:
    """Return how often agents come online and post, and how long they stay."""
    p = config.agents
    posting = (
        f"in a round and {p.post_rate:g} of posting then"
        if p.posting == "online"
        else f"and {p.post_rate:g} of posting in a round"
    )
    spread = "" if p.post_sigma is None else f" and of posting {p.post_sigma:g}"
    parts = [
        f"mean probability {p.activity:g} of coming online {posting}; "
        f"lognormal between agents, sigma {p.activity_sigma:g}{spread}"
    ]
    if p.popularity:
        parts.append(f"logarithms correlated {p.popularity:g} with the rank by followers")
    if p.hours is not None:
        parts.append(f"the probability goes with the hour of the day{' by its own clock' if p.time_zone else ''}")
    if p.rhythm:
        parts.append(f"an agent's hours differ by lognormal factors of its own, sigma {p.rhythm:g}")
    if p.persistence:
        parts.append(f"its draw lasts into the next round with probability {p.persistence:g}")
    if p.session is not None:
        parts.append(f"sessions of {p.session:g} posts in the mean, lognormal, sigma {p.session_sigma:g}")
    return "; ".join(parts)


def network(config: Config) -> str:
    """Return how the network is made."""
    p, counts = config.network, config.utility.sensitivity and config.utility.closeness is not None
    close = f"; close ties: up to {p.close_ties} mutual follows of each" if p.close_ties and counts else ""
    if p.edges is not None:
        return f"read from {p.edges}{close}"
    return f"{NETWORKS.get(p.kind, p.kind)}; mean {p.mean_degree:g} followed{close}"


def network_dynamics(config: Config) -> str:
    """Return how the network changes during a run."""
    if config.network.dynamics == "fixed":
        return "who follows whom stays as it is"
    r = config.network.rates
    return (
        f"per post read whose author the reader does not follow, it follows with probability {r.follow:g}, times "
        f"{r.engaged:g} if it engaged with the post; a new follower is followed back with {r.follow_back:g}; in a "
        f"round in which it reads, an agent follows one whom a followee follows with {r.triad:g}. Per post read that "
        f"lies below the band and is not engaged with, it unfollows who brought it with {r.unfollow:g} (times "
        f"{r.reciprocal:g} if followed back), mutes with {r.mute:g}, blocks with {r.block:g}, reports with "
        f"{r.report:g}. All of it holds from the next round on; mutes and blocks bind every feed"
    )


def feed_order(mode: str, *, load: bool) -> str:
    """Return the order of posts in a feed; for a user's function, the first sentence of its docstring."""
    if mode in FEED_MODES:
        return FEED_MODES[mode].order
    ours = f"in the order of {mode}, a function of the study's own"
    if not load:
        return f"{ours}, which is not loaded here"
    try:
        feed, _ = load_object("feed.mode", mode, "my_feeds:newest")
    except PrismError as error:
        return f"{ours} ({error})"
    if isinstance(feed, Expression):
        return f"in the order of {mode}, highest first: {feed}"
    return f"{ours}: {first_sentence(feed)}" if first_sentence(feed) else ours


def interventions(config: Config, *, load: bool) -> str:
    """Return the settings that change during a run, and the custom feeds that they use."""
    texts = []
    for intervention in config.interventions:
        mode = str(intervention.set.get("feed.mode", ""))
        texts.append(intervention.text + (f" ({feed_order(mode, load=load)})" if ":" in mode else ""))
    return "; ".join(texts)


def writing(config: Config) -> str:
    """Return the source of the texts of posts."""
    text = WRITING.get(config.content, config.content)
    return text.replace("on subjects of the corpus", f"texts of {config.posts.file}") if config.posts.file else text


def homophily(config: Config) -> str:
    """Return how dissimilarity reduces contact between agents; empty if it does not."""
    p = config.agents.homophily
    parts = []
    if p.engaging and config.utility.sensitivity:
        parts.append(f"a post has {p.engaging:g} log-odds of engaging less if its author is unlike the reader by 1")
    if p.following and config.network.dynamics == "live":
        parts.append(f"one who is unlike by 1 is followed {exp(-p.following):.3g} times as likely as one alike")
    return f"by {p.by}: {'; '.join(parts)}" if p.by is not None and parts else ""


def utility(config: Config) -> str:
    """Return the utility that an agent compares with its band."""
    p = config.utility
    if not p.sensitivity:
        return "relevance alone: what the agent compares with its band"
    odds = f"{p.gamma:g} x appeal (all of it for followers of the author of a post that is no reshare)"
    if p.closeness is not None:
        odds = f"{odds}, for posts by a close tie log(exp(that) + exp({p.closeness:g}))"
    odds += f" {p.reshared:+g} if it is a reshare" if p.reshared else ""
    odds += f" - {p.theta:g} x log(1 + hours of age) + {p.mood:g} x mood"
    odds += f" + {p.per_source:g} for each earlier showing of its root" if config.feed.repeats else ""
    return f"what the agent compares with its band: {p.weight:g} x relevance + {p.sensitivity:g} x ({odds})"


def opinions(config: Config) -> str:
    """Return how reading changes opinions; empty if it does not."""
    p = config.opinions
    if p.of is None:
        return ""
    shift = f"moves its reader by {p.rate:g} of the distance"
    rules = {
        "bounded_confidence": f"{shift} if that is at most {p.confidence:g} of the range (Deffuant et al. 2000)",
        "assimilation_repulsion": f"{shift} times 1 - distance / {p.repulsion:g} of the range (Flache et al. 2017)",
    }
    stands = f"its author's {p.of}" if p.by is None else f"its {p.by}"
    posts = "reads" if p.when == "read" else "engages with"
    moves = rules.get(p.rule, f"gives its reader what {p.rule} says")
    moved = f"{p.of}: each post that an agent {posts} {moves}; a post stands at {stands}"
    return f"{moved}; all move at once, as the round is committed"


def asks_llm(config: Config) -> bool:
    """Return whether an LLM may decide open choices."""
    return config.statechart.oracle_enabled and config.reasoner.kind not in ("rule", "distilled")


def input_files(config: Config) -> list[tuple[str, str, str]]:
    """Return the input files as (key, path, content)."""
    paths = {f"{group}.{name}": getattr(getattr(config, group), name, None) for group, name in INPUT_FILES}
    return [(key, str(path), _FILES.get(key, "input")) for key, path in paths.items() if path is not None]


def design_concepts(config: Config) -> Iterator[tuple[str, Words]]:
    """Yield each design concept with its place in the model."""
    yield from _about_agents(config)
    yield from _about_the_system(config)


def _about_agents(config: Config) -> Iterator[tuple[str, Words]]:
    llm = asks_llm(config)
    yield (
        "Basic principles",
        "An agent's behaviour is a statechart. Guards settle what follows from utility and thresholds; only where "
        f"the chart leaves a choice open is {'an LLM' if llm else 'somebody else'} asked, and every answer is counted.",
    )
    yield (
        "Emergence",
        "Cascades, inequality of attention, and what topics reach whom come out of feeds, the network and single "
        "decisions; none of them is imposed.",
    )
    yield (
        "Adaptation",
        "Agents choose what to engage with by the post at hand; interests, thresholds and propensities stay as they "
        "are during a run.",
    )
    yield "Objectives", "None is maximised: an agent compares a post's utility with its own band."
    yield (
        "Learning",
        "None, but for notes that agents can keep and take up again when an LLM writes for them."
        if config.content == "llm"
        else "None: agents do not change how they decide.",
    )
    yield (
        "Prediction",
        "None by agents; a feed may rank by predicted engagement." if config.feed.mode.startswith("x_") else "None.",
    )
    yield (
        "Sensing",
        f"An agent sees its feed of up to {config.feed.size} posts, of each its topics, author, kind and counters, and "
        "its own state and recent history; all as they stood when the round opened.",
    )


def _about_the_system(config: Config) -> Iterator[tuple[str, Words]]:
    yield (
        "Interaction",
        "Indirect, through posts: what one agent writes or reshares can appear in the feeds of those who follow it "
        "in later rounds. Agents do not meet within a round."
        + (" They change whom they follow by what they read." if config.network.dynamics == "live" else ""),
    )
    who = (
        "an LLM asked at temperature 0 that has no draw of its own"
        if asks_llm(config) and config.reasoner.temperature == 0 and config.reasoner.answer in (None, "choice")
        else "the decisions of an LLM, which are recorded"
        if asks_llm(config)
        else "open choices"
    )
    yield (
        "Stochasticity",
        "Profiles, network, coming online, posting, texts, order of equal posts, kind of engagement, and "
        f"{who}: every draw is a hash of seed, purpose, round, tick and agent, so two arms with one seed share their "
        "draws and runs repeat exactly.",
    )
    blocks = config.network.kind == "stochastic_block"
    yield (
        "Collectives",
        f"{config.network.blocks} blocks of agents that follow each other more than others."
        if blocks
        else "None is imposed; groups are those that the network has.",
    )
    yield (
        "Observation",
        "After each round its counts are recorded, and at the end of a run its measures are taken from all agents and "
        "posts; nothing in the model reads a record.",
    )
