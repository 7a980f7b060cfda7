"""Who comes online when, who posts then, and how long a session is."""

from datetime import datetime

import numpy as np
import pytest
from lively_worlds import LIVELY, moves, rounds_of
from worlds import facts, ran, small

from prism_mesa.social.params import ClockParams
from prism_mesa.social.round.presence import mean_hour_weight, online_probabilities
from prism_mesa.social.state.posts import POST

NOON = tuple(float(hour == 12) for hour in range(24))
ALL_ON = {
    "agents_activity": 0.4,
    "agents_post_sigma": 1.0,
    "agents_popularity": 0.5,
    "agents_posting": "online",
    "agents_persistence": 0.6,
    "agents_hours": tuple(range(1, 25)),
    "agents_session": 3.0,
    "network_followee_sigma": 0.5,
    "network_mutual": 0.8,
}


def online_in(model, rounds):
    """Return who came online in each of some rounds, shape (rounds, agents)."""
    there = np.zeros((rounds, len(model.population)), bool)
    for row in moves(model, trigger="feed_ready"):
        there[row["round"], row["agent"]] = True
    return there


def posted_in(model, rounds):
    posts, wrote = model.posts, np.zeros((rounds, len(model.population)), bool)
    own = np.flatnonzero(posts.kind == POST)
    wrote[posts.round[own], posts.author[own]] = True
    return wrote


# who posts


def test_agents_post_while_they_are_offline_or_only_online():
    always, online = (
        ran(small(agents_n=200, agents_activity=0.3, agents_post_rate=0.5, agents_posting=when), 5)
        for when in ("always", "online")
    )
    assert (posted_in(always, 5) & ~online_in(always, 5)).any()
    there = online_in(online, 5)
    assert there.tolist() == online_in(always, 5).tolist()
    wrote = posted_in(online, 5)
    assert wrote.any()
    assert not (wrote & ~there).any()


