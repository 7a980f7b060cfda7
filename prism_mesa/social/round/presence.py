"""Decide which agents are present in a round, which come online, and for how long.

When a round opens (except round 0), waiting agents join, members leave, and agents that left come back. Each agent has
one keyed draw (`agents.churn`). When an agent joins, its drawn follows to and from earlier members begin. The posts,
follows, mutes and blocks of an agent that leaves stay.
"""

from datetime import UTC, datetime
from functools import lru_cache
from math import ceil

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats, Int32, Mask, Rows
from prism_mesa.domain import CHURN_EVENTS
from prism_mesa.kernels.utility import add_utilities
from prism_mesa.social.behavior import IDLE
from prism_mesa.social.params import ClockParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import update_suspensions
from prism_mesa.social.state.population import AWAY, GONE, MEMBER, NO_ACTION, NO_POST, SUSPENDED, WAITING
from prism_mesa.social.state.relations import sorted_unique
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.streams import Streams

JOIN, LEAVE, BACK, REMOVED = range(len(CHURN_EVENTS))


def apply_churn(platform: Platform) -> None:
    """Let agents join and leave as this round opens, and count agents that scripts added or removed before."""
    people, has_churn = platform.population, platform.configured.has_churn
    if not has_churn and bool((people.present == (people.membership == MEMBER)).all()):
        _count(platform, {})
        return
    was_present, old_membership = people.present.copy(), people.membership.copy()
    is_suspended, is_returning = update_suspensions(platform)
    is_changing = platform.streams.draw_events("churn", churn_probabilities(platform), round_=platform.round)
    is_changing = (is_changing & (people.membership != SUSPENDED)) | is_suspended | is_returning
    is_arriving, is_leaving = is_changing & ~was_present, is_changing & was_present
    is_removed = ~was_present & (old_membership == MEMBER)
    is_joining = (is_arriving | was_present) & (old_membership == WAITING)  # scripts may have added agents
    people.present[is_arriving], people.present[is_leaving] = True, False
    people.membership[is_arriving | is_joining], people.membership[is_leaving & ~is_suspended] = MEMBER, AWAY
    people.membership[is_removed] = GONE
    people.state[is_leaving] = IDLE.code
    people.state[is_arriving] = platform.initial_codes(np.flatnonzero(is_arriving))
    people.ticks_in_state[is_leaving | is_arriving] = 0
    people.current_post[is_leaving], people.pending_action[is_leaving] = NO_POST, NO_ACTION
    platform.agent_objects.update_presence(np.flatnonzero(is_changing).tolist())
    _begin_follows(platform, is_arriving & is_joining)
    _note(platform, (is_joining, is_leaving, is_arriving & ~is_joining, is_removed))


def churn_probabilities(platform: Platform) -> Floats:
    """Return each agent's probability of joining or leaving as this round opens."""
    people, churn = platform.population, platform.params.agents.churn
    probabilities = np.zeros(SUSPENDED + 1)
    if platform.round > 0:
        probabilities[[MEMBER, WAITING, AWAY]] = churn.leave, churn.join, churn.back
    return np.where(people.present == (people.membership == MEMBER), probabilities[people.membership], 0.0)


def _begin_follows(platform: Platform, is_joining: Mask) -> None:
    if not is_joining.any():
        return
    joined = platform.population.has_joined
    platform.network, new_follows = platform.network.with_joiners(platform.drawn_network, joined, is_joining)
    if platform.params.network.dynamics == "live":
        platform.relations.new_follows = sorted_unique(np.append(platform.relations.new_follows, new_follows))


def _note(platform: Platform, events: tuple[Mask, ...]) -> None:
    """Count present, joining and leaving agents, and record the table `churn`."""
    event = np.full(len(platform.population), -1, np.int8)
    for code, mask in enumerate(events):
        event[mask] = code
    agents = np.flatnonzero(event >= 0)
    counts = np.bincount(event[agents], minlength=len(CHURN_EVENTS)).tolist()
    _count(platform, dict(zip(CHURN_EVENTS, counts, strict=True)))
    if platform.recorder is None or not platform.records("churn"):
        return
    rounds = np.full(len(agents), platform.round, np.int32)
    event_names = pd.Categorical.from_codes(event[agents], list(CHURN_EVENTS))
    platform.recorder.write("churn", {"round": rounds, "agent": agents.astype(np.int32), "event": event_names})


def _count(platform: Platform, events: dict[str, int]) -> None:
    counts = events | {"present": int(np.count_nonzero(platform.population.present))}
    platform.counts["present"] = counts["present"]
    platform.totals.update(counts)
    if platform.round == 0:
        platform.totals["present_first"] = counts["present"]


def draw_online(platform: Platform) -> Mask:
    """Draw whether each agent comes online in this round; it must also be present and idle."""
    params, probabilities = platform.params.agents, online_probabilities(platform)
    if not params.persistence:
        return platform.streams.draw_events("online", probabilities, round_=platform.round)
    return online_draws(platform, np.arange(len(probabilities))) < probabilities


def online_draws(platform: Platform, rows: Rows) -> Floats:
    """Return the agents' draws for this round. An agent comes online if its draw is below its probability.

    With probability `agents.persistence`, an agent keeps its draw from the last round. It then tends to repeat its
    behaviour, while its probability in each round stays the same.
    """
    now, persistence = platform.round, platform.params.agents.persistence
    last_draws = platform.streams.last_redraw_round("online lasts", rows, round_=now, persistence=persistence)
    return platform.streams.uniform("online", rows, round_=last_draws)


