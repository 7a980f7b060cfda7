"""Explain an agent's feed during a round: the place of each post, or why a post is missing.

Candidates are ranked like `kernels.feeds.ranking`, by the scores of `analysis.explain.scores`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from prism_mesa.analysis.explain.follows import named
from prism_mesa.analysis.explain.scores import Candidates, FurtherFactors, ScoredCandidates, explain_scores, lowered
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
        criterion: The ranking criterion.
        posts: The place, source and score of each post by id; `in_full` adds the terms of the score.
        traced_text: The same for the traced post, or why it was not shown.
    """

    criterion: str
    posts: dict[int, str] = field(default_factory=dict)
    in_full: dict[int, str] = field(default_factory=dict)
    traced_text: str = ""


def explain_feed(model: SocialModel, row: int, traced_post: int | None = None) -> FeedReasons:
    """Explain an agent's feed at the first tick of a round, and why `traced_post` is in it or not."""
    ranked = RankedFeed(model, row)
    shown = model.population.feed[row, : model.population.n_feed[row]].tolist()
    reasons = FeedReasons(ranked.params.ranking + (f": {ranked.scored.criterion}" if ranked.scored is not None else ""))
    for place, post in enumerate(shown, start=1):
        for texts, in_full in ((reasons.posts, False), (reasons.in_full, True)):
            texts[post] = f"place {place} of {len(shown)}, {ranked.describe(post, in_full=in_full)}"
    if traced_post is not None:
        text = reasons.in_full.get(traced_post)
        reasons.traced_text = ranked.why_not(traced_post, len(shown)) if text is None else f"in its feed, {text}"
    return reasons


def traced_post_lines(rounds: Iterable[tuple[int, FeedReasons | None]]) -> Iterator[str]:
    """Yield for each round why a post was in the feed or not."""
    lines = [f"  round {round_}: {feed.traced_text}" for round_, feed in rounds if feed and feed.traced_text]
    yield from lines or ["  none since the post appeared"]


