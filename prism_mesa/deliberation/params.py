"""The parameters of thinking before writing, with their defaults and units."""

from typing import Annotated

from pydantic import Field

from prism_mesa.params import Params

ResultChars = Annotated[
    int, Field(ge=80, le=10_000, description="maximum characters of a tool's result; the rest is cut")
]


class LoopParams(Params):
    """Limits of a turn of thinking, calling tools and responding."""

    iterations: int = Field(1, ge=1, le=20, description="maximum rounds of thinking, tool calls and response in a turn")
    max_tool_calls: int = Field(3, ge=0, le=20, description="maximum tool calls per iteration")
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="tokens of a turn, prompts included, after which thinking and tool calls stop (estimated as bytes "
        "/ 4, so that replays agree); null: no limit",
    )
    result_chars: ResultChars = 1200


class DeliberationParams(LoopParams):
    """How agents think and write (content: llm, interviews, surveys); reasoner.temperature has no effect."""

    max_seconds: float | None = Field(
        None,
        gt=0,
        le=31_536_000,
        description="seconds of a turn after which thinking and tool calls stop (interviews only; runs must be "
        "repeatable); null: no limit",
    )
    temperature: float = Field(0.7, ge=0, le=100, description="sampling temperature of the LLM for thoughts and texts")
    max_answer_tokens: int = Field(200, ge=1, le=1_000_000, description="maximum tokens of a thought or text")
    conversation_tokens: int = Field(
        1500, ge=100, le=10_000_000, description="tokens of a conversation beyond which older messages are summarised"
    )
    notes: int = Field(50, ge=1, le=10_000, description="maximum number of notes that an agent keeps")
    notes_told: int = Field(3, ge=0, le=50, description="maximum number of notes recalled in a turn")
