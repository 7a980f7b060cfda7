"""The features of distilled models: numbers that describe the persona and the post of an open choice."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats
from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, TRAIT_MEANS, TRAIT_SDS
from prism_mesa.reasoner.question import DetailedChoices
from prism_mesa.reasoner.rule import band_positions, rounded_table


@dataclass(frozen=True)
class Feature:
    """A number that describes an open choice. `formula` describes the number and must change with its meaning."""

    name: str
    formula: str
    column: Callable[[DetailedChoices], Floats]


_MAX_COUNT: Final = 4095
_LOG1P: Final = rounded_table(math.log1p(count) for count in range(_MAX_COUNT + 1))


def _trait_feature(k: int) -> Feature:
    mean, sd = TRAIT_MEANS[k], TRAIT_SDS[k]
    return Feature(BIG_FIVE[k], f"({BIG_FIVE[k]} - {mean}) / {sd}", lambda choices: (choices.traits[:, k] - mean) / sd)


def _share_feature(k: int) -> Feature:
    name = f"share_{ACTIONS[k]}"
    return Feature(name, f"share of {ACTIONS[k]} among engagements", lambda choices: choices.propensities[:, k])


def _count_feature(name: str) -> Feature:
    formula = f"log(1 + {name} of the root), up to {_MAX_COUNT}"
    return Feature(f"log_{name}", formula, lambda choices: _LOG1P[np.clip(getattr(choices, name), 0, _MAX_COUNT)])


def _kind_feature(name: str) -> Feature:
    code = list[str](POST_KINDS).index(name)
    return Feature(f"is_{name}", f"1 if the post is a {name}", lambda choices: (choices.kind == code) * 1.0)


FEATURES: Final = (
    Feature("match", "cosine of the post and the nearest interest told", lambda choices: choices.match),
    Feature("relevance", "(1 + cosine of the post and the agent's interests) / 2", lambda choices: choices.relevance),
    Feature("threshold", "middle of the band", lambda choices: (choices.low + choices.high) / 2),
    Feature("position", "place of utility on the band, -3..3", band_positions),
    _count_feature("velocity"),
    *(_trait_feature(k) for k in range(len(BIG_FIVE))),
    *(_share_feature(k) for k in range(len(ACTIONS) - 1)),
    *(_count_feature(name) for name in ("likes", "replies", "reshares")),
    *(_kind_feature(name) for name in ("reply", "reshare")),
    Feature("has_media", "1 if the post has media", lambda choices: choices.media.astype(np.float64)),
)

PRODUCTS: Final = (
    ("match", "match"),
    ("match", "relevance"),
    ("match", "position"),
    ("relevance", "relevance"),
    ("log_velocity", "log_velocity"),
)
"""Squares and interactions of features, which are additional terms in logistic models."""

NAMES: Final = tuple(feature.name for feature in FEATURES)
LINEAR_NAMES: Final = (*NAMES, *(f"{a}*{b}" for a, b in PRODUCTS))
_PRODUCT_INDICES: Final = [(NAMES.index(a), NAMES.index(b)) for a, b in PRODUCTS]

DECLARATION: Final = sha256(
    "\n".join([*(f"{f.name}: {f.formula}" for f in FEATURES), *LINEAR_NAMES]).encode()
).hexdigest()
"""Digest of names and formulas. A model file with another digest cannot be used."""


def feature_columns(choices: DetailedChoices) -> Floats:
    """Return the features, shape (features, n)."""
    return np.stack([np.asarray(feature.column(choices), np.float64) for feature in FEATURES])


def with_products(columns: Floats) -> Floats:
    """Return features followed by their products, shape (features + products, n)."""
    return np.concatenate([columns, [columns[a] * columns[b] for a, b in _PRODUCT_INDICES]])


def linear_sum(columns: Floats, intercept: float, weights: list[float]) -> Floats:
    """Return the intercept plus the weighted features and products, added in the order of `LINEAR_NAMES`.

    Because the order is fixed, the sum in a row does not depend on other rows.
    """
    total = np.full(columns.shape[1], intercept)
    for weight, column in zip(weights, columns, strict=False):
        total += weight * column
    for weight, (a, b) in zip(weights[len(columns) :], _PRODUCT_INDICES, strict=True):
        total += weight * (columns[a] * columns[b])
    return total
