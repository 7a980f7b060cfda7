"""The agents present in a round, and which of them come online, and for how long.

When a round opens, except round 0, waiting agents join, members leave, and agents that left come back, each by one
keyed draw (`agents.churn`). The drawn follows between an agent that joins and those that have joined begin then. Posts,
follows, mutes and blocks of an agent that leaves stay.
"""

from datetime import UTC, datetime
from functools import lru_cache
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import CHURN_EVENTS
from prism_mesa.social.behavior import IDLE
from prism_mesa.social.params import ClockParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import AWAY, GONE, MEMBER, NO_ACTION, NO_POST, WAITS, Rows
from prism_mesa.social.state.relations import distinct
from prism_mesa.streams import Streams

type Floats = npt.NDArray[np.float64]
type Mask = npt.NDArray[np.bool_]

JOIN, LEAVE, BACK, REMOVED = range(len(CHURN_EVENTS))


def apply_churn(platform: Platform) -> None:
    """Let agents join and leave as this round opens, and note those removed or added since the last round."""
    people, churns = platform.population, platform.configured.has_churn
    if not churns and bool((people.present == (people.membership == MEMBER)).all()):
        _count(platform, {})
        return
    was_present, past = people.present.copy(), people.membership.copy()
    turns = platform.streams.happens("churn", chances_of_turning(platform), round_=platform.round)
    comes, leaves, removed = turns & ~was_present, turns & was_present, ~was_present & (past == MEMBER)
    joins = (comes | was_present) & (past == WAITS)  # a script has added those that are present
    people.present[comes], people.present[leaves] = True, False
    people.membership[comes | joins], people.membership[leaves], people.membership[removed] = MEMBER, AWAY, GONE
    people.state[leaves], people.state[comes] = IDLE.code, platform.chart.initial.code
    people.ticks_in_state[leaves | comes] = 0
    people.current_post[leaves], people.pending_action[leaves] = NO_POST, NO_ACTION
    platform.scripts.have_moved(np.flatnonzero(turns).tolist())
    _begin_follows(platform, comes & joins)
    _note(platform, (joins, leaves, comes & ~joins, removed))


def chances_of_turning(platform: Platform) -> Floats:
    """Return each agent's probability of joining or leaving as this round opens."""
    people, churn = platform.population, platform.params.agents.churn
    chances = np.zeros(GONE + 1)
    if platform.round > 0:
        chances[[MEMBER, WAITS, AWAY]] = churn.leave, churn.join, churn.back
    is_as_it_was = people.present == (people.membership == MEMBER)
    return np.where(is_as_it_was, chances[people.membership], 0.0)


def _begin_follows(platform: Platform, joins: Mask) -> None:
    if not joins.any():
        return
    joined = platform.population.has_joined
    platform.network, begun = platform.network.with_comers(platform.drawn_network, joined, joins)
    if platform.params.network.dynamics == "live":
        platform.relations.new_follows = distinct(np.append(platform.relations.new_follows, begun))


def _note(platform: Platform, events: tuple[Mask, ...]) -> None:
    """Count present agents and those that have joined or left, and record the table `churn`."""
    event = np.full(len(platform.population), -1, np.int8)
    for code, which in enumerate(events):
        event[which] = code
    agents = np.flatnonzero(event >= 0)
    counts = np.bincount(event[agents], minlength=len(CHURN_EVENTS)).tolist()
    _count(platform, dict(zip(CHURN_EVENTS, counts, strict=True)))
    if platform.recorder is None or not platform.records("churn"):
        return
    rounds = np.full(len(agents), platform.round, np.int32)
    named = pd.Categorical.from_codes(event[agents], list(CHURN_EVENTS))
    platform.recorder.write("churn", {"round": rounds, "agent": agents.astype(np.int32), "event": named})


def _count(platform: Platform, events: dict[str, int]) -> None:
    now = events | {"there": int(np.count_nonzero(platform.population.present))}
    platform.counts["there"] = now["there"]
    platform.totals.update(now)
    if platform.round == 0:
        platform.totals["there_first"] = now["there"]


def comes_online(platform: Platform) -> npt.NDArray[np.bool_]:
    """Return whether each agent would come online in this round if it is present and idle."""
    params, chances = platform.params.agents, chances_online(platform)
    if not params.persistence:
        return platform.streams.happens("online", chances, round_=platform.round)
    return draws_of_coming(platform, np.arange(len(chances))) < chances


