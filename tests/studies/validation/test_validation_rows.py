"""The table of a validation: means, intervals, what is inside, what does not apply."""

from math import nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prism_mesa.runs.config import Config
from prism_mesa.studies.validation.real import built_in_values
from prism_mesa.studies.validation.targets import TARGETS
from prism_mesa.studies.validation.validation import add_records, as_json, exclusion_reason, target_rows

MEASURES = [target.measure for target in TARGETS]
LARGE = {"agents": {"n": 60_000}, "rounds": 144, "clock": {"round_minutes": 30}, "network": {"mean_degree": 300}}


def table(**columns):
    real = {name: [value] * 4 for name, value in built_in_values().values.items()}
    return pd.DataFrame({**real, **columns, "status": "done"})


def rows(runs, excused=lambda target: ""):
    return {row.target.measure: row for row in target_rows(runs, built_in_values(), excused)}


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
    row = rows(table(post_tail_10=[1.9, 1.9, 1.9, nan]))["post_tail_10"]
    assert (row.inside, row.n, row.n_seeds) == (True, 3, 4)
    assert (as_json(row)["seeds"], as_json(row)["of_seeds"]) == (3, 4)


def test_what_only_informs_has_a_distance():
    row = rows(table(written_top_1=[0.406] * 4))["written_top_1"]
    assert row.ratio == pytest.approx(2)
    assert as_json(row)["ratio"] == pytest.approx(2)
    assert as_json(rows(table())["post_tail_p"])["ratio"] is None  # the real one is 0


def test_failed_runs_are_left_out():
    runs = table(post_size_mean=[2.0, 2.0, 2.0, 99.0]).assign(status=["done", "done", "done", "failed"])
    assert rows(runs)["post_size_mean"].simulated == 2


def test_what_does_not_apply_does_not_fail_and_json_has_null_for_what_is_no_number():
    row = rows(table(post_size_1=[0.1] * 4).iloc[:1], lambda target: "too small")["post_size_1"]
    assert (row.inside, row.fails, row.exclusion_reason) == (None, False, "too small")
    content = as_json(row)
    assert (content["measure"], content["real"], content["simulated"]) == ("post_size_1", 0.8029, pytest.approx(0.1))
    assert (content["inside"], content["not_applicable"], content["share_inside"]) == (None, "too small", None)
    assert (content["low"], content["from"], content["to"]) == (None, 0.7, 0.9)


def reasons(followees=300.0, **values):
    config = Config.model_validate(LARGE | values)
    return {
        target.measure: exclusion_reason(target, config, config.agents.n, followees)
        for target in TARGETS
        if target.required
    }


def test_all_targets_apply_to_a_large_world_of_half_hours():
    assert not any(reasons().values())


HOURS_AND_A_HALF = {"clock": {"round_minutes": 90}}
OF_AGENTS = ("hours_r", "window_liked", "persons_never_reshared", "delay_median", "post_reshares", "written_gini")
CLOCKS = ("view_half_life", "silent_after_day")


@pytest.mark.parametrize(
    ("values", "measures", "reason"),
    [
        ({"agents": {"n": 1000}}, ("post_size_1", "post_like_rate"), "1,000 agents"),
        ({"agents": {"n": 25_000}}, ("post_tail_100",), "25,000 agents"),
        ({"rounds": 119}, CLOCKS, "59.5 hours"),
        (HOURS_AND_A_HALF, CLOCKS, "90 minutes"),
        (HOURS_AND_A_HALF, ("window_liked", "delay_median"), "90 minutes"),
        (HOURS_AND_A_HALF, ("hours_r",), "90 minutes: too long for hours"),
        ({"followees": 20}, ("post_size_mean",), "20 followees"),
        ({"rounds": 20}, OF_AGENTS, "10 hours: less than a day (at least 48 rounds)"),
        ({"agents": {"n": 50}}, ("window_liked", "post_reshares"), "50 agents: too few"),
    ],
)
def test_a_target_that_does_not_apply_says_why(values, measures, reason):
    found = reasons(**values)
    assert all(found[measure].startswith((reason, f"rounds of {reason}")) for measure in measures)


@pytest.mark.parametrize(
    ("values", "measures"),
    [
        ({"agents": {"n": 1000}}, ("window_liked", "post_reshares", "written_gini", "delay_median")),
        ({"agents": {"n": 25_000}}, ("post_tail_10",)),
        ({"rounds": 120, "agents": {"n": 1000}}, CLOCKS),
        (HOURS_AND_A_HALF, ("post_size_1",)),
        ({"rounds": 48}, ("window_liked",)),
        ({"agents": {"n": 234}}, ("post_reshares",)),
    ],
)
def test_other_targets_apply_and_so_do_these_from_their_bounds_on(values, measures):
    found = reasons(**values)
    assert not any(found[measure] for measure in measures)


def test_a_large_world_without_tails_fails_by_them_and_a_smaller_one_is_not_judged():
    for agents, inside in ((76_000, False), (25_000, None)):
        config = Config.model_validate(LARGE | {"agents": {"n": agents}})
        found = rows(
            table(post_tail_100=[2.2, nan, nan, nan]),
            lambda target, c=config: exclusion_reason(target, c, c.agents.n, 300),
        )
        assert found["post_tail_100"].inside is inside
        assert found["post_tail_10"].inside is True


def test_a_small_graph_has_reshares_per_post_and_windows_only(tmp_path):
    graph = reasons(6.5, network={"edges": str(tmp_path / "edges.csv")})
    applied = {name for name, reason in graph.items() if not reason}
    assert applied == {"post_reshares"} | {name for name in graph if name.startswith("window_")}


def test_a_validation_counts_views_by_itself_and_keeps_what_the_configuration_says():
    def views(**values):
        return add_records(Config.model_validate(values)).records.views

    assert views(agents={"n": 500}) == 1
    assert views(agents={"n": 120_000}) == 0.05
    assert views(agents={"n": 120_000}, records={"views": 0.5}) == 0.5
