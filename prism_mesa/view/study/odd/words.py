"""Sentences of the ODD protocol about the settings of a configuration."""

from math import exp
from typing import Final

from prism_mesa.errors import PrismError
from prism_mesa.llm.kinds import KINDS
from prism_mesa.runs.config import Config
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

_WRITING: Final = {
    "none": "replies and reshares are empty; agents' own posts are about subjects of the corpus near their interests",
    "template": "replies and reshares get sentences about the topic from templates",
    "llm": "an LLM writes replies, reshares and agents' own posts",
}

_DECIDERS: Final = {
    "auto": "an LLM if one is available, else the rule; the section on who decided says which",
    **{kind.name: kind.phrase for kind in KINDS.values()},
    "rule": "the rule below, with a keyed draw for each agent",
    "distilled": "a small model distilled from an LLM's choices",
}

FILES: Final = {
    "network.edges": "who follows whom",
    "posts.file": "the texts that are posted",
    "agents.profiles": "agents' own profiles",
}
AGENT_VARIABLES: Final = {
    "interests": "interests of the agent: a unit vector over topics",
    "traits": "personality: Big Five, each from 1 to 5",
    "propensities": "shares of likes, replies and reshares among its engagements",
    "present": "whether the agent is on the platform",
    "membership": "whether an absent agent waits to join, may come back, or has left for good",
    "state": "current state of the chart",
    "ticks_in_state": "ticks since the agent entered that state",
    "pending_action": "kind of engagement that is being composed: like, reply or reshare",
    "current_post": "post that the agent is evaluating",
}
"""Columns of `social.state.population`; the fields of `AGENT_FIELDS` describe themselves."""
POST_VARIABLES: Final = {
    "`author`": "agent that wrote or reshared the post",
    "`topics`": "subject of the post: a unit vector over topics",
    "`kind`": "post, reply or reshare",
    "`parent`, `root`": "post that it answers or reshares, and first post of its cascade",
    "`round`": "round in which it appeared",
    "`likes`, `replies`, `reshares`, `impressions`": "counts so far",
    "`velocity`": "number of engagements in the last rounds",
}


def decided_by(config: Config) -> str:
    """Return who answers open choices, and what replaces a missing answer."""
    r = config.reasoner
    if not config.statechart.oracle_enabled:
        return "nobody is asked: the first option is taken"
    decider = _DECIDERS.get(r.kind, r.kind)
    if r.kind in ("rule", "distilled"):
        return decider
    llms = r.model.items() if isinstance(r.model, dict) else ()
    total = sum(part for _, part in llms if not isinstance(part, str))
    names = [
        f"{part} where {r.model_by} is {name}" if isinstance(part, str) else f"{name} for {part / total:.0%}"
        for name, part in llms
    ]
    name = ", ".join(names) or r.model
    text = decider + (f" ({name})" if name else "")
    model = " (a decision model)" if r.answer == "decision" else ""
    text += (
        f", which gives probabilities{model}, from which agents draw"
        if r.answer in ("probabilities", "decision")
        else ""
    )
    text += f", asked for a share of {r.llm_share:g}" if r.llm_share < 1 else ""
    return f"{text}; {r.fallback} replaces missing answers"


def activity(config: Config) -> str:
    """Return how often agents come online and post, and how long they stay."""
    p = config.agents
    posting = f"in a round, and {p.post_rate:g} of posting in a round online"
    if p.posting != "online":
        posting = f"and {p.post_rate:g} of posting in a round"
    spread = "" if p.post_sigma is None else f" (posting: {p.post_sigma:g})"
    text = f"mean probability {p.activity:g} of coming online {posting}"
    text += f"; both lognormal over agents, sigma {p.activity_sigma:g}{spread}"
    if p.popularity:
        text += f"; their logarithms have correlation {p.popularity:g} with the rank by followers"
    if p.hours is not None:
        text += f"; the probability depends on the hour of the day{' by its own clock' if p.time_zone else ''}"
    if p.rhythm:
        text += f"; an agent's hours differ by its own lognormal factors, sigma {p.rhythm:g}"
    if p.persistence:
        text += f"; an agent reuses its draw in the next round with probability {p.persistence:g}"
    if p.session is not None:
        text += f"; sessions of {p.session:g} posts on average (lognormal, sigma {p.session_sigma:g})"
    if p.returns.online or p.returns.session:
        text += f"; by how much an agent's last sessions (half-life {p.returns.half_life:g}) are worth more than its "
        text += f"first {p.returns.first} (mean utility of posts read) times {p.returns.online:g} is added to its "
        text += f"log-odds of coming online, and times {p.returns.session:g} to the log length of its sessions"
    return text


