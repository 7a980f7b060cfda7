"""Expectations as study files write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.errors import ConfigError
from prism_mesa.studies.statistics.cells import level_indices, level_key, level_text
from prism_mesa.studies.statistics.expectation import parse_expectation

FACTORS = {"agents.band": [0.02, 0.1], "feed.mode": ["x_algo", "chronological"], "oracle": [True, False], "k": [5, 10]}


def read(text, arms=("plain", "ranked"), factors=FACTORS):
    return parse_expectation(text, measures=["gini", "my_measures:toxicity"], arms=arms, factors=factors)


def test_an_expectation_names_a_measure_two_sides_and_which_is_larger():
    found = read("gini: ranked > plain")
    assert (found.measure, found.left.arm, found.relation, found.right.arm) == ("gini", "ranked", ">", "plain")
    assert (found.text, found.margin, found.left.levels) == ("gini: ranked > plain", None, ())


def test_a_measure_may_hold_a_colon():
    assert read("my_measures:toxicity: plain < ranked").measure == "my_measures:toxicity"


def test_a_side_may_be_levels_or_an_arm_with_levels():
    found = read("gini: ranked, agents.band=0.1 < feed.mode = x_algo, oracle=true")
    assert (found.left.arm, found.left.levels) == ("ranked", (("agents.band", 0.1),))
    assert (found.right.arm, found.right.levels) == (None, (("feed.mode", "x_algo"), ("oracle", True)))
    assert [term for term, _ in found.left.terms] == ["arm", "agents.band"]


@pytest.mark.parametrize(
    ("text", "margin", "percent"),
    [
        ("gini: plain = ranked within 25 %", 25, True),
        ("gini: plain = ranked within 25%", 25, True),
        ("gini: feed.mode=x_algo = feed.mode=chronological within 0.5", 0.5, False),
    ],
)
def test_an_equality_has_a_margin_in_percent_or_in_the_measures_unit(text, margin, percent):
    found = read(text)
    assert (found.relation, found.margin, found.percent) == ("=", margin, percent)


@pytest.mark.parametrize("text", ["0.1", "0.10", "1.0e-1", ".1"])
def test_levels_are_compared_as_yaml_reads_them(text):
    assert read(f"gini: agents.band={text} > agents.band=0.02").left.levels == (("agents.band", 0.1),)


def test_levels_of_several_types_are_texts_in_a_table_and_are_found_there_too():
    factors = {"k": ["0.5", "true", "x"]}
    found = read("gini: k=0.50 > k=yes", factors=factors)
    assert (found.left.levels, found.right.levels) == ((("k", "0.5"),), (("k", "true"),))
    both = read("gini: k=5 > k='5'", factors={"k": ["5", 5]})
    assert (both.left.levels, both.right.levels) == ((("k", 5),), (("k", "5"),))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("gin: ranked > plain", r"'gin' .*Did you mean 'gini'"),
        ("gini: rankd > plain", r"'rankd' .*Did you mean 'ranked'"),
        ("gini: feed.mod=x_algo > plain", r"'feed.mod' .*Did you mean 'feed.mode'"),
        ("gini: feed.mode=x_alg > plain", r"'x_alg' .*feed.mode .*Did you mean 'x_algo'"),
        ("gini: oracle=1 > oracle=false", r"'1' .*oracle \(true, false\)"),
        ("gini: k='5' > k=10", r"\"'5'\" .*k \(5, 10\)"),
        ("gini: ranked >= plain", "exactly one relation"),
        ("gini: ranked = plain", "within 25 %"),
        ("gini: ranked > plain > ranked", "exactly one relation"),
        ("gini: ranked = plain within x %", "within 'x'"),
        ("gini: ranked = plain within -3", "within '-3'"),
        ("gini: k = 5 = k = 10 within 3", "levels without blanks"),
        ("gini: k=5, oracle=true > oracle=true, k=5.0", "both sides are the same"),
        ("gini: k=5, k=10 > ranked", "names k twice"),
        ("gini:  > ranked", "a side is empty"),
        ("gini:ranked > plain", "no measure"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text, fault):
    with pytest.raises(ConfigError, match=fault) as caught:
        read(text)
    assert str(caught.value).startswith(f"expect: {text!r}: ")
    assert "\n" not in str(caught.value)


def test_a_study_without_arms_has_only_levels_to_name():
    with pytest.raises(ConfigError, match=r"'all' is not a level.*agents.band=0.02"):
        read("gini: all > k=5", arms=("all",))
    assert read("gini: k=10 > k=5", arms=("all",)).left.arm is None
    with pytest.raises(ConfigError, match="is not a string"):
        read({"gini": "a > b"})


@given(st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_level_written_as_text_is_found_again(level):
    factors = {"k": ["other", level]}
    found = read(f"gini: k={level_text(level)} > k=other", factors=factors)
    assert level_key(found.left.levels[0][1]) == level_key(level)


def test_levels_come_in_the_order_in_which_they_are_met_and_lists_count_as_what_they_hold():
    places, levels = level_indices(["b", True, 1, 1.0, [1, 2], [1, 2], None, float("nan"), "b"], ["z"])
    assert places.tolist() == [1, 2, 3, 3, 4, 4, 5, 5, 1]
    assert levels[:4] == ("z", "b", True, 1)
    assert [level_text(level) for level in levels[4:]] == ["[1, 2]", "null"]
