"""Decision models over HTTP: a state and options go in, probabilities come out, one question a request.

Servers have `/v1/systemone` (Ollama, llama.cpp, LiteLLM), or else `/v1/decisions` in OpenAI's own form.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from json import dumps
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import Completion, status_reason
from prism_mesa.llm.clients.cut_prompts import was_cut
from prism_mesa.llm.clients.event_loop import Connections
from prism_mesa.llm.clients.ollama_errors import client_faults, ollama_fault
from prism_mesa.llm.clients.responses import kept, retry_after_s
from prism_mesa.llm.clients.urls import reported_count
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.llm.text import json_of, plain

if TYPE_CHECKING:
    import httpx

_NAME: Final = "answer"
_KEPT: Final = ("type", "probabilities", "choice", "score", "legend")
_SHOWN: Final = 200


class DecidesOverHTTP:
    """The part of a server's client that asks decision models."""

    name: str
    host: str
    timeout_s: float
    decoding: dict[str, Any]

    def __init__(self) -> None:
        self._paths: tuple[str, ...] = ("/v1/systemone", "/v1/decisions")
        self._plain = Connections(self._plain_http)

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return f"{self.name} at {self.host}"

    def _http(self) -> dict[str, Any]:
        raise NotImplementedError

    def _more(self) -> dict[str, Any]:
        """Return further fields of a request to `/v1/systemone`."""
        return {}

    def _plain_http(self) -> "httpx.AsyncClient":
        import httpx

        return httpx.AsyncClient(timeout=self.timeout_s, limits=kept(self.host), **self._http())

    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return ``{"model": ..., "answer": ...}`` (see `formats.decision`).

        Raises:
            OracleError: With one of the reasons that `ollama_errors` lists.
        """
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._post(state, question)
        except client_faults() as error:
            raise ollama_fault(error, self.label, self.timeout_s) from error
        if (status := response.status_code) >= 300:
            reason = "refused-request" if status == 501 else status_reason(status)
            told = f"{self.label}: the server says {_error_text(response)} (status {status})"
            raise OracleError(reason, told, retry_after_s=retry_after_s(response, self.timeout_s))
        latency_ms = (time.perf_counter() - started) * 1000
        return decision_in(response.text, self.label, latency_ms, state, self.decoding)

    async def _post(self, state: str, question: Mapping[str, Any]) -> "httpx.Response":
        """Ask where the server answers decisions, which is remembered."""
        client = await self._plain.client()
        for path in self._paths:
            body: dict[str, Any] = {"input": state, "questions": [_as_listed(question)]}
            if path == "/v1/systemone":
                body = {"state": state, "questions": {_NAME: question}, **self._more()}
            response = await client.post(f"{_root(self.host)}{path}", json={"model": self.name, **body})
            told = _error_text(response) if response.text.lstrip().startswith("{") else ""
            if response.status_code not in (404, 405) or "model" in told.lower():  # there is no such model
                self._paths = (path,) if response.status_code < 300 else self._paths
                return response
        told = "it has neither /v1/systemone nor /v1/decisions (Ollama 0.35 and llama.cpp have): reasoner.answer=choice"
        raise OracleError("http-404", told)

    async def _capabilities(self, *models: str) -> list[frozenset[str]]:
        """Return what LLMs on an Ollama server can do (`completion`, `decision`); nothing if it does not say."""

        async def shown(model: str) -> frozenset[str]:
            try:
                reply = await http.post(f"{_root(self.host)}/api/show", json={"model": model})
                return frozenset(map(str, reply.json().get("capabilities", ())))
            except client_faults():
                return frozenset()

        async with self._plain_http() as http:
            return await asyncio.gather(*map(shown, models))


def check_capability(model: str, can: Iterable[str], *, decides: bool) -> None:
    """Make sure that an LLM decides if it is to, and else speaks, where its server says what it can.

    Raises:
        ConfigError: If not.
    """
    can = sorted(can)
    if decides and can and "decision" not in can:
        way_out = f"'ollama pull {DECISION_MODEL}' and reasoner.model={DECISION_MODEL}, or reasoner.answer=choice"
        raise ConfigError(f"reasoner.model: {model!r} is no decision model ({', '.join(can)}): {way_out}")
    if not decides and "decision" in can and "completion" not in can:
        way_out = "texts, interviews and open questions need an LLM that chats"
        raise ConfigError(f"reasoner.model: {model!r} only decides: set reasoner.answer=decision ({way_out})")


def decision_in(reply: Any, label: str, latency_ms: float, state: str, decoding: Mapping[str, Any]) -> Completion:
    """Return the decision in a server's reply, JSON or its text.

    Raises:
        OracleError: `no-answer`, if it holds none; `cut-prompt`, if fewer tokens were read than the state has.
    """
    try:
        told = json_of(reply) if isinstance(reply, str) else reply
        answer = _answer_in(told["answers"])
    except (UselessAnswerError, LookupError, TypeError, AttributeError, ValueError):
        raise OracleError("no-answer", f"{label}: the response holds no decision: {plain(reply, _SHOWN)}") from None
    usage = told["usage"] if isinstance(told.get("usage"), dict) else {}
    counts = reported_count(usage.get("input_tokens")), reported_count(usage.get("output_tokens"))
    if was_cut(state, counts[0], 0) and decoding.get("cut_prompts") != "accept":
        way = "give shorter texts, or an LLM with more context (reasoner.model)"
        told = f"{label}: only {counts[0]} tokens of a text of {len(state)} characters were read: {way}"
        raise OracleError("cut-prompt", told, tokens=counts)
    return Completion(dumps({"model": plain(told.get("model"), _SHOWN), "answer": answer}), *counts, latency_ms)


def _root(host: str) -> str:
    return host.removesuffix("/v1") if host.endswith("/v1") else host.removesuffix("/api")


def _as_listed(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question in OpenAI's form."""
    own = {"type": question["type"], "name": _NAME, "instructions": question["instructions"]}
    if question["type"] == "score":
        return own | {"levels": [{"label": level} for level in question["criteria"]]}
    means = question["criteria"].items()
    return own | {"choices": [{"value": name} | ({"description": mean} if mean else {}) for name, mean in means]}


def _answer_in(answers: Any) -> dict[str, Any]:
    """Return the one answer to our question, in the form of `/v1/systemone`."""
    if isinstance(answers, list):
        [answers] = [{_NAME: entry} for entry in answers if entry["name"] == _NAME]
    answer = {name: value for name, value in answers[_NAME].items() if name in _KEPT and value is not None}
    if isinstance(entries := answer.get("probabilities"), list):
        answer["probabilities"] = {str(entry["value"]): entry["probability"] for entry in entries}
        if len(answer["probabilities"]) < len(entries):
            raise LookupError("an option stands twice")
        if answer.get("type") == "score":
            answer["legend"] = {str(entry["value"]): entry["label"] for entry in entries}
    return answer


def _error_text(response: "httpx.Response") -> str:
    try:
        told = response.json()
    except (ValueError, RecursionError):
        told = response.text
    for name in ("error", "message", "detail"):
        told = told.get(name, told) if isinstance(told, dict) else told
    return plain(told, _SHOWN)
