"""Policies read from plain words."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, UNITS, Measure, Policy, find_repeats
from prism_mesa.economy.policy_text import MAX_LENGTH, UnclearPolicyError, parse_policy
from prism_mesa.economy.reading import is_about

OWN = "United States"
NATIONS = (OWN, "United Kingdom", "Canada", "Australia", "Sweden")
WORDS = """raise cut set hold lift remove impose rates interest taxes spending tariffs sanctions trade debt bonds
    borrow stop on with to by of at and , . by by from Sweden Canada US all imports 1% 0.5 2 points of GDP half a
    quarter not if because which will financed through inflation everyone austerity moon the a -1% 1e9 % $ point
    basis double""".split()
texts = st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))


def corpus() -> list[tuple[str, list[list[object]] | None]]:
    """Return policies in words with their measures, or None if they are not plain."""
    with (Path(__file__).parent / "policies.csv").open(encoding="utf-8", newline="") as file:
        return [(row["text"], json.loads(row["measures"] or "null")) for row in csv.DictReader(file)]


READ = [(text, measures) for text, measures in corpus() if measures is not None]


def policy(*measures: list[object]) -> Policy:
    keys = ("lever", "how", "size", "unit", "target")
    return Policy(measures=tuple(Measure.model_validate(dict(zip(keys, m, strict=True))) for m in measures))


def reading(text: str) -> Policy | None:
    try:
        return parse_policy(text, OWN, NATIONS)
    except UnclearPolicyError:
        return None


def test_the_corpus_is_read_as_a_person_reads_it_or_not_at_all():
    expected = [(text, None if measures is None else policy(*measures)) for text, measures in corpus()]
    assert [row for row in expected if reading(row[0]) != row[1]] == []


@given(texts)
def test_any_text_is_a_policy_against_nations_that_there_are_or_is_refused(text):
    read = reading(text)
    if read is not None:
        assert {measure.target for measure in read.measures} <= {None, *NATIONS}
        assert not find_repeats(read.measures)


@given(st.sampled_from(READ))
def test_the_order_of_the_nations_does_not_matter(row):
    text, measures = row
    assert set(parse_policy(text, OWN, NATIONS[::-1]).measures) == set(policy(*measures).measures)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(LEVERS),
            st.sampled_from(["by", "to"]),
            st.integers(1, 999),
            st.sampled_from([1, -1]),
            st.integers(0, 1),
            st.sampled_from(NATIONS[1:]),
        ),
        max_size=3,
        unique_by=lambda row: row[0],
    )
)
def test_what_a_policy_is_called_is_read_as_that_policy(rows):
    measures = [
        Measure(
            lever=lever,
            how=how,
            size=hundredths * (sign if how == "by" else 1) / 100,
            unit=UNITS[lever][place % len(UNITS[lever]) if how == "by" else 0],
            target=target if lever in AGAINST_NATIONS else None,
        )
        for lever, how, hundredths, sign, place, target in rows
    ]
    written = Policy(measures=tuple(measures))
    assert reading(str(written)) == written


@pytest.mark.parametrize("unit", ["(" * 400, "1 " * 240, "a " * 240, "half " * 99])
def test_a_tiresome_text_is_refused(unit):
    assert reading(f"raise rates by {unit}") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x" * (MAX_LENGTH + 1), f"at most {MAX_LENGTH}"),
        (" . ", "nothing"),
        ("Raise rates by 0.5 points and annex the moon", "annex the moon"),
        ("Increase taxes", "no size"),
        ("Set rates to 1", "unit"),
        ("Taxes by 1% of GDP", "which way"),
        ("Raise rates by 1% of GDP", "policy rate"),
        ("Raise rates and taxes by 1%", "each its own"),
        ("Raise taxes by 1% of GDP. Raise taxes by 2% of GDP.", "twice"),
        ("Keep everything as it is and raise rates by 1 point", "holds"),
    ],
)
def test_a_refusal_says_what_is_wrong(text, says):
    with pytest.raises(UnclearPolicyError, match=says):
        parse_policy(text, OWN, NATIONS)


@pytest.mark.parametrize("name", ["UK", "U.K.", "the united kingdom", "the United Kingdom", "UNITED KINGDOM"])
def test_a_nation_is_known_by_its_name_and_initials(name):
    read = parse_policy(f"a 10% tariff on {name} and Canada", OWN, NATIONS)
    assert [measure.target for measure in read.measures] == ["United Kingdom", "Canada"]


@pytest.mark.parametrize(
    ("nations", "name", "target"),
    [
        (("Sweden", "United Kingdom", "Upper Kush"), "UK", None),  # either
        (("Sweden", "Guinea", "Equatorial Guinea"), "Equatorial Guinea", "Equatorial Guinea"),
        (("Sweden", "A"), "A", "A"),
        (("Sweden", "(x|", "Cote d'Ivoire"), "Cote d'Ivoire", "Cote d'Ivoire"),
    ],
)
def test_names_that_resemble_each_other_or_words_are_told_apart(nations, name, target):
    try:
        read = [measure.target for measure in parse_policy(f"a 10% tariff on {name}", "Sweden", nations).measures]
    except UnclearPolicyError:
        read = [None]
    assert read == [target]


@pytest.mark.parametrize(
    ("text", "domain", "about"),
    [
        ("Economy policy action string", "economic", False),
        ("annex the moon", "economic", False),
        ("Increase taxes", "economic", True),
        ("Implement trade sanctions on neighboring countries to boost domestic production", "economic", True),
        ("Lower interest rates by 0.5%", "economic", True),
        ("Lower interest rates by 0.5%", "monetary", True),
        ("Lower interest rates by 0.5%", "fiscal", False),
        ("Increase taxes", "fiscal", True),
        ("Increase taxes", "trade", False),
        ("a tariff on Sweden", "trade", True),
        ("a tariff on Sweden", "monetary", False),
    ],
)
def test_a_text_is_about_a_domain_if_it_names_an_instrument_of_it(text, domain, about):
    assert is_about(text, domain) is about


@pytest.mark.parametrize("domain", ["economic", "monetary", "fiscal", "trade"])
@pytest.mark.parametrize("text", ["maintain current policy", "Keep everything as it is, and watch inflation"])
def test_leaving_everything_as_it_is_is_about_every_domain(text, domain):
    assert is_about(text, domain)
