import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.design.points import make_points
from prism_mesa.studies.params import study_params


def points_of(**values):
    return make_points(study_params({"question": "Does it?", **values}, "mine.yaml"), "mine.yaml")


def refused(**values):
    with pytest.raises(ConfigError) as error:
        points_of(**values)
    said = str(error.value)
    assert said.startswith("mine.yaml: ")
    assert "\n" not in said
    return said


def test_nothing_varies_at_one_point():
    points = points_of()
    assert (points.factors, points.values) == ((), [()])


def test_all_combinations_are_points():
    points = points_of(vary={"agents.n": [10, 20], "feed.mode": ["random", "x_algo"]})
    assert points.kind == "factorial"
    assert points.values == [(10, "random"), (10, "x_algo"), (20, "random"), (20, "x_algo")]


def test_a_drawn_design_lies_in_its_ranges_and_whole_numbers_stay_whole():
    points = points_of(vary={"agents.n": [10, 20], "agents.band": [0.1, 0.2]}, design={"lhs": 30})
    assert points.kind == "lhs"
    assert len(points.values) == 30
    assert all(isinstance(n, int) and 10 <= n <= 20 and 0.1 <= band <= 0.2 for n, band in points.values)
    assert points.notes == ("agents.n: only whole numbers are drawn",)
    assert points == points_of(vary={"agents.n": [10, 20], "agents.band": [0.1, 0.2]}, design={"lhs": 30})
    assert points != points_of(vary={"agents.n": [10, 20], "agents.band": [0.1, 0.2]}, design={"lhs": 30, "seed": 1})


def test_a_file_holds_a_point_in_each_row(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("agents.n, feed.mode\n10,random\n20,x_algo\n")
    points = points_of(design=str(file))
    assert (points.kind, points.factors) == ("csv", ("agents.n", "feed.mode"))
    assert points.values == [(10, "random"), (20, "x_algo")]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"vary": {"agents.m": [1]}}, "vary: agents.m: no such key"),
        ({"vary": {"agents": [1]}}, "vary: agents: is a group of keys"),
        ({"vary": {"agents.n": [1, 2]}, "design": {"lhs": 5, "sobol": 4}}, "design: give {sobol: N}"),
        ({"vary": {"agents.n": [1, 2]}, "design": {"lhs": 1}}, "design: lhs"),
        ({"vary": {"agents.n": [1, 2]}, "design": {"lhs": True}}, "design: lhs"),
        ({"vary": {"agents.n": [1, 2]}, "design": {"sobol": 6}}, "sobol"),
        ({"design": {"lhs": 5}}, "design: lhs needs 'vary'"),
        ({"vary": {"agents.n": [9, 5]}, "design": {"lhs": 5}}, "agents.n: a sampled design needs [lowest, highest]"),
        ({"design": "no.csv"}, "design: no.csv: no such file"),
        ({"vary": {"agents.n": [9]}, "design": "no.csv"}, "vary: no effect with a file of points"),
    ],
)
def test_a_design_that_is_none_is_said_in_one_line(values, said):
    assert said in refused(**values)


def test_what_a_file_of_points_sets_no_arm_can_set(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("feed.mode\nrandom\n")
    said = refused(design=str(file), arms={"ranked": {"feed": {"mode": "x_algo"}}})
    assert f"{file}: feed.mode: is in arms.ranked, too" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents.n\n", "no points"),
        ("", "cannot be read as CSV"),
        ("agents.m\n1\n", "agents.m: no such key"),
        ("seed\n1\n", "seed: "),
        ("agents.n,agents.band\n5,\n", "line 2: agents.band is empty"),
    ],
)
def test_a_file_of_points_that_cannot_be_used_is_said_in_one_line(tmp_path, text, said):
    file = tmp_path / "points.csv"
    file.write_text(text)
    assert said in refused(design=str(file))
