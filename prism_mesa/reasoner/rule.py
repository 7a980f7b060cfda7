"""The rule: decides about engagement from utility, velocity, media, personality and a keyed draw.

P(engage) = logistic(z), with

    z = BIAS + slope * position + velocity_weight * log(1 + velocity) + media_weight * has_media
        + sum(TRAIT_WEIGHTS * standardised traits)

where `position` is the position of the post's utility on the agent's band: -1 at the lower end, 1 at the upper end,
limited to -3..3, and 0 if the band has no width.

BIAS and TRAIT_WEIGHTS are the coefficients of a logistic regression. The outcome is "liked, reshared or replied" in a
30-minute window of use, and the predictors are the five traits. We computed it from 1,608 windows of 233 US Twitter
users (data of Oldemburgo de Mello, Cheung and Inzlicht 2024, Communications Psychology 2:15,
doi:10.1038/s44271-024-00062-z). Standard errors, clustered by person: .12; .14, .13, .13, .15, .13. We assume that
weights for half an hour also apply to one decision. `slope` and `velocity_weight` (`RuleParams`) are assumptions, too.

`media_weight` (`RuleParams.media`) is the logarithm of a ratio. Tweets with a photo had 1.35 times the retweets of
their accounts' average tweet, tweets with a video 1.28 times (2 million tweets of verified accounts in the US;
S. Rogers, analysis by D. Mason, What fuels a Tweet's engagement?, blog.x.com, 10 March 2014). These ratios are
observational and are about retweets only. Li and Xie 2020, doi:10.1177/0022243719881113, correct for the choice of
photos. For tweets about two kinds of brands they find larger ratios: 2.2 and 3.1 for retweets, 1.9 and 2.5 for likes.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats, Ints
from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, TRAIT_MEANS, TRAIT_SDS, AgentState
from prism_mesa.errors import one_line
from prism_mesa.kernels.walking.world import Rule
from prism_mesa.llm.params import Source
from prism_mesa.reasoner.batch import BatchReasoner
from prism_mesa.reasoner.params import RuleParams
from prism_mesa.reasoner.question import DetailedChoices, OpenChoices, PlacedQuestion, Question

BIAS = -0.33
TRAIT_WEIGHTS = (0.34, 0.10, -0.15, 0.31, 0.24)
MAX_POSITION = 3.0
MAX_VELOCITY = 1023
MAX_LOG_ODDS = 8
STEPS = 32
"""Log-odds are rounded to multiples of 1/32 and limited to -8..8, so P(engage) is between .0003 and .9997."""

_ENGAGING = {AgentState(f"engaging_{action}"): column for column, action in enumerate(ACTIONS)}
_ACTIVE = {AgentState.COMPOSING, *_ENGAGING}


def rounded_table(values: Iterable[float]) -> Floats:
    """Round values to multiples of 2**-30, so that exp and log are the same on all machines."""
    return np.array([round(value * 2**30) / 2**30 for value in values])


_LOGISTIC = rounded_table(
    1 / (1 + math.exp(-step / STEPS)) for step in range(-MAX_LOG_ODDS * STEPS, MAX_LOG_ODDS * STEPS + 1)
)
LOG1P = rounded_table(math.log1p(velocity) for velocity in range(MAX_VELOCITY + 1))
_TRAITS: Final = np.array(TRAIT_WEIGHTS, np.float64), np.array(TRAIT_MEANS), np.array(TRAIT_SDS)


def band_positions(choices: OpenChoices) -> Floats:
    """Return the position of each post on its agent's band, -3..3."""
    width = choices.high - choices.low
    has_width = width > 0
    position = 2.0 * (choices.utility - choices.low) / np.where(has_width, width, 1.0) - 1.0
    return np.where(has_width, np.clip(position, -MAX_POSITION, MAX_POSITION), 0.0)