def network(config: Config) -> str:
    """Return how the network is created."""
    p, counts = config.network, config.utility.sensitivity and config.utility.closeness is not None
    close = f"; close ties: up to {p.close_ties} mutual follows of each agent" if p.close_ties and counts else ""
    if p.edges is not None:
        return f"read from {p.edges}{close}"
    return f"{NETWORKS.get(p.kind, p.kind)}; {p.mean_degree:g} followees on average{close}"


def network_dynamics(config: Config) -> str:
    """Return how a live network changes during a run."""
    r = config.network.rates
    return (
        "for each post that an agent reads by an author whom it does not follow, it follows the author with "
        f"probability {r.follow:g}, times {r.engaged:g} if it engaged with the post; a new follower is followed back "
        f"with {r.follow_back:g}; in a round in which it reads, an agent follows a followee's followee with "
        f"{r.triad:g}. For each post below the band that it reads without engaging, it unfollows the "
        f"agent that brought the post with {r.unfollow:g} (times {r.reciprocal:g} if followed back), mutes with "
        f"{r.mute:g}, blocks with {r.block:g}, reports with {r.report:g}. All changes apply from the next "
        "round on; mutes and blocks apply to every feed"
    )


def feed_order(mode: str, *, load: bool) -> str:
    """Return the order of posts in a feed; for a user's function, the first sentence of its docstring."""
    if mode in FEED_MODES:
        return FEED_MODES[mode].order
    custom = f"in the order of {mode}, a function of the study's own"
    if not load:
        return f"{custom}, which is not loaded here"
    try:
        feed, _ = load_object("feed.mode", mode, "my_feeds:newest")
    except PrismError as error:
        return f"{custom} ({error})"
    if isinstance(feed, Expression):
        return f"in the order of {mode}, highest first: {feed}"
    return f"{custom}: {first_sentence(feed)}" if first_sentence(feed) else custom


def candidates(config: Config) -> str:
    """Return the sources of a feed besides followed agents; empty if there are none."""
    kinds = {
        "out_of_network": "drawn from outside the network",
        "two_hops": "from two hops away",
        "trending": "trending",
        "search": "from a search for a topic of interest",
    }
    counts, slots = config.feed.candidates, config.feed.slots
    added = [f"{getattr(counts, key)} {source}" for key, source in kinds.items() if getattr(counts, key)]
    in_slots = [f"{getattr(slots, key)} {kinds[key]}" for key in ("trending", "search") if getattr(slots, key)]
    text = f", with up to {', '.join(added)}" if added else ""
    text += "" if counts.followed is None else f", with the {counts.followed} newest posts of followed agents"
    return text + (f", each {slots.every}th place for posts in slots: {', '.join(in_slots)}" if in_slots else "")


def interventions(config: Config, *, load: bool) -> str:
    """Return the settings that change during a run, and the custom feeds that they use."""
    texts = []
    for intervention in config.interventions:
        mode = str(intervention.set.get("feed.mode", ""))
        texts.append(intervention.text + (f" ({feed_order(mode, load=load)})" if ":" in mode else ""))
    return "; ".join(texts)


def writing(config: Config) -> str:
    """Return where the texts of posts come from."""
    text = _WRITING.get(config.content, config.content)
    return text.replace("about subjects of the corpus", f"texts of {config.posts.file}") if config.posts.file else text


def homophily(config: Config) -> str:
    """Return how dissimilarity reduces contact between agents; empty if it does not."""
    p = config.agents.homophily
    parts = []
    if p.engaging and config.utility.sensitivity:
        parts.append(f"a distance of 1 from the author of a post lowers the log-odds of engaging by {p.engaging:g}")
    if p.following and config.network.dynamics == "live":
        parts.append(
            f"an agent at a distance of 1 is followed {exp(-p.following):.3g} times as likely as a similar one"
        )
    return f"by {p.by}: {'; '.join(parts)}" if p.by is not None and parts else ""


