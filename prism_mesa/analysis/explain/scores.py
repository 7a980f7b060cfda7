"""What the score of a post is made of in each feed mode: one function a mode, over all candidates of one reader."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.own.feed import OwnFeed
from prism_mesa.social.params import FEED_MODES, FeedParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.round.feeds.candidates import CandidateColumns
from prism_mesa.social.round.feeds.ranking import engagement_rates
from prism_mesa.social.state.groups import NO_GROUPS
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import relevance_of

type Floats = npt.NDArray[np.float64]
type Further = tuple[tuple[float, str], ...]
"""Factors of a score of one of several of a kind, each with why."""

_MOST_READ: Final = 12
"""Fields of a feed of one's own that are told."""


@dataclass(frozen=True)
class Candidates:
    """The posts that one reader may be shown in a round: `post` and `inside`, whether it follows the author."""

    platform: Platform
    reader: int
    params: FeedParams
    own: OwnFeed | None
    outbox: Outbox
    scoring: Scoring
    post: Rows
    inside: npt.NDArray[np.bool_]

    @property
    def readers(self) -> Rows:
        """The reader, once for each post."""
        return np.full(len(self.post), self.reader)


@dataclass(frozen=True)
class Made:
    """What candidates score, and of what: columns of one length.

    Attributes:
        how: What comes first, in words.
        score: As the kernel has it, but for what it takes away from further posts of one author; more is better.
        terms: Name -> a weight, and what it weighs: their sum, times all `factors`, is the score.
        factors: Name -> a factor of at most 1; a sum below 0 is divided by it.
        read: Name -> what else the score comes from.
        is_told: Whether the score is a number that says something by itself.
    """

    how: str
    score: Floats
    terms: Mapping[str, tuple[float, Floats]] = field(default_factory=dict)
    factors: Mapping[str, Floats] = field(default_factory=dict)
    read: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    is_told: bool = True

    def words(self, one: int, further: Further, *, in_full: bool) -> str:
        """Return what one candidate scores, and of what.

        Args:
            one: Its place among the candidates.
            further: Further factors, for being one of several of its kind.
            in_full: Whether it is told how the score comes about.
        """
        score = self.score[one]
        for factor, _ in further:
            score = lowered(score, factor)
        told = [f"score {float(score):.4g}"] if self.is_told else []
        if in_full or not self.is_told:
            terms = [(weight, f"x {name} {_short(column[one])}") for name, (weight, column) in self.terms.items()]
            added = "".join(f" {'-' if weight < 0 else '+'} {abs(weight):g} {of}" for weight, of in terms if weight)
            times = [f" x {column[one]:g} ({name})" for name, column in self.factors.items() if column[one] != 1.0]
            times += [f" x {factor:.4g} ({why})" for factor, why in further if factor != 1.0]
            made_of = (f" = ({added.removeprefix(' + ')})" if added else "") + "".join(times)
            told = [f"{said}{made_of}" for said in told]
            told += [f"{name} = {_short(column[one])}" for name, column in list(self.read.items())[:_MOST_READ]]
            told += ["..."] if len(self.read) > _MOST_READ else []
        return ", ".join(told)


def lowered(score: Floats | float, factor: Floats | float) -> Floats:
    """Return scores times factors of at most 1, as `kernels.feeds.scoring.lowered` does."""
    with np.errstate(all="ignore"):
        return np.where(np.less(score, 0.0), np.divide(score, factor), np.multiply(score, factor))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else plain(str(value), NAME_CAP)


def made_of(of: Candidates) -> Made | None:
    """Return what the candidates score in the mode of the reader's feed; None in one of which nothing is known here."""
    if of.own is not None:
        return _own(of, of.own)
    explain = _MODES.get(of.params.ranking)
    return None if explain is None else explain(of)


def _why(of: Candidates) -> str:
    return FEED_MODES[of.params.mode].why.format(attribute=of.params.attribute)


def _chronological(of: Candidates) -> Made:
    age = of.platform.round - of.platform.posts.round[of.post].astype(np.int64)
    return Made(_why(of), np.zeros(len(age)), read={"age": age}, is_told=False)


def _random(of: Candidates) -> Made:
    keys, now = of.platform.posts.key[of.post], of.platform.round
    draw = of.platform.streams.uniform("feed order", of.readers, round_=now, index=keys)
    return Made(_why(of), draw, read={"draw": draw}, is_told=False)


def _preference(of: Candidates) -> Made:
    match = of.platform.matches(of.readers, of.post)
    read = {"relevance": relevance_of(match)}
    return Made(_why(of), match.astype(np.float64), read=read, is_told=False)


def _predicted(of: Candidates) -> Made:
    """Return predicted engagements times weights; what a reader likes is predicted by relevance."""
    own, scoring, local = of.params.weights or of.params.x_algo, of.scoring, of.post - of.outbox.first
    relevance = relevance_of(of.platform.matches(of.readers, of.post))
    factors = {
        "from outside of its network": np.where(of.inside, 1.0, own.out_of_network_factor),
        "a reply": scoring.factor[local],
    }
    score = 2.0 * (relevance * scoring.good[local] + (1.0 - relevance) * scoring.bad)
    for factor in factors.values():
        score = lowered(score, factor)
    like, reply, reshare = (
        2.0 * relevance * rate for rate in engagement_rates(of.platform.posts.root[of.post], of.platform.posts, own)
    )
    terms = {
        "like": (own.weight_like, like),
        "reshare": (own.weight_reshare, reshare),
        "reply": (own.weight_reply, reply),
        "reply that is answered": (own.weight_reply_engaged, own.reply_engaged * reply),
        "click": (own.weight_good_click, 2.0 * relevance * own.rate_good_click),
        "profile click": (own.weight_profile_click, 2.0 * relevance * own.rate_profile_click),
        "negative feedback": (own.weight_negative, 2.0 * (1.0 - relevance) * own.rate_negative),
        "report": (own.weight_report, 2.0 * (1.0 - relevance) * own.rate_report),
    }
    return Made(_why(of), score, terms, factors, {"relevance": relevance})


def _bridging(of: Candidates) -> Made:
    """Return the shares of impressions that groups engaged with, each drawn towards that of all visible posts."""
    score = of.scoring.good[of.post - of.outbox.first]
    groups = of.platform.groups or NO_GROUPS
    engaged, seen = groups.counts.of_roots(of.platform.posts.root[of.post])
    read = {}
    for group in range(groups.counts.n):
        read[f"engaged of group {group + 1}"] = np.array(
            [f"{a} of {b}" for a, b in zip(engaged[:, group].tolist(), seen[:, group].tolist(), strict=True)]
        )
    return Made(_why(of), score, read=read)


def _diverse(of: Candidates) -> Made:
    relevance = relevance_of(of.platform.matches(of.readers, of.post))
    return Made(_why(of), np.asarray(relevance), {"relevance": (1.0, np.asarray(relevance))})


def _own(of: Candidates, own: OwnFeed) -> Made:
    """Return what a feed of a user's own gives, and the fields that it reads."""
    agents, posts = AgentColumns(of.platform, of.readers), CandidateColumns(of.platform, of.readers, of.post, of.inside)
    score = own.scores(agents, posts, len(of.post))
    return Made(f"by the score of {of.params.mode}, the highest first", score, read={**own.read(agents, posts)})


_MODES: Final[Mapping[str, Callable[[Candidates], Made]]] = {
    "chronological": _chronological,
    "random": _random,
    "preference": _preference,
    "bridging": _bridging,
    "diverse": _diverse,
    "x_2023": _predicted,
    "x_2026_08": _predicted,
}
