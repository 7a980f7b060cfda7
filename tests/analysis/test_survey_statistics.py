"""Surveys: the sample, and intervals."""

import json

import numpy as np
import pandas as pd
import pytest
from asked_surveys import CLOSED, letter_a, of, toy
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.analysis.survey.respondents import sample_users
from prism_mesa.analysis.survey.results import mean_interval
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.streams import Streams
from prism_mesa.view.plots.answers import survey_figure
from prism_mesa.view.summaries import survey_lines

# -- the sample ----------------------------------------------------------------------------------------


@given(n_agents=st.integers(1, 300), n=st.integers(1, 300), seed=st.integers(0, 2**31))
def test_a_sample_has_nobody_twice_and_is_ascending_and_all_if_there_are_no_more(n_agents, n, seed):
    rows = sample_users(np.ones(n_agents, bool), n, Streams(seed)).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(n, n_agents)
    assert set(rows) <= set(range(n_agents))


def test_the_sample_is_the_same_before_and_after_and_in_the_manifest(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), agents=7, out=tmp_path, llm=toy(letter_a))
    answers = pd.read_parquet(result.folder / "answers.parquet")
    waves = [answers[answers["wave"] == wave]["agent"].unique().tolist() for wave in ("before", "after")]
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert waves[0] == waves[1] == manifest["agents"] == sample_users(np.ones(40, bool), 7, Streams(5)).tolist()
    assert (manifest["system"], manifest["status"], manifest["at"]) == ("survey", "done", {"before": -1, "after": 3})
    assert manifest["questions"]["questions"][0]["options"] == CLOSED["options"]


# -- intervals -----------------------------------------------------------------------------------------


def test_an_interval_covers_the_truth_as_often_as_it_says():
    """Over 20,000 samples of 12 agents; a bootstrap covers 91 %."""
    samples = np.random.default_rng(8).normal(0.4, 0.1, (12, 20_000))
    _, low, high = mean_interval(samples)
    covered = ((low <= 0.4) & (high >= 0.4)).mean()
    assert 0.94 <= covered <= 0.96


def test_an_interval_of_a_coin_is_worked_out_by_hand():
    """Of 10 values, half 0 and half 1: sd is sqrt(2.5 / 9), t(.975, 9) is 2.262157."""
    [mean], [low], [high] = mean_interval([[0.0], [1.0]] * 5)
    half = 2.262157 * np.sqrt(2.5 / 9) / np.sqrt(10)
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=1e-6)


@pytest.mark.parametrize("n", [1, 9])
def test_few_values_have_a_mean_and_no_interval(n):
    mean, low, high = mean_interval([[0.25, 1.0]] * n)
    assert mean.tolist() == [0.25, 1.0]
    assert np.isnan([*low, *high]).all()


def test_a_survey_of_one_agent_does_not_look_exact(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), agents=1, out=tmp_path, llm=toy(letter_a))
    assert result.table["mean"].notna().all()
    assert result.table[["low", "high"]].isna().all(axis=None)
    lines = list(survey_lines(result.summary))
    assert "  no intervals: too few agents answered to estimate the spread" in lines
    assert not any(", " in line and "[" in line for line in lines)
    survey_figure(result.table, {}).savefig(tmp_path / "p.png", dpi=20)


def test_the_change_is_paired_over_agents(run_dir, tmp_path):
    """Agents differ a lot and all move alike: the change is sure although before and after are not."""

    def llm(prompt):
        base = len(prompt.split("interests")[1].split("\n")[0]) % 7 / 10
        return json.dumps({"yes": base + 0.2 * ("What you remember" in prompt), "no": 1 - base})

    asked = of({"id": "q", "ask": "Well?", "options": ["yes", "no"]})
    table = survey(run_dir, asked, out=tmp_path, llm=toy(llm)).table.set_index(["option", "wave"])
    width = (table["high"] - table["low"]).loc["yes"]
    assert width["change"] < 0.6 * min(width["before"], width["after"])
