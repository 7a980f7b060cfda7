"""Nations that think before they decide: what they try, what they make of it, what is kept, and what fails."""

import asyncio
import json
import logging
import re
from contextlib import closing
from hashlib import sha256

import mesa
import pandas as pd
import pytest

from prism_mesa.analysis.explain.economy import why_nation
from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, Limits, ToolFinishedEvent
from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.llm_agent import Decision, LLMAgent, decide_all, thoughts_in_json
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.params import ThinkingParams
from prism_mesa.errors import ConfigError, LLMFailureException, PrismWarning, RunError
from prism_mesa.llm import Ledger, LLMClient, LLMParams
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_table

NATIONS = ("Canada", "Sweden")
TOO_MUCH = "Cut taxes by 300% of GDP"
GOOD = "Increase government spending by 1% of GDP"


def is_thought(prompt):
    return prompt.endswith("Your thoughts, as JSON:")


def is_about_own(prompt):
    return is_thought(prompt) and "think about your own last response" in prompt


def thought(*calls, plan="Do something.", verdict="continue"):
    proposed = [{"tool_name": name, "parameters": given} for name, given in calls]
    said = {"understanding": "Output shrinks.", "plan": plan, "verdict": verdict, "proposed_tools": proposed}
    return json.dumps(said)


def says(action, confidence=0.5):
    return json.dumps({"action": action, "reasoning": "why", "confidence": confidence})


def tries(policy):
    return "try_policy", {"policy": policy}


def careful(prompt):
    """An LLM that tries what is too much, and decides by what it is told of it."""
    if is_thought(prompt):
        return thought(tries(TOO_MUCH)) if not is_about_own(prompt) else thought(verdict="complete")
    return says(GOOD if "It would be rejected" in prompt else TOO_MUCH)


def client_of(llm, **params):
    """Return a client of a function; the prompts that it was asked are in `.prompts`."""
    prompts = []

    def noted(prompt):
        prompts.append(prompt)
        return llm(prompt)

    client = LLMClient(noted, LLMParams(**{"kind": "python", "backoff_s": 0.0, "attempts": 1, **params}))
    client.prompts = prompts
    return client


def model_of(llm, nations=NATIONS, deliberate=True, **params):
    client = llm if isinstance(llm, LLMClient) else client_of(llm)
    return EconomyModel(
        llm=client, economy_policy="llm", economy_nations=list(nations), economy_deliberate=deliberate, **params
    )


def after_a_step(llm, **params):
    """Return a model after its first quarter, and its nations' decisions."""
    with closing(model_of(llm, **params)) as model:
        model.step()
        return model, [one.action.action_string for one in model.decided]


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
        [decided, [tried]] = model.decided[0], results(model)
        assert tried.ok
        assert tried.text.startswith("It would be carried out") == decided.action.validated
        if decided.reason:
            assert decided.reason in tried.text


def test_trying_changes_nothing_and_asks_nobody():
    client = client_of(lambda prompt: thought(*map(tries, (GOOD, TOO_MUCH, "Annex the moon"))))
    with closing(model_of(client)) as model:
        tools = model.nations[0]._tools(model.observe()[0])
        before, seen = model.world, model.observe()
        for policy in (GOOD, TOO_MUCH, "Annex the moon"):
            assert tools.execute("try_policy", {"policy": policy}).ok
        assert model.world.equals(before)
        assert model.observe() == seen
    assert client.prompts == []


def test_a_try_tells_what_would_be_set():
    with closing(model_of(careful)) as model:
        tools = model.nations[0]._tools(model.observe()[0])
        spending = model.nations[0].state.spending
        told = tools.execute("try_policy", {"policy": GOOD}).text
    assert told.startswith("It would be carried out, as spending by +1 % of GDP: ")
    assert f"spending {spending:.2f} -> {spending + 1:.2f}" in told


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("Raise taxes by 1% of GDP or 2% of GDP", "It would not be understood: "),  # plainly of no use
        ("Let taxes flurble", "It may not be understood: "),  # an LLM may yet make something of it
    ],
)
def test_a_try_tells_what_is_not_understood(policy, told):
    with closing(model_of(careful)) as model:
        result = tools_of(model).execute("try_policy", {"policy": policy})
    assert (result.ok, result.text.startswith(told)) == (True, True), result.text


def test_a_nation_of_one_domain_is_told_what_is_none_of_it():
    with closing(model_of(careful, economy_domain="monetary")) as model:
        tools = model.nations[0]._tools(model.observe()[0])
        told = tools.execute("try_policy", {"policy": GOOD}).text
    assert told == "It would count as no answer: it names nothing of monetary policy."


