"""What is said and drawn of a validation, of one made by hand."""

from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prism_mesa.runs.config import Config
from prism_mesa.studies.validation.real import built_in_values
from prism_mesa.studies.validation.targets import CASCADES
from prism_mesa.studies.validation.validation import EXPLANATORY, Validation, target_rows
from prism_mesa.studies.validation.variants import Match
from prism_mesa.view.validation.figures import cascades_figure, matrix_figure
from prism_mesa.view.validation.report import (
    broken_rows,
    data_used,
    joint_verdict,
    markdown,
    validation_lines,
    variant_lines,
)


def rows(excused=lambda target: "", **columns):
    real = {name: [value] * 3 for name, value in built_in_values().values.items()}
    return target_rows(pd.DataFrame({**real, **columns, "status": "done"}), built_in_values(), excused)


def curves():
    parts = []
    for arm, steepness in (("full", 1.0), ("one_probability", 3.0)):
        for seed in (1, 2, 3):
            size = np.array([1.0, 2, 5, 10 * seed])
            parts.append(pd.DataFrame({"curve": "cascade_sizes", "x": size, "y": size**-steepness}))
            parts[-1] = parts[-1].assign(arm=arm, seed=seed)
            flat = pd.DataFrame({"curve": "hours", "x": np.arange(24.0), "y": 1 / 24})
            parts.append(flat.assign(arm=arm, seed=seed))
    return pd.concat(parts, ignore_index=True)


LARGE_SHAPES = ["large_hop_1", "large_hop_2", "large_hop_3", "large_depth", "large_virality"]
RATES = (
    {name: [0.25, 0.75] for name in EXPLANATORY}
    | {name: [0.7, np.nan] for name in LARGE_SHAPES}
    | {"reshares_per_impression": [0.001, 0.0011]}
)


@pytest.fixture
def validation():
    nothing = {name: [5.0] * 3 for name in CASCADES[2:5]} | {"post_size_100": [0.0] * 3, "delay_median": [45.0] * 3}
    return Validation(
        path=Path("results/validation-mine"),
        config=Config(),
        seeds=(1, 2, 3),
        rows=rows(burstiness=[0.0] * 3),
        variants={"one_probability": rows(burstiness=[0.0] * 3, **nothing)},
        matches={"one_probability": Match(0.2, 1.01)},
        curves=curves(),
        runs=pd.DataFrame({"arm": ["full", "one_probability"]} | RATES),
        real=built_in_values(),
        notes=("a note",),
    )


def test_the_verdict_is_joint_and_names_what_is_outside(validation):
    assert joint_verdict(validation).startswith(
        "33 of 34 targets inside, jointly, from one set of parameters, as means over 3 seeds"
    )
    assert joint_verdict(validation).endswith("Outside: burstiness")
    assert not validation.passed
    assert [row.target.measure for row in validation.outside] == ["burstiness"]


def test_nothing_passes_to_which_no_target_applies(validation):
    nothing = Validation(**{**vars(validation), "rows": rows(lambda target: "too small")})
    assert not nothing.passed
    assert "nothing is validated" in joint_verdict(nothing)


def test_a_variant_breaks_what_the_full_model_reaches(validation):
    lost = broken_rows(validation, validation.variants["one_probability"])
    assert {row.target.measure for row in lost} == set(CASCADES[2:])  # not burstiness, which both miss
    off, breaks, rate = variant_lines(validation, "one_probability")
    assert off == "all impressions are reshared with the same probability"
    assert breaks.startswith("breaks: mean size of a cascade 5, ")
    assert breaks.endswith("(4 of 6 targets of cascades are outside)")
    assert rate == "reshares per impression: 1.10 times the full model's, matched (threshold 0.2)"


def test_data_are_named_by_what_they_were_used_for(validation):
    fitted, given, other, predicted = data_used(validation).values()
    assert "3,982,990 tweets" in fitted
    assert "US Congress (times" in given
    assert "US Congress (burstiness)" in other
    assert "activity: share of top hundredth" in other  # what only informs is named too
    assert "rOpenSci" in predicted
    assert "VoterFraud" not in predicted
    assert "rOpenSci" not in fitted + given + other


def test_the_lines_and_the_page_have_all_targets_and_sources(validation):
    lines = "\n".join(validation_lines(validation))
    page = markdown(validation)
    assert all(row.target.label in lines and row.target.label in page for row in validation.rows)
    assert "note: a note" in lines
    assert page.count("| inside |") == 33 + 29
    assert "| `shape_depth` | reshares | 0.250 | 0.750 |" in page
    assert "Abilov et al. 2021" in page


def test_the_figure_of_cascades_has_the_data_the_model_and_the_null(validation):
    axes, hops, shapes = cascades_figure(validation).axes
    named = {line.get_label(): line for line in axes.lines}
    assert set(named) == {"real (VoterFraud2020)", "simulated", "one probability"}
    simulated = dict(zip(*named["simulated"].get_data(), strict=True))
    assert simulated[1] == 1
    assert simulated[30] == pytest.approx(1 / 90)  # reached by one seed of three
    assert simulated[5] == pytest.approx(1 / 5)
    assert named["one probability"].get_linestyle() == "--"
    for panel, n in ((hops, 3), (shapes, 2)):  # the null has no large cascades, so no mark
        assert [line.get_ydata().tolist() for line in panel.lines] == [[0.7]] * n
        assert len(panel.patches) == n  # what is allowed


def test_the_figure_of_variants_has_a_sign_for_each_target_missed(validation):
    names = [row.target.measure for row in validation.rows if row.inside is not None]
    above, below, no_value = matrix_figure(validation).axes[0].collections

    def at(signs):
        return {(names[int(x)], int(y)) for x, y in signs.get_offsets()}

    assert at(below) == {("burstiness", 0), ("burstiness", 1), ("post_size_100", 1)}
    assert at(above) == {("post_size_mean", 1), ("post_tail_10", 1), ("post_tail_100", 1)}
    assert not at(no_value)
    emptied = rows(post_tail_10=[nan] * 3)
    no_value = matrix_figure(replace(validation, variants={"one_probability": emptied})).axes[0].collections[2]
    assert at(no_value) == {("post_tail_10", 1)}
