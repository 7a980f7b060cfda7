"""Who comes online in a round, and how long for: by own activity, the hour of the day, and who was there before."""

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from prism_mesa.social.params import ClockParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import Rows

type Floats = npt.NDArray[np.float64]


def comes_online(platform: Platform) -> npt.NDArray[np.bool_]:
    """Return for each row whether its agent comes online in this round, if it is there and idle."""
    own, chances = platform.params.agents, chances_online(platform)
    if not own.persistence:
        return platform.streams.happens("online", chances, round_=platform.round)
    return draws_of_coming(platform, np.arange(len(chances))) < chances


def draws_of_coming(platform: Platform, rows: Rows) -> Floats:
    """Return the draws of some agents in this round: who draws less than its chance comes online.

    With the probability `agents.persistence` an agent keeps the draw that it had in the last round. So who was there
    comes again, and who was not does not, while its probability in each single round stays what it is.
    """
    lasting = platform.params.agents.persistence
    since = platform.streams.since("online lasts", rows, round_=platform.round, lasting=lasting)
    return platform.streams.uniform("online", rows, round_=since)


def chances_online(platform: Platform) -> Floats:
    """Return each agent's probability of coming online in this round: its activity times the weight of the hour."""
    own, clock = platform.params.agents, platform.params.clock
    activity = platform.population.activity
    if own.hours is None:
        return activity
    return np.minimum(activity * weight_of_hours(own.hours, clock, platform.round), 1.0)


def weight_of_hours(weights: tuple[float, ...], clock: ClockParams, round_: int) -> float:
    """Return the mean weight of the time that a round covers, where the mean of the day is 1.

    Args:
        weights: Of the 24 hours of the day in UTC.
        clock: When round 0 opens, and how long a round is.
        round_: The round, from 0.
    """
    start, length = clock.start.astimezone(UTC), clock.round_minutes / 60
    first = (start - datetime.combine(start, datetime.min.time(), UTC)).total_seconds() / 3600
    opens = (first + round_ * length) % 24
    sums = np.append(0.0, np.cumsum(weights))  # up to each full hour
    mean = sums[-1] / 24

    def up_to(hours: float) -> float:
        days, rest = divmod(hours, 24)
        return float(days * sums[-1] + np.interp(rest, np.arange(25), sums))

    return float((up_to(opens + length) - up_to(opens)) / length / mean)


def shorten_feeds(platform: Platform, readers: Rows) -> None:
    """Let each reader look at as many posts of its feed, at most, as its session of this round has.

    They are one and the whole part of a lognormal number of mean `agents.session`, which is rounded to float32: that
    hides the last digits of exp that differ between machines.
    """
    own, n_feed = platform.params.agents, platform.population.n_feed
    if own.session is None:
        return
    sigma = own.session_sigma
    drawn = platform.streams.normal("session", readers, round_=platform.round)
    length = own.session * np.exp(sigma * drawn - sigma * sigma / 2)
    n_feed[readers] = np.minimum(n_feed[readers], 1 + np.floor(length.astype(np.float32)))
