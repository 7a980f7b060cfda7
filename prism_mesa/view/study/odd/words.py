"""What settings of the configuration mean, in words that the ODD protocol puts together."""

from math import exp
from typing import Final

from prism_mesa.errors import PrismError
from prism_mesa.llm.kinds import KINDS
from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.social.own.objects import load_object
from prism_mesa.statechart import Expression
from prism_mesa.studies.measures.measure import first_sentence

NETWORKS: Final = {
    "configuration": "a configuration model with lognormal numbers of followers and followees, and mutual follows",
    "erdos_renyi": "everybody follows everybody else with the same probability (Gilbert 1959)",
    "barabasi_albert": "preferential attachment (Barab\u00e1si and Albert 1999), with some follows returned",
    "watts_strogatz": "a small world (Watts and Strogatz 1998)",
    "stochastic_block": "a directed stochastic block model of equal blocks",
    "edges": "read from a file",
}

FEEDS: Final = {
    "random": "in random order, of followed agents",
    "chronological": "the newest first, of followed agents",
    "preference": "the most relevant first, of followed agents",
    "bridging": "by what the groups of agents (feed.attribute) each engage with, of followed agents",
    "diverse": "the most relevant first, with fewer of one author and of one group of agents, of followed agents",
    "x_2023": "by the ranking published for Twitter in 2023, with posts from outside the own network",
    "x_2026_08": "by the weights published for X in August 2026, with posts from outside the own network",
    "x_algo": "by the ranking published for Twitter in 2023, with posts from outside the own network",
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
    """Return who answers what the chart leaves open, and what stands in for an answer that does not come."""
    if not config.statechart.oracle_enabled:
        return "nobody is asked: the first option is taken"
    r = config.reasoner
    who = _DECIDERS.get(r.kind, r.kind)
    if r.kind in ("rule", "distilled"):
        return who
    share = f", asked for a share of {r.llm_share:g}" if r.llm_share < 1 else ""
    own = r.model.items() if isinstance(r.model, dict) else ()
    total = sum(part for _, part in own if not isinstance(part, str))
    each = [
        f"{part} where {r.model_by} is {name}" if isinstance(part, str) else f"{name} for {part / total:.0%}"
        for name, part in own
    ]
    name = ", ".join(each) or r.model
    gives = f", which gives {_GIVES[r.answer]}" if r.answer in _GIVES else ""
    return (
        f"{who}{f' ({name})' if name else ''}{gives}{share}; an answer that does not come is replaced by {r.fallback}"
    )


def activity_of(config: Config) -> str:
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


def network_of(config: Config) -> str:
    """Return how the network came to be."""
    p, counts = config.network, config.utility.sensitivity and config.utility.closeness is not None
    close = f"; close ties: up to {p.close_ties} mutual follows of each" if p.close_ties and counts else ""
    if p.edges is not None:
        return f"read from {p.edges}{close}"
    return f"{NETWORKS.get(p.kind, p.kind)}; mean {p.mean_degree:g} followed{close}"


def dynamics_of(config: Config) -> str:
    """Return how the network changes in a run."""
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
    """Return the order in which a feed shows posts; for a user's function, its docstring's first sentence."""
    if mode in FEEDS:
        return FEEDS[mode]
    ours = f"in the order of {mode}, a function of the study's own"
    if not load:
        return f"{ours}, which is not loaded here"
    try:
        own, _ = load_object("feed.mode", mode, "my_feeds:newest")
    except PrismError as error:
        return f"{ours} ({error})"
    if isinstance(own, Expression):
        return f"in the order of {mode}, highest first: {own}"
    return f"{ours}: {first_sentence(own)}" if first_sentence(own) else ours


def interventions_of(config: Config, *, load: bool) -> str:
    """Return which settings change in a run, and what feeds of the study's own they bring."""
    modes = [str(one.set.get("feed.mode", "")) for one in config.interventions]
    orders = [f" ({feed_order(mode, load=load)})" if ":" in mode else "" for mode in modes]
    return "; ".join(one.said + order for one, order in zip(config.interventions, orders, strict=True))


def writing_of(config: Config) -> str:
    """Return where the words of posts come from."""
    words = WRITING.get(config.content, config.content)
    return words.replace("on subjects of the corpus", f"texts of {config.posts.file}") if config.posts.file else words


def homophily_of(config: Config) -> str:
    """Return what agents feel about those who are unlike them; nothing if nothing goes by that."""
    own = config.agents.homophily
    parts = []
    if own.engaging and config.utility.sensitivity:
        parts.append(f"a post has {own.engaging:g} log-odds of engaging less if its author is unlike the reader by 1")
    if own.following and config.network.dynamics == "live":
        parts.append(f"one who is unlike by 1 is followed {exp(-own.following):.3g} times as likely as one alike")
    return f"by {own.by}: {'; '.join(parts)}" if own.by is not None and parts else ""


def utility_of(config: Config) -> str:
    """Return what an agent compares with its band."""
    own = config.utility
    if not own.sensitivity:
        return "relevance alone: what the agent compares with its band"
    odds = f"{own.gamma:g} x appeal (all of it for followers of the author of a post that is no reshare)"
    if own.closeness is not None:
        odds = f"{odds}, for posts by a close tie log(exp(that) + exp({own.closeness:g}))"
    odds += f" {own.reshared:+g} if it is a reshare" if own.reshared else ""
    odds += f" - {own.theta:g} x log(1 + hours of age) + {own.mood:g} x mood"
    odds += f" + {own.per_source:g} for each earlier showing of its root" if config.feed.repeats else ""
    return f"what the agent compares with its band: {own.weight:g} x relevance + {own.sensitivity:g} x ({odds})"


def opinions_of(config: Config) -> str:
    """Return how what agents hold moves by what they read; nothing where it does not."""
    own = config.opinions
    if own.of is None:
        return ""
    shift = f"moves its reader by {own.rate:g} of the distance"
    rules = {
        "bounded_confidence": f"{shift} if that is at most {own.confidence:g} of the range (Deffuant et al. 2000)",
        "assimilation_repulsion": f"{shift} times 1 - distance / {own.repulsion:g} of the range (Flache et al. 2017)",
    }
    stands = f"its author's {own.of}" if own.by is None else f"its {own.by}"
    posts = "reads" if own.when == "read" else "engages with"
    moves = rules.get(own.rule, f"gives its reader what {own.rule} says")
    moved = f"{own.of}: each post that an agent {posts} {moves}; a post stands at {stands}"
    return f"{moved}; all move at once, as the round is committed"


def asks_llm(config: Config) -> bool:
    """Return whether an LLM may be asked for decisions."""
    return config.statechart.oracle_enabled and config.reasoner.kind not in ("rule", "distilled")


def input_files(config: Config) -> list[tuple[str, str, str]]:
    """Return the files that are read, as (key, path, what it holds)."""
    found = []
    for group, name in INPUT_FILES:
        path = getattr(getattr(config, group), name, None)
        if path is not None:
            key = f"{group}.{name}"
            found.append((key, str(path), _FILES.get(key, "input")))
    return found