class RankedFeed:
    """All candidates of an agent's feed in the running round, in the order of the kernel.

    Attributes:
        candidates: The candidates that may be shown.
        scored: Their scores; None in a mode without an explanation in `scores`.
        order: Places in `candidates`, best first, without repeated roots.
        further: The factors for better posts by the same author or group, for each place in `order`.
        slots: Posts that may be shown in addition to the ranked ones.
    """

    def __init__(self, model: SocialModel, row: int) -> None:
        self.model, self.row, platform = model, row, model.platform
        rows = np.array([row])
        [(_, self.params, user_feed)] = platform.feeds.assign(rows, AgentColumns(platform, rows))
        n_agents, now = len(platform.population), platform.round
        self.outbox = make_outbox(platform.posts, self.params, n_agents, now)
        world = self.outbox, platform.population, platform.posts, self.params, platform.streams, now
        discoveries = discovered(rows.astype(np.int32), *world)
        self.scoring = make_scoring(*world, discoveries, platform.groups)
        self.slots = discoveries.first(self.params.slots)
        post, is_followed = self._list_candidates()
        self._n_inside = int(is_followed.sum())
        self.numbers = np.flatnonzero(self._can_show(post))
        visible = post[self.numbers], is_followed[self.numbers]
        self.candidates = Candidates(platform, row, self.params, user_feed, self.outbox, self.scoring, *visible)
        self.scored: ScoredCandidates | None = explain_scores(self.candidates) if len(visible[0]) else None
        self.order, self.further = self._order()

    def _list_candidates(self) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return all candidates (-1: empty draw), and whether the agent follows their authors."""
        platform, reader = self.model.platform, np.array([self.row], np.int32)
        if not self.outbox.n:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        network, seen = platform.network, platform.exposure
        hidden = platform.relations.hidden_rows(len(platform.population))
        audience = Audience(network.indptr, network.indices, *seen.lists, *hidden, *platform.copies.lists)
        _, post, is_followed = RankInputs(audience, self.outbox, self.scoring).listed(reader)
        return post.astype(np.int64), is_followed

    def _can_show(self, post: Ints) -> npt.NDArray[np.bool_]:
        platform, posts = self.model.platform, self.model.posts
        root = posts.root[post]
        is_new = ~np.isin(root, platform.roots_read(self.row)) & (posts.author[root] != self.row)
        is_new &= ~np.isin(post, platform.copies.of(self.row))
        hidden = platform.relations.hides(np.full(len(post), self.row), posts.author[post])
        return np.asarray((post >= 0) & is_new & ~hidden)

    def _order(self) -> tuple[Ints, list[FurtherFactors]]:
        if self.scored is None:
            return np.zeros(0, np.int64), []
        posts, post, score = self.model.posts, self.candidates.post, self.scored.score.astype(np.float64)
        order = np.lexsort((post, score.astype(np.float32)))[::-1]
        _, first = np.unique(posts.root[post[order]], return_index=True)
        order = order[np.sort(first)]
        further: dict[int, FurtherFactors] = dict.fromkeys(order.tolist(), ())
        for kind, values, factors in self._groupings():
            n_better = Counter[int]()
            for place in order.tolist():
                n_above = n_better[int(values[place])]
                n_better[int(values[place])] += 1
                factor = float(factors[min(n_above, len(factors) - 1)]) if len(factors) else 1 / (1 + n_above)
                score[place] = lowered(score[place], factor)
                further[place] += ((factor, f"better posts of its {kind}: {n_above}"),)
            order = order[np.lexsort((post[order], score[order].astype(np.float32)))[::-1]]
        return order, [further[place] for place in order.tolist()]

    def _groupings(self) -> Iterator[tuple[str, Ints, npt.NDArray[np.float64]]]:
        """Yield the groupings in which further posts score less: name, group of each candidate, and factors."""
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

    def describe(self, post: int, *, in_full: bool = True) -> str:
        """Return the source of a candidate, and its score."""
        places = np.flatnonzero(self.candidates.post == post).tolist()
        text = f"{self._source(places[0]) if places else self._author(post)}{self._in_slot(post)}"
        if not places or self.scored is None or post not in self.posts:  # a slot may hold it beside the ranking
            return text
        place = self.posts.index(post)
        return f"{text}: {self.scored.describe(int(self.order[place]), self.further[place], in_full=in_full)}"

    def _in_slot(self, post: int) -> str:
        """Describe the slot that may hold a post."""
        trending, matches, query = self.slots
        local = post - self.outbox.first
        if local in trending:
            return " (a slot holds it, because it is trending)"
        topic = int(query[self.row]) if len(query) else -1
        return " (a slot holds it, because a search found it)" if topic >= 0 and local in matches[topic] else ""

    def _source(self, place: int) -> str:
        """Return the author of a candidate, and how the candidate reached the agent."""
        model, post, scoring = self.model, int(self.candidates.post[place]), self.scoring
        author_text = self._author(post)
        if self.candidates.is_followed[place]:
            return f"{author_text}, whom it follows"
        number = int(self.numbers[place]) - self._n_inside
        if number < scoring.outsiders:
            return f"{author_text}, whom it does not follow (drawn from the whole platform)"
        if number < scoring.outsiders + scoring.two_hops:
            followee = named(model, self._middle_followee(number - scoring.outsiders))
            return f"{author_text}, whom its followee {followee} follows"
        if number < scoring.outsiders + scoring.two_hops + len(scoring.trending):
            return f"{author_text}, whom it does not follow (trending, velocity {model.posts.velocity[post]})"
        topic = model.topics.names[int(scoring.query[self.row])]
        return f"{author_text}, whom it does not follow (found by its search for {topic})"

    def _author(self, post: int) -> str:
        verb = "reshared by" if self.model.posts.kind[post] == RESHARE else "by"
        n_before = int(self.model.platform.met.times(np.array([self.row]), self.model.posts.root[[post]])[0])
        repeat_note = f" (source {n_before + 1} of it)" if n_before else ""
        return f"{verb} {named(self.model, int(self.model.posts.author[post]))}{repeat_note}"

    def _middle_followee(self, draw: int) -> int:
        """Return the agent's followee through whom a two-hop draw reached a post."""
        followees = self.model.network.followees(self.row)
        key = self.scoring.two_hops_key
        for part in (draw, self.row, 0):
            key = np.uint64(mixed(key, np.uint64(part)))
        return int(followees[int(unit(key) * len(followees))])

    def why_not(self, post: int, n_shown: int) -> str:
        """Explain why a post is not in a feed of `n_shown` posts; empty before the post exists."""
        model, posts = self.model, self.model.posts
        if post >= posts.n_there(model.round):
            return ""
        root = int(posts.root[post])
        author, writer = int(posts.author[post]), int(posts.author[root])
        if post < self.outbox.first:
            return f"it was older than {self.params.window} rounds (feed.window)"
        if writer == self.row:
            return "the agent wrote it" if author == writer else "it reshares a post by the agent"
        for other in (author, writer):
            if model.relations.hides(np.array([self.row]), np.array([other]))[0]:
                return f"the agent sees no posts by {named(model, other)}, because of a mute or a block"
        if root in model.platform.roots_read(self.row):
            verb = "engaged with" if self.params.repeats else "read"
            return f"the agent had {verb} it, or another copy of it, before"
        if post in model.platform.copies.of(self.row):
            return "the agent had read this copy before; only another copy is shown again"
        if post not in self.candidates.post:
            return "no followee of the agent posted it, and it was not among the posts that are added from outside"
        if self.scored is None:
            return "others were ranked before it"
        ranked = self.posts
        if post not in ranked:
            other_copy = next(other for other in ranked if posts.root[other] == root)
            return f"post {other_copy}, another copy, was shown instead"
        return (
            f"it was ranked at place {ranked.index(post) + 1} of {len(ranked)}, and the agent was shown {n_shown}; "
            f"{self.describe(post)}"
        )