def draws_of_coming(platform: Platform, rows: Rows) -> Floats:
    """Return the draws of agents in this round; an agent comes online if its draw is below its chance.

    With probability `agents.persistence` an agent keeps its draw of the last round. So it tends to repeat itself, while
    its probability in each single round stays the same.
    """
    lasting = platform.params.agents.persistence
    since = platform.streams.last_redraw_round("online lasts", rows, round_=platform.round, lasting=lasting)
    return platform.streams.uniform("online", rows, round_=since)


def chances_online(platform: Platform) -> Floats:
    """Return each agent's probability of coming online: its activity times the weight of the hour."""
    params, clock = platform.params.agents, platform.params.clock
    activity, hours = platform.population.activity, params.hours or (1.0,) * 24
    if params.hours is None and not params.rhythm:
        return activity
    if params.rhythm or params.time_zone:
        return np.minimum(activity * _weights_of_own_hours(platform, hours), 1.0)
    return np.minimum(activity * weight_of_hours(hours, clock, platform.round), 1.0)


def local_hours(platform: Platform, round_: int) -> Floats:
    """Return the local hour of each agent, 0 to 24, as a round opens."""
    zone, n = platform.params.agents.time_zone, len(platform.population)
    opens = np.full(n, _opens(platform.params.clock, round_))
    if zone is None:
        return opens
    place, _ = platform.attributes.known.of_agents(zone)
    return np.asarray((opens + platform.population.attributes[:, place]) % 24)


def _weights_of_own_hours(platform: Platform, hours: tuple[float, ...]) -> Floats:
    """Return the mean weight of a round's time by each agent's clock and habits, with a mean of 1 over a day."""
    habits, opens = (platform.streams, platform.params.agents.rhythm), local_hours(platform, platform.round)
    length, mean = platform.params.clock.round_minutes / 60, _mean_weights(*habits, hours, len(opens))
    days, rest = divmod(length, 24)
    weight = days * 24 * mean
    for hour in np.floor(opens) + np.arange(ceil(rest) + 1)[:, np.newaxis]:  # the first and last hour count in part
        part = np.minimum(opens + rest, hour + 1) - np.maximum(opens, hour)
        weight += np.maximum(part, 0) * _own_weights(*habits, hours, hour.astype(np.int64) % 24)
    return np.asarray(weight / length / mean)


@lru_cache(maxsize=2)
def _mean_weights(streams: Streams, sigma: float, hours: tuple[float, ...], n: int) -> Floats:
    return np.asarray(sum(_own_weights(streams, sigma, hours, np.full(n, hour)) for hour in range(24)) / 24)


def _own_weights(streams: Streams, sigma: float, hours: tuple[float, ...], hour: Rows) -> Floats:
    """Return the weight of an hour for each agent: `hours` times a habit, rounded like sessions."""
    drawn = streams.normal("rhythm", np.arange(len(hour)), index=hour) if sigma else 0.0
    return np.asarray(np.array(hours)[hour] * np.exp(sigma * drawn - sigma * sigma / 2).astype(np.float32))


def weight_of_hours(weights: tuple[float, ...], clock: ClockParams, round_: int) -> float:
    """Return the mean weight of a round's time, with a mean of 1 over a day; `weights` are of the 24 hours in UTC."""
    opens, length = _opens(clock, round_), clock.round_minutes / 60
    sums = np.append(0.0, np.cumsum(weights))  # up to each full hour
    mean = sums[-1] / 24

    def up_to(hours: float) -> float:
        days, rest = divmod(hours, 24)
        return float(days * sums[-1] + np.interp(rest, np.arange(25), sums))

    return float((up_to(opens + length) - up_to(opens)) / length / mean)


def _opens(clock: ClockParams, round_: int) -> float:
    """Return the hour of the day, in UTC, at which a round opens."""
    start = clock.start.astimezone(UTC)
    first = (start - datetime.combine(start, datetime.min.time(), UTC)).total_seconds() / 3600
    return (first + round_ * (clock.round_minutes / 60)) % 24


def session_lengths(platform: Platform, readers: Rows) -> npt.NDArray[np.int32] | None:
    """Return the number of posts after which each reader ends this round's session; None if only its feed limits it.

    It is 1 plus the whole part of a lognormal number of mean `agents.session`, rounded to float32, since the last
    digits of exp differ between machines.
    """
    params, size = platform.params.agents, platform.population.feed.shape[1]
    if params.session is None:
        return None
    sigma = params.session_sigma
    drawn = platform.streams.normal("session", readers, round_=platform.round)
    length = params.session * np.exp(sigma * drawn - sigma * sigma / 2)
    return np.asarray(np.minimum(size, 1 + np.floor(length.astype(np.float32))), np.int32)
