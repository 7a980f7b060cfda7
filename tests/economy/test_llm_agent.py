"""`LLMAgent`: its contract, and what it decides."""

import asyncio
import json
import logging

import mesa
import pytest
from advised_nations import LOWER, STATE, EconomyModelOf, agent_saying, client_saying, says
from pydantic import ValidationError

from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.llm_agent import Decision
from prism_mesa.economy.nations import NATIONS
from prism_mesa.economy.reading import PolicyDecision
from prism_mesa.errors import LLMFailureException
from prism_mesa.llm import LLMClient
from prism_mesa.llm.clients.event_loop import run_now


def decided(agent, state=STATE):
    return asyncio.run(agent.decide_action(state))


# -- the contract --------------------------------------------------------------------------------------


def test_agent_generates_policy_with_llm():
    """The contract's test 1."""
    action = decided(agent_saying())
    assert action.agent_name == "TestNation"
    assert action.action_string == "Lower interest rates by 0.5%"
    assert action.policy_decision.reasoning.startswith("High unemployment")
    assert action.policy_decision.confidence == 0.85
    assert action.validated is False


def test_agent_logs_reasoning_chain(caplog):
    """The contract's test 2."""
    decision = PolicyDecision(
        action="Increase taxes", reasoning="High inflation requires demand reduction", confidence=0.7
    )
    caplog.set_level(logging.DEBUG)
    decided(agent_saying(decision))
    debug_logs = [r for r in caplog.records if r.levelname == "DEBUG"]
    assert any("llm_reasoning_chain" in r.message for r in debug_logs)
    assert any("component=agent" in r.message for r in debug_logs)
    assert any("High inflation requires demand reduction" in r.message for r in debug_logs)


class Failing:
    """A client whose every call fails, as the contract's mock does."""

    async def call_with_retry(self, prompt, response_model, **more):
        raise LLMFailureException(reason="timeout", attempts=2, component="agent")


def test_agent_aborts_on_llm_failure(caplog):
    """The contract's test 3."""
    agent = EconLLMAgent(mesa.Model(), "TestNation", Failing())
    with pytest.raises(LLMFailureException, match=r"timeout, 2 attempts") as exc_info:
        decided(agent)
    assert exc_info.value.reason == "timeout"
    assert exc_info.value.attempts == 2
    assert "LLM_FAILURE component=agent agent_id=TestNation" in caplog.text
    assert agent.reasoning_chain is None


def test_agent_produces_flexible_action_string():
    """The contract's test 4."""
    action = decided(
        agent_saying(
            PolicyDecision(
                action="Implement trade sanctions on neighboring countries to boost domestic production",
                reasoning="Economic independence strategy",
                confidence=0.6,
            )
        )
    )
    assert isinstance(action.action_string, str)
    assert "trade sanctions" in action.action_string
    assert len(action.action_string) > 20


def test_agent_constructs_cot_prompt(monkeypatch):
    """The contract's test 5."""
    calls = []
    call_with_retry = LLMClient.call_with_retry

    def spy(self, *args, **kwargs):
        calls.append(kwargs)
        return call_with_retry(self, *args, **kwargs)

    monkeypatch.setattr(LLMClient, "call_with_retry", spy)
    decided(agent_saying())
    called_prompt = calls[0]["prompt"]
    assert "Think step-by-step" in called_prompt
    assert "What is the most pressing economic issue?" in called_prompt
    assert "GDP Growth:" in called_prompt
    assert "Inflation:" in called_prompt


# -- what is decided -----------------------------------------------------------------------------------


def test_the_reasoning_is_kept_and_the_action_names_it():
    agent = agent_saying()
    assert agent.reasoning_chain is None
    action, chain = decided(agent), agent.reasoning_chain
    assert action.reasoning_chain_id == chain.chain_id != ""
    assert (chain.turn, chain.component, chain.agent_id) == (1, "agent", "TestNation")
    assert (chain.action, chain.reasoning, chain.confidence) == tuple(LOWER.model_dump().values())
    assert [chain.prompt] == agent.llm_client.prompts


def test_chains_of_nations_with_nearly_the_same_name_have_different_names():
    nations = [NATIONS["Sweden"].model_dump() | {"name": name} for name in ("New-A", "New A")]
    with EconomyModelOf(lambda prompt: says("Hold the policy rate"), economy_nations=nations) as model:
        model.step()
        assert len({nation.reasoning_chain.chain_id for nation in model.nations}) == 2


def test_what_an_agent_sees_and_says_is_frozen():
    agent = agent_saying()
    action = decided(agent)
    frozen = [
        (STATE, "turn"),
        (STATE.global_state, "interest_rate"),
        (STATE.agents["TestNation"], "inflation"),
        (action, "validated"),
        (action.policy_decision, "confidence"),
        (agent.reasoning_chain, "reasoning"),
    ]
    for model, name in frozen:
        with pytest.raises(ValidationError, match="Instance is frozen"):
            setattr(model, name, 1)


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
    with pytest.raises(LLMFailureException, match="is of no use here") as caught:
        decided(agent)
    assert (caught.value.reason, caught.value.attempts, caught.value.component) == ("irrelevant", 2, "agent")
    assert len(agent.llm_client.prompts) == 2


@pytest.mark.parametrize("domain", ["economic", "trade"])
def test_the_same_decision_is_one_in_its_own_domain(domain):
    assert "tariff" in decided(agent_saying(TARIFFS, domain=domain)).action_string


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


def test_plain_code_gets_the_same_decision_inside_a_running_loop_or_not():
    async def cell():
        return agent_saying().decide_action_sync(STATE)

    found = [
        asyncio.run(cell()),
        agent_saying().decide_action_sync(STATE),
        run_now(agent_saying().decide_action(STATE)),
    ]
    assert found == [decided(agent_saying())] * 3
