"""The targets that PRISM carries: complete, honest about their sources, and those of the data where they are here."""

import gzip
from math import isfinite
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prism_mesa.errors import DataError
from prism_mesa.studies.measures.catalogue import MEASURES
from prism_mesa.studies.measures.rhythms import USED_WINDOWS
from prism_mesa.studies.validation.real import carried, load_real_values
from prism_mesa.studies.validation.targets import CASCADES, RANGE_FROM, SIZES, SOURCES, TARGETS, targets_fitted

DATA = Path(__file__).parents[4] / "shared" / "data"
here = pytest.mark.skipif(not DATA.exists(), reason="shared/data is not here")

# what the issues ask for, in the units of the measures
MUST_BE_INSIDE = {
    "post_size_1": (0.70, 0.90),
    "post_size_2": (0.067, 0.167),
    "post_size_mean": (1.7, 2.7),
    "post_tail_10": (1.6, 2.2),
    "post_tail_100": (1.9, 2.5),
    "post_size_100": (1 / 4000, 1 / 300),
    "large_depth": (2, 4),
    "large_virality": (2.28, 2.9),
    "large_size_virality": (-0.1, 0.35),
    "large_hop_1": (0.64, 0.85),
    "large_hop_2": (0.10, 0.28),
    "large_hop_3": (0.01, 0.12),
    "large_reproduction_2": (0.12, 0.36),
    "reciprocity": (0.28, 0.40),
    "mutual_of_possible": (0.50, 0.85),
    "followers_followees": (0.60, 0.85),
    "window_liked": (0.33, 0.43),
    "window_reshared": (0.11, 0.21),
    "window_replied": (0.07, 0.17),
    "window_posted": (0.07, 0.17),
    "window_none": (0.46, 0.62),
    "post_like_rate": (0.002, 0.014),
    "post_reshare_rate": (0.0008, 0.002),
    "post_reply_rate": (0.0001, 0.0015),
    "post_reshares": (0.75, 1.75),
    "written_gini": (0.66, 0.82),
    "written_top_10": (0.52, 0.72),
    "burstiness": (0.08, 0.32),
    "hours_r": (0.8, 1.0),
    "delay_median": (30, 90),
    "view_half_life": (50, 120),
    "silent_after_day": (0.85, 1.0),
    "persons_reshared_sd": (0.20, 0.36),
    "persons_never_reshared": (0.60, 0.80),
}


def test_what_must_be_inside_is_what_was_asked_for():
    found = {target.measure: (target.low, target.high) for target in TARGETS if target.required}
    assert found.keys() == MUST_BE_INSIDE.keys()
    assert all(found[name] == pytest.approx(bounds) for name, bounds in MUST_BE_INSIDE.items())


def test_of_every_range_it_is_known_where_it_comes_from():
    assert set(RANGE_FROM) == set(MUST_BE_INSIDE)


def test_every_target_is_a_measure_with_a_source_and_a_real_value_that_is_allowed():
    assert {target.measure for target in TARGETS} <= set(MEASURES)
    assert {target.source for target in TARGETS} == set(SOURCES)
    assert all(target.low <= target.real <= target.high for target in TARGETS)
    assert all(isfinite(target.low) and isfinite(target.high) for target in TARGETS if target.required)
    assert set(CASCADES) <= {target.measure for target in TARGETS}


def roles_of_data(targets):
    """Return for each role the data sets of its targets."""
    return {
        role: {SOURCES[target.source].data for target in targets if target.role == role}
        for role in ("fitted", "given", "other", "predicted")
    }


@pytest.mark.parametrize("measures", [None, {"post_like_rate"}, {"post_size_1", "window_liked"}, set()])
def test_predicted_is_only_what_is_of_data_of_which_nothing_was_fitted_or_given(measures):
    data = roles_of_data(targets_fitted(measures))
    assert not data["predicted"] & (data["fitted"] | data["given"])
    assert data["other"] <= data["fitted"] | data["given"]


def test_of_the_shipped_configuration_only_rates_and_one_clock_are_predicted():
    assert roles_of_data(TARGETS)["predicted"] == {"rOpenSci", "posts with community notes"}
    roles = {target.measure: target.role for target in TARGETS}
    assert roles["burstiness"] == "other"  # the hours of the same accounts are given
    assert {roles[name] for name in ("delay_upper", "written_top_1", "post_top_1")} == {"other"}


def test_what_was_fitted_may_be_named():
    roles = {target.measure: target.role for target in targets_fitted({"post_like_rate", "hours_r"})}
    assert roles["post_like_rate"] == "fitted"
    assert roles["post_reshare_rate"] == "other"
    assert roles["post_size_1"] == "predicted"
    assert roles["hours_r"] == "given"
    assert roles["burstiness"] == "other"
    assert targets_fitted(None) == TARGETS


