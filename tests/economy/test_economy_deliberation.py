"""Nations that think: trying, deciding, looking up, and their prompts."""

import json
from contextlib import closing

import mesa
import pytest
from thinking_nations import (
    GOOD,
    NATIONS,
    TOO_MUCH,
    after_a_step,
    betters_itself,
    careful,
    client_of,
    is_thought,
    model_of,
    says,
    thought,
    tries,
)

from prism_mesa.deliberation import AgentTextEvent, ToolFinishedEvent
from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.params import ThinkingParams
from prism_mesa.errors import PrismWarning
from prism_mesa.llm import Ledger
from prism_mesa.runs.economy import run_economy


def results(model, row=0):
    """Return what a nation's tools have told it in the last quarter."""
    thoughts = model.nations[row].reasoning_chain.thoughts
    return [event.result for event in thoughts if isinstance(event, ToolFinishedEvent)]


# -- thinking, trying, deciding ---------------------------------------------------------------------------


def test_a_policy_that_was_tried_and_would_be_rejected_leads_to_another_one_in_the_same_quarter():
    model, actions = after_a_step(careful)
    assert actions == [GOOD, GOOD]
    assert model.totals == {"accepted": 2}
    [result] = results(model)
    assert result.text.startswith("It would be rejected: taxes")
    _, unthinking = after_a_step(careful, deliberate=False)
    assert unthinking == [TOO_MUCH, TOO_MUCH]


def test_what_a_try_says_is_what_the_validator_says_afterwards():
    wishes = (
        GOOD,
        TOO_MUCH,
        "Lower the policy rate by 2 points",
        "Impose a 10% tariff on Sweden",
        "Raise taxes by 2% of GDP and borrow 4% of GDP",
        "Keep interest rates unchanged",
        "Perhaps raise taxes by 1%",
    )
    for wish in wishes:
        model, _ = after_a_step(lambda prompt, wish=wish: thought(tries(wish)) if is_thought(prompt) else says(wish))
        [decided, [tried]] = model.decisions[0], results(model)
        assert tried.ok
        assert tried.text.startswith("It would be carried out") == decided.action.validated
        if decided.reason:
            assert decided.reason.partition(";")[0] in tried.text


def test_trying_changes_nothing_and_asks_nobody():
    client = client_of(lambda prompt: thought(*map(tries, (GOOD, TOO_MUCH, "Annex the moon"))))
    with closing(model_of(client)) as model:
        tools = model.nations[0]._begin_turn(model.observe()[0])[1].tools
        before, seen = model.world, model.observe()
        for policy in (GOOD, TOO_MUCH, "Annex the moon"):
            assert tools.execute("try_policy", {"policy": policy}).ok
        assert model.world.equals(before)
        assert model.observe() == seen
    assert client.prompts == []


@pytest.mark.parametrize(("iterations", "action", "n_asked"), [(1, TOO_MUCH, 2), (2, GOOD, 4), (5, GOOD, 5)])
def test_with_more_iterations_a_nation_betters_its_own_proposal(iterations, action, n_asked):
    client = client_of(betters_itself)
    model, actions = after_a_step(client, nations=["Canada"], deliberation_iterations=iterations)
    assert (actions, len(client.prompts)) == ([action], n_asked)
    proposals = [e for e in model.nations[0].reasoning_chain.thoughts if isinstance(e, AgentTextEvent)]
    assert [json.loads(e.text)["action"] for e in proposals if e.type == "text"][-1] == action


def test_the_keys_of_deliberation_have_an_effect():
    def asks_much(prompt):
        return thought(("past_decisions", {}), tries(GOOD), tries(TOO_MUCH)) if is_thought(prompt) else says(GOOD)

    def told(**params):
        return [result.text for result in results(after_a_step(asks_much, **params)[0])]

    assert len(told()) == 3
    assert len(told(deliberation_max_tool_calls=1)) == 1
    assert told(deliberation_max_tokens=1) == []
    assert max(map(len, told())) > 80 >= max(map(len, told(deliberation_result_chars=80)))


