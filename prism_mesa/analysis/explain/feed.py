"""Explain an agent's feed in a round: the place of each post, or why a post is missing.

Candidates are ranked as in `kernels.feeds.ranking`, by the scores of `analysis.explain.scores`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from prism_mesa.analysis.explain.follows import agent_label
from prism_mesa.analysis.explain.scores import Candidates, RepeatFactors, ScoredCandidates, explain_scores, lower_score
from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.feeds.outbox import Audience
from prism_mesa.kernels.feeds.scoring import DIVERSE, USER_SCORES
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.acts import feed_acts, hidden_from
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.round.feeds import RankInputs, discover, make_outbox, make_scoring
from prism_mesa.social.state.posts import RESHARE


@dataclass
class FeedReasons:
    """A reader's feed in a round as text.

    Attributes:
        texts: The place, source and score of each post, by its id.
        detailed_texts: The same, with the terms of each score.
        traced_text: The detailed text of the traced post, or why it was not shown.
    """

    criterion: str
    texts: dict[int, str] = field(default_factory=dict)
    detailed_texts: dict[int, str] = field(default_factory=dict)
    traced_text: str = ""


def explain_feed(model: SocialModel, row: int, traced_post: int | None = None) -> FeedReasons:
    """Explain an agent's feed at the first tick of a round, and why `traced_post` is in it or not."""
    feed = RankedFeed(model, row)
    shown = model.population.feed[row, : model.population.n_feed[row]].tolist()
    reasons = FeedReasons(feed.params.ranking + (f": {feed.scored.criterion}" if feed.scored is not None else ""))
    for place, post in enumerate(shown, start=1):
        for texts, detailed in ((reasons.texts, False), (reasons.detailed_texts, True)):
            texts[post] = f"place {place} of {len(shown)}, {feed.describe(post, detailed=detailed)}"
    if traced_post is not None:
        text = reasons.detailed_texts.get(traced_post)
        reasons.traced_text = feed.why_not(traced_post, len(shown)) if text is None else f"in its feed, {text}"
    return reasons


def traced_post_lines(rounds: Iterable[tuple[int, FeedReasons | None]]) -> Iterator[str]:
    """Yield for each round why a post was in the feed or not."""
    lines = [f"  round {round_}: {feed.traced_text}" for round_, feed in rounds if feed and feed.traced_text]
    yield from lines or ["  none since the post appeared"]


