"""The scores of a reader's candidates and their terms, in each feed mode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Mask, Rows
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.social.params import FEED_MODES, FeedParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.round.feeds import engagement_rates
from prism_mesa.social.state.feeds import UserFeed
from prism_mesa.social.state.groups import NO_GROUPS
from prism_mesa.social.state.posts import to_relevance

type RepeatFactors = tuple[tuple[float, str], ...]
"""Factors for repeated posts by the same author or group, each with its reason."""

_MAX_FIELDS: Final = 12  # fields of a user-defined feed to show


@dataclass(frozen=True)
class Candidates:
    """The posts that a reader may see in a round; `is_followed` says whether the reader follows the author."""

    platform: Platform
    reader: int
    params: FeedParams
    user_feed: UserFeed | None
    outbox: Outbox
    scoring: Scoring
    post: Rows
    is_followed: Mask

    @property
    def readers(self) -> Rows:
        """The reader, repeated for each post."""
        return np.full(len(self.post), self.reader)


@dataclass(frozen=True)
class ScoredCandidates:
    """The scores of candidates and their terms, in columns of equal length.

    Attributes:
        score: The kernel's score before `RepeatFactors`; higher is better.
        terms: Weight and column of each term; the score is the weighted sum of the columns, times all `factors`.
        factors: Factors of at most 1 by name; they divide a negative sum.
    """

    score: Floats
    terms: Mapping[str, tuple[float, Floats]] = field(default_factory=dict)
    factors: Mapping[str, Floats] = field(default_factory=dict)
    inputs: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    shows_score: bool = True
    criterion: str = ""

    def with_added(self, added: Floats) -> Self:
        """Return the scores with numbers that interventions add."""
        inputs = {**self.inputs, "added by interventions": added} if added.any() else self.inputs
        return replace(self, score=self.score + added, inputs=inputs)

    def describe(self, index: int, repeat_factors: RepeatFactors, *, detailed: bool) -> str:
        """Describe a candidate's score, lowered by `repeat_factors`; `detailed` adds its terms."""
        score = self.score[index]
        for factor, _ in repeat_factors:
            score = lower_score(score, factor)
        parts = [f"score {float(score):.4g}"] if self.shows_score else []
        if detailed or not self.shows_score:
            terms = [(weight, f"x {name} {_text(column[index])}") for name, (weight, column) in self.terms.items()]
            total = "".join(f" {'-' if weight < 0 else '+'} {abs(weight):g} {term}" for weight, term in terms if weight)
            scales = [f" x {column[index]:g} ({name})" for name, column in self.factors.items() if column[index] != 1.0]
            scales += [f" x {factor:.4g} ({reason})" for factor, reason in repeat_factors if factor != 1.0]
            formula = (f" = ({total.removeprefix(' + ')})" if total else "") + "".join(scales)
            parts = [f"{part}{formula}" for part in parts]
            parts += [f"{name} = {_text(column[index])}" for name, column in list(self.inputs.items())[:_MAX_FIELDS]]
            parts += ["..."] if len(self.inputs) > _MAX_FIELDS else []
        return ", ".join(parts)


def lower_score(score: Floats | float, factor: Floats | float) -> Floats:
    """Lower scores by factors of at most 1, as in `kernels.feeds.scoring`."""
    with np.errstate(all="ignore"):
        return np.where(np.less(score, 0.0), np.divide(score, factor), np.multiply(score, factor))


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else clean_text(str(value), NAME_CAP)


def explain_scores(feed: Candidates) -> ScoredCandidates | None:
    """Return the scores of candidates in the mode of the reader's feed; None if the mode cannot be explained."""
    if feed.user_feed is not None:
        return _user_feed(feed, feed.user_feed)
    if (explain := _MODES.get(feed.params.ranking)) is None:
        return None
    return replace(explain(feed), criterion=FEED_MODES[feed.params.mode].why.format(attribute=feed.params.attribute))


def _chronological(feed: Candidates) -> ScoredCandidates:
    age = feed.platform.round - feed.platform.posts.round[feed.post].astype(np.int64)
    return ScoredCandidates(np.zeros(len(age)), inputs={"age": age}, shows_score=False)