# -- what a nation can look up ----------------------------------------------------------------------------


def tools_of(model, row=0):
    return model.nations[row]._begin_turn(model.observe()[row])[1].tools


def test_a_nation_sees_another_as_it_observes_it_not_as_it_is():
    with closing(model_of(careful)) as model:
        seen = model.observe()[0].agents["Sweden"]
        told = tools_of(model).execute("look_at_nation", {"name": "sweden"}).text
        exact = model.nation_state(1)
    assert f"GDP growth {seen.gdp_growth:.1f}%" in told
    assert f"unemployment {seen.unemployment:.1f}%" in told
    assert f"{seen.gdp_growth:.1f}" != f"{exact.gdp_growth:.1f}"


def test_a_wrong_name_tells_the_allowed_ones():
    with closing(model_of(careful, nations=["Canada", "Sweden", "Australia"])) as model:
        result = tools_of(model).execute("look_at_nation", {"name": "Swedn"})
    assert (result.ok, result.reason) == (False, "AgentError")
    said = "name: there is no nation 'Swedn'; allowed: Sweden, Australia. Did you mean 'Sweden'?"
    assert result.text == said


def test_past_decisions_come_with_what_became_of_them_newest_first():
    with closing(model_of(lambda prompt: thought() if is_thought(prompt) else says(TOO_MUCH))) as model:
        assert tools_of(model).execute("past_decisions", {}).text == "You remember no decision of yours."
        before = model.nation_state(0).unemployment
        model.step()
        between = model.nation_state(0).unemployment
        model.step()
        told = tools_of(model).execute("past_decisions", {}).text
    newer, older = told.split("; 2009Q4")
    assert newer.startswith("2010Q1: <<< Cut taxes by 300% of GDP >>> was rejected: taxes")
    assert f"unemployment {before:.1f}% -> {between:.1f}%" in older


def test_a_nation_that_is_alone_has_nobody_to_look_at_and_one_without_an_economy_nothing_to_try():
    with closing(model_of(careful, nations=["Canada"])) as model:
        assert tools_of(model).names == ("try_policy", "past_decisions")
        state = model.observe()[0]
    agent = EconLLMAgent(mesa.Model(), "Canada", client_of(careful), thinking=ThinkingParams())
    assert agent._begin_turn(state)[1].tools.names == ("past_decisions",)


# -- the prompts ------------------------------------------------------------------------------------------


def test_thoughts_are_about_the_economy_and_the_decision_has_the_contracts_task():
    client = client_of(betters_itself)
    after_a_step(client, nations=["Canada"], deliberation_iterations=2)
    first, response, own, _ = client.prompts
    assert "What is the most pressing economic issue?" in first
    assert "Does your proposal address the most pressing economic issue?" in own
    assert not any("emotions" in prompt for prompt in client.prompts)
    assert response.startswith("You are an economic policy advisor for a nation.")
    assert "Propose ONE specific economic policy action." in response
    for prompt in client.prompts:
        assert "You advise Canada; it is 2009Q4.\nCurrent economic state:\n- GDP Growth:" in prompt


def test_without_deliberation_prompts_ledger_keys_and_tables_are_what_they_were(tmp_path):
    def keys(deliberation):
        config = {"rounds": 2, "economy": {"policy": "llm", "nations": list(NATIONS)}, "deliberation": deliberation}
        found = run_economy(config, out=tmp_path, llm=lambda prompt: says(GOOD))
        with Ledger(found.run_dir / "decisions.sqlite", read_only=True) as ledger:
            return sorted(row.key for row in ledger.asked()), found

    own, found = keys({})
    with pytest.warns(PrismWarning, match="deliberation.iterations, deliberation.max_tokens: no effect"):
        assert keys({"iterations": 5, "max_tokens": 1})[0] == own
    assert len(own) == 4
    assert set(found.table("reasoning")["thoughts"]) == {""}
    model, _ = after_a_step(lambda prompt: says(GOOD), deliberate=False)
    assert model.nations[0].reasoning_chain.thoughts == ()
