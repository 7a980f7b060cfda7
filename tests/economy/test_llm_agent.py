"""`LLMAgent`: its contract, and what it decides."""

import asyncio
import json

import mesa
import pytest
from advised_nations import LOWER, STATE, agent_saying, client_saying, says

from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.llm_agent import Decision
from prism_mesa.errors import LLMFailureException


def decided(agent, state=STATE):
    return asyncio.run(agent.decide_action(state))


# -- the contract --------------------------------------------------------------------------------------


# -- what is decided -----------------------------------------------------------------------------------


def test_the_reasoning_is_kept_and_the_action_names_it():
    agent = agent_saying()
    assert agent.reasoning_chain is None
    action, chain = decided(agent), agent.reasoning_chain
    assert action.reasoning_chain_id == chain.chain_id != ""
    assert (chain.turn, chain.component, chain.agent_id) == (1, "agent", "TestNation")
    assert (chain.action, chain.reasoning, chain.confidence) == tuple(LOWER.model_dump().values())
    assert [chain.prompt] == agent.llm_client.prompts


@pytest.mark.parametrize(
    "wrong",
    [{"confidence": 1.01}, {"confidence": -0.1}, {"confidence": "high"}, {"action": ""}, {"reasoning": ""}],
)
def test_a_decision_out_of_its_ranges_is_no_answer(wrong):
    agent = agent_saying(json.dumps(LOWER.model_dump() | wrong))
    with pytest.raises(LLMFailureException, match=next(iter(wrong))) as caught:
        decided(agent)
    assert (caught.value.reason, caught.value.attempts) == ("wrong-shape", 2)


def test_a_long_answer_is_no_fault_though_the_schema_asks_for_a_short_one():
    long = "Lower interest rates by 0.5%, " * 50
    assert decided(agent_saying(says(long, "so " * 1000))).action_string == long
    assert Decision.model_json_schema()["properties"]["action"]["maxLength"] == 200


TARIFFS = says("Impose a 10% tariff on Neighbor")


def test_a_decision_about_another_domain_counts_as_no_answer():
    agent = agent_saying(TARIFFS, domain="monetary")
    with pytest.raises(LLMFailureException, match="is useless here") as caught:
        decided(agent)
    assert (caught.value.reason, caught.value.attempts, caught.value.component) == ("irrelevant", 2, "agent")
    assert len(agent.llm_client.prompts) == 2


def test_an_irrelevant_decision_is_asked_again_once():
    client = client_saying(says("Plant more flowers"), says("Raise taxes by 1% of GDP"))
    agent = EconLLMAgent(mesa.Model(), "TestNation", client)
    assert decided(agent).action_string == "Raise taxes by 1% of GDP"
    assert len(client.prompts) == 2


def test_two_agents_of_one_client_that_decide_about_different_domains_do_not_share_answers():
    client = client_saying(TARIFFS, says("Lower the policy rate by 0.5 points"))
    trade, monetary = (EconLLMAgent(mesa.Model(), "TestNation", client, domain=d) for d in ("trade", "monetary"))
    for agent in (trade, monetary):  # the same prompt but for the domain
        agent._construct_prompt = lambda state: "What now?"
    assert "tariff" in decided(trade).action_string
    assert "policy rate" in decided(monetary).action_string
