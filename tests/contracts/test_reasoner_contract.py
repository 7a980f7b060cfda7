"""The code of the contract `reasoner`, copied; what it does not define is defined here."""

import inspect
import json
from typing import Any

import pytest
from worlds import small

import prism_mesa.reasoner
from prism_mesa import Statechart, Transition
from prism_mesa.domain import Post
from prism_mesa.reasoner import STATE_DESCRIPTIONS, format_context
from prism_mesa.statechart import AgentState, Reasoner

OPTIONS = [AgentState.COMPOSING, AgentState.SCROLLING]


def ollama_client(prompt):
    return '{"next_state": "scrolling"}'


@pytest.fixture
def agent():
    agent = small().agent(0)
    agent.state = AgentState.EVALUATING
    return agent


@pytest.fixture
def post():
    return Post(text="A new tram line", author_name="Ana", likes=3)


@pytest.fixture
def reasoner():
    with Reasoner(client=ollama_client) as reasoner:
        yield reasoner


def test_the_interface_is_that_of_the_contract():
    assert list(inspect.signature(Reasoner.__init__).parameters)[:2] == ["self", "client"]
    assert inspect.iscoroutinefunction(Reasoner.decide)
    wanted = ["self", "agent", "current_state", "trigger", "options", "context"]
    assert list(inspect.signature(Reasoner.decide).parameters)[:6] == wanted
    assert inspect.signature(Reasoner.decide).parameters["context"].default is None


@pytest.mark.asyncio
async def test_no_options_are_an_error_and_an_answer_that_is_none_gives_the_first(agent, post, reasoner):
    with pytest.raises(ValueError, match="options"):
        await reasoner.decide(agent, AgentState.EVALUATING, "decides", [], post)
    with Reasoner(client=lambda prompt: "no JSON") as other:
        assert await other.decide(agent, AgentState.EVALUATING, "decides", OPTIONS, post) is AgentState.COMPOSING


def build_reasoner_prompt(
    agent_name: str,
    agent_interests: list[str],
    agent_personality: str,
    current_state: AgentState,
    trigger: str,
    options: list[AgentState],
    context: Any,
) -> str:
    """Build prompt for Reasoner decision."""

    options_text = "\n".join(f"- {opt.value}: {STATE_DESCRIPTIONS[opt]}" for opt in options)

    context_text = format_context(context)  # e.g., Post details

    return f"""You are {agent_name}, a social media user.

Your interests: {", ".join(agent_interests)}
Your personality: {agent_personality}

You are currently in the "{current_state.value}" state and received the "{trigger}" event.

{context_text}

Choose your next state from these options:
{options_text}

Respond with JSON only:
{{"next_state": "<state_value>"}}
"""


@pytest.mark.parametrize("context", [Post(text="Hello", author_name="Ana"), {"text": "Hello"}, None])
def test_the_prompt_says_all_that_the_contracts_template_says(context):
    given = ("Ana", ["trams", "tea"], "curious", AgentState.EVALUATING, "decides", OPTIONS, context)
    ours = prism_mesa.reasoner.build_reasoner_prompt(*given)
    plain = ours.replace("<<< ", "").replace(" >>>", "")  # what users wrote stands between these
    for line in build_reasoner_prompt(*given).splitlines():
        assert line.replace("<<< ", "").replace(" >>>", "") in plain


def parse_reasoner_response(
    response_text: str,
    options: list[AgentState],
) -> AgentState:
    """
    Parse Reasoner response to AgentState.

    Args:
        response_text: Raw LLM response
        options: Valid options to validate against

    Returns:
        Parsed AgentState

    Raises:
        ValueError: If response doesn't match any option
    """
    try:
        data = json.loads(response_text)
        state_value = data.get("next_state", "").lower()

        for opt in options:
            if opt.value == state_value:
                return opt

        raise ValueError(f"Invalid state: {state_value}")

    except (json.JSONDecodeError, KeyError) as e:
        raise ValueError(f"Failed to parse Reasoner response: {e}")  # noqa: B904


@pytest.mark.parametrize(
    "text", ['{"next_state": "scrolling"}', '{"next_state": "COMPOSING"}', '{"next_state":"idle"}', "no", "{}"]
)
def test_a_response_is_read_as_the_contracts_parser_reads_it(text):
    def read(parse):
        try:
            return parse(text, OPTIONS)
        except ValueError:
            return "ValueError"

    assert read(prism_mesa.reasoner.parse_reasoner_response) == read(parse_reasoner_response)


def test_states_are_described_in_the_contracts_words():
    assert prism_mesa.reasoner.STATE_DESCRIPTIONS == {
        AgentState.IDLE: "Stop browsing, wait for next round",
        AgentState.SCROLLING: "Continue browsing without engaging",
        AgentState.EVALUATING: "Look more closely at this post",
        AgentState.COMPOSING: "Write a response or original content",
        AgentState.ENGAGING_LIKE: "Like this post",
        AgentState.ENGAGING_REPLY: "Reply to this post",
        AgentState.ENGAGING_RESHARE: "Reshare this post",
        AgentState.RESTING: "Take a break from activity",
    }


@pytest.mark.asyncio
async def test_usage_example(agent, post):
    from prism_mesa.statechart import AgentState, Reasoner

    reasoner = Reasoner(client=ollama_client)

    # Ambiguous decision: agent evaluating a post
    new_state = await reasoner.decide(
        agent=agent,
        current_state=AgentState.EVALUATING,
        trigger="decides",
        options=[AgentState.COMPOSING, AgentState.SCROLLING],
        context=post,
    )

    agent.state = new_state

    assert agent.state is AgentState.SCROLLING
    reasoner.close()


def chart_of(*targets):
    """Return a chart that may go to several states when an agent decides."""
    transitions = [Transition("decides", AgentState.EVALUATING, target) for target in targets]
    return Statechart(states=set(AgentState), transitions=transitions, initial=AgentState.IDLE)


CASES = [((), AgentState.EVALUATING), (OPTIONS[:1], AgentState.COMPOSING), (OPTIONS, AgentState.SCROLLING)]


@pytest.mark.asyncio
@pytest.mark.parametrize(("targets", "then"), CASES)
async def test_integration_with_statechart(agent, post, reasoner, targets, then):
    chart, trigger, context = chart_of(*targets), "decides", post

    # In simulation loop or agent method
    new_state = chart.fire(agent, trigger, context)

    if new_state is None:
        # No transition matched
        pass
    elif isinstance(new_state, list):
        # Multiple matches (ambiguous) - not current design
        # Instead, caller checks valid_targets()
        pass
    else:
        # Single match - apply transition
        agent.state = new_state

    # Alternative: explicit ambiguity check
    agent.state = AgentState.EVALUATING
    targets = chart.valid_targets(agent.state, trigger)
    if len(targets) > 1:
        new_state = await reasoner.decide(agent, agent.state, trigger, targets, context)
        agent.state = new_state
    elif len(targets) == 1:
        agent.state = targets[0]

    assert agent.state is then
