"""Rates of coming online and posting: lognormal, capped at 1, and correlated with the number of followers."""

from collections.abc import Callable
from functools import cache
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Rows
from prism_mesa.social.params import AgentsParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.streams import Streams

type Rates = npt.NDArray[np.float32]

_NORMAL: Final = NormalDist()


def popularity_scores(network: FollowNetwork, params: AgentsParams, streams: Streams) -> Floats | None:
    """Return the normal score of each agent's rank by number of followers, shape (n,); None if popularity is 0.

    Ranks start at 0. Rank r of n agents has the score ``inverse normal((r + .5) / n)``; a keyed draw breaks ties.
    """
    if not params.popularity:
        return None
    n = network.n_agents
    rank = np.empty(n, np.int64)
    rank[np.lexsort((streams.bits("popularity rank", np.arange(n)), network.n_followers))] = np.arange(n)
    lower = np.array([_NORMAL.inv_cdf((k + 0.5) / n) for k in range((n + 1) // 2)])
    return np.append(lower, -lower[: n // 2][::-1])[rank]


def popularity_of_last(network: FollowNetwork, params: AgentsParams, streams: Streams) -> Floats | None:
    """Return the `popularity_scores` of the last agent only; all other scores are nan."""
    if not params.popularity:
        return None
    n, followers = network.n_agents, network.n_followers
    equal_rows = np.flatnonzero(followers[:-1] == followers[-1])
    draws = streams.bits("popularity rank", np.append(equal_rows, n - 1))
    rank = int((followers < followers[-1]).sum()) + int((draws[:-1] <= draws[-1]).sum())
    score = _NORMAL.inv_cdf((rank + 0.5) / n) if rank < (n + 1) // 2 else -_NORMAL.inv_cdf((n - rank - 0.5) / n)
    return np.append(np.full(n - 1, np.nan), score)


def activity_draws(params: AgentsParams, streams: Streams, popularity: Floats | None) -> Callable[[Rows], Rates]:
    """Return a function that draws the agents' activity for given rows."""
    scale = capped_scale(params.activity, params.activity_sigma)
    return lambda rows: _cap(_draw_scores("activity", rows, params, streams, popularity), params.activity_sigma, scale)


def post_rate_draws(params: AgentsParams, streams: Streams, popularity: Floats | None) -> Callable[[Rows], Rates]:
    """Return a function that draws the agents' probability of posting for given rows.

    Without `post_sigma`, it reuses the draw of activity. With ``posting="online"``, the mean is weighted by activity.
    """
    purpose = "activity" if params.post_sigma is None else "posting"
    sigma = params.activity_sigma if params.post_sigma is None else params.post_sigma
    scale = capped_scale(params.post_rate, sigma)
    if params.posting == "online":
        correlation = 1.0 if params.post_sigma is None else params.popularity**2
        scale = weighted_scale(params.post_rate, sigma, params.activity, params.activity_sigma, correlation)
    return lambda rows: _cap(_draw_scores(purpose, rows, params, streams, popularity), sigma, scale)


def _draw_scores(purpose: str, rows: Rows, params: AgentsParams, streams: Streams, popularity: Floats | None) -> Floats:
    """Return standard normal draws that are correlated with popularity."""
    draws = streams.normal(purpose, rows)
    if popularity is None:
        return draws
    return params.popularity * popularity[rows] + sqrt(1 - params.popularity**2) * draws


def _cap(scores: Floats, sigma: float, scale: float) -> Rates:
    draws = np.exp(sigma * scores - sigma * sigma / 2)
    return np.minimum(draws * scale, 1).astype(np.float32)


@cache
def capped_scale(mean: float, sigma: float) -> float:
    """Return the factor c for which min(1, c X) has the given mean, for lognormal X of mean 1.

    >>> round(capped_scale(0.5, 0.01), 6)  # the cap has no effect
    0.5
    """
    if sigma == 0 or mean == 0:
        return mean
    low, high = 0.0, 1e60  # above all factors for sigma <= 5
    for _ in range(300):
        c = (low + high) / 2
        below_cap = _NORMAL.cdf((-log(c) - sigma * sigma / 2) / sigma)  # share of the mean below the cap
        above_cap = 1 - _NORMAL.cdf((-log(c) + sigma * sigma / 2) / sigma)
        low, high = (c, high) if c * below_cap + above_cap < mean else (low, c)
    return high


@cache
def weighted_scale(mean: float, sigma: float, activity: float, activity_sigma: float, correlation: float) -> float:
    """Return the factor c for which min(1, c X), weighted by activity, has the given mean, for lognormal X of mean 1.

    Activity is lognormal with sigma `activity_sigma`, is capped at 1, and then has the mean `activity`. The
    `correlation` is between the logarithms of X and activity, before the caps.

    >>> weighted_scale(0.2, 1.7, 0.5, 1.0, 0.5) < weighted_scale(0.2, 1.7, 0.5, 1.0, 0.0) == capped_scale(0.2, 1.7)
    True
    """
    if 0 in (sigma, mean, activity, correlation):
        return capped_scale(mean, sigma)
    scores = np.arange(-8, 8 + activity_sigma, 1 / 32)
    weights = np.exp(-scores * scores / 2) * np.minimum(
        np.exp(activity_sigma * scores - activity_sigma**2 / 2) * capped_scale(activity, activity_sigma), 1
    )
    weights /= weights.sum()
    spread = sigma * sqrt(1 - correlation**2)
    means = (sigma * correlation * scores - sigma * sigma / 2).tolist()
    low, high = -140.0, 140.0  # of log c
    for _ in range(60):
        log_c = (low + high) / 2
        result = sum(w * _capped_mean(log_c + m, spread) for w, m in zip(weights.tolist(), means, strict=True))
        low, high = (log_c, high) if result < mean else (low, log_c)
    return exp(high)


def _capped_mean(location: float, sigma: float) -> float:
    """Return the mean of min(1, exp(middle + sigma Z)) for a standard normal Z."""
    if sigma == 0:
        return exp(min(location, 0.0))
    below_cap = exp(location + sigma * sigma / 2) * _NORMAL.cdf(-location / sigma - sigma)
    return below_cap + _NORMAL.cdf(location / sigma)