def betters_itself(prompt):
    """An LLM that proposes too much, tries its own proposal, and proposes less."""
    if is_about_own(prompt):
        return thought(tries(TOO_MUCH)) if TOO_MUCH in prompt else thought(verdict="complete")
    if is_thought(prompt):
        return thought()
    return says(GOOD if "It would be rejected" in prompt else TOO_MUCH)


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
    return model.nations[row]._tools(model.observe()[row])


def test_a_nation_sees_another_as_it_observes_it_not_as_it_is():
    with closing(model_of(careful)) as model:
        seen = model.observe()[0].agents["Sweden"]
        told = tools_of(model).execute("look_at_nation", {"name": "sweden"}).text
        exact = model.nation_state(1)
    assert f"GDP growth {seen.gdp_growth:.1f}%" in told
    assert f"unemployment {seen.unemployment:.1f}%" in told
    assert f"{seen.gdp_growth:.1f}" != f"{exact.gdp_growth:.1f}"


def test_an_llm_is_told_which_nations_there_are_and_kept_to_them():
    with closing(model_of(careful)) as model:
        first, second = tools_of(model), tools_of(model, row=1)
    assert "look_at_nation(name: 'Canada' | 'Sweden')" in first.describe()
    assert '"enum": ["Canada", "Sweden"]' in json.dumps(first.call_schema)
    assert first.describe() == second.describe()  # the same for all, so that servers can reuse what they have read


def test_worked_examples_are_shown_only_if_that_is_the_prompts_style():
    for style in ("chain_of_thought", "examples"):
        client = client_of(careful)
        after_a_step(client, economy_prompt_style=style)
        shown = (
            "examples" if all("They say: <<< GDP Growth: -3.1%" in p for p in client.prompts) else "chain_of_thought"
        )
        assert shown == style
        assert all(len(re.findall(r"^They say: ", p, re.MULTILINE)) in (1, 4) for p in client.prompts)


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
    assert agent._tools(state).names == ("past_decisions",)


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


def test_a_long_situation_stands_whole_in_every_prompt():
    client = client_of(careful)
    names = [{"name": f"Nation {i} {'x' * 40}", "size": 100} for i in range(30)]
    after_a_step(client, nations=names)
    assert all(prompt.count("- Nation ") == 29 for prompt in client.prompts if "- Nation" in prompt)


def test_without_deliberation_prompts_ledger_keys_and_tables_are_what_they_were(tmp_path):
    def keys(deliberation):
        config = {"rounds": 2, "economy": {"policy": "llm", "nations": list(NATIONS)}, "deliberation": deliberation}
        found = run_economy(config, out=tmp_path, llm=lambda prompt: says(GOOD))
        with Ledger(found.run_dir / "decisions.sqlite", read_only=True) as ledger:
            return sorted(row.key for row in ledger.asked()), found

    own, found = keys({})
    with pytest.warns(
        PrismWarning, match=r"deliberation.iterations, deliberation.max_tokens: no effect: nobody thinks"
    ):
        assert keys({"iterations": 5, "max_tokens": 1})[0] == own
    assert len(own) == 4
    assert set(found.table("reasoning")["thoughts"]) == {""}
    model, _ = after_a_step(lambda prompt: says(GOOD), deliberate=False)
    assert model.nations[0].reasoning_chain.thoughts == ()


# -- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonsense", ["Hm.", '{"understanding": 3}', '{"verdict": "complete"}', "[]"])
def test_a_decision_stands_although_the_thought_before_it_is_of_no_use(nonsense):
    model, actions = after_a_step(lambda prompt: nonsense if is_thought(prompt) else says(GOOD))
    assert actions == [GOOD, GOOD]
    first, *_ = model.nations[0].reasoning_chain.thoughts
    assert isinstance(first, AgentErrorEvent)
    assert json.loads(thoughts_in_json([first]))[0]["reason"] in ("unparsable", "wrong-shape")


def test_a_proposal_stands_although_the_llm_fails_when_it_is_to_be_bettered():
    def llm(prompt):
        return "Hm." if "You have responded so far" in prompt else betters_itself(prompt)

    model, actions = after_a_step(llm, nations=["Canada"], deliberation_iterations=2)
    assert actions == [TOO_MUCH]
    assert isinstance(model.nations[0].reasoning_chain.thoughts[-1], AgentErrorEvent)


def failing_for(nation, prompt):
    return "Hm." if f"You advise {nation};" in prompt and not is_thought(prompt) else careful(prompt)


