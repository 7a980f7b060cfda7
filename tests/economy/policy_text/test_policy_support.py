"""Whether a text supports what it was read as."""

import pytest
from policy_texts import NATIONS, OWN, policy

from prism_mesa.economy.policy import Policy
from prism_mesa.economy.policy_text import UnclearPolicyError, is_about, parse_policy, unsupported

TYPO = "Lowr intrest rates by 50 basis points, my friends"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (["policy_rate", "by", -0.5, "points", None], TYPO),
        (["sanction", "to", 0, "points", "Sweden"], "Stop sanctions on Sweden"),
        (["tariff", "to", 5, "points", "Canada"], "Impose a stiff tariff on Canada my friends, of size 5%"),
        (["taxes", "by", 2, "percent", None], "Up go the taxes by two percent"),
        (["spending", "by", 2, "percent_of_gdp", None], "Let us kindly invesst 2% of GDP in our lovely roads"),
        (["policy_rate", "by", 0.5, "points", None], "Fight inflation by rasing rates by 0.5 points"),
        (["policy_rate", "by", -0.5, "points", None], "Cut rates by 50 basis points (0.5 percentage points)"),
    ],
)
def test_a_reading_is_supported_if_the_text_has_its_instrument_direction_size_and_target(said, text):
    assert unsupported(policy(said), text, OWN, NATIONS) == ""


@pytest.mark.parametrize(
    ("said", "text", "why"),
    [
        (["policy_rate", "by", -1, "points", None], TYPO, "size"),
        (["policy_rate", "by", -50, "points", None], TYPO, "size"),
        (["policy_rate", "by", 0.5, "points", None], TYPO, "direction"),
        (["taxes", "by", -0.5, "percent", None], TYPO, "instrument"),
        (["tariff", "to", 10, "points", "Canada"], "Impose a 10% tariff on Sweden dear friends", "target"),
        (["tariff", "to", 10, "points", "Atlantis"], "10% tariffs against everyone my friends", "target"),
        (["tariff", "to", 10, "points", None], "10% tariffs against Sweden oh my friends", "target"),
        (["policy_rate", "by", 1, "points", None], "Annex the moon", "names no instrument"),
        (["policy_rate", "by", 1, "points", None], "Do not raise rates by 1 point", "not done"),
        (["taxes", "by", -5, "percent", None], "Force Canada to cut its taxes by 5%", "in doubt"),
        (["policy_rate", "by", 2, "points", None], "Raise rates by 0.5 points", "policy rate by"),
        (["policy_rate", "to", 0.5, "points", None], "Raise rates by 0.5 points", "policy rate by"),
    ],
)
def test_a_reading_with_anything_invented_is_not_supported(said, text, why):
    assert why in unsupported(policy(said), text, OWN, NATIONS)


def raised(points: float) -> list[object]:
    return ["policy_rate", "by", points, "points", None]


def on(target: str, points: float, how: str = "to") -> list[object]:
    return ["tariff", how, points, "points", target]


