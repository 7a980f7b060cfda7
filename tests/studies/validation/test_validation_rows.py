"""The table of a validation: means, intervals, what is inside, what does not apply."""

from math import nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prism_mesa.runs.config import Config
from prism_mesa.studies.validation.real import carried
from prism_mesa.studies.validation.targets import TARGETS
from prism_mesa.studies.validation.validation import as_json, prepared, target_rows, why_not

MEASURES = [target.measure for target in TARGETS]
LARGE = {"agents": {"n": 60_000}, "rounds": 144, "clock": {"round_minutes": 30}, "network": {"mean_degree": 300}}


def table(**columns):
    real = {name: [value] * 4 for name, value in carried().values.items()}
    return pd.DataFrame({**real, **columns, "status": "done"})


def rows(runs, excused=lambda target: ""):
    return {row.target.measure: row for row in target_rows(runs, carried(), excused)}


def test_real_values_are_inside():
    found = rows(table())
    assert all(row.inside is (True if row.target.required else None) for row in found.values())
    assert not any(row.fails for row in found.values())
    assert [row.target.measure for row in found.values()] == MEASURES


def test_the_mean_decides_and_the_share_of_seeds_is_told():
    values = np.array([2.0, 2.9, 2.4, 2.2])
    row = rows(table(post_size_mean=values))["post_size_mean"]
    assert row.inside is True
    assert (row.simulated, row.share_inside, row.n) == (pytest.approx(2.375), 0.75, 4)
    interval = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (row.low, row.high) == pytest.approx(interval)
    assert rows(table(post_size_mean=values + 1))["post_size_mean"].fails


def test_an_interval_ends_where_a_measure_does():
    row = rows(table(post_size_1=[0.5, 1.0, 1.0, 1.0]))["post_size_1"]
    assert row.high == 1
    assert 0 < row.low < row.simulated


def test_an_exponent_that_most_seeds_do_not_have_is_outside():
    assert rows(table(post_tail_10=[nan] * 4))["post_tail_10"].fails
    assert rows(table(post_tail_10=[1.9, 1.9, nan, nan]))["post_tail_10"].fails
    assert rows(table(post_tail_10=[1.9, 1.9, 1.9, nan]))["post_tail_10"].inside


def test_a_mean_over_some_seeds_says_over_how_many():
    row = rows(table(post_tail_100=[2.2, 2.2, 2.3, nan]))["post_tail_100"]
    assert (row.n, row.of) == (3, 4)
    assert (as_json(row)["seeds"], as_json(row)["of_seeds"]) == (3, 4)


def test_what_only_informs_has_a_distance():
    row = rows(table(written_top_1=[0.406] * 4))["written_top_1"]
    assert row.ratio == pytest.approx(2)
    assert as_json(row)["ratio"] == pytest.approx(2)
    assert as_json(rows(table())["post_tail_p"])["ratio"] is None  # the real one is 0


def test_failed_runs_are_left_out():
    runs = table(post_size_mean=[2.0, 2.0, 2.0, 99.0]).assign(status=["done", "done", "done", "failed"])
    assert rows(runs)["post_size_mean"].simulated == 2


def test_what_does_not_apply_does_not_fail_and_says_why():
    row = rows(table(post_size_1=[0.1] * 4), lambda target: "too small")["post_size_1"]
    assert (row.inside, row.fails, row.why_not) == (None, False, "too small")
    told = as_json(row)
    assert told["simulated"] == pytest.approx(0.1)
    assert (told["inside"], told["not_applicable"], told["share_inside"]) == (None, "too small", None)


def test_json_has_the_names_that_scripts_rely_on_and_no_number_that_is_none():
    told = as_json(rows(table(delay_median=[40.0, 50.0, 60.0, 70.0]))["delay_median"])
    assert told["measure"] == "delay_median"
    assert (told["real"], told["simulated"], told["inside"]) == (51.9, 55, True)
    assert told["low"] < 55 < told["high"]
    alone = as_json(rows(table().iloc[:1])["delay_median"])
    assert alone["low"] is None


def reasons(values, followees=300.0):
    config = Config.model_validate(values)
    return {
        target.measure: why_not(target, config, config.agents.n, followees) for target in TARGETS if target.required
    }


