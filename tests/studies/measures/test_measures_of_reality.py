"""Measures that are held against data, on tables that are small enough to be worked out by hand."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest

from prism_mesa.runs.config import Config
from prism_mesa.studies.estimators.timing import correlation
from prism_mesa.studies.measures.catalogue import FinishedRun, compute_measures
from prism_mesa.studies.measures.curves import lorenz, run_curves
from prism_mesa.studies.measures.measure import measured_rounds
from prism_mesa.studies.measures.rhythms import CONGRESS_HOURS, USED_WINDOWS, person_shares, real_hours

TICKS = 28  # so that a tick is a minute of a round of half an hour

# a platform of half-hour rounds over three days: rounds 48 to 107 are measured
POSTS = pd.DataFrame(
    [
        # post, round, written, author, kind, parent, root, likes, replies, reshares, impressions
        (0, 10, 10, 0, "post", -1, 0, 1, 0, 0, 900),  # of the first day
        (1, 50, 50, 0, "post", -1, 1, 8, 1, 2, 1000),
        (2, 51, 50, 1, "reshare", 1, 1, 0, 0, 0, 0),
        (3, 52, 51, 2, "reshare", 2, 1, 0, 0, 0, 0),
        (4, 60, 60, 1, "post", -1, 4, 0, 0, 0, 100),
        (5, 60, 60, 1, "post", -1, 5, 4, 0, 0, 600),
        (6, 61, 60, 3, "reply", 5, 6, 0, 0, 1, 700),
        (7, 62, 61, 0, "reshare", 6, 6, 0, 0, 0, 0),  # of a reply
        (8, 120, 120, 3, "post", -1, 8, 0, 0, 0, 800),  # of the last 18 hours
    ],
    columns="post round written author kind parent root likes replies reshares impressions".split(),
)
CASCADES = pd.DataFrame(
    {
        "root": [0, 1, 4, 5, 6, 8],
        "size": [1, 3, 1, 1, 2, 1],
        "depth": [0, 2, 0, 0, 1, 0],
        "breadth": [1, 1, 1, 1, 1, 1],
        "structural_virality": [0, 4 / 3, 0, 0, 1, 0],
        "kind": ["post", "post", "post", "post", "reply", "post"],
    }
)
ENGAGEMENTS = pd.DataFrame(
    [
        # round, tick, agent, post, root, action
        (20, 3, 2, 0, 0, "like"),  # of a post of the first day
        (50, 10, 1, 1, 1, "reshare"),  # 10 minutes after
        (51, 20, 2, 2, 1, "reshare"),  # 50
        (53, 2, 2, 1, 1, "like"),  # 92
        (103, 1, 3, 1, 1, "like"),  # more than a day
        (60, 5, 3, 5, 5, "reply"),  # 5
        (61, 5, 0, 6, 6, "reshare"),  # of a reply
    ],
    columns="round tick agent post root action".split(),
)
TRANSITIONS = pd.DataFrame(
    [
        # windows of use
        (20, 0, 2, "feed_ready"),
        (50, 0, 1, "feed_ready"),
        (51, 0, 2, "feed_ready"),
        (51, 1, 2, "sees_post"),
        (53, 0, 2, "feed_ready"),
        (60, 0, 1, "feed_ready"),
        (60, 0, 3, "feed_ready"),
        (61, 0, 0, "feed_ready"),
        (70, 0, 1, "feed_ready"),
        (140, 0, 4, "feed_ready"),  # of an agent whose engagements are not recorded
    ],
    columns="round tick agent trigger".split(),
)
AGENTS = pd.DataFrame(
    {
        "followees": [2, 2, 1, 1, 0],
        "recorded_transitions": True,
        "recorded_engagements": [True, True, True, True, False],
    }
)


@pytest.fixture
def run():
    config = Config.model_validate(
        {
            "agents": {"n": 5, "hours": None},
            "rounds": 144,
            "ticks_per_round": TICKS,
            "clock": {"round_minutes": 30, "start": "2026-01-01T06:00:00Z"},
        }
    )
    tables = {"posts": POSTS, "cascades": CASCADES, "engagements": ENGAGEMENTS}
    tables |= {"transitions": TRANSITIONS, "agents": AGENTS}
    follows = pd.DataFrame({"src": [0, 0, 1, 1, 2, 3], "dst": [1, 2, 0, 3, 0, 1]})
    return FinishedRun(config, {}, tables.__getitem__, lambda: follows)


def value(run, name):
    return compute_measures(run, [name])[name]


@pytest.mark.parametrize(
    ("rounds", "minutes", "measured"),
    [(144, 30, (48, 108)), (72, 60, (24, 54)), (20, 60, (0, 20)), (119, 30, (0, 119)), (120, 30, (48, 84))],
)
def test_the_first_day_and_the_last_hours_are_left_out_of_long_runs(rounds, minutes, measured):
    config = Config.model_validate({"rounds": rounds, "clock": {"round_minutes": minutes}})
    assert measured_rounds(config) == measured


BY_HAND = {
    # cascades of the posts 1, 4 and 5; that of a reply does not count
    "post_size_1": 2 / 3,
    "post_size_2": 0,
    "post_size_mean": 5 / 3,
    "post_size_100": 0,
    "post_tail_10": nan,
    "post_reshares": 2 / 3,
    "post_top_1": 1,
    # posts 1 and 5 were seen enough
    "post_like_rate": 12 / 1600,
    "post_reshare_rate": 2 / 1600,
    "post_reply_rate": 1 / 1600,
    "post_like_rate_median": (8 / 1000 + 4 / 600) / 2,
    "post_reshare_rate_median": 1 / 1000,
    "post_impressions": 1700 / 3,
    "post_reach_median": 2.0,  # of 1000 / 500, 100 / 100, 600 / 100
    "reproduction_0": 1 / 3,
    "reproduction_1": 1,
    "reproduction_2": 0,
    "reproduction_later": 0.5,
    # windows (50, 1), (51, 2), (53, 2), (60, 1), (60, 3), (61, 0), (70, 1); agent 1 posted twice in one
    "window_reshared": 3 / 7,
    "window_liked": 1 / 7,
    "window_replied": 1 / 7,
    "window_posted": 1 / 7,
    "window_none": 1 / 7,
    "window_used": 7 / (4 * 96),
    # agents 0 to 3 wrote 3, 3, 1, 1 posts and reshares; agent 2 only a reshare, agent 3 only a post
    "written_gini": 0.25,
    "written_top_10": 3 / 8,
    "written_top_1": 3 / 8,
    "written_only_reshares": 1 / 4,
    "written_only_posts": 1 / 4,
    "delay_median": 30,
    "delay_lower": 8.75,
    "delay_upper": 60.5,  # of 5, 10, 50, 92 minutes
    "followees_mean": 6 / 5,
}


def test_measures_are_those_that_can_be_worked_out_by_hand(run):
    agents = AGENTS.assign(followers=[500, 100, 1, 1, 1])
    known = replace(run, table=lambda table: agents if table == "agents" else run.table(table))
    assert compute_measures(known, list(BY_HAND)) == pytest.approx(BY_HAND, nan_ok=True)


def test_exponents_need_enough_cascades(run):
    sizes = np.r_[np.repeat([10, 20, 40, 100, 200], [60, 20, 10, 150, 49]), 1]
    n = len(sizes)
    posts = POSTS.iloc[[1] * n].reset_index(drop=True).assign(root=np.arange(n))
    cascades = pd.DataFrame({"root": np.arange(n), "size": sizes, "kind": "post"})
    tables = {"posts": posts, "cascades": cascades}
    many = FinishedRun(run.config, {}, tables.__getitem__, run.follows)
    assert value(many, "post_tail_10") > 1
    assert 0 < value(many, "post_tail_ks") < 1
    assert value(many, "post_tail_p") == 0  # five sizes are no power law
    assert isnan(value(many, "post_tail_100"))  # 199
    assert value(many, "post_size_100") == 199 / n


def test_persons_are_asked_after_as_many_windows_as_those_of_the_data():
    n, each = 2_000, 40
    agent, round_ = np.repeat(np.arange(n), each), np.tile(np.arange(each), n)
    asked = np.array(USED_WINDOWS) / sum(USED_WINDOWS)
    chance = 0.16
    did = (agent * 7919 + round_ * 104729) % 10_007 < chance * 10_007
    shares = person_shares(agent, round_, did, seed=1)
    assert len(shares) == n
    assert shares.mean() == pytest.approx(chance, abs=0.02)
    expected = sum(p * (1 - chance) ** k for k, p in enumerate(asked, 1))
    assert (shares == 0).mean() == pytest.approx(expected, abs=0.04)
    again = person_shares(agent[::-1], round_[::-1], did[::-1], seed=1)
    assert np.array_equal(shares, again)


def test_a_person_with_few_windows_is_asked_after_all_of_them():
    shares = person_shares(np.array([3, 8]), np.array([0, 5]), np.array([True, False]), seed=9)
    assert shares.tolist() == [1, 0]
    assert len(person_shares(np.zeros(0, int), np.zeros(0, int), np.zeros(0, bool), seed=9)) == 0


def test_hours_are_those_of_the_clock_of_the_data_in_the_world_s_time_zone(run):
    # written at 6:00 + 5 h, 31 h (twice), 31 h 10, 31 h 50, 36 h (twice), 36 h 5, 36 h 35, 66 h; UTC
    profile = np.zeros(24)
    for hour in (11, 7, 7, 7, 12, 12, 12, 12, 18):
        profile[hour] += 1
    found = value(run, "hours_r")
    assert found == pytest.approx(correlation(profile, np.roll(CONGRESS_HOURS, 5)))


def test_the_time_zone_is_read_from_the_configuration_and_not_from_the_results(run):
    own = run.config.model_copy(
        update={"agents": run.config.agents.model_copy(update={"hours": tuple(np.roll(CONGRESS_HOURS, 9))})}
    )
    assert np.array_equal(real_hours(own), np.roll(CONGRESS_HOURS, 9))
    assert np.array_equal(real_hours(run.config), np.roll(CONGRESS_HOURS, 5))
    agents = run.config.agents.model_copy(update={"time_zone": "zone"})  # clocks of their own
    assert np.array_equal(real_hours(run.config.model_copy(update={"agents": agents})), CONGRESS_HOURS)


def test_bursts_need_ten_events_of_one_agent(run):
    assert isnan(value(run, "burstiness"))
    many = ENGAGEMENTS.iloc[[1] * 12].assign(round=np.arange(50, 62), agent=4)  # like a clock
    more = FinishedRun(run.config, {}, lambda name: many if name == "engagements" else run.table(name), run.follows)
    assert value(more, "burstiness") == pytest.approx(-1)


def test_curves_are_rows_of_places_and_values(run):
    curves = run_curves(run)
    sizes = curves[curves["curve"] == "cascade_sizes"]
    assert sizes["x"].tolist() == [1, 3]
    assert sizes["y"].tolist() == pytest.approx([1, 1 / 3])
    delays = curves[curves["curve"] == "delays"]
    assert delays["y"].iloc[-1] == 1
    assert delays["y"].is_monotonic_increasing
    assert set(curves["curve"]) >= {"hours", "activity", "depth"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_curves_of_a_run_without_posts_are_empty(run):
    nothing = FinishedRun(run.config, {}, lambda name: run.table(name).iloc[:0], run.follows)
    assert not (run_curves(nothing)["curve"] == "reproduction").any()


def test_a_lorenz_curve_falls_below_equality():
    assert lorenz([1, 1, 2]).tolist() == pytest.approx(np.interp(np.linspace(0, 3, 101), range(4), [0, 0.25, 0.5, 1]))
    assert np.isnan(lorenz([])).all()


# -- spreads -----------------------------------------------------------------------------------------------------
