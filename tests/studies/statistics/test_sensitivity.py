"""Sobol and Morris indices of sampled designs, and shares of variance of crossed ones."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from study_tables import failed, noise, row, study

from prism_mesa.studies.design.sampling import repeat_points, sample_points
from prism_mesa.studies.statistics.analysis import RunTable, analyse

CUBE = dict.fromkeys(("a.x", "a.y", "a.z"), (-np.pi, np.pi))


def ishigami(x):
    return np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def sampled(kind, n, ranges, outcome, seeds=(0,), arms=("all",), whole=()):
    """Return a study whose runs come in another order than its points, each condition once."""
    points, sampling = sample_points(kind, n, ranges, integer_keys=whole)
    conditions = points.drop_duplicates().iloc[::-1]
    parts = [conditions.assign(arm=arm, seed=seed, m=outcome(conditions.to_numpy())) for arm in arms for seed in seeds]
    runs = pd.concat(parts, ignore_index=True).assign(status="done", reason="")
    runs["run"] = [str(place) for place in range(len(runs))]
    return RunTable(runs, tuple(arms), tuple(ranges), ("m",), kind, True, sampling)


def values_of(table, index):
    found = table[table["index"] == index]
    return dict(zip(found["factor"], found["value"], strict=True))


def test_sobol_indices_are_those_of_ishigamis_function():
    """S1 .3139, .4424, 0; ST .5576, .4424, .2437 (Ishigami and Homma 1990, doi:10.1109/ISUMA.1990.151285)."""
    found = analyse(sampled("sobol", 1024, CUBE, ishigami), []).sensitivity
    assert values_of(found, "s1") == pytest.approx({"a.x": 0.3139, "a.y": 0.4424, "a.z": 0.0}, abs=0.03)
    assert values_of(found, "st") == pytest.approx({"a.x": 0.5576, "a.y": 0.4424, "a.z": 0.2437}, abs=0.03)
    small = analyse(sampled("sobol", 256, CUBE, ishigami), []).sensitivity
    truth = {"s1": (0.3139, 0.4424, 0.0), "st": (0.5576, 0.4424, 0.2437)}
    for index, values in truth.items():
        for factor, value in zip(CUBE, values, strict=True):
            one = row(small, index=index, factor=factor)
            assert one["low"] < value < one["high"]
            assert 0.02 < one["high"] - one["low"] < 0.6


def test_morris_finds_the_slopes_of_a_linear_function():
    ranges = {"x": (0.0, 2.0), "y": (10.0, 20.0), "z": (0.0, 1.0)}
    found = analyse(sampled("morris", 8, ranges, lambda x: 3 * x[:, 0] - 2 * x[:, 1]), []).sensitivity
    assert values_of(found, "mu_star") == pytest.approx({"x": 6, "y": 20, "z": 0})
    assert values_of(found, "mu") == pytest.approx({"x": 6, "y": -20, "z": 0})
    assert values_of(found, "sigma") == pytest.approx({"x": 0, "y": 0, "z": 0}, abs=1e-9)


def test_morris_sees_that_an_effect_depends_on_another_factor_and_gives_an_interval():
    found = analyse(sampled("morris", 12, {"x": (0, 1), "y": (0, 1)}, lambda x: x[:, 0] * x[:, 1]), []).sensitivity
    assert values_of(found, "sigma")["x"] > 0.1
    mu_star = row(found, index="mu_star", factor="x")
    assert mu_star["low"] < mu_star["value"] < mu_star["high"]


def test_a_point_is_the_mean_over_its_seeds_and_none_of_them_may_be_missing():
    ranges = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    table = sampled("morris", 4, ranges, lambda x: x[:, 0], seeds=(1, 2))
    table.runs["m"] += np.where(table.runs["seed"] == 1, 5.0, -5.0)
    assert values_of(analyse(table, []).sensitivity, "mu_star") == pytest.approx({"x": 1, "y": 0})
    table.runs.loc[2, "status"] = "failed"
    found = analyse(table, [])
    assert len(found.sensitivity) == 0
    here = repeat_points(table.sampling).merge(table.runs.loc[[2], list(ranges)])  # equal points are one run
    assert found.notes[-1].startswith(f"Sensitivity of m: no indices, because {len(here)} of 12 points lack")


def test_arms_are_averaged_and_a_note_says_so():
    table = sampled("morris", 4, {"x": (0.0, 1.0), "y": (0.0, 1.0)}, lambda x: x[:, 0], arms=("a", "b"))
    table.runs["m"] *= np.where(table.runs["arm"] == "a", 1.0, 3.0)
    found = analyse(table, [])
    assert values_of(found.sensitivity, "mu_star") == pytest.approx({"x": 2, "y": 0})
    assert "Sensitivity: values are means over all arms." in found.notes


@pytest.mark.parametrize("kind", ["sobol", "morris"])
@pytest.mark.parametrize("gap", ["failed", "no such measure", "not planned"])
def test_a_point_without_one_of_its_arms_is_not_complete(kind, gap):
    """Arms that differ by 100 would make an effect of any factor out of one run that is gone."""
    table = sampled(kind, 8, CUBE, lambda x: x[:, 0], arms=("a", "b"))
    table.runs["m"] += np.where(table.runs["arm"] == "a", 0.0, 100.0)
    here = repeat_points(table.sampling).merge(table.runs.loc[[3], list(CUBE)])  # equal points are one run
    table = replace(table, runs=table.runs.assign(other=table.runs["m"]), measures=("m", "other"))
    assert set(analyse(table, []).sensitivity["measure"]) == {"m", "other"}
    if gap == "failed":
        failed(table, 3)
    elif gap == "no such measure":
        table.runs.loc[3, "m"] = np.nan
    else:
        table = replace(table, runs=table.runs.drop(index=3))
    found = analyse(table, [])
    assert set(found.sensitivity["measure"]) == ({"other"} if gap == "no such measure" else set())
    assert any(note.startswith(f"Sensitivity of m: no indices, because {len(here)} of ") for note in found.notes)


def test_whole_numbers_are_found_again_and_equal_points_need_one_run():
    table = sampled("sobol", 64, {"k": (1, 3), "l": (1, 2)}, lambda x: 1.0 * x[:, 0], whole=("k", "l"))
    assert len(table.runs) == 6
    found = values_of(analyse(table, []).sensitivity, "st")
    assert (found["k"], found["l"]) == (pytest.approx(1, abs=0.15), 0)


def test_points_that_were_rounded_afterwards_are_found_too():
    points, sampling = sample_points("sobol", 32, {"k": (1, 4), "x": (0.0, 1.0)})
    runs = points.assign(k=points["k"].round().astype(int), arm="all", seed=0, status="done", reason="", run="r")
    runs = runs.assign(m=runs["k"] + runs["x"]).drop_duplicates()
    found = analyse(RunTable(runs, ("all",), ("k", "x"), ("m",), "sobol", True, sampling), [])
    assert found.notes == ()
    assert values_of(found.sensitivity, "st")["k"] == pytest.approx(0.89, abs=0.15)


def test_an_outcome_that_is_the_same_everywhere_has_no_indices():
    found = analyse(sampled("sobol", 8, CUBE, lambda x: np.full(len(x), 0.1)), [])
    assert len(found.sensitivity) == 0
    assert "Sensitivity of m: no indices, because it hardly differs between points." in found.notes
    table = sampled("sobol", 8, CUBE, lambda x: np.full(len(x), 0.1))
    crossed = repeat_points(table.sampling).iloc[1]
    table.runs.loc[(table.runs[list(CUBE)] == crossed).all(axis=1), "m"] = 5.0  # only where one factor was exchanged
    assert len(analyse(table, []).sensitivity) == 0


def test_a_latin_hypercube_has_no_indices():
    assert len(analyse(sampled("lhs", 8, CUBE, ishigami), []).sensitivity) == 0


ARMS = ("rule", "llm", "distilled", "embedded")
FACTORS = {"agents.seed": [1, 2, 3, 4, 5, 6], "network.seed": [1, 2, 3, 4, 5]}
SIZES = {"arm": 1.0, "agents.seed": 0.7, "network.seed": 0.5, "seed": 0.9}
"""Standard deviations of what each source adds; that of `seed` is of noise between runs."""


def additive(draw, *, seeds=6, interaction=0.0):
    """Return a measure to which each source adds something of its own, shape (conditions, seeds)."""
    arm = np.array([-1, 1, -1, 1]) * SIZES["arm"]
    persona, network = noise(10 * draw, 6) * SIZES["agents.seed"], noise(10 * draw + 1, 5) * SIZES["network.seed"]
    between = arm[:, None, None] + persona[:, None] + network
    between = between + interaction * np.array([1, 1, -1, -1])[:, None, None] * np.array([1, -1, 1, -1, 1, -1])[:, None]
    return between.reshape(-1, 1) + noise(10 * draw + 2, 120, seeds) * SIZES["seed"]


def split(table):
    return analyse(table, ()).sensitivity


def test_shares_of_an_additive_world_are_right_and_lie_in_their_intervals():
    found = split(study({f"m{n}": additive(n) for n in range(60)}, ARMS, FACTORS))
    total = sum(size**2 for size in SIZES.values())
    for source, size in SIZES.items():
        own, share = found[found["factor"] == source], size**2 / total
        assert own["value"].mean() == pytest.approx(share, abs=0.05)
        assert ((own["low"] <= share) & (share <= own["high"])).mean() > 0.88
    assert found.loc[found["factor"] == "interactions", "value"].mean() < 0.01
    assert np.allclose(found.groupby("measure")["value"].sum(), 1)
    assert (found["low"] <= found["value"] + 1e-9).all()
    assert (found["value"] <= found["high"] + 1e-9).all()


def test_what_one_term_does_only_with_another_is_an_interaction():
    found = split(study({"m": additive(1, interaction=1.0)}, ARMS, FACTORS))
    alone = split(study({"m": additive(1)}, ARMS, FACTORS))
    assert row(found, factor="interactions")["low"] > 0.1
    assert row(alone, factor="interactions")["high"] < 0.05


def test_seeds_have_it_all_where_conditions_do_not_differ_and_nothing_where_runs_repeat():
    values = np.tile(noise(3, 1, 8), (4, 1)) + 1e-3 * noise(4, 4, 8)
    found = split(study({"chance": values, "arms": np.repeat([[1.0], [2], [3], [4]], 8, axis=1)}, ARMS))
    assert row(found, measure="chance", factor="seed")["value"] > 0.999
    assert row(found, measure="arms", factor="arm")["value"] == pytest.approx(1)


def test_an_arm_without_runs_is_left_out_and_seeds_that_lack_a_run_do_not_count():
    whole = study({"m": additive(2)}, ARMS, FACTORS)
    gone = study({"m": additive(2)}, ARMS, FACTORS)
    gone.runs.loc[gone.runs["arm"] == "llm", ["status", "m"]] = ["skipped", np.nan]
    failed(gone, 3)
    kept = whole.runs[(whole.runs["arm"] != "llm") & (whole.runs["seed"] != 3)]
    values = kept["m"].to_numpy().reshape(90, 5)
    pruned = study({"m": values}, ("rule", "distilled", "embedded"), FACTORS)
    columns = ["factor", "value", "low", "high"]
    assert split(gone)[columns].equals(split(pruned)[columns])


@pytest.mark.parametrize("values", [np.ones((4, 5)), noise(1, 4, 1)], ids=["constant", "one seed"])
def test_what_cannot_be_split_is_noted(values):
    found = analyse(study({"m": values}, ARMS), ())
    assert found.sensitivity.empty
    assert any("Variance of m: not split" in note for note in found.notes)