def test_all_targets_apply_to_a_large_world_of_half_hours():
    assert not any(reasons(LARGE).values())


def test_a_small_world_has_no_rates_and_sizes_but_all_that_is_of_agents():
    small = reasons(LARGE | {"agents": {"n": 1000}})
    assert "1,000 agents" in small["post_size_1"]
    assert "1,000 agents" in small["post_like_rate"]
    left = {name for name, why in small.items() if not why}
    assert left >= {"window_liked", "post_reshares", "written_gini", "delay_median", "persons_never_reshared"}


def test_a_large_world_without_tails_fails_by_them_and_a_smaller_one_is_not_judged():
    for agents, inside in ((76_000, False), (25_000, None)):
        config = Config.model_validate(LARGE | {"agents": {"n": agents}})
        found = rows(
            table(post_tail_100=[2.2, nan, nan, nan]), lambda target, c=config: why_not(target, c, c.agents.n, 300)
        )
        assert found["post_tail_100"].inside is inside
        assert found["post_tail_10"].inside is True


def test_tails_from_100_are_wanted_of_worlds_of_a_calibrated_size_only():
    assert "25,000 agents" in reasons(LARGE | {"agents": {"n": 25_000}})["post_tail_100"]
    assert not reasons(LARGE | {"agents": {"n": 25_000}})["post_tail_10"]
    assert not reasons(LARGE | {"agents": {"n": 60_000}})["post_tail_100"]


def test_clocks_need_posts_that_are_followed_for_a_day_and_rounds_of_an_hour_at_most():
    clocks = ("view_half_life", "silent_after_day")
    for values, word in (({"rounds": 119}, "59.5 hours"), ({"clock": {"round_minutes": 90}}, "90 minutes")):
        assert all(word in reasons(LARGE | values)[name] for name in clocks)
    assert not any(reasons(LARGE | {"rounds": 120, "agents": {"n": 1000}})[name] for name in clocks)


def test_a_validation_counts_views_by_itself_and_keeps_what_the_configuration_says():
    def views(**values):
        return prepared(Config.model_validate(values)).records.views

    assert views(agents={"n": 500}) == 1
    assert views(agents={"n": 120_000}) == 0.05
    assert views(agents={"n": 120_000}, records={"views": 0.5}) == 0.5


def test_a_small_audience_has_no_rates_and_sizes():
    assert "20 followees" in reasons(LARGE, followees=20)["post_size_mean"]


def test_long_rounds_have_no_windows_and_no_delays():
    hours = reasons(LARGE | {"clock": {"round_minutes": 90}})
    assert "90 minutes" in hours["window_liked"]
    assert "90 minutes" in hours["delay_median"]
    assert not hours["post_size_1"]


def test_less_than_a_day_says_how_many_rounds_it_takes():
    short = reasons(LARGE | {"rounds": 20})
    told = "10 hours: less than a day (at least 48 rounds)"
    of_agents = ("hours_r", "window_liked", "persons_never_reshared", "delay_median", "post_reshares", "written_gini")
    assert {short[name] for name in of_agents} == {told}
    assert not reasons(LARGE | {"rounds": 48})["window_liked"]


def test_a_handful_of_agents_says_how_many_it_takes():
    tiny = reasons(LARGE | {"agents": {"n": 50}})
    assert all(tiny.values())
    assert "50 agents: too few" in tiny["window_liked"]
    assert "(at least 234 agents)" in tiny["post_reshares"]
    assert not reasons(LARGE | {"agents": {"n": 234}})["post_reshares"]


def test_rounds_of_more_than_an_hour_have_no_hours():
    assert "90 minutes: too long to tell hours" in reasons(LARGE | {"clock": {"round_minutes": 90}})["hours_r"]


def test_a_small_graph_has_reshares_per_post_and_windows_only(tmp_path):
    graph = reasons(LARGE | {"network": {"edges": str(tmp_path / "edges.csv")}}, followees=6.5)
    left = {name for name, why in graph.items() if not why}
    assert left == {"post_reshares"} | {name for name in graph if name.startswith("window_")}