class RuleReasoner(BatchReasoner[OpenChoices]):
    """Answers open choices by the rule of this module."""

    kind = "rule"
    label = "rule-based reasoner"

    def __init__(self, params: RuleParams | None = None, *, note: str = "") -> None:
        self.params = params or RuleParams()
        self.note = note

    @one_line
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.params!r})"

    def source_for(self, options: tuple[AgentState, ...]) -> Source:
        """Return `rule`."""
        return "rule"

    def kernel_rule(self, key: np.uint64) -> Rule:
        """Return the rule's constants for kernels. `key` is the key of the round's draws."""
        weights = float(self.params.slope), float(self.params.velocity), float(self.params.media)
        return Rule(True, key, BIAS, *weights, *_TRAITS, _LOGISTIC, LOG1P, STEPS, MAX_POSITION)

    def columns(self, options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> OpenChoices:
        """Return questions as columns."""
        return question_columns(options, questions)

    def engage_probability(self, choices: OpenChoices, positions: Floats | None = None) -> Floats:
        """Return P(engage) for each row. For `positions` see `probabilities`."""
        velocity = LOG1P[np.clip(choices.velocity, 0, MAX_VELOCITY)]
        position = band_positions(choices) if positions is None else np.clip(positions, -MAX_POSITION, MAX_POSITION)
        z = BIAS + self.params.slope * position + self.params.velocity * velocity + self.params.media * choices.media
        for k in range(len(BIG_FIVE)):
            z = z + TRAIT_WEIGHTS[k] * (choices.traits[:, k] - TRAIT_MEANS[k]) / TRAIT_SDS[k]
        steps = np.rint(np.clip(z, -MAX_LOG_ODDS, MAX_LOG_ODDS) * STEPS).astype(np.int64)
        return _LOGISTIC[steps + MAX_LOG_ODDS * STEPS]

    def probabilities(self, choices: OpenChoices, positions: Floats | None = None) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; rows sum to 1.

        P(engage) is divided among the active options by the agent's propensities; COMPOSING gets the propensities of
        actions that are not options. The remaining probability is divided equally among the passive options. If all
        options are active, or all are passive, they divide 1.

        Args:
            choices: The open choices, n rows.
            positions: Position of each post on the agent's band, shape (n,); by default computed from the utility.
        """
        active = [option.resembled in _ACTIVE for option in choices.options]
        p_engage = self.engage_probability(choices, positions)
        if all(active) or not any(active):
            p_engage = np.full_like(p_engage, 1.0 if all(active) else 0.0)
        weights = _active_weights(choices)
        result = np.empty((len(p_engage), len(active)))
        for column, is_active in enumerate(active):
            result[:, column] = p_engage * weights[column] if is_active else (1.0 - p_engage) / active.count(False)
        return result

    def log_odds(self, question: Question, position: float | None = None) -> dict[str, float]:
        """Return the terms of the log-odds of engaging, by name. For `position` see `probabilities`."""
        choices = question_columns(question.options, [PlacedQuestion(question)])
        position = band_positions(choices)[0] if position is None else min(max(position, -MAX_POSITION), MAX_POSITION)
        standardised = (choices.traits[0] - TRAIT_MEANS) / TRAIT_SDS
        return {
            "the bias": BIAS,
            "the post": self.params.slope * float(position),
            "its velocity": self.params.velocity * float(LOG1P[min(int(choices.velocity[0]), MAX_VELOCITY)]),
            "its media": self.params.media * bool(choices.media[0]),
            "the agent's character": float((TRAIT_WEIGHTS * standardised).sum()),
        }


def _active_weights(choices: OpenChoices) -> list[Floats]:
    """Return the share of P(engage) for each option, as one array per option; 0 for passive options."""
    options = [option.resembled for option in choices.options]
    offered_columns = [_ENGAGING[option] for option in options if option in _ENGAGING]
    zeros = np.zeros(len(choices.draws))
    composing_shares = zeros if offered_columns else zeros + 1.0
    for column in range(len(ACTIONS)):
        if offered_columns and column not in offered_columns:
            composing_shares = composing_shares + choices.propensities[:, column]
    shares = {option: choices.propensities[:, column] for option, column in _ENGAGING.items()}
    shares[AgentState.COMPOSING] = composing_shares
    option_weights = [shares.get(option, zeros) for option in options]
    total = zeros
    for weights in option_weights:
        total = total + weights
    has_weight = total > 0
    is_active = [option in _ACTIVE for option in options]
    return [
        np.where(has_weight, weights / np.where(has_weight, total, 1.0), active / max(sum(is_active), 1))
        for weights, active in zip(option_weights, is_active, strict=True)
    ]


def question_columns(options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> OpenChoices:
    """Return questions as columns. Without a post, relevance and utility are the middle of the band."""
    personas = [placed.question.persona for placed in questions]
    posts = [placed.question.post for placed in questions]
    low = np.array([persona.low for persona in personas], np.float64)
    high = np.array([persona.high for persona in personas], np.float64)
    pairs = zip((low + high) / 2, posts, strict=True)
    values = [(centre, centre) if post is None else (post.relevance, post.utility) for centre, post in pairs]
    relevance, utility = np.array(values, np.float64).reshape(-1, 2).T
    return OpenChoices(
        options=options,
        relevance=relevance,
        utility=utility,
        low=low,
        high=high,
        velocity=np.array([0 if post is None else post.velocity for post in posts], np.int64),
        media=np.array([post is not None and post.has_media for post in posts], np.bool_),
        traits=np.array([persona.traits for persona in personas], np.float64).reshape(-1, len(BIG_FIVE)),
        propensities=np.array([persona.propensities for persona in personas], np.float64).reshape(-1, len(ACTIONS)),
        draws=np.array([placed.draw for placed in questions], np.float64),
    )


def detailed_columns(options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> DetailedChoices:
    """Return questions as columns, with the details that distilled models need."""
    posts = [placed.question.post for placed in questions]

    def column(name: str) -> Ints:
        values = (getattr(post, name, 0) for post in posts)
        return np.array([POST_KINDS.index(value) if name == "kind" and value else value for value in values], np.int64)

    match = np.array([placed.question.match for placed in questions], np.float64)
    return DetailedChoices.from_open_choices(question_columns(options, questions), match, column)