def test_carried_curves_agree_with_carried_values():
    real = carried()
    assert 1 - SIZES[2] == pytest.approx(real.values["post_size_1"], abs=1e-3)
    assert SIZES[2] - SIZES[3] == pytest.approx(real.values["post_size_2"], abs=1e-3)
    shares, held = real.curves["activity"]
    assert dict(zip(shares.tolist(), held.tolist(), strict=True))[0.9] == pytest.approx(
        1 - real.values["written_top_10"], abs=1e-3
    )
    assert not real.computed


@here
def test_carried_values_are_those_of_the_data():
    real, known = load_real_values(DATA), carried()
    assert len(real.computed) == 29
    for measure in real.computed:
        assert real.values[measure] == pytest.approx(known.values[measure], rel=0.005), measure
    sizes, shares = real.curves["cascade_sizes"]
    computed = [float(shares[np.searchsorted(sizes, size)]) for size in SIZES]
    assert computed == pytest.approx(list(SIZES.values()), rel=0.01)


@here
def test_persons_are_asked_after_as_many_windows_as_in_the_data():
    table = pd.read_csv(DATA / "usage_esm" / "usage.csv.gz")
    counts = table[table["used"] == 1].groupby("person").size().value_counts()
    assert {n: persons for n, persons in enumerate(USED_WINDOWS, 1) if persons} == counts.to_dict()


def test_a_folder_without_data_is_named(tmp_path):
    with pytest.raises(DataError, match=r"holds none of .*cascade_size_histogram\.csv"):
        load_real_values(tmp_path)


def test_a_folder_that_is_missing_is_said_to_be(tmp_path):
    with pytest.raises(DataError, match=r"nowhere: no such folder$"):
        load_real_values(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("size,count\n1,2\n", r"histogram\.csv: no column 'n' \(there is size, count\)"),
        ("size,n\n1,2\nmany,3\n", "column 'size': give numbers from 0 on"),
        ("size,n\n1,2\n3,-1\n", "column 'n': give numbers from 0 on"),
        ("size,n\n1,2\n2,\n", "column 'n': line 3 has no value"),
        ("size,n\n", "has no lines below its head|give numbers"),
        ("", r"cannot be read as CSV: it is empty$"),
        ("size,n\n1,inf\n", "column 'n': give numbers from 0 on"),
        ("size,n\n1,2.5\n", "give whole numbers"),
        ("size,n\n1,1000000000000\n", r"column 'n' adds up to 1,000,000,000,000; 1 to 100,000,000 can be read"),
        ("size,n\n1,0\n", "column 'n' adds up to 0;"),
        ("," * 900_000, "cannot be read as CSV: its first line "),
        (
            "size,n\n" + "1," * 300_000,
            "cannot be read as CSV: its first line names 2 columns, the one below has 300,001",
        ),
        (",".join(f"c{i}" for i in range(9000)), r"no column 'size' \(there is c0, c1, .*, c19\)$"),
    ],
    ids=range(13),
)
def test_a_file_that_is_not_as_expected_is_said_in_a_line(tmp_path, text, told):
    (tmp_path / "cascades_voterfraud").mkdir()
    (tmp_path / "cascades_voterfraud" / "cascade_size_histogram.csv").write_text(text)
    with pytest.raises(DataError, match=told) as error:
        load_real_values(tmp_path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_cut_off_is_said_in_a_line(tmp_path):
    (tmp_path / "cascades_voterfraud").mkdir()
    packed = gzip.compress(b"activity_level,mu\n" + b"3,0.5\n" * 1000)
    (tmp_path / "cascades_voterfraud" / "users.csv.gz").write_bytes(packed[:-20])
    with pytest.raises(DataError, match=r"users\.csv\.gz: cannot be read as CSV"):
        load_real_values(tmp_path)


def test_users_who_only_post_or_only_reshare_are_counted_of_those_who_do_either(tmp_path):
    (tmp_path / "cascades_voterfraud").mkdir()
    users = pd.DataFrame({"activity_level": [0, 1, 2, 5, 92], "mu": [0, 0, 0, 1, 0.5]})
    users.to_csv(tmp_path / "cascades_voterfraud" / "users.csv.gz", index=False)
    values = load_real_values(tmp_path).values
    assert (values["written_only_reshares"], values["written_only_posts"]) == (0.5, 0.25)
    assert values["written_top_1"] == 0.92


def test_a_folder_with_some_data_gives_what_is_there(tmp_path):
    (tmp_path / "cascades_voterfraud").mkdir()
    file = tmp_path / "cascades_voterfraud" / "cascade_size_histogram.csv"
    pd.DataFrame({"size": [1, 2, 120], "n": [80, 19, 1]}).to_csv(file, index=False)
    real = load_real_values(tmp_path)
    assert real.values["post_size_1"] == 0.8
    assert real.values["post_size_100"] == 0.01
    assert real.values["post_top_1"] == pytest.approx(119 / 138)
    assert real.values["window_liked"] == carried().values["window_liked"]
    assert "post_size_1" in real.computed
    assert "window_liked" not in real.computed
