"""A plain Mesa model of the rules of `prism_mesa.social`: what `SocialModel` is measured against.

It is what a competent Mesa user would write: one `mesa.Agent` per user of the platform with attributes and a
state string, posts as objects with slots, a chart as a dictionary, `shuffle_do("step")` in every tick, Mesa's own
`random`. It takes its world (network, interests, thresholds, rates, topic vectors of the texts) from a
`SocialModel`, follows the same numbered round and keeps the same books (state counts per tick, a history of 50
changes per agent, counters and velocity of posts, a DataCollector), so that both do the same work with other
random numbers (`agreement.py` checks it). Only the default chart, the chronological feed and the rule are here.

Nothing is slower than it need be: agents hold references to those they follow, authors keep their visible posts in
an outbox, the share of a personality in a choice is computed once per agent, relevance is one numpy product per
feed (3.0 us for 10 posts of 16 topics; `math.sumprod` over lists 3.8, numpy per pair 10, a generator 15), and no
tuple is made where two lists will do, because what Python's garbage collector has to look through costs.
"""

import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

import mesa
import numpy as np
import numpy.typing as npt

from prism_mesa.reasoner.rule import BIAS, TRAIT_MEANS, TRAIT_SDS, TRAIT_WEIGHTS
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.topics import UNIT

IDLE, SCROLLING, EVALUATING, COMPOSING, RESTING = "idle", "scrolling", "evaluating", "composing", "resting"
LIKE, REPLY, RESHARE = "engaging_like", "engaging_reply", "engaging_reshare"
STATES: Final = (IDLE, SCROLLING, EVALUATING, COMPOSING, LIKE, REPLY, RESHARE, RESTING)
COUNTERS: Final = {"like": "likes", "reply": "replies", "reshare": "reshares"}
TOTALS: Final = ("online", "posts", "impressions", *COUNTERS.values(), "open")
N_TEXTS_CONSIDERED: Final = 4
NEWEST: Final = attrgetter("post_id")


class Transition(NamedTuple):
    """Where a transition leads (None: the choice is open) and when; no guard means *else*, so it stands last."""

    target: str | None
    guard: "Callable[[Person], bool] | None" = None


CHART: Final[dict[tuple[str, str], list[Transition]]] = {
    (IDLE, "feed_ready"): [Transition(SCROLLING)],
    (SCROLLING, "sees_post"): [Transition(EVALUATING)],
    (EVALUATING, "ignores"): [Transition(SCROLLING)],
    (EVALUATING, "decides"): [
        Transition(COMPOSING, lambda agent: agent.relevance > agent.high),
        Transition(SCROLLING, lambda agent: agent.relevance < agent.low),
        Transition(None),
    ],
    (COMPOSING, "compose_done"): [
        Transition(LIKE, lambda agent: agent.pending == "like"),
        Transition(REPLY, lambda agent: agent.pending == "reply"),
        Transition(RESHARE, lambda agent: agent.pending == "reshare"),
    ],
    (SCROLLING, "timeout"): [Transition(RESTING)],
    (EVALUATING, "timeout"): [Transition(SCROLLING)],
    (COMPOSING, "timeout"): [Transition(SCROLLING)],
    (RESTING, "timeout"): [Transition(SCROLLING)],
}
for _state in (LIKE, REPLY, RESHARE):
    CHART[_state, "action_done"] = [Transition(RESTING)]
    CHART[_state, "timeout"] = [Transition(RESTING)]
for _state in STATES[1:]:
    CHART[_state, "round_ends"] = [Transition(IDLE)]

TIMEOUTS: Final = {RESTING: 2}
DONE: Final = {COMPOSING: "compose_done", LIKE: "action_done", REPLY: "action_done", RESHARE: "action_done"}
ENGAGING: Final = frozenset({LIKE, REPLY, RESHARE})
STATES_WITHOUT_POST: Final = frozenset({IDLE, SCROLLING, RESTING})


@dataclass(slots=True, eq=False)
class Message:
    """A post, reply or reshare; counters, and the round of the `newest` copy, are those of the root."""

    post_id: int
    author: "Person"
    text: int
    round: int
    kind: str = "post"
    parent: "Message | None" = None
    root: "Message" = field(init=False)
    likes: int = 0
    replies: int = 0
    reshares: int = 0
    impressions: int = 0
    velocity: int = 0
    newest: int = 0

    def __post_init__(self) -> None:
        self.root = self.parent.root if self.kind == "reshare" and self.parent is not None else self
        self.root.newest = self.round


