"""The terms of posts' scores in each feed mode, for all candidates of a reader."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.params import FEED_MODES, FeedParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.round.feeds import engagement_rates
from prism_mesa.social.state.feeds import UserFeed
from prism_mesa.social.state.groups import NO_GROUPS
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import relevance_of

type Floats = npt.NDArray[np.float64]
type FurtherFactors = tuple[tuple[float, str], ...]
"""Factors for further posts by the same author or group, each with its reason."""

_MAX_FIELDS: Final = 12  # fields of a user's own feed that are shown


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
    is_followed: npt.NDArray[np.bool_]

    @property
    def readers(self) -> Rows:
        """The reader, repeated for each post."""
        return np.full(len(self.post), self.reader)


@dataclass(frozen=True)
class ScoredCandidates:
    """The scores of candidates and their terms, in columns of equal length.

    Attributes:
        criterion: The ranking criterion as text.
        score: The kernel's score without factors for further posts of one author; higher is better.
        terms: A weight and a column by name; their weighted sum, times all `factors`, is the score.
        factors: Factors of at most 1 by name; a negative sum is divided by them.
        inputs: Other inputs of the score by name.
        is_shown: Whether to show the score itself.
    """

    criterion: str
    score: Floats
    terms: Mapping[str, tuple[float, Floats]] = field(default_factory=dict)
    factors: Mapping[str, Floats] = field(default_factory=dict)
    inputs: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    is_shown: bool = True

    def describe(self, index: int, further: FurtherFactors, *, in_full: bool) -> str:
        """Describe a candidate's score, lowered by the factors in `further`; `in_full` adds its terms."""
        score = self.score[index]
        for factor, _ in further:
            score = lowered(score, factor)
        parts = [f"score {float(score):.4g}"] if self.is_shown else []
        if in_full or not self.is_shown:
            terms = [(weight, f"x {name} {_short(column[index])}") for name, (weight, column) in self.terms.items()]
            added = "".join(f" {'-' if weight < 0 else '+'} {abs(weight):g} {term}" for weight, term in terms if weight)
            times = [f" x {column[index]:g} ({name})" for name, column in self.factors.items() if column[index] != 1.0]
            times += [f" x {factor:.4g} ({why})" for factor, why in further if factor != 1.0]
            formula = (f" = ({added.removeprefix(' + ')})" if added else "") + "".join(times)
            parts = [f"{part}{formula}" for part in parts]
            parts += [f"{name} = {_short(column[index])}" for name, column in list(self.inputs.items())[:_MAX_FIELDS]]
            parts += ["..."] if len(self.inputs) > _MAX_FIELDS else []
        return ", ".join(parts)


def lowered(score: Floats | float, factor: Floats | float) -> Floats:
    """Lower scores by factors of at most 1, as `kernels.feeds.scoring.lowered` does."""
    with np.errstate(all="ignore"):
        return np.where(np.less(score, 0.0), np.divide(score, factor), np.multiply(score, factor))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else plain(str(value), NAME_CAP)


def explain_scores(feed: Candidates) -> ScoredCandidates | None:
    """Return the scores of candidates in the mode of the reader's feed; None for a mode without an explanation."""
    if feed.user_feed is not None:
        return _user_feed(feed, feed.user_feed)
    explain = _MODES.get(feed.params.ranking)
    return None if explain is None else explain(feed)


def _criterion(feed: Candidates) -> str:
    return FEED_MODES[feed.params.mode].why.format(attribute=feed.params.attribute)


def _chronological(feed: Candidates) -> ScoredCandidates:
    age = feed.platform.round - feed.platform.posts.round[feed.post].astype(np.int64)
    return ScoredCandidates(_criterion(feed), np.zeros(len(age)), inputs={"age": age}, is_shown=False)


def _random(feed: Candidates) -> ScoredCandidates:
    keys, now = feed.platform.posts.key[feed.post], feed.platform.round
    draw = feed.platform.streams.uniform("feed order", feed.readers, round_=now, index=keys)
    return ScoredCandidates(_criterion(feed), draw, inputs={"draw": draw}, is_shown=False)


def _preference(feed: Candidates) -> ScoredCandidates:
    match = feed.platform.matches(feed.readers, feed.post)
    inputs = {"relevance": relevance_of(match)}
    return ScoredCandidates(_criterion(feed), match.astype(np.float64), inputs=inputs, is_shown=False)


def _predicted(feed: Candidates) -> ScoredCandidates:
    weights, scoring, local = feed.params.weights or feed.params.x_algo, feed.scoring, feed.post - feed.outbox.first
    relevance = relevance_of(feed.platform.matches(feed.readers, feed.post))
    factors = {
        "from outside of its network": np.where(feed.is_followed, 1.0, weights.out_of_network_factor),
        "a reply": scoring.factor[local],
    }
    score = 2.0 * (relevance * scoring.good[local] + (1.0 - relevance) * scoring.bad)
    for factor in factors.values():
        score = lowered(score, factor)
    like, reply, reshare = (
        2.0 * relevance * rate
        for rate in engagement_rates(feed.platform.posts.root[feed.post], feed.platform.posts, weights)
    )
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
    return ScoredCandidates(_criterion(feed), score, terms, factors, {"relevance": relevance})


def _bridging(feed: Candidates) -> ScoredCandidates:
    """Return the engagement rates of groups, shrunk towards the rate over all visible posts."""
    score = feed.scoring.good[feed.post - feed.outbox.first]
    groups = feed.platform.groups or NO_GROUPS
    engaged, seen = groups.counts.of_roots(feed.platform.posts.root[feed.post])
    inputs = {}
    for group in range(groups.counts.n):
        inputs[f"engaged in group {group + 1}"] = np.array(
            [f"{a} of {b}" for a, b in zip(engaged[:, group].tolist(), seen[:, group].tolist(), strict=True)]
        )
    return ScoredCandidates(_criterion(feed), score, inputs=inputs)


def _diverse(feed: Candidates) -> ScoredCandidates:
    relevance = relevance_of(feed.platform.matches(feed.readers, feed.post))
    return ScoredCandidates(_criterion(feed), np.asarray(relevance), {"relevance": (1.0, np.asarray(relevance))})


def _user_feed(feed: Candidates, user_feed: UserFeed) -> ScoredCandidates:
    agents, posts = (
        AgentColumns(feed.platform, feed.readers),
        CandidateColumns(feed.platform, feed.readers, feed.post, feed.is_followed),
    )
    score = user_feed.scores(agents, posts, len(feed.post))
    return ScoredCandidates(
        f"by the score of {feed.params.mode}, the highest first", score, inputs={**user_feed.read(agents, posts)}
    )


_MODES: Final[Mapping[str, Callable[[Candidates], ScoredCandidates]]] = {
    "chronological": _chronological,
    "random": _random,
    "preference": _preference,
    "bridging": _bridging,
    "diverse": _diverse,
    "x_2023": _predicted,
    "x_2026_08": _predicted,
}
