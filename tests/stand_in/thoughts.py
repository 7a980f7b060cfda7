"""How the stand-in for Ollama thinks before it answers: as LLMs of 2026 do, each in its own way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from stand_in.brains import Body, Said, Token, nearly_certain

type ThinkMode = Literal["never", "switch", "always", "inline", "unopened", "lost"]
type Way = Callable[[str, tuple[Token, ...]], Said]

THINK_MODES: dict[ThinkMode, str] = {
    "never": "refuses `think` where it is true or a level, as an LLM that cannot think",
    "switch": "thinks in `message.thinking` unless `think` is false",
    "always": "the same whatever `think` says (gpt-oss)",
    "inline": "thinks in the content, between <think> and </think>, whatever `think` says (deepseek-r1)",
    "unopened": "the same without the first <think>, which its template holds",
    "lost": "says all that it says in `message.thinking`, unless `think` is false (qwen3.5)",
}


def with_thought(said: str | Said, mode: ThinkMode, thought: str, body: Body) -> Said:
    """Return what an LLM says with what it thought before; all tokens have log-probabilities."""
    said = said if isinstance(said, Said) else Said(said)
    is_off = body.get("think") is False and mode in ("switch", "lost")
    if mode == "never" or is_off:
        return said
    tokens = said.tokens or nearly_certain(said.text)
    if mode == "lost":
        return replace(said, text="", tokens=tokens, thought=(*nearly_certain(thought), *tokens))
    if mode in ("inline", "unopened"):
        block = f"{'<think>' if mode == 'inline' else ''}{thought}</think>\n"
        return replace(said, text=block + said.text, tokens=(*nearly_certain(block), *tokens))
    return replace(said, tokens=tokens, thought=nearly_certain(thought))