class Person(mesa.Agent):
    """One user of the platform; row `row` of the world's population."""

    model: "ReferenceModel"

    def __init__(self, model: "ReferenceModel", world: SocialModel, row: int) -> None:
        super().__init__(model)
        them, half = world.population, world.params.agents.band / 2
        threshold = float(them.engagement_threshold[row])
        self.low: float = threshold - half
        self.high: float = threshold + half
        self.activity, self.post_rate = float(them.activity[row]), float(them.post_rate[row])
        self.timeout_threshold = int(them.timeout_threshold[row])
        self.like, self.reply, _ = them.propensities[row].tolist()
        self.leaning = BIAS + sum(
            weight * (trait - mean) / sd
            for weight, trait, mean, sd in zip(
                TRAIT_WEIGHTS, them.traits[row].tolist(), TRAIT_MEANS, TRAIT_SDS, strict=True
            )
        )
        self.interests = them.interests[row].astype(np.float32)
        self.followees: list[Person] = []
        self.outbox: deque[Message] = deque()
        self.feed: list[Message] = []
        self.feed_relevance: list[float] = []
        self.seen: set[Message] = set()
        self.history: deque[tuple[str, str, str, int, int, int]] = deque(maxlen=model.history_depth)
        self.state = IDLE
        self.ticks_in_state = 0
        self.post: Message | None = None
        self.relevance: float = 0.0
        self.pending: str | None = None

    def step(self) -> None:
        """Do one tick: count it, find the trigger, fire it. Idle agents do nothing."""
        if self.state == IDLE:
            return
        self.ticks_in_state += 1
        if self.ticks_in_state >= TIMEOUTS.get(self.state, self.timeout_threshold):
            self.fire("timeout")
            return
        trigger = self.next_trigger()
        if trigger is not None:
            self.fire(trigger)

    def next_trigger(self) -> str | None:
        """Return the trigger that meets an agent that has not timed out."""
        if self.state == SCROLLING:
            return "sees_post" if self.feed else None
        if self.state == EVALUATING:
            return "ignores" if self.relevance < self.low else "decides"
        return DONE.get(self.state)

    def fire(self, trigger: str) -> None:
        """Take the first transition whose guard holds; an open choice is decided by rule."""
        for transition in CHART.get((self.state, trigger), ()):
            if transition.guard is None or transition.guard(self):
                self.enter(transition.target or self.choice(), trigger)
                return

    def choice(self) -> str:
        """Decide an open choice by rule."""
        self.model.counts["open"] += 1
        return COMPOSING if self.random.random() < self.engage_probability() else SCROLLING

    def enter(self, target: str, trigger: str) -> None:
        """Change the state, remember the change, and do what it entails."""
        if trigger == "sees_post":
            self.read_next()
        model, post = self.model, self.post
        self.history.append(
            (self.state, target, trigger, model.round, model.tick, -1 if post is None else post.post_id)
        )
        self.state = target
        self.ticks_in_state = 0
        if target == COMPOSING:
            draw = self.random.random()
            self.pending = "like" if draw < self.like else "reply" if draw < self.like + self.reply else "reshare"
        elif target in ENGAGING and post is not None and self.pending is not None:
            model.engagements.append((self, post, self.pending))
        elif target in STATES_WITHOUT_POST:
            self.post = None
            self.pending = None

    def read_next(self) -> None:
        """Read the next post of the feed: the impression."""
        self.post, self.relevance = self.feed.pop(), self.feed_relevance.pop()
        root = self.post.root
        self.seen.add(root)
        self.model.impressions.append(root)

    def engage_probability(self) -> float:
        """Return P(engage) of an open choice, as `prism_mesa.reasoner.rule` has it (without its rounding)."""
        rule, width = self.model.rule, self.high - self.low
        position = max(-3.0, min(3.0, 2.0 * (self.relevance - self.low) / width - 1.0)) if width > 0 else 0.0
        velocity = self.post.root.velocity if self.post is not None else 0
        z = self.leaning + rule.slope * position + rule.velocity * math.log1p(velocity)
        return 1.0 / (1.0 + math.exp(-max(-8.0, min(8.0, z))))

    def draft(self) -> int:
        """Return what the agent posts of itself: of some texts, the one nearest to its interests."""
        vectors, random = self.model.vectors, self.random.random
        texts = [int(random() * len(vectors)) for _ in range(N_TEXTS_CONSIDERED)]
        return texts[int((vectors[texts] @ self.interests).argmax())]

    def rank(self) -> None:
        """Fill the feed: the newest unseen posts of followed agents, each root once; the best one stands last."""
        model = self.model
        found: list[Message] = []
        for followee in self.followees:
            if followee.outbox:
                found += followee.outbox
        found.sort(key=NEWEST, reverse=True)
        oldest = model.round - model.window
        self.seen = {root for root in self.seen if root.newest > oldest}  # the others cannot come again
        skip, shown = self.seen.copy(), []
        for post in found:
            root = post.root
            if root not in skip and root.author is not self:
                skip.add(root)
                shown.append(post)
                if len(shown) == model.feed_size:
                    break
        shown.reverse()
        self.feed, self.feed_relevance = shown, self.relevances(shown) if shown else []

    def relevances(self, posts: list[Message]) -> list[float]:
        """Return the relevance of posts, (1 + cosine) / 2."""
        cosines = self.model.vectors.take([post.text for post in posts], axis=0).dot(self.interests)
        relevances: list[float] = (cosines * (0.5 / UNIT**2) + 0.5).tolist()
        return relevances