def utility(config: Config) -> str:
    """Return the formula of the utility that an agent compares with its band."""
    p = config.utility
    if not p.sensitivity:
        return "equals relevance; the agent compares it with its band"
    reason = f"{p.gamma:g} x appeal (1 x appeal if the reader follows the author and the post is no reshare)"
    if p.closeness is not None:
        reason += f"; for posts by a close tie it is log(exp(this) + exp({p.closeness:g}))"
    odds = f"reason {p.reshared:+g} if it is a reshare" if p.reshared else "reason"
    odds += f" - {p.theta:g} x log(1 + hours of age) + {p.mood:g} x mood"
    odds += f" + {p.per_source:g} for each earlier time that the root was shown" if config.feed.repeats else ""
    odds += f" + {p.counts:g} x log(1 + likes)" if p.counts else ""
    if p.appeal_by.attribute is not None and p.appeal_by.effect:
        where = ", part of the appeal" if p.appeal_by.fades else ""
        odds += f" + the effect of its {p.appeal_by.attribute} ({p.appeal_by.effect}{where})"
    terms = f"{p.weight:g} x relevance + {p.sensitivity:g} x ({odds})"
    return f"{terms}; the agent compares it with its band. The reason is {reason}"


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
    position = f"its author's {p.of}" if p.by is None else f"its {p.by}"
    posts = "reads" if p.when == "read" else "engages with"
    effect = rules.get(p.rule, f"changes its reader as {p.rule} says")
    text = f"{p.of}: each post that an agent {posts} {effect}; the position of a post is {position}"
    return f"{text}; all opinions move at once when the round is committed"


def design_concepts(config: Config) -> tuple[tuple[str, Words], ...]:
    """Return each design concept with its role in the model."""
    llm = config.statechart.oracle_enabled and config.reasoner.kind not in ("rule", "distilled")
    draws = "open choices"
    if llm:
        draws = "the decisions of an LLM, which are recorded"
        if config.reasoner.temperature == 0 and config.reasoner.answer in (None, "choice"):
            draws = "an LLM asked at temperature 0, which makes no draw of its own"
    learning = "None: agents do not change how they decide."
    if config.content == "llm":
        learning = "None, except for notes that agents can keep and use again when an LLM writes for them."
    has_returns = config.agents.returns.online or config.agents.returns.session
    returns = " They come online more or less by what their last sessions were worth." if has_returns else ""
    follows = " They change whom they follow by what they read." if config.network.dynamics == "live" else ""
    groups = "None are imposed; groups are communities of the network."
    if config.network.kind == "stochastic_block":
        groups = f"{config.network.blocks} blocks of agents that follow each other more than others."
    texts = {
        "Basic principles": "An agent's behaviour is a statechart. Guards settle what follows from utility and "
        f"thresholds. Only if the chart leaves a choice open is {'an LLM' if llm else 'another decider'} asked, and "
        "every answer is counted.",
        "Emergence": "Cascades, inequality of attention, and the topics that reach each agent emerge from feeds, the "
        "network and individual decisions; none of them is imposed.",
        "Adaptation": "Agents decide about each post that they see; their interests, thresholds and propensities stay "
        f"the same during a run.{returns}",
        "Objectives": "Agents maximise nothing: they compare a post's utility with their own band.",
        "Learning": learning,
        "Prediction": "None by agents; a feed may rank by predicted engagement."
        if config.feed.mode.startswith("x_")
        else "None.",
        "Sensing": f"An agent sees its feed of up to {config.feed.size} posts (their topics, authors, kinds "
        "and counters), and its own state and recent history, as they were when the round opened.",
        "Interaction": "Indirect, through posts: what an agent writes or reshares can appear in the feeds of its "
        f"followers in later rounds. Agents do not interact within a round.{follows}",
        "Stochasticity": "Profiles, network, coming online, posting, texts, order of equal posts, kind of engagement, "
        f"and {draws}. Every draw is a hash of seed, purpose, round, tick and agent, so arms with the same seed "
        "share their draws, and runs repeat exactly.",
        "Collectives": groups,
        "Observation": "Counts are recorded after each round. Measures are computed from all agents and posts at the "
        "end of a run. Nothing in the model reads a record.",
    }
    return tuple(texts.items())
