"""Nations that think: failures, agents of other kinds, and records."""

import asyncio
import json
import logging
import re
from contextlib import closing
from hashlib import sha256

import mesa
import pandas as pd
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

from prism_mesa.analysis.explain.economy import why_nation
from prism_mesa.deliberation import AgentErrorEvent, Limits
from prism_mesa.economy.llm_agent import Decision, LLMAgent, decide_all, thoughts_in_json
from prism_mesa.errors import ConfigError, LLMFailureException
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.replay import replay

# -- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonsense", ["Hm.", '{"understanding": 3}'])
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
        [(beside, _)] = decide_all([agent], [Rain()], client)
    assert all("You are a shopkeeper. It rains." in prompt for prompt in client.prompts)
    assert beside.reasoning_chain_id == agent.reasoning_chain.chain_id == "0003-Ada"
    assert "llm_reasoning_chain component=agent agent_id=Ada" in caplog.text


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


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"result_chars": 10}, {"notes": 3}])
def test_keys_without_effect_and_values_out_of_range_are_errors(wrong, tmp_path):
    with pytest.raises(ConfigError, match=rf"deliberation\.{next(iter(wrong))}"):
        run_of(careful, tmp_path, **wrong)
