"""The code of the contract `agent_llm_interface`, copied; what it does not define is defined here."""

import logging
from unittest.mock import Mock

import pytest

from prism_mesa.economy import (
    Action,
    EconLLMAgent,
    GlobalState,
    LLMFailureException,
    NationState,
    PolicyDecision,
    SimulationState,
)
from prism_mesa.errors import PrismWarning
from prism_mesa.llm import LLMClient

NationAgent = EconLLMAgent
AgentState = NationState


@pytest.fixture
def state():
    return SimulationState(
        turn=1,
        agents={"TestNation": AgentState(name="TestNation", economic_strength=100.0)},
        global_state=GlobalState(interest_rate=2.5, total_economic_value=1000.0),
    )


@pytest.fixture
def config():
    """What an `LLMClient` is made from: a function of the prompt."""
    return lambda prompt: PolicyDecision(action="Cut rates", reasoning="Weak demand", confidence=0.5).model_dump_json()


@pytest.mark.asyncio
async def test_agent_generates_policy_with_llm(mock_llm_client):
    """Agent uses LLM to generate policy from state"""
    # Given: Agent with mocked LLM returning valid PolicyDecision
    mock_llm_response = PolicyDecision(
        action="Lower interest rates by 0.5%",
        reasoning="High unemployment (8%) indicates weak demand. Lower rates stimulate borrowing.",
        confidence=0.85,
    )
    agent = NationAgent(name="TestNation", llm_client=mock_llm_client(mock_llm_response))

    # And: Simulation state with economic indicators
    state = SimulationState(
        turn=1,
        agents={"TestNation": AgentState(name="TestNation", economic_strength=100.0)},
        global_state=GlobalState(interest_rate=2.5, total_economic_value=1000.0),
    )

    # When: Agent decides action
    action = await agent.decide_action(state)

    # Then: Returns Action with LLM-generated policy
    assert action.agent_name == "TestNation"
    assert action.action_string == "Lower interest rates by 0.5%"
    assert action.policy_decision.reasoning.startswith("High unemployment")
    assert action.policy_decision.confidence == 0.85
    # And: Action is not yet validated
    assert action.validated is False


@pytest.mark.asyncio
async def test_agent_logs_reasoning_chain(caplog, mock_llm_client, state):
    """Agent logs full LLM reasoning at DEBUG level"""
    # Given: Agent with mocked LLM
    mock_decision = PolicyDecision(
        action="Increase taxes", reasoning="High inflation requires demand reduction", confidence=0.7
    )
    agent = NationAgent(name="TestNation", llm_client=mock_llm_client(mock_decision))

    # And: DEBUG logging enabled
    caplog.set_level(logging.DEBUG)

    # When: Agent decides action
    await agent.decide_action(state)

    # Then: Reasoning chain logged at DEBUG level
    debug_logs = [r for r in caplog.records if r.levelname == "DEBUG"]
    assert any("llm_reasoning_chain" in r.message for r in debug_logs)
    assert any("component=agent" in r.message for r in debug_logs)
    assert any("High inflation requires demand reduction" in r.message for r in debug_logs)


@pytest.mark.asyncio
async def test_agent_aborts_on_llm_failure(state):
    """Agent propagates LLM failure exception to abort simulation step"""
    # Given: Agent with LLM that fails twice
    mock_client = Mock()
    mock_client.call_with_retry.side_effect = LLMFailureException(reason="timeout", attempts=2, component="agent")
    agent = NationAgent(name="TestNation", llm_client=mock_client)

    # When: Agent attempts to decide action
    with pytest.raises(LLMFailureException) as exc_info:
        await agent.decide_action(state)

    # Then: Exception propagated (simulation step aborts per spec FR-016)
    assert exc_info.value.reason == "timeout"
    assert exc_info.value.attempts == 2
    # And: Prominent error logged (checked in LLMClient tests)


@pytest.mark.asyncio
async def test_agent_produces_flexible_action_string(mock_llm_client, state):
    """Agent action is flexible string, not typed enum"""
    # Given: Agent with LLM returning non-standard action
    mock_decision = PolicyDecision(
        action="Implement trade sanctions on neighboring countries to boost domestic production",
        reasoning="Economic independence strategy",
        confidence=0.6,
    )
    agent = NationAgent(name="TestNation", llm_client=mock_llm_client(mock_decision))

    # When: Agent decides action
    action = await agent.decide_action(state)

    # Then: Action string is flexible (not limited to predefined types per spec FR-013)
    assert isinstance(action.action_string, str)
    assert "trade sanctions" in action.action_string
    assert len(action.action_string) > 20  # Descriptive, not enum-like