def of_gdp(lever: str, percent: float) -> list[object]:
    return [lever, "by", percent, "percent_of_gdp", None]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (on("Canada", 10), "Impose a 10% tariff on all nations except Canada"),
        (on("Sweden", 10), "Impose a 10% tariff on everyone but Sweden"),
        (on("Sweden", 10, "by"), "Have Canada raise its tariffs on Sweden by 10%"),
        (raised(2), "Make the Riksbank raise rates by 2 points"),
        (of_gdp("taxes", -1), "The Swedish government cuts taxes by 1% of GDP"),
        (raised(0.5), "Raise rates by negative 0.5 points"),
        (raised(0.5), "Stop raising rates by 0.5 points"),
        (raised(0.5), "Delay raising rates by 0.5 points"),
        (raised(0.5), "Undo raising rates by 0.5 points"),
        (on("Canada", 10), "Repeal a 10% tariff on Canada"),
        (on("Canada", 10), "Threaten a 10% tariff on Canada"),
        (of_gdp("taxes", -1), "Reverse the tax cut of 1% of GDP"),
        (of_gdp("taxes", -1), "Postpone the tax cut of 1% of GDP"),
        (raised(0.5), "Last quarter we raised rates by 0.5 points"),
        (raised(0.5), "Rates have been raised by 0.5 points"),
        (raised(0.5), "Our friends raised rates by 0.5 points"),
        (of_gdp("spending", 1), "Increase private spending by 1% of GDP"),
        (of_gdp("debt", -2), "Reduce student debt by 2% of GDP"),
        (of_gdp("debt", 5), "Raise the debt limit by 5% of GDP"),
        (raised(-2), "Lower the interest rate on student loans by 2 percentage points"),
        (["policy_rate", "to", 2, "points", None], "Set rates 2 points above inflation"),
        (["policy_rate", "to", 3, "points", None], "Raise rates well above 3%"),
        (["policy_rate", "to", 3, "points", None], "Keep rates below 3%"),
        (on("United Kingdom", 25), "Impose a 25% tariff on Canada, 10% on the UK"),
        (on("Canada", 25), "Impose a 25% tariff on Canada, 10% on the UK"),
        (raised(0.25), "Raise rates by 0.25 points twice"),
        (on("Canada", 10), "Impose a 10% tariff on exports to Canada"),
        (on("Canada", 10, "by"), "Kindly lift the 10% tariff on Canada"),
        (on("Canada", 10), "Slapp a 10% tarif on Sweden and Canada"),
        (raised(0.5), "Lowr rates by 50 basis points"),
        (["policy_rate", "to", 0.5, "points", None], "Rais rates by 50 basis points"),
        (raised(0.5), "Kindly unraise rates by 0.5 points"),
        (raised(0.5), "Kindly raise rates by 0.5 points. We take it back."),
        (raised(0.5), "Kindly raise rates by 0.5 points and repeal it"),
        (raised(0.5), "Kindly raise rates by 0.5 points. Stop."),
        (on("Canada", 10), "Kindly impose a 10% tariff on Canada. Kindly cancel it."),
        (raised(0.5), "Kindly raise rates by 0.5 points. Canada keeps its rates"),
        (raised(0.5), "Kindly raise rates by 0.5 points. My colleagues disagree."),
        (raised(0.5), "Raise rates by 0.5 points, which we will not do"),
        (raised(0.5), "Raise rates by 0.5 points. That was last year's policy."),
        (of_gdp("taxes", -1), "Cut taxes by 1% of GDP while keeping debt constant"),
        (of_gdp("debt", 2), "Borrow 2% of GDP to cut taxes"),
        (of_gdp("spending", 1), "Tighten the budget by 1% of GDP"),
        (raised(0.5), "Expand monetary policy by 0.5 points"),
        (of_gdp("debt", -2), "Reduce borrowing by 2% of GDP"),
        (of_gdp("taxes", -1), "Kindly raise taxes by 1% of GDP, cutting spending by 2% of GDP"),
    ],
)
def test_a_reading_that_turns_the_sense_of_a_text_round_is_not_supported(said, text):
    assert unsupported(policy(said), text, OWN, NATIONS) != ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Impose a 25% tariff on Canada, 10% on the UK", [on("Canada", 25), on("United Kingdom", 10)]),
        ("Impose a 10% tariff on Sweden and 5% on Canada", [on("Sweden", 10), on("Canada", 5)]),
        (
            "Raise rates by 0.25 points to fight inflation and cut taxes by 1% of GDP",
            [raised(0.25), of_gdp("taxes", -1)],
        ),
    ],
)
def test_what_a_clause_leaves_unsaid_is_said_by_the_one_before(text, said):
    assert unsupported(policy(*said), text, OWN, NATIONS) == ""
    assert unsupported(policy(said[0]), text, OWN, NATIONS) != ""


def test_goods_of_a_nation_that_is_not_here_are_no_target():
    with pytest.raises(UnclearPolicyError, match="'Japanese' is no nation here"):
        parse_policy("a 10% tariff on Japanese goods", OWN, NATIONS)


def test_a_reading_that_leaves_a_measure_out_is_not_supported():
    text = "Kindly raise rates by 0.5 points and kindly cut taxes by 1% of GDP"
    rates = ["policy_rate", "by", 0.5, "points", None]
    taxes = ["taxes", "by", -1, "percent_of_gdp", None]
    assert "also says" in unsupported(policy(rates), text, OWN, NATIONS)
    assert unsupported(policy(rates, taxes), text, OWN, NATIONS) == ""


def test_an_empty_reading_needs_words_of_holding():
    assert unsupported(Policy(), "Let us keep calm about it all", OWN, NATIONS) != ""
    assert unsupported(Policy(), "Rates hold for the moment, dear colleagues", OWN, NATIONS) == ""
    assert "does not say" in unsupported(Policy(), TYPO, OWN, NATIONS)


@pytest.mark.parametrize(
    ("text", "domain", "about"),
    [
        ("Economy policy action string", "economic", False),
        ("Economic Policy Directive 1", "economic", False),
        ("annex the moon", "economic", False),
        ("boost growth and employment", "economic", False),
        ("separate the pirates", "economic", False),
        ("Increase taxes", "economic", True),
        ("Implement trade sanctions on neighboring countries to boost domestic production", "economic", True),
        ("Lower interest rates by 0.5%", "economic", True),
        ("Raise the MINIMUM WAGE", "economic", True),
        ("Lower interest rates by 0.5%", "monetary", True),
        ("Lower interest rates by 0.5%", "fiscal", False),
        ("Increase taxes", "fiscal", True),
        ("issue bonds", "fiscal", True),
        ("Increase taxes", "trade", False),
        ("a tariff on Sweden", "trade", True),
        ("a tariff on Sweden", "monetary", False),
    ],
)
def test_a_text_is_about_a_domain_if_it_names_an_instrument_of_it(text, domain, about):
    assert is_about(text, domain) is about


@pytest.mark.parametrize("domain", ["economic", "monetary", "fiscal", "trade"])
@pytest.mark.parametrize(
    "text", ["maintain current policy", "No change.", "Do nothing", "Keep everything as it is, and watch inflation"]
)
def test_leaving_everything_as_it_is_is_about_every_domain(text, domain):
    assert is_about(text, domain)


@pytest.mark.parametrize("text", ["Keep interest rates unchanged", "the economy is stable", "keep calm", "", "no\0"])
def test_what_leaves_not_everything_as_it_is_is_not_about_every_domain(text):
    assert not is_about(text, "trade")


def test_a_domain_that_does_not_exist_is_an_error():
    with pytest.raises(KeyError, match="cooking"):
        is_about("Increase taxes", "cooking")