def _random(feed: Candidates) -> ScoredCandidates:
    keys, now = feed.platform.posts.key[feed.post], feed.platform.round
    draw = feed.platform.streams.uniform("feed order", feed.readers, round_=now, index=keys)
    return ScoredCandidates(draw, inputs={"draw": draw}, shows_score=False)


def _preference(feed: Candidates) -> ScoredCandidates:
    similarity = feed.platform.similarities(feed.readers, feed.post)
    inputs = {"relevance": to_relevance(similarity)}
    return ScoredCandidates(similarity.astype(np.float64), inputs=inputs, shows_score=False)


def _predicted(feed: Candidates) -> ScoredCandidates:
    weights, scoring, local_ids = feed.params.weights or feed.params.x_algo, feed.scoring, feed.post - feed.outbox.first
    relevance = to_relevance(feed.platform.similarities(feed.readers, feed.post))
    factors = {
        "from outside of its network": np.where(feed.is_followed, 1.0, weights.out_of_network_factor),
        "a reply": scoring.factor[local_ids],
    }
    score = 2.0 * (relevance * scoring.gain[local_ids] + (1.0 - relevance) * scoring.loss)
    for factor in factors.values():
        score = lower_score(score, factor)
    rates = engagement_rates(feed.platform.posts.root[feed.post], feed.platform.posts, weights)
    like, reply, reshare = (2.0 * relevance * rate for rate in rates)
    terms = {
        "like": (weights.weight_like, like),
        "reshare": (weights.weight_reshare, reshare),
        "reply": (weights.weight_reply, reply),
        "reply that is answered": (weights.weight_reply_engaged, weights.reply_engaged * reply),
        "click": (weights.weight_good_click, 2.0 * relevance * weights.rate_good_click),
        "profile click": (weights.weight_profile_click, 2.0 * relevance * weights.rate_profile_click),
        "negative feedback": (weights.weight_negative, 2.0 * (1.0 - relevance) * weights.rate_negative),
        "report": (weights.weight_report, 2.0 * (1.0 - relevance) * weights.rate_report),
    }
    return ScoredCandidates(score, terms, factors, {"relevance": relevance})


def _bridging(feed: Candidates) -> ScoredCandidates:
    """Score candidates by the engagement rates of groups, shrunk towards the rate over all visible posts."""
    score = feed.scoring.gain[feed.post - feed.outbox.first]
    groups = feed.platform.groups or NO_GROUPS
    engaged, seen = groups.counts.root_counts(feed.platform.posts.root[feed.post])
    inputs = {}
    for group in range(groups.counts.n):
        pairs = zip(engaged[:, group].tolist(), seen[:, group].tolist(), strict=True)
        inputs[f"engaged in group {group + 1}"] = np.array([f"{n_engaged} of {n_seen}" for n_engaged, n_seen in pairs])
    return ScoredCandidates(score, inputs=inputs)


def _diverse(feed: Candidates) -> ScoredCandidates:
    relevance = to_relevance(feed.platform.similarities(feed.readers, feed.post))
    return ScoredCandidates(np.asarray(relevance), {"relevance": (1.0, np.asarray(relevance))})


def _user_feed(feed: Candidates, user_feed: UserFeed) -> ScoredCandidates:
    agents = AgentColumns(feed.platform, feed.readers)
    posts = CandidateColumns(feed.platform, feed.readers, feed.post, feed.is_followed)
    criterion = f"by the score of {feed.params.mode}, the highest first"
    score = user_feed.scores(agents, posts, len(feed.post))
    return ScoredCandidates(score, inputs={**user_feed.read(agents, posts)}, criterion=criterion)


_MODES: Final[Mapping[str, Callable[[Candidates], ScoredCandidates]]] = {
    "chronological": _chronological,
    "random": _random,
    "preference": _preference,
    "bridging": _bridging,
    "diverse": _diverse,
    "x_2023": _predicted,
    "x_2026_08": _predicted,
}
