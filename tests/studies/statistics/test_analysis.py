"""The tables of an analysis, whatever the runs are, and its answers."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from study_tables import failed, noise, row, study

from prism_mesa.studies.design.sampling import sample_points
from prism_mesa.studies.statistics.analysis import RunTable, analyse

TABLES = "answers differences groups equivalence effects sensitivity precision".split()


def full():
    factors = {"share": [0.0, 0.5]}
    table = study({"reach": noise(1, 6, 10), "depth": noise(2, 6, 10)}, ("a", "b", "c"), factors)
    return table, ["reach: a > b", "depth: share=0 = share=0.5 within 3"]


def types_of(found):
    return {name: getattr(found, name).dtypes.astype(str).to_dict() for name in TABLES}


def nothing_done(table):
    return replace(table, runs=table.runs.assign(status="missing", reach=np.nan, depth=np.nan))


@pytest.mark.parametrize("less", ["nothing done", "no runs", "no expectations", "one arm", "no measures"])
def test_tables_have_the_same_columns_and_types_when_there_is_less_in_them(less):
    table, texts = full()
    whole = types_of(analyse(table, texts))
    if less == "nothing done":
        table = nothing_done(table)
    elif less == "no runs":
        table, texts = replace(table, runs=table.runs.iloc[:0]), []
    elif less == "no expectations":
        texts = []
    elif less == "one arm":
        table, texts = study({"reach": noise(1, 1, 2)}), []
        whole["answers"].pop("share")
    else:
        table, texts = replace(table, measures=()), []
    found = analyse(table, texts)
    assert types_of(found) == whole


def test_what_is_not_yet_run_is_missing_and_open():
    table, texts = full()
    found = analyse(nothing_done(table), texts)
    assert [verdict.verdict for verdict in found.expectations] == ["open", "open"]
    assert [verdict.missing for verdict in found.expectations] == [20, 30]
    assert (found.answers["n"] == 0).all()
    assert (found.answers["missing"] == 10).all()
    assert found.notes[0].startswith("60 of 60 runs are missing (a 20, b 20, c 20); 0 failed")


@pytest.mark.parametrize("paired", [True, False])
def test_of_two_rows_for_one_run_the_one_that_is_done_counts(paired):
    table = study({"reach": [[1.0, 2.0]]}, paired=paired)
    again = table.runs.iloc[[0]].assign(status="failed", reach=np.nan)
    found = analyse(replace(table, runs=pd.concat([table.runs, again], ignore_index=True)), [])
    assert (found.answers.iloc[0]["n"], found.answers.iloc[0]["missing"]) == (2, 0)


def test_the_same_runs_in_another_order_say_the_same():
    table, texts = full()
    failed(table, 4, 31)
    one, other = analyse(table, texts), analyse(replace(table, runs=table.runs.iloc[::-1]), texts)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), rtol=1e-9)
    assert [verdict.verdict for verdict in one.expectations] == [verdict.verdict for verdict in other.expectations]
    assert one.expectations[0].interval == pytest.approx(other.expectations[0].interval)


def test_a_sampled_design_with_arms_is_compared_point_by_point():
    points, sampling = sample_points("lhs", 10, {"band": (0.0, 1.0)})
    rows = [points.assign(arm=arm, seed=seed) for arm in ("a", "b") for seed in (1, 2, 3)]
    runs = pd.concat(rows, ignore_index=True).assign(status="done", reason="", run="r")
    runs["reach"] = runs["band"] * 10 + (runs["arm"] == "b") * 2 + noise(3, len(runs)) * 0.1
    found = analyse(RunTable(runs, ("a", "b"), ("band",), ("reach",), "lhs", True, sampling), ["reach: b > a"])
    assert (found.expectations[0].verdict, found.expectations[0].n) == ("holds", 30)
    assert found.expectations[0].difference == pytest.approx(2, abs=0.1)
    assert len(found.answers) == 20
    assert len(found.effects) == 0


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_something_is_computed():
    code = (
        "import sys; import prism_mesa.studies.statistics.analysis, prism_mesa.studies.statistics.expectation;"
        "print([name for name in ('scipy.stats', 'statsmodels', 'SALib') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


NUMBERS = st.sampled_from([0.0, 1.0, 0.1, 0.3, -2.5, 1e9, 1e-9, float("nan"), float("inf")])


@st.composite
def small_studies(draw):
    arms = draw(st.sampled_from([("all",), ("a", "b"), ("a", "b", "c")]))
    factors = draw(st.sampled_from([{}, {"k": [1, 2]}, {"k": [1, 2, 3], "l.m": [True, False]}]))
    seeds = draw(st.integers(1, 4))
    rows = len(arms) * int(np.prod([len(levels) for levels in factors.values()]))
    values = draw(st.lists(NUMBERS, min_size=rows * seeds, max_size=rows * seeds))
    status = draw(
        st.lists(st.sampled_from(["done", "done", "failed", "missing"]), min_size=len(values), max_size=len(values))
    )
    table = study({"m": np.reshape(values, (rows, seeds))}, arms, factors, paired=draw(st.booleans()))
    return replace(table, runs=table.runs.assign(status=status))


@pytest.mark.slow
@settings(max_examples=25)
@given(table=small_studies())
def test_whatever_the_runs_are_they_are_all_counted_and_no_number_is_wrong_in_kind(table):
    sides = [("a", "b"), ("k=1", "k=2")]
    known = [pair for pair in sides if pair[0] in table.arms or (pair[0] == "k=1" and "k" in table.factors)]
    texts = [f"m: {left} > {right}" for left, right in known] + [f"m: {x} = {y} within 5 %" for x, y in known]
    found = analyse(table, texts)
    assert found.answers["n"].sum() + found.answers["missing"].sum() == len(table.runs)
    numbers = table.runs["m"][table.runs["status"] == "done"]
    assert found.answers["n"].sum() == np.isfinite(numbers).sum()
    for name in TABLES:
        frame = getattr(found, name)
        for column in [column for column in frame if column.startswith("p")]:
            assert (frame[column].isna() | frame[column].between(-1e-9, 1 + 1e-9)).all(), (name, column)
        if "p_holm" in frame:
            assert (frame["p_holm"].isna() == frame["p"].isna()).all()
        if "difference" in frame:
            assert (frame["difference"].isna() == (frame["n"] == 0)).all()
    for verdict in found.expectations:
        assert verdict.verdict in ("holds", "fails", "open")
        assert verdict.sentence.startswith(verdict.verdict.capitalize())
        assert "nan" not in verdict.sentence
        assert verdict.verdict != "holds" or verdict.p_holm < 0.05


def test_a_condition_is_described_by_mean_median_and_sd_of_its_runs():
    values = noise(1, 4, 12)
    table = study({"reach": values}, ("plain", "ranked"), {"agents.band": [0.02, 0.1]})
    answers = analyse(table, []).answers
    assert list(answers.columns[:3]) == ["arm", "agents.band", "measure"]
    found = row(answers, arm="ranked", **{"agents.band": 0.02})
    assert found["mean"] == pytest.approx(np.mean(values[2]))
    assert found["median"] == pytest.approx(np.median(values[2]))
    assert found["sd"] == pytest.approx(np.std(values[2], ddof=1))
    assert (found["n"], found["missing"]) == (12, 0)


def test_a_run_that_failed_does_not_count_even_if_it_left_a_number():
    table = failed(study({"reach": [[1.0, 2.0, 300.0, 4.0]], "depth": [[1.0, np.nan, 3.0, -np.inf]]}), 2)
    found = analyse(table, [])
    reach, depth = (row(found.answers, measure=name) for name in ("reach", "depth"))
    assert (reach["n"], reach["missing"], reach["median"]) == (3, 1, 2.0)
    assert (depth["n"], depth["missing"], depth["mean"]) == (1, 3, 1.0)
    assert [note.partition(" ")[0] for note in found.notes] == ["1", "depth:"]


def test_equal_numbers_have_an_interval_without_width_and_a_single_one_has_none():
    flat = analyse(study({"reach": [[0.1] * 7]}), []).answers.iloc[0]
    assert flat["low"] == flat["high"] == pytest.approx(0.1)
    few = analyse(study({"reach": [[4.0] * 5]}), []).answers.iloc[0]
    assert np.isnan([few["low"], few["high"]]).all()  # five equal numbers do not say what the sixth will be
    single = analyse(study({"reach": [[4.0]]}), []).answers.iloc[0]
    assert (single["n"], single["mean"]) == (1, 4.0)
    assert np.isnan([single["low"], single["high"], single["sd"]]).all()


@pytest.mark.parametrize("seeds", [2, 9, 10, 30])
def test_the_interval_of_a_mean_is_students(seeds):
    values = noise(6, 1, seeds)
    found = analyse(study({"reach": values}), [])
    expected = stats.ttest_1samp(values[0], 0).confidence_interval()
    assert tuple(found.answers[["low", "high"]].iloc[0]) == pytest.approx(tuple(expected))
    assert found.notes == ()


def test_conditions_come_by_arm_in_the_order_of_the_study_and_keep_their_levels():
    table = study({"reach": noise(7, 6, 2)}, ("z", "a"), {"posts": [True, None, "x"]})
    answers = analyse(table, []).answers
    assert list(answers["arm"]) == ["z"] * 3 + ["a"] * 3
    assert list(answers["posts"])[:3] == [True, None, "x"]
