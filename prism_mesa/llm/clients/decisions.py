"""Decision models over HTTP: send a state and options, get probabilities, one question per request.

Servers have `/v1/systemone` (Ollama, llama.cpp, LiteLLM) or `/v1/decisions` in OpenAI's own form.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from json import dumps
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError
from prism_mesa.llm.clients.base import Completion, status_reason
from prism_mesa.llm.clients.cut_prompts import was_cut
from prism_mesa.llm.clients.event_loop import Connections
from prism_mesa.llm.clients.ollama_errors import client_faults, ollama_fault
from prism_mesa.llm.clients.responses import kept, retry_after_s
from prism_mesa.llm.clients.urls import check_settings, credentials, is_local, reported_count, server_address
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.llm.text import json_of, plain

if TYPE_CHECKING:
    import httpx

_NAME: Final = "answer"
_KEPT: Final = ("type", "probabilities", "choice", "score", "legend")
_SHOWN: Final = 200
_LOOK_S: Final = 5.0


class DecidesOverHTTP:
    """The part that clients of servers share: where the server is, and how decision models are asked."""

    def __init__(self, model: str, host: str, timeout_s: float, decoding: dict[str, Any]) -> None:
        check_settings(model, timeout_s, decoding["temperature"])
        self.name, self.host, self.timeout_s, self.decoding = model, server_address(host), timeout_s, decoding
        self._given: dict[str, Any] = {"trust_env": not is_local(self.host), **credentials(host)}
        self._paths: tuple[str, ...] = ("/v1/systemone", "/v1/decisions")
        self._connections, self._plain = Connections(self._connect), Connections(self._plain_http)

    @property
    def label(self) -> str:
        """Its name in a summary."""
        return f"{self.name} at {self.host}"

    def _connect(self) -> Any:
        raise NotImplementedError

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
            fault = f"{self.label}: the server says {_error_text(response)} (status {status})"
            raise OracleError(reason, fault, retry_after_s=retry_after_s(response, self.timeout_s))
        latency_ms = (time.perf_counter() - started) * 1000
        return decision_in(response.text, self.label, latency_ms, state, self.decoding)

    async def _post(self, state: str, question: Mapping[str, Any]) -> "httpx.Response":
        """Post the question to the path that answers decisions, and remember that path."""
        client = await self._plain.client()
        for path in self._paths:
            body: dict[str, Any] = {"input": state, "questions": [_as_listed(question)]}
            if path == "/v1/systemone":
                body = {"state": state, "questions": {_NAME: question}, **self._more()}
            response = await client.post(f"{_root(self.host)}{path}", json={"model": self.name, **body})
            fault = _error_text(response) if response.text.lstrip().startswith("{") else ""
            if response.status_code not in (404, 405) or "model" in fault.lower():  # there is no such model
                self._paths = (path,) if response.status_code < 300 else self._paths
                return response
        fault = "the server lacks /v1/systemone and /v1/decisions (Ollama 0.35, llama.cpp): set reasoner.answer=choice"
        raise OracleError("http-404", fault)

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._connections.aclose()
        await self._plain.aclose()

    async def _capabilities(self, *models: str) -> list[frozenset[str]]:
        """Return what LLMs on an Ollama server can do (`completion`, `decision`); empty sets if it does not say."""

        async def shown(model: str) -> frozenset[str]:
            try:
                async with asyncio.timeout(min(self.timeout_s, _LOOK_S)):
                    reply = await http.post(f"{_root(self.host)}/api/show", json={"model": model})
                return frozenset(map(str, reply.json().get("capabilities", ())))
            except client_faults():
                return frozenset()

        async with self._plain_http() as http:
            return await asyncio.gather(*map(shown, models))


def check_capability(model: str, can: Iterable[str], *, decides: bool) -> None:
    """Check that an LLM decides if `decides`, and chats otherwise; pass if `can`, what its server says, is empty.

    Raises:
        ConfigError: If it does not chat; MissingLLMError, if it does not decide.
    """
    can = sorted(can)
    if decides and can and "decision" not in can:
        way_out = f"'ollama pull {DECISION_MODEL}' and reasoner.kind=ollama reasoner.model={DECISION_MODEL}"
        if model == DECISION_MODEL:
            way_out = "update Ollama to 0.35 or later and pull it again"
        told = f"{model!r} is no decision model (the server says: {', '.join(can)}): {way_out}"
        raise MissingLLMError(f"reasoner.model: {told}, or reasoner.answer=choice")
    if not decides and "decision" in can and "completion" not in can:
        way_out = "name one that chats for texts, interviews and open questions, or set reasoner.answer=decision"
        raise ConfigError(f"reasoner.model: {model!r} only decides: {way_out}")


def decision_in(reply: Any, label: str, latency_ms: float, state: str, decoding: Mapping[str, Any]) -> Completion:
    """Return the decision in a server's reply, which is parsed JSON or its text.

    Raises:
        OracleError: `no-answer`, if the reply has no decision; `cut-prompt`, if the LLM read fewer tokens than the
            state has.
    """
    try:
        data = json_of(reply) if isinstance(reply, str) else reply
        answer = _answer_in(data["answers"])
    except (UselessAnswerError, LookupError, TypeError, AttributeError, ValueError):
        raise OracleError("no-answer", f"{label}: the response holds no decision: {plain(reply, _SHOWN)}") from None
    usage = data["usage"] if isinstance(data.get("usage"), dict) else {}
    counts = reported_count(usage.get("input_tokens")), reported_count(usage.get("output_tokens"))
    if was_cut(state, counts[0], 0) and decoding.get("cut_prompts") != "accept":
        way = "give shorter texts, or an LLM with more context (reasoner.model)"
        fault = f"{label}: only {counts[0]} tokens of a text of {len(state)} characters were read: {way}"
        raise OracleError("cut-prompt", fault, tokens=counts)
    return Completion(dumps({"model": plain(data.get("model"), _SHOWN), "answer": answer}), *counts, latency_ms)


def _root(host: str) -> str:
    return host.removesuffix("/v1") if host.endswith("/v1") else host.removesuffix("/api")


def _as_listed(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question in OpenAI's form."""
    entry = {"type": question["type"], "name": _NAME, "instructions": question["instructions"]}
    if question["type"] == "score":
        return entry | {"levels": [{"label": level} for level in question["criteria"]]}
    criteria = question["criteria"].items()
    return entry | {"choices": [{"value": name} | ({"description": text} if text else {}) for name, text in criteria]}


def _answer_in(answers: Any) -> dict[str, Any]:
    """Return the answer to our question, in the form of `/v1/systemone`."""
    if isinstance(answers, list):
        [answers] = [{_NAME: entry} for entry in answers if entry["name"] == _NAME]
    answer = {name: value for name, value in answers[_NAME].items() if name in _KEPT and value is not None}
    if isinstance(entries := answer.get("probabilities"), list):
        answer["probabilities"] = {str(entry["value"]): entry["probability"] for entry in entries}
        if len(answer["probabilities"]) < len(entries):
            raise LookupError("an option appears twice")
        if answer.get("type") == "score":
            answer["legend"] = {str(entry["value"]): entry["label"] for entry in entries}
    return answer


def _error_text(response: "httpx.Response") -> str:
    try:
        error = response.json()
    except (ValueError, RecursionError):
        error = response.text
    for name in ("error", "message", "detail"):
        error = error.get(name, error) if isinstance(error, dict) else error
    return plain(error, _SHOWN)
