"""Questions to decision models and their replies, in the format of `/v1/systemone` (Ollama, llama.cpp, LiteLLM)."""

from collections.abc import Iterable, Mapping
from json import dumps
from typing import Any, Final

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.completions import was_cut
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.llm.text import clean_text, parse_json

_NAME: Final = "answer"
_FIELDS: Final = ("type", "probabilities", "choice", "score", "legend")
_MAX_CHARS: Final = 200


def check_capability(model: str, capabilities: Iterable[str], *, needs_decisions: bool) -> None:
    """Check that an LLM can chat (or decide). Raises ConfigError if the server lists other capabilities."""
    names = sorted(capabilities)
    if needs_decisions and names and "decision" not in names:
        remedy = f"'ollama pull {DECISION_MODEL}' and reasoner.kind=ollama reasoner.model={DECISION_MODEL}"
        if model == DECISION_MODEL:
            remedy = "update Ollama to 0.35 or later and pull it again"
        fault = f"{model!r} is not a decision model (the server says: {', '.join(names)}): {remedy}"
        raise MissingLLMError(f"reasoner.model: {fault}, or reasoner.answer=choice")
    if not needs_decisions and "decision" in names and "completion" not in names:
        remedy = "name an LLM that chats (for texts, interviews and open questions), or set reasoner.answer=decision"
        raise ConfigError(f"reasoner.model: {model!r} only decides: {remedy}")


def read_decision(reply: Any, label: str, state: str, decoding: Mapping[str, Any]) -> Completion:
    """Return the decision in a reply (JSON or a string). Raises OracleError (`no-answer`, `cut-prompt`) without one."""
    try:
        data = parse_json(reply) if isinstance(reply, str) else reply
        answer = _read_answer(data["answers"])
    except (UselessAnswerError, LookupError, TypeError, AttributeError, ValueError):
        fault = f"the response has no decision: {clean_text(reply, _MAX_CHARS)}"
        raise OracleError("no-answer", f"{label}: {fault}") from None
    usage = data["usage"] if isinstance(data.get("usage"), dict) else {}
    counts = reported_count(usage.get("input_tokens")), reported_count(usage.get("output_tokens"))
    if was_cut(state, counts[0], 0) and decoding.get("cut_prompts") != "accept":
        remedy = "give shorter texts, or an LLM with more context (reasoner.model)"
        fault = f"{label}: only {counts[0]} tokens of a text of {len(state)} characters were read: {remedy}"
        raise OracleError("cut-prompt", fault, tokens=counts)
    return Completion(dumps({"model": clean_text(data.get("model"), _MAX_CHARS), "answer": answer}), *counts)


def reported_count(value: object) -> int:
    """Return a count from a server's report, or 0 (unknown) if it is not valid."""
    return value if type(value) is int and 0 <= value < 2**31 else 0


def openai_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question in OpenAI's format."""
    entry = {"type": question["type"], "name": _NAME, "instructions": question["instructions"]}
    if question["type"] == "score":
        return entry | {"levels": [{"label": level} for level in question["criteria"]]}
    criteria = question["criteria"].items()
    return entry | {"choices": [{"value": name} | ({"description": text} if text else {}) for name, text in criteria]}


def _read_answer(answers: Any) -> dict[str, Any]:
    if isinstance(answers, list):
        [answers] = [{_NAME: entry} for entry in answers if entry["name"] == _NAME]
    answer = {name: value for name, value in answers[_NAME].items() if name in _FIELDS and value is not None}
    if isinstance(entries := answer.get("probabilities"), list):
        answer["probabilities"] = {str(entry["value"]): entry["probability"] for entry in entries}
        if len(answer["probabilities"]) < len(entries):
            raise LookupError("an option appears twice")
        if answer.get("type") == "score":
            answer["legend"] = {str(entry["value"]): entry["label"] for entry in entries}
    return answer
