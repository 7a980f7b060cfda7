"""How the variance of a crossed study is split: shares that are known, add up to 1, and lie in their intervals."""

import numpy as np
import pytest
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse

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
