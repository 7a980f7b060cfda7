"""From an LLM's answer to a policy: its measures, its sentence, and what is refused."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.economy.policy import Measure, Policy
from prism_mesa.economy.reading import (
    PolicyDecision,
    PolicyReading,
    Reading,
    TypedPolicyDecision,
    read_policy,
    reading_prompt,
)
from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm import Ledger, LLMClient, LLMParams, RunPosition

NATIONS = ["United States", "Canada", "Sweden"]
PLAIN = "Lower the policy rate by 0.5 percentage points"
UNCLEAR = "Lowr intrest rates by 50 basis points, my friends"
HALF_A_POINT = ["policy_rate", "by", -0.5, "points", None]


def policy(*measures):
    keys = ("lever", "how", "size", "unit", "target")
    return Policy(measures=tuple(Measure(**dict(zip(keys, measure, strict=True))) for measure in measures))


def reads(*measures, understood=True, without_size=()):
    """Return what an LLM says that reads these measures out of a sentence."""
    answer = {"understood": understood, **policy(*measures).model_dump(), "without_size": without_size}
    return json.dumps(answer)


def client_of(function):
    return LLMClient(function, LLMParams(kind="python", backoff_s=0.0))


def nobody(prompt):
    raise AssertionError("nobody is to be asked")


def words(text):
    return PolicyDecision(action=text, reasoning="So.", confidence=0.5)


def typed(text, *measures):
    return TypedPolicyDecision(action=text, reasoning="So.", confidence=0.5, measures=policy(*measures).measures)


def read(decision, llm=nobody):
    decision = words(decision) if isinstance(decision, str) else decision
    with client_of(llm) as client:
        return asyncio.run(read_policy(decision, NATIONS[0], NATIONS, client, RunPosition()))


# -- measures in the answer ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", [PLAIN, UNCLEAR, "Cheaper money for all"])
def test_measures_in_the_answer_are_the_policy_and_nobody_is_asked(text):
    assert read(typed(text, HALF_A_POINT)) == Reading(policy(HALF_A_POINT), "answer")


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        (PLAIN, ["policy_rate", "by", 0.5, "points", None]),
        (PLAIN, ["policy_rate", "to", -0.5, "points", None]),
        (PLAIN, ["taxes", "by", -0.5, "percent_of_gdp", None]),
        ("a 10% tariff on Canada", ["tariff", "to", 10, "points", "Sweden"]),
        ("hold", HALF_A_POINT),
    ],
)
def test_an_answer_whose_sentence_plainly_says_something_else_is_refused(text, measure):
    reading = read(typed(text, measure))
    assert (reading.policy, reading.read_by) == (None, "answer")
    assert "its measures say" in reading.reason


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("Increase government spending by 1%", ["spending", "by", 1, "percent_of_gdp", None]),
        ("Impose a 10% tariff on Canada", ["tariff", "by", 10, "points", "Canada"]),
        ("Raise rates by 25 basis points", ["policy_rate", "by", 0.25, "points", None]),
    ],
)
def test_measures_are_more_exact_than_the_sentence_about_units_and_tariffs(text, measure):
    assert read(typed(text, measure)) == Reading(policy(measure), "answer")


@pytest.mark.parametrize(
    "measures",
    [
        None,
        "none",
        [{"lever": "policy_rate", "unit": "points"}],
        [{"lever": "policy_rate", "size": float("nan"), "unit": "points"}],
    ],
)
def test_measures_of_no_use_leave_the_sentence(measures):
    decision = TypedPolicyDecision.model_validate(words(PLAIN).model_dump() | {"measures": measures})
    assert read(decision) == Reading(policy(HALF_A_POINT), "parser")


def test_the_schema_asks_for_measures_and_leaves_no_other_instruments_or_units_to_say():
    for form in (TypedPolicyDecision, PolicyReading):
        schema = json.dumps(form.model_json_schema())
        assert all(f'"{name}"' in schema for name in ("policy_rate", "sanction", "percent_of_gdp"))
        assert '"additionalProperties": false' in schema
    assert "measures" in TypedPolicyDecision.model_json_schema()["required"]
    assert "measures" not in json.dumps(PolicyDecision.model_json_schema())


# -- sentences -----------------------------------------------------------------------------------------


def test_another_sentence_is_put_to_the_llm_as_data_and_read_as_it_says():
    prompts = []
    reading = read(UNCLEAR, lambda prompt: prompts.append(prompt) or reads(HALF_A_POINT))
    assert reading == Reading(policy(HALF_A_POINT), "llm")
    [prompt] = prompts
    assert prompt.endswith(f"The sentence: <<< {UNCLEAR} >>>")
    assert "The sentence is by United States; other nations: Canada, Sweden." in prompt
    assert prompt.startswith("You turn one sentence about economic policy into numbers.")


def test_a_size_that_the_sentence_leaves_out_is_asked_for_once():
    prompts, taxes = [], ["taxes", "by", 1, "percent_of_gdp", None]

    def llm(prompt):
        prompts.append(prompt)
        return reads(without_size=["taxes"]) if len(prompts) == 1 else reads(taxes)

    assert read("Increase taxes", llm) == Reading(policy(taxes), "llm")
    assert prompts[1].startswith(prompts[0])
    assert "how far it moves: taxes" in prompts[1]
    prompts.clear()
    reading = read("Increase taxes", lambda prompt: prompts.append(prompt) or reads(without_size=["taxes"]))
    assert (reading.policy, reading.read_by, len(prompts)) == (None, "llm", 2)
    assert "no size" in reading.reason


@pytest.mark.parametrize("answer", ["Sure!", '{"understood": true, "measures": [1]}'])
def test_a_reading_of_no_use_refuses_the_sentence(answer):
    prompts = []
    reading = read(UNCLEAR, lambda prompt: prompts.append(prompt) or answer)
    assert (reading.policy, reading.read_by, len(prompts)) == (None, "llm", 2)
    assert "could not read" in reading.reason


@pytest.mark.parametrize(
    ("fault", "reason", "attempts"),
    [
        (OracleError("refused", "nobody there"), "refused", 2),
        (OSError("gone"), "OSError", 1),
    ],
)
def test_an_llm_that_cannot_be_reached_is_no_refusal_but_a_failure(fault, reason, attempts):
    def llm(prompt):
        raise fault

    with pytest.raises(LLMFailureException, match=reason) as caught:
        read(UNCLEAR, llm)
    assert (caught.value.attempts, caught.value.component) == (attempts, "reading")


def test_the_questions_stand_in_the_ledger_at_their_places(tmp_path):
    def llm(prompt):
        return reads(HALF_A_POINT) if "Advise the nation" in prompt else reads(without_size=["policy_rate"])

    with Ledger(tmp_path / "d.sqlite") as ledger, client_of(llm) as client:
        client.record(ledger, "scope/run")
        asyncio.run(read_policy(words(UNCLEAR), NATIONS[0], NATIONS, client, RunPosition(3, 2, tick=1)))
        asked = [(row.round, row.agent, row.tick, row.source) for row in ledger.asked()]
    assert asked == [(3, 2, 1, "llm"), (3, 2, 2, "llm")]


# -- the prompt ----------------------------------------------------------------------------------------


@given(st.text(max_size=700))
def test_no_text_adds_a_line_or_a_delimiter(text):
    prompt, empty = reading_prompt(text, "Sweden", NATIONS), reading_prompt("", "Sweden", NATIONS)
    assert len(prompt.splitlines()) == len(empty.splitlines())
    assert (prompt.count("<<<"), prompt.count(">>>")) == (empty.count("<<<"), empty.count(">>>"))


@settings(deadline=None)
@given(st.text())
def test_whatever_the_llm_says_a_sentence_is_read_or_refused_with_a_reason(answer):
    reading = read(UNCLEAR, lambda prompt: answer)
    assert (reading.policy is None) == bool(reading.reason)
