"""The code of the contract `reasoning_loop`, copied; what it does not define, or leaves out (`...`), is added."""

import json

from prism_mesa.deliberation import (
    AgentTextEvent,
    ReasoningResult,
    ToolFinishedEvent,
    ToolRegistry,
    ToolStartedEvent,
    reason_about_text,
)


def weather(city: str) -> str:
    """Look up the weather.

    Args:
        city: Where.
    """
    return f"rain in {city}"


def thinks(prompt):
    """Propose a tool about what the user says, and nothing about the agent's own response."""
    call = {"tool_name": "weather", "parameters": {"city": "Bern"}, "reasoning": "they ask"}
    asked = "Will it rain?" in prompt and "It rains." not in prompt
    return json.dumps({"understanding": "The weather.", "proposed_tools": [call] if asked else []})


def generate_response_from_reasoning_and_tools(reasoning_result, result):
    assert isinstance(reasoning_result, ReasoningResult)
    assert result.text == "rain in Bern"
    return "It rains."


class Agent:
    def __init__(self, llm):
        self.tools, self.llm, self.model = ToolRegistry([weather]), llm, None

    def chat_stream(self, current_context_to_analyze, max_iterations=3):
        full_conversation, tool_index = "", 0
        for iteration in range(1, max_iterations + 1):
            first_iteration, tool_id = iteration == 1, f"reasoning_{iteration}_{tool_index}"

            # Reasoning step (about user input OR agent's previous response)
            reasoning_result = reason_about_text(
                text=current_context_to_analyze,
                message_role="user" if first_iteration else "assistant",
                conversation_context=full_conversation,
                tool_registry=self.tools,
                llm=self.llm,
                model=self.model,
            )

            # Stream the full reasoning as JSON for debugging
            reasoning_json = reasoning_result.model_dump_json(indent=2)
            yield AgentTextEvent(text=reasoning_json, type="thought")

            # Check if reasoning says we're done (no tools proposed)
            if not reasoning_result.proposed_tools:
                break

            # Execute tools from reasoning
            for proposed_tool in reasoning_result.proposed_tools:
                yield ToolStartedEvent(
                    tool_name=proposed_tool.tool_name,
                    tool_id=f"reasoning_{iteration}_{tool_index}",
                    parameters=proposed_tool.parameters,
                )

                result = self.tools.execute(proposed_tool.tool_name, proposed_tool.parameters)

                yield ToolFinishedEvent(
                    tool_name=proposed_tool.tool_name,
                    tool_id=tool_id,
                    parameters=proposed_tool.parameters,
                    result=result,
                )

            # Generate response using LLM (informed by reasoning + tool results)
            response_text = generate_response_from_reasoning_and_tools(reasoning_result, result)
            yield AgentTextEvent(text=response_text, type="text")

            # Update context for next iteration (agent will reason about this response)
            current_context_to_analyze = response_text


def test_new_iteration_loop_thinks_acts_responds_and_thinks_about_its_response():
    events = list(Agent(thinks).chat_stream("Will it rain?"))
    kinds = [type(event) for event in events]
    assert kinds == [AgentTextEvent, ToolStartedEvent, ToolFinishedEvent, AgentTextEvent, AgentTextEvent]
    assert [event.type for event in events if isinstance(event, AgentTextEvent)] == ["thought", "text", "thought"]
    assert json.loads(events[0].text)["understanding"] == "The weather."
    assert (events[1].tool_id, events[2].tool_id) == ("reasoning_1_0", "reasoning_1_0")
    assert events[2].result.ok


def test_new_iteration_loop_ends_with_a_thought_that_proposes_nothing():
    events = list(Agent(lambda prompt: '{"understanding": "A greeting."}').chat_stream("Hello"))
    assert [event.type for event in events] == ["thought"]