def test_who_posts_is_drawn_as_before_and_only_held_back():
    same = {"agents_activity": 0.4, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
    always, online = (ran(small(agents_n=100, **same, agents_posting=when), 5) for when in ("always", "online"))
    assert posted_in(online, 5).tolist() == (posted_in(always, 5) & online_in(always, 5)).tolist()


# hours


@pytest.mark.parametrize(
    ("start", "minutes", "round_", "wanted"),
    [
        ("2026-01-01T12:00:00Z", 60, 0, 24),
        ("2026-01-01T12:00:00Z", 60, 1, 0),
        ("2026-01-01T12:00:00Z", 60, 24, 24),
        ("2026-01-01T00:00:00Z", 30, 24, 24),
        ("2026-01-01T00:00:00Z", 30, 25, 24),
        ("2026-01-01T00:00:00Z", 30, 26, 0),
        ("2026-01-01T00:00:00Z", 30, 24 + 48 * 400, 24),
        ("2026-01-01T14:00:00+02:00", 60, 0, 24),  # hours are those of UTC
        ("2026-01-01T11:00:00Z", 120, 0, 12),
        ("2026-01-01T11:30:00Z", 60, 0, 12),
        ("2026-01-01T12:30:00Z", 180, 0, 4),
        ("2026-01-01T12:30:00Z", 1440, 3, 1),
        ("2026-01-01T12:30:00Z", 2160, 0, 1),  # half of the first noon, all of the second
        ("2026-01-01T12:00:00Z", 2160, 0, 4 / 3),
    ],
)
def test_a_round_weighs_the_mean_of_its_hours_over_that_of_the_day(start, minutes, round_, wanted):
    clock = ClockParams(start=datetime.fromisoformat(start), round_minutes=minutes)
    assert mean_hour_weight(NOON, clock, round_) == pytest.approx(wanted, abs=1e-9)
    assert mean_hour_weight(tuple(7 * weight for weight in NOON), clock, round_) == pytest.approx(wanted, abs=1e-9)


def test_online_agents_follow_the_hours():
    hours = [1 + hour % 5 for hour in range(24)]
    own = {"agents_activity": 0.2, "agents_activity_sigma": 0.3, "agents_hours": hours}
    online = rounds_of(ran(small(agents_n=3000, ticks_per_round=1, **own), 24))["online"]
    assert np.corrcoef(online, hours)[0, 1] > 0.97
    assert online.mean() / 3000 == pytest.approx(0.2, rel=0.05)


# time zones and habits


ZONES = {"attributes": {"zone": {"of": "agent", "values": [-5, 0, 5.5]}}, "agents_time_zone": "zone"}


def chances(model, rounds):
    """Return each agent's probability of coming online in some rounds, shape (rounds, agents)."""
    found = []
    for _ in range(rounds):
        model.step()
        found.append(np.broadcast_to(online_probabilities(model.platform), len(model.population)))
    return np.array(found)


@pytest.mark.parametrize("minutes", [60, 45, 300, 2000])
def test_each_agent_lives_by_the_hours_of_its_own_clock(minutes):
    hours = tuple(1 + hour * hour % 7 for hour in range(24))
    own = {"agents_activity": 0.05, "agents_activity_sigma": 0.0, "agents_hours": hours, "clock_round_minutes": minutes}
    model = small(**own, **ZONES)
    zone, found = np.array([agent.zone for agent in model.agents]), chances(model, 5)
    for offset, local in ((-5, "19:00"), (0, "00:00"), (5.5, "05:30")):  # midnight in UTC
        clock = ClockParams(start=datetime.fromisoformat(f"2026-01-01T{local}:00Z"), round_minutes=minutes)
        wanted = model.population.activity[0] * np.array(
            [mean_hour_weight(hours, clock, round_) for round_ in range(5)]
        )
        assert (zone == offset).any()
        assert found[:, zone == offset] == pytest.approx(wanted[:, np.newaxis] + np.zeros((zone == offset).sum()))


@pytest.mark.parametrize("hours", [None, tuple(1 + hour % 5 for hour in range(24))])
@pytest.mark.parametrize("more", [{}, ZONES])
def test_habits_move_hours_and_leave_each_agent_its_activity(hours, more):
    own = {"agents_activity": 0.01, "agents_activity_sigma": 0.5, "agents_hours": hours, "ticks_per_round": 1}
    if hours is None and more:
        pytest.skip("the hours of other clocks are alike")
    model = small(agents_n=500, **own, agents_rhythm=1.0, **more)
    found = chances(model, 48)
    assert found[:24] == pytest.approx(found[24:], abs=1e-12)  # the same on the next day
    assert found.mean(axis=0) == pytest.approx(model.population.activity, abs=1e-12)
    plain = chances(small(agents_n=500, **own, **more), 24)
    relative = np.log(found[:24] / plain)
    assert relative.std() == pytest.approx(1.0, abs=0.12 if more else 0.05)  # half an hour each, with 5.5
    assert abs(np.corrcoef(relative[3], relative[15])[0, 1]) < 0.15


# bursts


def test_who_was_online_comes_again_and_the_mean_stays():
    own = {"agents_activity": 0.3, "agents_activity_sigma": 0.0}
    there = online_in(ran(small(agents_n=2000, ticks_per_round=1, agents_persistence=0.5, **own), 12), 12)
    before, after = there[:-1], there[1:]
    assert after[before].mean() == pytest.approx(0.3 + 0.5 * 0.7, abs=0.02)
    assert after[~before].mean() == pytest.approx(0.3 * 0.5, abs=0.02)
    assert there.mean(axis=1).tolist() == pytest.approx([0.3] * 12, abs=0.05)
    two = there[2:][there[1:-1] & ~there[:-2]]  # what was before the last round does not matter
    assert two.mean() == pytest.approx(0.65, abs=0.03)


# sessions


def feeds(rounds=1, **params):
    model = small(agents_n=2000, network_mean_degree=60, feed_size=40, **LIVELY, **params)
    return ran(model, rounds).population.n_feed.astype(int)


def test_a_session_has_so_many_posts_on_average_and_no_more_than_the_feed():
    everything = feeds()
    n = feeds(agents_session=8.0, agents_session_sigma=0.5)
    assert everything.mean() > 30
    assert n.min() >= 1
    assert (n <= everything).all()
    assert n.mean() == pytest.approx(8.5, rel=0.05)  # one more, and the fraction is lost
    assert feeds(agents_session=3.7, agents_session_sigma=0.0).tolist() == [4] * 2000


def test_nobody_reads_on_after_its_session():
    model = ran(small(agents_session=1.0, agents_session_sigma=0.0, **LIVELY, ticks_per_round=30))
    seen = model.recorder.tables["impressions"]
    assert seen
    assert max(sum((row["round"], row["agent"]) == key for row in seen) for key in {(0, 3), (1, 3), (2, 7)}) <= 2


# all of it


def test_with_all_of_it_columns_and_steps_agree_and_threads_do_not_matter():
    plain, stepped, threaded = (
        facts(ran(small(agents_n=80, **ALL_ON, **own), 4)) for own in ({}, {"scheduler": "mesa"}, {"threads": 2})
    )
    assert plain == stepped == threaded
