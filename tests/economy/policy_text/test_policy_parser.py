"""Policies read from texts."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_texts import NATIONS, OWN, policy

from prism_mesa.economy.policy_text import MAX_LENGTH, UnclearPolicyError, parse_policy, unsupported


def written() -> list[dict[str, str]]:
    with (Path(__file__).parent / "policies.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stands(row: dict[str, str]) -> dict[tuple[str, str | None], float] | None:
    """Return where the instruments stand of which a row says it; None: nothing is known."""
    return {(lever, target): level for lever, target, level in json.loads(row["stands"])} if row["stands"] else None


READ = [(row["text"], json.loads(row["expected"]), stands(row)) for row in written() if row["expected"]]


REFUSED = [(row["text"], row["reason"], stands(row)) for row in written() if not row["expected"]]


WORDS = """raise cut set hold lift remove impose rates interest taxes spending tariffs sanctions trade debt bonds
    borrow stop on with to by of at and , . by by from Sweden Canada US all imports 1% 0.5 2 points of GDP half a
    quarter not if because which will financed through inflation everyone austerity moon the a -1% 1e9 % $ point
    basis double""".split()


texts = st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))


def reading(text, standing):
    """Return what a text is read as; if it is refused: why, whether it is plain, and whether that is said in words."""
    try:
        return parse_policy(text, OWN, NATIONS, standing)
    except UnclearPolicyError as error:
        return error.reason, error.plain, any(char.isalnum() for char in str(error))


def test_a_plain_policy_is_read_as_a_person_reads_it():
    read = [(text, reading(text, standing), policy(*expected)) for text, expected, standing in READ]
    assert [row for row in read if row[1] != row[2]] == []


def test_what_is_no_plain_policy_is_refused_for_its_reason():
    refused = [(text, reading(text, at), (reason, reason != "unclear", True)) for text, reason, at in REFUSED]
    assert [row for row in refused if row[1] != row[2]] == []


def test_a_text_supports_what_it_is_read_as():
    lacking = [(text, unsupported(policy(*said), text, OWN, NATIONS, standing)) for text, said, standing in READ]
    assert [row for row in lacking if row[1] != ""] == []


@given(texts)
def test_any_text_is_a_supported_policy_or_is_refused(text):
    try:
        read = parse_policy(text, OWN, NATIONS)
    except UnclearPolicyError:
        return
    assert {measure.target for measure in read.measures} <= {None, *NATIONS}
    assert unsupported(read, text, OWN, NATIONS) == ""


@given(texts, st.sampled_from(READ))
def test_no_text_makes_the_check_of_a_reading_fail(text, other):
    _, read, standing = other
    assert isinstance(unsupported(policy(*read), text, OWN, NATIONS, standing), str)


@given(st.sampled_from(READ))
def test_the_order_of_the_nations_does_not_matter(other):
    text, read, standing = other
    assert set(parse_policy(text, OWN, NATIONS[::-1], standing).measures) == set(policy(*read).measures)


@given(st.integers(min_value=1, max_value=40_000), st.sampled_from(["raise", "cut"]))
def test_basis_points_are_hundredths_of_points(hundredths, verb):
    in_points = parse_policy(f"{verb} rates by {hundredths // 100}.{hundredths % 100:02} points", OWN, NATIONS)
    assert parse_policy(f"{verb} rates by {hundredths} basis points", OWN, NATIONS) == in_points


@given(st.integers(0, 800), st.integers(1, 200), st.integers(0, 1000), st.sampled_from([1, -1]))
def test_a_step_and_a_level_are_read_only_where_the_one_leads_to_the_other(now, step, level, sign):
    text = f"{'raise' if sign > 0 else 'cut'} rates by {step} basis points to {level / 100}%"
    off = abs(now + sign * step - level)  # hundredths of points, of which five are rounding
    standing = {("policy_rate", None): now / 100}
    if off > 5 or (level - now) * sign < -5:
        with pytest.raises(UnclearPolicyError, match=r"do not agree|contradicts where it stands"):
            parse_policy(text, OWN, NATIONS, standing)
    else:
        assert parse_policy(text, OWN, NATIONS, standing) == policy(["policy_rate", "to", level / 100, "points", None])


def test_a_refusal_of_two_sizes_says_where_the_instrument_stands():
    text = "Raise rates by 25 basis points to 3%"
    with pytest.raises(UnclearPolicyError, match=r"do not agree with where it stands \(policy rate 0\.12\): give one"):
        parse_policy(text, OWN, NATIONS, {("policy_rate", None): 0.12})
    with pytest.raises(UnclearPolicyError, match=r"where it stands is not known here \(policy rate\): give one"):
        parse_policy(text, OWN, NATIONS)


@pytest.mark.parametrize(
    ("text", "said", "standing"),
    [
        ("Lowr rates by 25 basis points to 3%", ["policy_rate", "to", 3, "points", None], 3.25),
        ("Rais rates from 2% to 3%", ["policy_rate", "to", 3, "points", None], 2),
        ("Kindly keep rates unchanged at 2%", ["policy_rate", "to", 2, "points", None], 2),
        ("Kindly rase rates to 3%", ["policy_rate", "to", 3, "points", None], 2),
    ],
)
def test_another_readers_policy_is_held_to_where_the_instrument_stands(text, said, standing):
    assert unsupported(policy(said), text, OWN, NATIONS, {("policy_rate", None): standing}) == ""
    assert "agree with where it stands" in unsupported(policy(said), text, OWN, NATIONS, {("policy_rate", None): 5})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Rais rates and taxes by 1%", [["policy_rate", "by", 1, "points", None], ["taxes", "by", 1, "percent", None]]),
        ("Rais the tax rate by 2 points", [["taxes", "by", 2, "percent_of_gdp", None]]),
        ("Rais the tax rate by 2%", [["taxes", "by", 2, "percent", None]]),
        ("Rais rates by 1 point and taxes by the same", [["policy_rate", "by", 1, "points", None]]),
        ("Lowr rates by 25 basis points to 3%", [["policy_rate", "to", 3, "points", None]]),
        ("Lowr rates by 25 basis points to 3%", [["policy_rate", "by", -0.25, "points", None]]),
    ],
)
def test_another_reader_may_not_decide_between_sizes_or_units(text, said):
    assert unsupported(policy(*said), text, OWN, NATIONS) != ""


@pytest.mark.parametrize("unit", ["(" * 400, "1 " * 240, "1," * 240, "a " * 240, "half " * 99, "to " * 160, "- " * 240])
def test_a_tiresome_text_is_refused(unit):
    with pytest.raises(UnclearPolicyError, match=r"\w"):
        parse_policy(f"raise rates by {unit}", OWN, NATIONS)


def test_the_limit_of_length_is_said():
    with pytest.raises(UnclearPolicyError, match=f"has {MAX_LENGTH + 1} characters: write at most {MAX_LENGTH}"):
        parse_policy("x" * (MAX_LENGTH + 1), OWN, NATIONS)


def test_a_refusal_says_which_part_it_is_about():
    with pytest.raises(UnclearPolicyError, match="'annex the moon' names no instrument: there are the policy rate"):
        parse_policy("Raise rates by 0.5 points and annex the moon", OWN, NATIONS)


def test_a_misspelt_nation_is_refused_with_the_nearest():
    with pytest.raises(UnclearPolicyError, match="Did you mean 'Sweden'"):
        parse_policy("a 10% tariff on Swedn", OWN, NATIONS)


@pytest.mark.parametrize("name", ["UK", "U.K.", "the united kingdom", "the United Kingdom", "UNITED KINGDOM"])
def test_a_nation_is_known_by_its_name_and_initials(name):
    read = parse_policy(f"a 10% tariff on {name} and Canada", OWN, NATIONS)
    assert [measure.target for measure in read.measures] == ["United Kingdom", "Canada"]


def test_us_in_small_letters_is_no_nation():
    with pytest.raises(UnclearPolicyError, match="not understood"):
        parse_policy("a 10% tariff on us", OWN, NATIONS)


def test_initials_that_two_nations_share_name_neither():
    nations = ("Sweden", "United Kingdom", "Upper Kush")
    with pytest.raises(UnclearPolicyError, match="'UK' is no nation here"):
        parse_policy("a 10% tariff on UK", "Sweden", nations)


def test_a_nation_whose_name_holds_another_is_one_nation():
    nations = ("Sweden", "Guinea", "Equatorial Guinea")
    read = parse_policy("a 10% tariff on Equatorial Guinea", "Sweden", nations)
    assert [measure.target for measure in read.measures] == ["Equatorial Guinea"]