class ReferenceModel(mesa.Model):
    """The platform as plain Mesa.

    Args:
        world: Whose network, population and texts are taken; it is only read, and must not have run yet.
        rng: Seed of Mesa's generators.
    """

    def __init__(self, world: SocialModel, rng: int = 1) -> None:
        super().__init__(rng=rng)
        params = world.params
        if (params.feed.mode, params.reasoner.kind) != ("chronological", "rule") or len(world.posts):
            raise ValueError("the reference knows the chronological feed and the rule, and starts with round 0")
        self.ticks_per_round = params.ticks_per_round
        self.window, self.velocity_window = params.feed.window, params.feed.velocity_window
        self.feed_size = params.feed.size
        self.rule = params.reasoner.rule
        self.history_depth = params.statechart.max_history_depth
        self.vectors: npt.NDArray[np.float32] = world.topics.vectors.astype(np.float32)
        self.round, self.tick, self.n_posts = -1, 0, 0
        self.visible: dict[int, list[Message]] = {}
        self.impressions: list[Message] = []
        self.engagements: list[tuple[Person, Message, str]] = []
        self.recent: deque[list[Message]] = deque()
        self.counts: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.agent_ticks: Counter[str] = Counter()
        self.shares: dict[str, float] = {}
        self._settle(world)
        self.datacollector = _datacollector()

    def _settle(self, world: SocialModel) -> None:
        people = [Person(self, world, row) for row in range(len(world.population))]
        for row, person in enumerate(people):
            person.followees = [people[i] for i in world.network.followees(row).tolist()]

    def step(self) -> None:
        """Run one round: publish, rank and open, ticks, commit, collect, close."""
        self.round += 1
        self.tick = 0
        self.counts.clear()
        self.publish()
        self.open()
        states = [self.one_tick() for self.tick in range(1, self.ticks_per_round + 1)]
        self.commit()
        self.collect(states)
        for agent in self.agents:
            if agent.state != IDLE:
                agent.fire("round_ends")

    def publish(self) -> None:
        """Let go of posts that are too old to be shown, and add what agents write of themselves, shuffled."""
        for post in self.visible.pop(self.round - self.window, ()):
            post.author.outbox.popleft()  # the author's oldest
        drafts = [(agent, agent.draft()) for agent in self.agents if self.random.random() < agent.post_rate]
        self.random.shuffle(drafts)
        for author, text in drafts:
            self.add(author, text, self.round)
        self.counts["posts"] = len(drafts)

    def add(self, author: Person, text: int, round_: int, kind: str = "post", parent: Message | None = None) -> None:
        """Add a post that is visible from `round_` on."""
        post = Message(self.n_posts, author, text, round_, kind, parent)
        self.n_posts += 1
        author.outbox.append(post)
        self.visible.setdefault(round_, []).append(post)

    def open(self) -> None:
        """Bring agents online, each with its feed."""
        online = [agent for agent in self.agents if self.random.random() < agent.activity]
        for agent in online:
            agent.rank()
        for agent in online:
            agent.fire("feed_ready")
        self.counts["online"] = len(online)

    def one_tick(self) -> Counter[str]:
        """Let all agents step in random order, and return how many are in each state then."""
        self.agents.shuffle_do("step")
        return Counter([agent.state for agent in self.agents])

    def commit(self) -> None:
        """Let impressions and engagements reach the posts; replies and reshares become posts of the next round."""
        for root in self.impressions:
            root.impressions += 1
        self.counts["impressions"] = len(self.impressions)
        self.impressions = []
        for agent, post, action in self.engagements:
            root, counter = post.root, COUNTERS[action]
            setattr(root, counter, getattr(root, counter) + 1)
            self.counts[counter] += 1
            root.velocity += 1
            if action != "like":
                self.add(agent, post.text, self.round + 1, action, post)
        self.recent.append([post.root for _, post, _ in self.engagements])
        self.engagements = []
        if len(self.recent) > self.velocity_window:
            for root in self.recent.popleft():
                root.velocity -= 1

    def collect(self, states: list[Counter[str]]) -> None:
        """Keep the round's counts and shares, and the ticks' state counts."""
        counts = sum(states, Counter[str]())
        self.shares = {state: counts[state] / counts.total() for state in STATES}
        self.agent_ticks += counts
        self.totals += self.counts
        self.datacollector.collect(self)
        for tick, row in enumerate(states, start=1):
            named = {state: row[state] for state in STATES}
            self.datacollector.add_table_row("ticks", {"round": self.round, "tick": tick, **named})


def _datacollector() -> mesa.DataCollector:
    counts = {name: lambda model, name=name: model.counts[name] for name in TOTALS}
    shares = {f"share_{state}": lambda model, state=state: model.shares[state] for state in STATES}
    return mesa.DataCollector(model_reporters=counts | shares, tables={"ticks": ["round", "tick", *STATES]})
