"""Explains an agent's feed while its round runs: the place of each post, or why it is not there.

Candidates are ranked as in `kernels.feeds.ranking`, with the scores of `analysis.explain.scores`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from prism_mesa.analysis.explain.follows import named
from prism_mesa.analysis.explain.scores import Candidates, Further, Made, explain_scores, lowered
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import Audience
from prism_mesa.kernels.feeds.scoring import DIVERSE
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.round.feeds import RankInputs, discovered, make_outbox, make_scoring
from prism_mesa.social.state.posts import RESHARE

type Ints = npt.NDArray[np.int64]


@dataclass
class FeedReasons:
    """A reader's feed in a round as text.

    Attributes:
        how: How it is ranked.
        posts: Id -> place, source and score of each post; `in_full` also has the terms of the score.
        about: The same about a post that was asked for, or why it was not shown.
    """

    how: str
    posts: dict[int, str] = field(default_factory=dict)
    in_full: dict[int, str] = field(default_factory=dict)
    about: str = ""


def explain_feed(model: SocialModel, row: int, about: int | None = None) -> FeedReasons:
    """Explain the feed of an agent in the running round, at its first tick, and the post `about` in any case."""
    ranked = RankedFeed(model, row)
    shown = model.population.feed[row, : model.population.n_feed[row]].tolist()
    reasons = FeedReasons(ranked.params.ranking + (f": {ranked.made.how}" if ranked.made is not None else ""))
    for place, post in enumerate(shown, start=1):
        for texts, in_full in ((reasons.posts, False), (reasons.in_full, True)):
            texts[post] = f"place {place} of {len(shown)}, {ranked.words(post, in_full=in_full)}"
    if about is not None:
        text = reasons.in_full.get(about)
        reasons.about = ranked.why_not(about, len(shown)) if text is None else f"in its feed, {text}"
    return reasons


def about_lines(rounds: Iterable[tuple[int, FeedReasons | None]]) -> Iterator[str]:
    """Yield why a post was in the feed or not, for each round since it was there."""
    lines = [f"  round {round_}: {feed.about}" for round_, feed in rounds if feed is not None and feed.about]
    yield from lines or ["  none since it was there"]


class RankedFeed:
    """All candidates of an agent's feed in the running round, in the order of the kernel.

    Attributes:
        candidates: The candidates that may be shown.
        made: Their scores; None in a mode that `scores` does not know.
        order: Their places in `candidates`, best first, each root once.
        further: For each of `order` the factors for better posts of its author, and of its group.
        slots: Posts that may be shown beside the ranking.
    """

    def __init__(self, model: SocialModel, row: int) -> None:
        self.model, self.row, platform = model, row, model.platform
        rows = np.array([row])
        [(_, self.params, own_feed)] = platform.feeds.assign(rows, AgentColumns(platform, rows))
        n_agents, now = len(platform.population), platform.round
        self.outbox = make_outbox(platform.posts, self.params, n_agents, now)
        world = self.outbox, platform.population, platform.posts, self.params, platform.streams, now
        beside = discovered(rows.astype(np.int32), *world)
        self.scoring = make_scoring(*world, beside, platform.groups)
        self.slots = beside.first(self.params.slots)
        post, inside = self._listed()
        self._n_inside = int(inside.sum())
        self.number = np.flatnonzero(self._may_be_shown(post))
        kept = post[self.number], inside[self.number]
        self.candidates = Candidates(platform, row, self.params, own_feed, self.outbox, self.scoring, *kept)
        self.made: Made | None = explain_scores(self.candidates) if len(kept[0]) else None
        self.order, self.further = self._ranked()

    def _listed(self) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return all candidates, -1 where a draw has none, and whether the agent follows their authors."""
        platform, reader = self.model.platform, np.array([self.row], np.int32)
        if not self.outbox.n:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        network, seen = platform.network, platform.exposure
        hidden = platform.relations.hidden_rows(len(platform.population))
        audience = Audience(network.indptr, network.indices, *seen.lists, *hidden, *platform.copies.lists)
        _, post, inside = RankInputs(audience, self.outbox, self.scoring).listed(reader)
        return post.astype(np.int64), inside

    def _may_be_shown(self, post: Ints) -> npt.NDArray[np.bool_]:
        platform, posts = self.model.platform, self.model.posts
        root = posts.root[post]
        is_new = ~np.isin(root, platform.roots_read(self.row)) & (posts.author[root] != self.row)
        is_new &= ~np.isin(post, platform.copies.of(self.row))
        hidden = platform.relations.hides(np.full(len(post), self.row), posts.author[post])
        return np.asarray((post >= 0) & is_new & ~hidden)

    def _ranked(self) -> tuple[Ints, list[Further]]:
        if self.made is None:
            return np.zeros(0, np.int64), []
        posts, post, score = self.model.posts, self.candidates.post, self.made.score.astype(np.float64)
        best = np.lexsort((post, score.astype(np.float32)))[::-1]
        _, first = np.unique(posts.root[post[best]], return_index=True)
        order = best[np.sort(first)]
        further: dict[int, Further] = dict.fromkeys(order.tolist(), ())
        for kind, values, factors in self._kinds():
            better = Counter[int]()
            for place in order.tolist():
                n = better[int(values[place])]
                better[int(values[place])] += 1
                factor = float(factors[min(n, len(factors) - 1)]) if len(factors) else 1 / (1 + n)
                score[place] = lowered(score[place], factor)
                further[place] += ((factor, f"better posts of its {kind}: {n}"),)
            order = order[np.lexsort((post[order], score[order].astype(np.float32)))[::-1]]
        return order, [further[place] for place in order.tolist()]

    def _kinds(self) -> Iterator[tuple[str, Ints, npt.NDArray[np.float64]]]:
        """Yield why further posts of a kind score less: its name, the kind of each candidate, and the factors."""
        author, scoring = self.model.posts.author, self.scoring
        yield "author", author[self.candidates.post].astype(np.int64), scoring.diversity
        if scoring.mode == DIVERSE and scoring.n_groups:
            writer = author[self.model.posts.root[self.candidates.post]]
            yield "group", scoring.group[writer].astype(np.int64), scoring.diversity

    @property
    def posts(self) -> list[int]:
        """The posts that may be shown, best first."""
        posts: list[int] = self.candidates.post[self.order].tolist()
        return posts

    def words(self, post: int, *, in_full: bool = True) -> str:
        """Return the source of a candidate, and its score."""
        places = np.flatnonzero(self.candidates.post == post).tolist()
        text = f"{self._source(places[0]) if places else self._author(post)}{self._in_slot(post)}"
        if not places or self.made is None or post not in self.posts:  # a slot may hold it beside the ranking
            return text
        place = self.posts.index(post)
        return f"{text}: {self.made.words(int(self.order[place]), self.further[place], in_full=in_full)}"

    def _in_slot(self, post: int) -> str:
        """Return which slot may hold a post, in words."""
        trending, matches, query = self.slots
        local = post - self.outbox.first
        if local in trending:
            return " (a slot is for it, as it is trending)"
        topic = int(query[self.row]) if len(query) else -1
        return " (a slot is for it, as its search finds it)" if topic >= 0 and local in matches[topic] else ""

    def _source(self, place: int) -> str:
        """Return the author of a candidate, and how it came to the agent."""
        model, post, scoring = self.model, int(self.candidates.post[place]), self.scoring
        who = self._author(post)
        if self.candidates.inside[place]:
            return f"{who}, whom it follows"
        number = int(self.number[place]) - self._n_inside
        if number < scoring.outsiders:
            return f"{who}, whom it does not follow (drawn from the whole platform)"
        if number < scoring.outsiders + scoring.two_hops:
            return f"{who}, whom {named(model, self._between(number - scoring.outsiders))} follows, whom it follows"
        if number < scoring.outsiders + scoring.two_hops + len(scoring.trending):
            return f"{who}, whom it does not follow (trending, velocity {model.posts.velocity[post]})"
        topic = model.topics.names[int(scoring.query[self.row])]
        return f"{who}, whom it does not follow (found by its search for {topic})"

    def _author(self, post: int) -> str:
        by = "reshared by" if self.model.posts.kind[post] == RESHARE else "by"
        before = int(self.model.platform.met.times(np.array([self.row]), self.model.posts.root[[post]])[0])
        again = f" (source {before + 1} of it)" if before else ""
        return f"{by} {named(self.model, int(self.model.posts.author[post]))}{again}"

    def _between(self, draw: int) -> int:
        """Return the followee through whom a candidate of two hops came: the first step of its draw."""
        followees = self.model.network.followees(self.row)
        key = self.scoring.two_hops_key
        for part in (draw, self.row, 0):
            key = np.uint64(mixed(key, np.uint64(part)))
        return int(followees[int(unit(key) * len(followees))])

    def why_not(self, post: int, n_shown: int) -> str:
        """Return why a post is not in a feed of `n_shown` posts; empty before the post exists."""
        model, posts = self.model, self.model.posts
        if post >= posts.n_there(model.round):
            return ""
        root = int(posts.root[post])
        author, writer = int(posts.author[post]), int(posts.author[root])
        if post < self.outbox.first:
            return f"it was older than the {self.params.window} rounds for which posts are shown"
        if writer == self.row:
            return "the agent had written it itself" if author == writer else "it passes on what the agent had written"
        for other in (author, writer):
            if model.relations.hides(np.array([self.row]), np.array([other]))[0]:
                return f"the agent sees nothing of {named(model, other)}, by a mute or a block"
        if root in model.platform.roots_read(self.row):
            done = "engaged with" if self.params.repeats else "read"
            return f"the agent had {done} it, or another copy of it, before"
        if post in model.platform.copies.of(self.row):
            return "the agent had read this very copy before; only another one is shown again"
        if post not in self.candidates.post:
            return "nobody whom the agent follows had posted it, and it was not among what is added from outside"
        if self.made is None:
            return "others were ranked before it"
        ranked = self.posts
        if post not in ranked:
            same = next(other for other in ranked if posts.root[other] == root)
            return f"post {same}, which is the same, stood in its stead"
        return (
            f"it was ranked at place {ranked.index(post) + 1} of {len(ranked)}, and the agent was shown {n_shown}; "
            f"{self.words(post)}"
        )