@pytest.mark.asyncio
async def test_agent_constructs_cot_prompt(mocker, config, state):
    """Agent constructs prompt with Chain-of-Thought triggers"""
    # Given: Agent with spy on LLM client
    spy_client = mocker.spy(LLMClient, "call_with_retry")
    agent = NationAgent(name="TestNation", llm_client=LLMClient(config))

    # When: Agent decides action
    await agent.decide_action(state)

    # Then: Prompt contains CoT trigger phrases
    called_prompt = spy_client.call_args[1]["prompt"]
    assert "Think step-by-step" in called_prompt
    assert "What is the most pressing economic issue?" in called_prompt
    # And: Prompt includes current state indicators
    assert "GDP Growth:" in called_prompt
    assert "Inflation:" in called_prompt


class Logger:
    """Structured logging, as the contract's new code calls it."""

    def __init__(self):
        self.entries = []

    def error(self, event, **fields):
        self.entries.append(("error", event, fields))

    def debug(self, event, **fields):
        self.entries.append(("debug", event, fields))


logger = Logger()


@pytest.fixture
def own_nation():
    """The contract's new `decide_action`, in a class that has its prompt under the name that it uses there."""
    with pytest.warns(PrismWarning, match="decide_action"):

        class OwnNation(EconLLMAgent):
            _construct_policy_prompt = EconLLMAgent._construct_prompt

            async def decide_action(self, state: SimulationState) -> Action:
                # LLM-based reasoning
                prompt = self._construct_policy_prompt(state)

                try:
                    decision = await self.llm_client.call_with_retry(prompt=prompt, response_model=PolicyDecision)
                except LLMFailureException as e:
                    logger.error("LLM_FAILURE", component="agent", agent=self.name, error=str(e))
                    raise  # Abort simulation step

                # Log reasoning chain at DEBUG
                logger.debug(
                    "llm_reasoning_chain",
                    component="agent",
                    agent_id=self.name,
                    reasoning=decision.reasoning,
                    confidence=decision.confidence,
                )

                return Action(
                    agent_name=self.name, action_string=decision.action, policy_decision=decision, validated=False
                )

    return OwnNation


@pytest.mark.asyncio
async def test_new_llm_implementation_returns_the_action_and_logs_the_reasoning(own_nation, mock_llm_client, state):
    decision = PolicyDecision(action="Cut taxes", reasoning="Weak demand", confidence=0.5)
    action = await own_nation(name="TestNation", llm_client=mock_llm_client(decision)).decide_action(state)
    assert (action.agent_name, action.action_string, action.validated) == ("TestNation", "Cut taxes", False)
    assert logger.entries[-1][:2] == ("debug", "llm_reasoning_chain")
    assert logger.entries[-1][2]["reasoning"] == "Weak demand"


@pytest.mark.asyncio
async def test_new_llm_implementation_passes_a_failure_on(own_nation, state):
    mock_client = Mock()
    mock_client.call_with_retry.side_effect = LLMFailureException(reason="timeout", attempts=2, component="agent")
    with pytest.raises(LLMFailureException, match="timeout"):
        await own_nation(name="TestNation", llm_client=mock_client).decide_action(state)
    assert logger.entries[-1][1] == "LLM_FAILURE"


def test_a_state_has_defaults_and_refuses_a_field_that_it_does_not_have(state):
    nation = state.agents["TestNation"]
    assert (nation.gdp, nation.economic_strength, nation.unemployment) == (100.0, 100.0, 6.0)
    with pytest.raises(ValueError, match="economic_strengh"):
        NationState(name="TestNation", economic_strengh=1.0)


def test_an_agent_alone_needs_a_name_and_a_client():
    with pytest.raises(ValueError, match="EconLLMAgent: give a name and an llm_client"):
        EconLLMAgent(name="TestNation")


def test_the_package_of_nations_offers_the_names_of_the_contract():
    import prism_mesa.economy

    names = "LLMAgent EconLLMAgent PolicyDecision SimulationState Action GlobalState NationState LLMFailureException"
    assert sorted(prism_mesa.economy.__all__) == sorted(names.split())
    assert all(hasattr(prism_mesa.economy, name) for name in names.split())