def test_a_response_that_fails_gives_the_step_up_and_the_world_is_what_it_was():
    names, failing = ["Canada", "Sweden", "Australia", "United Kingdom", "United States"], []
    client = client_of(lambda prompt: failing_for(failing[0] if failing else "nobody", prompt), attempts=2)
    with closing(model_of(client, nations=names)) as model, closing(model_of(careful, nations=names)) as untroubled:
        model.step()
        world, chains = model.world, [nation.reasoning_chain for nation in model.nations]
        pasts, totals, frame = [list(n.past) for n in model.nations], model.totals.copy(), collected(model)
        failing.append("Australia")
        with pytest.raises(LLMFailureException, match=r"unparsable, attempts: 2") as caught:
            model.step()
        assert (caught.value.reason, caught.value.attempts) == ("unparsable", 2)
        assert (model.world is world, model.time, model.steps, model.totals) == (True, 1, 1, totals)
        assert [nation.reasoning_chain for nation in model.nations] == chains
        assert [list(nation.past) for nation in model.nations] == pasts
        pd.testing.assert_frame_equal(collected(model), frame)
        failing.clear()
        for _ in range(2):
            untroubled.step()
        model.step()
        assert model.world.equals(untroubled.world)


def collected(model):
    return model.datacollector.get_agent_vars_dataframe()


def test_a_failed_run_says_where_and_keeps_what_was_recorded(tmp_path):
    def llm(prompt):
        return failing_for("Sweden" if "it is 2010Q1" in prompt else "nobody", prompt)

    with pytest.raises(RunError, match=r"2010Q1: the LLM gave the .* no usable answer \(unparsable"):
        run_of(llm, tmp_path, rounds=3)
    [folder] = tmp_path.iterdir()
    assert set(read_table(folder, "reasoning")["round"]) == {0}
    assert replay(folder).equal


def test_a_limit_of_calls_holds_and_is_spent_alike_however_fast_answers_come():
    async def slow(prompt):
        await asyncio.sleep(0.02 if "You advise Canada" in prompt else 0)
        return careful(prompt)

    def shortened(llm):
        params = LLMParams(kind="python", max_calls=3)
        with closing(model_of(LLMClient(llm, params))) as model:
            with pytest.raises(LLMFailureException, match="budget"):
                model.step()
            return dict(model.llm.usage)["calls"], model.world.quarter

    assert shortened(slow) == shortened(careful) == (3, 0)


def test_the_order_of_nations_does_not_matter():
    def drawn(prompt):
        number = sha256(prompt.encode()).digest()[0] / 256
        if is_thought(prompt):
            return thought(tries(f"Raise taxes by {10 * number:.1f}% of GDP"), plan=f"{number:.3f}")
        return says(f"Raise taxes by {3 * number:.2f}% of GDP")

    found = []
    for names in (NATIONS, NATIONS[::-1]):
        model, _ = after_a_step(drawn, nations=names, economy_noise=0.0)
        found.append({nation.name: nation.reasoning_chain for nation in model.nations})
    assert found[0] == found[1]
    assert found[0]["Canada"].thoughts != found[0]["Sweden"].thoughts


def test_nations_think_inside_a_running_loop_too():
    async def cell():
        return after_a_step(careful)[1]

    assert asyncio.run(cell()) == [GOOD, GOOD]


# -- agents of other kinds --------------------------------------------------------------------------------


class Minimal(LLMAgent):
    """The least that a subclass must say."""

    def _construct_prompt(self, state):
        return "You are a shopkeeper. It rains."

    def _validate_decision(self, decision):
        return "umbrella" in decision.action


class Rain:
    turn = 3


def minimal(llm, name="Ada", row=0):
    return Minimal(
        mesa.Model(), name, llm, response_model=Decision, domain="shop", row=row, limits=Limits(iterations=1)
    )


def test_any_agent_of_an_llm_can_think_first_with_nothing_but_its_limits(caplog):
    caplog.set_level(logging.DEBUG)
    client = client_of(lambda prompt: thought() if is_thought(prompt) else says("Sell an umbrella"))
    with client:
        agent = minimal(client)
        assert asyncio.run(agent.decide_action(Rain())).action_string == "Sell an umbrella"
        [beside] = decide_all([agent], [Rain()], client)
    assert all("You are a shopkeeper. It rains." in prompt for prompt in client.prompts)
    assert beside.reasoning_chain_id == agent.reasoning_chain.chain_id == "0003-Ada"
    assert "llm_reasoning_chain component=agent agent_id=Ada" in caplog.text


def test_a_decision_that_is_of_no_use_is_a_failure_for_it_too(caplog):
    client = client_of(lambda prompt: thought() if is_thought(prompt) else says("Sell ice"))
    with client, pytest.raises(LLMFailureException, match="is of no use here"):
        asyncio.run(minimal(client).decide_action(Rain()))
    assert "LLM_FAILURE component=agent agent_id=Ada" in caplog.text


# -- records ----------------------------------------------------------------------------------------------