class RankedFeed:
    """All candidates of an agent's feed in the current round, ranked as by the kernel.

    Attributes:
        scored: Their scores; None in a mode that `scores` cannot explain.
        order: Indices into `candidates`, best first, without repeated roots.
        repeat_factors: For each index in `order`, the factors for better posts by the same author or group.
        slots: Posts that may be shown in addition to the ranked posts.
    """

    def __init__(self, model: SocialModel, row: int) -> None:
        self.model, self.row, platform = model, row, model.platform
        rows = np.array([row])
        feeds = platform.feeds.assign(rows, AgentColumns(platform, rows), platform.act_state)
        [(_, self.params, user_feed)] = feeds
        n_agents, current_round = len(platform.population), platform.round
        [(_, self.acts)] = feed_acts(platform, rows).split(rows, self.params)
        self.outbox = make_outbox(platform.posts, self.params, n_agents, current_round, acts=self.acts)
        feed_state = self.outbox, platform.population, platform.posts, self.params, platform.streams, current_round
        discoveries = discover(rows.astype(np.int32), *feed_state, self.acts)
        self.scoring = make_scoring(*feed_state, discoveries, platform.groups, self.acts)
        self.slots = discoveries.limit_to(self.params.slots)
        post, is_followed = self._list_candidates()
        self._n_followed = int(is_followed.sum())
        shift = self._added_scores(post, is_followed)
        self.listed_indices = np.flatnonzero(self._can_show(post) & (shift > -np.inf))
        visible = post[self.listed_indices], is_followed[self.listed_indices]
        self.candidates = Candidates(platform, row, self.params, user_feed, self.outbox, self.scoring, *visible)
        self.scored: ScoredCandidates | None = explain_scores(self.candidates) if len(visible[0]) else None
        if self.scored is not None and shift.any():
            self.scored = self.scored.with_added(shift[self.listed_indices])
        self.order, self.repeat_factors = self._rank_candidates()

    def _list_candidates(self) -> tuple[Ints, Mask]:
        """Return all candidates (-1 for an empty draw), and whether the agent follows their authors."""
        platform, reader = self.model.platform, np.array([self.row], np.int32)
        if not self.outbox.n:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        network, exposure = platform.network, platform.exposure
        hidden = platform.relations.hidden_rows(len(platform.population))
        audience = Audience(network.indptr, network.indices, *exposure.lists, *hidden, *platform.copies.lists)
        _, post, is_followed = RankInputs(audience, self.outbox, self.scoring).list_all(reader)
        return post.astype(np.int64), is_followed

    def _added_scores(self, post: Ints, is_followed: Mask) -> Floats:
        """Return what acts of the platform add to the score of each candidate, -inf to leave it out."""
        added, rows = np.zeros(len(post)), np.flatnonzero(post >= 0)
        if len(self.acts.reader_bits):
            to_visible = self.acts.added_scores(self.acts.reader_bits[self.row])
            added[rows] += to_visible[post[rows] - self.outbox.first]
        if self.acts.pair_shift is not None:
            added += self.acts.pair_shift(np.full(len(post), self.row, np.int32), post.astype(np.int32), is_followed)
        return added

    def _can_show(self, post: Ints) -> Mask:
        platform, posts = self.model.platform, self.model.posts
        root = posts.root[post]
        is_new = ~np.isin(root, platform.roots_read(self.row)) & (posts.author[root] != self.row)
        is_new &= ~np.isin(post, platform.copies.agent_roots(self.row))
        hidden = platform.relations.are_hidden(np.full(len(post), self.row), posts.author[post])
        return np.asarray((post >= 0) & is_new & ~hidden)

    def _rank_candidates(self) -> tuple[Ints, list[RepeatFactors]]:
        if self.scored is None:
            return np.zeros(0, np.int64), []
        posts, post, score = self.model.posts, self.candidates.post, self.scored.score.astype(np.float64)
        order = np.lexsort((post, score.astype(np.float32)))[::-1]
        if self.scoring.mode == USER_SCORES:
            order = order[score[order] > -np.inf]
        _, first_indices = np.unique(posts.root[post[order]], return_index=True)
        order = order[np.sort(first_indices)]
        repeat_factors: dict[int, RepeatFactors] = dict.fromkeys(order.tolist(), ())
        for kind, values, factors in self._groupings():
            n_better = Counter[int]()
            for index in order.tolist():
                n_above = n_better[int(values[index])]
                n_better[int(values[index])] += 1
                factor = float(factors[min(n_above, len(factors) - 1)]) if len(factors) else 1 / (1 + n_above)
                score[index] = lower_score(score[index], factor)
                repeat_factors[index] += ((factor, f"better posts of its {kind}: {n_above}"),)
            order = order[np.lexsort((post[order], score[order].astype(np.float32)))[::-1]]
        return order, [repeat_factors[index] for index in order.tolist()]

    def _groupings(self) -> Iterator[tuple[str, Ints, Floats]]:
        """Yield the groupings in which repeated posts score less: name, group of each candidate, and factors."""
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

    def describe(self, post: int, *, detailed: bool = True) -> str:
        """Return the source of a candidate, and its score."""
        indices = np.flatnonzero(self.candidates.post == post).tolist()
        text = f"{self._source_text(indices[0]) if indices else self._author_text(post)}{self._slot_note(post)}"
        if not indices or self.scored is None or post not in self.posts:  # the post may be in a slot only
            return text
        i = self.posts.index(post)
        return f"{text}: {self.scored.describe(int(self.order[i]), self.repeat_factors[i], detailed=detailed)}"

    def _slot_note(self, post: int) -> str:
        trending, matches, query = self.slots
        local_id = post - self.outbox.first
        if local_id in trending:
            return " (in a slot, because it is trending)"
        topic = int(query[self.row]) if len(query) else -1
        return " (in a slot, because a search found it)" if topic >= 0 and local_id in matches[topic] else ""

    def _source_text(self, index: int) -> str:
        model, post, scoring = self.model, int(self.candidates.post[index]), self.scoring
        author_text = self._author_text(post)
        if self.candidates.is_followed[index]:
            return f"{author_text}, whom it follows"
        list_index = int(self.listed_indices[index]) - self._n_followed
        if list_index < scoring.n_outsiders:
            return f"{author_text}, whom it does not follow (drawn from the whole platform)"
        if list_index < scoring.n_outsiders + scoring.n_two_hops:
            followee = agent_label(model, self._middle_followee(list_index - scoring.n_outsiders))
            return f"{author_text}, whom its followee {followee} follows"
        if list_index < scoring.n_outsiders + scoring.n_two_hops + len(scoring.trending):
            return f"{author_text}, whom it does not follow (trending, velocity {model.posts.velocity[post]})"
        topic = model.topics.names[int(scoring.query[self.row])]
        return f"{author_text}, whom it does not follow (found by its search for {topic})"

    def _author_text(self, post: int) -> str:
        verb = "reshared by" if self.model.posts.kind[post] == RESHARE else "by"
        read_roots = self.model.platform.read_roots
        n_before = int(read_roots.read_counts(np.array([self.row]), self.model.posts.root[[post]])[0])
        repeat_note = f" (source {n_before + 1} of it)" if n_before else ""
        return f"{verb} {agent_label(self.model, int(self.model.posts.author[post]))}{repeat_note}"

    def _middle_followee(self, draw: int) -> int:
        followees = self.model.network.followees(self.row)
        key = self.scoring.two_hops_key
        for key_part in (draw, self.row, 0):
            key = np.uint64(mix(key, np.uint64(key_part)))
        return int(followees[int(uniform(key) * len(followees))])

    def why_not(self, post: int, n_shown: int) -> str:
        """Explain why a post is not in a feed of `n_shown` posts; empty before the post exists."""
        model, posts = self.model, self.model.posts
        if post >= posts.n_visible(model.round):
            return ""
        root = int(posts.root[post])
        author, writer = int(posts.author[post]), int(posts.author[root])
        if post < self.outbox.first:
            return f"it was older than {self.params.window} rounds (feed.window)"
        if writer == self.row:
            return "the agent wrote it" if author == writer else "it reshares a post by the agent"
        for other in (author, writer):
            if model.relations.are_hidden(np.array([self.row]), np.array([other]))[0]:
                return f"the agent sees no posts by {agent_label(model, other)}, because of a mute or a block"
        if hidden_from(model.platform, self.row, np.array([post]))[0]:
            return "an intervention leaves it out of the agent's feeds"
        if root in model.platform.roots_read(self.row):
            verb = "engaged with" if self.params.repeats else "read"
            return f"the agent had {verb} it, or another copy of it, before"
        if post in model.platform.copies.agent_roots(self.row):
            return "the agent had read this copy before; only another copy is shown again"
        if post not in self.candidates.post:
            return "no followee of the agent posted it, and it was not among the posts added from outside the network"
        if self.scored is None:
            return "other posts were ranked higher"
        ranking = self.posts
        if self.scoring.mode == USER_SCORES and self.scored.score[self.candidates.post == post].max() == -np.inf:
            return "its score is -inf, so the feed does not show it"
        if post not in ranking:
            other_copy = next(other for other in ranking if posts.root[other] == root)
            return f"post {other_copy}, another copy, was shown instead"
        return (
            f"it was ranked at place {ranking.index(post) + 1} of {len(ranking)}, but the feed had {n_shown} posts; "
            f"{self.describe(post)}"
        )