def online_probabilities(platform: Platform) -> Floats:
    """Return each agent's probability of coming online, by its activity, the hour, and `agents.returns`."""
    params, clock = platform.params.agents, platform.params.clock
    p, hours = platform.population.activity, params.hours or (1.0,) * 24
    if params.rhythm or (params.hours and params.time_zone):
        p = np.minimum(p * _local_hour_weights(platform, hours), 1.0)
    elif params.hours:
        p = np.minimum(p * mean_hour_weight(hours, clock, platform.round), 1.0)
    if params.returns.online:
        odds_ratio = platform.session_worth.factor(params.returns.online, len(p))
        p = p * odds_ratio / (1 - p + p * odds_ratio)
    return p


def local_hours(platform: Platform, round_: int) -> Floats:
    """Return each agent's local hour of the day, 0 to 24, as a round opens."""
    zone, n = platform.params.agents.time_zone, len(platform.population)
    start_hour = np.full(n, _start_hour(platform.params.clock, round_))
    if zone is None:
        return start_hour
    index, _ = platform.attributes.schema.agent_attribute(zone)
    return np.asarray((start_hour + platform.population.attributes[:, index]) % 24)


def _local_hour_weights(platform: Platform, hours: tuple[float, ...]) -> Floats:
    """Return each agent's mean weight of this round's time, by local time and habits; the mean over a day is 1."""
    habits, start_hour = (platform.streams, platform.params.agents.rhythm), local_hours(platform, platform.round)
    length, mean = platform.params.clock.round_minutes / 60, _mean_agent_weights(*habits, hours, len(start_hour))
    days, remainder = divmod(length, 24)
    weight = days * 24 * mean
    for hour in np.floor(start_hour) + np.arange(ceil(remainder) + 1)[:, np.newaxis]:  # the ends may be parts
        part = np.minimum(start_hour + remainder, hour + 1) - np.maximum(start_hour, hour)
        weight += np.maximum(part, 0) * _agent_hour_weights(*habits, hours, hour.astype(np.int64) % 24)
    return np.asarray(weight / length / mean)


@lru_cache(maxsize=2)
def _mean_agent_weights(streams: Streams, sigma: float, hours: tuple[float, ...], n: int) -> Floats:
    return np.asarray(sum(_agent_hour_weights(streams, sigma, hours, np.full(n, hour)) for hour in range(24)) / 24)


def _agent_hour_weights(streams: Streams, sigma: float, hours: tuple[float, ...], hour: Rows) -> Floats:
    """Return each agent's weight of an hour: `hours` times a random factor, rounded to float32."""
    normals = streams.normal("rhythm", np.arange(len(hour)), index=hour) if sigma else 0.0
    return np.asarray(np.array(hours)[hour] * np.exp(sigma * normals - sigma * sigma / 2).astype(np.float32))


def mean_hour_weight(weights: tuple[float, ...], clock: ClockParams, round_: int) -> float:
    """Return the mean weight of a round's time; the mean over a day is 1. `weights` are for the 24 hours in UTC."""
    start_hour, length = _start_hour(clock, round_), clock.round_minutes / 60
    sums = np.append(0.0, np.cumsum(weights))  # up to each full hour
    mean = sums[-1] / 24

    def cumulative_weight(hours: float) -> float:
        days, remainder = divmod(hours, 24)
        return float(days * sums[-1] + np.interp(remainder, np.arange(25), sums))

    return float((cumulative_weight(start_hour + length) - cumulative_weight(start_hour)) / length / mean)


def _start_hour(clock: ClockParams, round_: int) -> float:
    start = clock.start.astimezone(UTC)
    first = (start - datetime.combine(start, datetime.min.time(), UTC)).total_seconds() / 3600
    return (first + round_ * (clock.round_minutes / 60)) % 24


def session_lengths(platform: Platform, readers: Rows) -> Int32 | None:
    """Return the maximum number of posts that each reader reads in this round; None without a limit.

    It is 1 plus the integer part of a lognormal draw with mean `agents.session`. The draw is rounded to float32,
    because the last digits of exp differ between machines.
    """
    params, size = platform.params.agents, platform.population.feed.shape[1]
    if params.session is None:
        return None
    sigma = params.session_sigma
    normals = platform.streams.normal("session", readers, round_=platform.round)
    length = params.session * np.exp(sigma * normals - sigma * sigma / 2)
    if params.returns.session:
        length *= platform.session_worth.factor(params.returns.session, len(platform.population))[readers]
    return np.asarray(np.minimum(size, 1 + np.floor(length.astype(np.float32))), np.int32)


def note_sessions(platform: Platform) -> None:
    """Note what this round's sessions were worth (`agents.returns`), before counters and follows change."""
    params, people = platform.params.agents.returns, platform.population
    if params.online or params.session:
        _, readers, posts = platform.events.all_impressions()
        total = np.zeros(len(people), np.int64)
        add_utilities(readers, posts, people.interests, UNIT_LENGTH, platform.posts.table, *platform.tastes, total)
        platform.session_worth.note(total, np.bincount(readers, minlength=len(people)), params)
