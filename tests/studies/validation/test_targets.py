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
from prism_mesa.studies.validation.real import built_in_values, load_real_values
from prism_mesa.studies.validation.targets import CASCADES, RANGE_ORIGINS, SIZES, SOURCES, TARGETS, assign_roles

DATA = Path(__file__).parents[4] / "shared" / "data"
here = pytest.mark.skipif(not DATA.exists(), reason="shared/data is not here")


def test_every_target_is_a_measure_with_a_source_and_a_real_value_that_is_allowed():
    assert {target.measure for target in TARGETS} <= set(MEASURES)
    assert {target.source for target in TARGETS} == set(SOURCES)
    assert all(target.low <= target.real <= target.high for target in TARGETS)
    assert all(isfinite(target.low) and isfinite(target.high) for target in TARGETS if target.required)
    assert set(CASCADES) <= {target.measure for target in TARGETS}
    assert set(RANGE_ORIGINS) == {target.measure for target in TARGETS if target.required}


def roles_of_data(targets):
    """Return for each role the data sets of its targets."""
    return {
        role: {SOURCES[target.source].data for target in targets if target.role == role}
        for role in ("fitted", "given", "other", "predicted")
    }


@pytest.mark.parametrize("measures", [None, {"post_like_rate"}, {"post_size_1", "window_liked"}, set()])
def test_predicted_is_only_what_is_of_data_of_which_nothing_was_fitted_or_given(measures):
    data = roles_of_data(assign_roles(measures))
    assert not data["predicted"] & (data["fitted"] | data["given"])
    assert data["other"] <= data["fitted"] | data["given"]


def test_of_the_shipped_configuration_only_rates_and_one_clock_are_predicted():
    assert roles_of_data(TARGETS)["predicted"] == {"rOpenSci", "posts with community notes"}
    roles = {target.measure: target.role for target in TARGETS}
    assert roles["burstiness"] == "other"  # the hours of the same accounts are given
    assert {roles[name] for name in ("delay_upper", "written_top_1", "post_top_1")} == {"other"}


def test_what_was_fitted_may_be_named():
    roles = {target.measure: target.role for target in assign_roles({"post_like_rate", "hours_r"})}
    assert roles["post_like_rate"] == "fitted"
    assert roles["post_reshare_rate"] == "other"
    assert roles["post_size_1"] == "predicted"
    assert roles["hours_r"] == "given"
    assert roles["burstiness"] == "other"
    assert assign_roles(None) == TARGETS


def test_carried_curves_agree_with_carried_values():
    real = built_in_values()
    assert 1 - SIZES[2] == pytest.approx(real.values["post_size_1"], abs=1e-3)
    assert SIZES[2] - SIZES[3] == pytest.approx(real.values["post_size_2"], abs=1e-3)
    shares, held = real.curves["activity"]
    assert dict(zip(shares.tolist(), held.tolist(), strict=True))[0.9] == pytest.approx(
        1 - real.values["written_top_10"], abs=1e-3
    )
    assert not real.computed


@here
def test_carried_values_are_those_of_the_data():
    real, known = load_real_values(DATA), built_in_values()
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


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("size,count\n1,2\n", "no column 'n'"),
        ("size,n\n1,2\nmany,3\n", "column 'size': give numbers"),
        ("size,n\n1,2\n3,-1\n", "column 'n': give numbers"),
        ("size,n\n1,2\n2,\n", "column 'n': line 3"),
        ("", "cannot be read as CSV"),
        ("size,n\n1,2.5\n", "give whole numbers"),
        ("size,n\n1,1000000000000\n", "column 'n': must add up to"),
        ("size,n\n" + "1," * 300_000, "cannot be read as CSV"),
        (gzip.compress(b"activity_level,mu\n" + b"3,0.5\n" * 1000)[:-20], r"users\.csv\.gz cannot be read as CSV"),
    ],
    ids=range(9),
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, text, fault):
    folder = tmp_path / "cascades_voterfraud"
    with pytest.raises(DataError, match="holds none of"):
        load_real_values(tmp_path)
    folder.mkdir()
    if isinstance(text, bytes):
        (folder / "users.csv.gz").write_bytes(text)
    else:
        (folder / "cascade_size_histogram.csv").write_text(text)
    with pytest.raises(DataError, match=fault) as error:
        load_real_values(tmp_path)
    assert "\n" not in str(error.value)


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
    assert real.values["window_liked"] == built_in_values().values["window_liked"]
    assert "post_size_1" in real.computed
    assert "window_liked" not in real.computed