def run_of(llm, out, rounds=2, **deliberation):
    economy = {"policy": "llm", "nations": list(NATIONS), "deliberate": True}
    config = {"rounds": rounds, "economy": economy, "deliberation": deliberation, "reasoner": {"attempts": 1}}
    return run_economy(config, out=out, llm=llm)


def troubled(prompt):
    """An LLM that depends on the prompt, thinks nonsense at times, and calls what there is not."""
    number = sha256(prompt.encode()).digest()[0]
    if is_thought(prompt) and number % 3 == 0:
        return "Hm."
    if is_thought(prompt):
        return thought(tries(f"Raise taxes by {number % 9}% of GDP"), ("look_at_nation", {"name": "Mars"}))
    if "turn one sentence" in prompt:
        return '{"understood": false}'
    return says((f"Raise taxes by {number % 7}% of GDP", "Let taxes flurble")[number % 2])


@pytest.fixture(scope="module")
def troubled_run(tmp_path_factory):
    return run_of(troubled, tmp_path_factory.mktemp("out"), rounds=6, iterations=3)


def test_a_replay_of_nations_that_think_asks_nobody_and_is_equal(troubled_run):
    found = replay(troubled_run.run_dir)
    assert (found.differences, found.calls) == ({}, 0)
    kinds = {(e["kind"], e.get("ok")) for told in troubled_run.table("reasoning")["thoughts"] for e in json.loads(told)}
    assert kinds == {("thought", None), ("tool", True), ("tool", False), ("proposal", None), ("error", None)}


def test_the_same_run_again_has_the_same_tables(troubled_run, tmp_path):
    again = run_of(troubled, tmp_path, rounds=6, iterations=3)
    for table in ("reasoning", "decisions", "indicators"):
        pd.testing.assert_frame_equal(again.table(table), troubled_run.table(table), check_exact=True)


def test_thoughts_are_kept_in_order_and_end_with_the_decision(tmp_path):
    found = run_of(betters_itself, tmp_path, rounds=1, iterations=2)
    entries = json.loads(found.table("reasoning")["thoughts"].iloc[0])
    assert [entry["kind"] for entry in entries] == ["thought", "proposal", "thought", "tool", "proposal"]
    tool = entries[3]
    assert (tool["tool_name"], tool["parameters"], tool["ok"]) == ("try_policy", {"policy": TOO_MUCH}, True)
    assert [entries[i]["action"] for i in (1, 4)] == [TOO_MUCH, GOOD]


def test_why_tells_what_was_thought_tried_and_proposed_before_the_decision(tmp_path):
    found = run_of(betters_itself, tmp_path, rounds=1, iterations=2)
    told = "\n".join(why_nation(found.run_dir, "Canada", "2009Q4"))
    parts = (
        "| Current economic state:",
        "Before it decided:",
        "it thought: Output shrinks. Do something.",
        f'it proposed: "{TOO_MUCH}"',
        f"it called try_policy(policy='{TOO_MUCH}'): It would be rejected: taxes",
        f'it proposed: "{GOOD}"',
        "It wanted, sure to 50%:",
    )
    places = [told.find(part) for part in parts]
    assert places == sorted(places)
    assert places[0] > 0


def test_why_tells_what_did_not_work_and_no_thought_steers_the_terminal(troubled_run, tmp_path):
    told = "\n".join("\n".join(why_nation(troubled_run.run_dir, "Canada", str(i))) for i in range(6))
    assert "it did not work (unparsable)" in told
    assert re.search(r"called look_at_nation\(name='Mars'\), in vain: name: there is no nation 'Mars'", told)

    def evil(prompt):
        return (
            thought(("\x1b[31mEVIL", {"\x1b]0;x\x07": "\x9b1m"}), plan="\x1b[2J") if is_thought(prompt) else says(GOOD)
        )

    for line in why_nation(run_of(evil, tmp_path, rounds=1).run_dir, "Canada"):
        assert line.isprintable()


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"result_chars": 10}, {"temperature": 0.5}, {"notes": 3}])
def test_keys_without_effect_and_values_out_of_range_are_errors(wrong, tmp_path):
    with pytest.raises(ConfigError, match=rf"deliberation\.{next(iter(wrong))}"):
        run_of(careful, tmp_path, **wrong)


def test_nations_and_agents_share_the_keys_of_the_loop_and_nothing_else():
    ours, theirs = ThinkingParams.model_fields, DeliberationParams.model_fields
    assert set(ours) == {"iterations", "max_tool_calls", "max_tokens", "result_chars"} < set(theirs)
    assert [ours[name].description for name in ours] == [theirs[name].description for name in ours]
    assert (ThinkingParams().result_chars, DeliberationParams().result_chars) == (600, 1200)
    for kind in (ThinkingParams, DeliberationParams):
        with pytest.raises(ValueError, match="less than or equal to 10000"):
            kind(result_chars=10_001)
