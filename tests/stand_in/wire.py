"""HTTP responses of the stand-in, with bodies of the shapes that Ollama 0.35 gives them."""

import json
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from stand_in.brains import MAX_TOP, Body, Said, Token, nearly_certain, pieces, prompt_text

VERSION = "0.35.0-stand-in"
_NUM_CTX = 4096


def response(
    body: bytes, status: int = 200, kind: str = "application/json; charset=utf-8", announced: int | None = None
) -> bytes:
    """Return an HTTP response; `announced` is the length that it claims to have."""
    length = len(body) if announced is None else announced
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + body


def json_response(value: Any, status: int = 200) -> bytes:
    """Return an HTTP response with a JSON value."""
    return response(json.dumps(value).encode(), status)


def error_response(status: int, error: Any) -> bytes:
    """Return an HTTP response of the form that Ollama gives to errors."""
    return json_response({"error": error}, status)


def answer_response(body: Body, said: Said, *, done: bool = True) -> bytes:
    """Return the response to a chat request; log-probabilities begin with those of the thought."""
    shown = said.tokens or (nearly_certain(said.text) if body.get("logprobs") else ())
    texts = [token.text for token in shown] or pieces(said.text)
    if said.thought:
        shown = said.thought + (shown if said.text else ())
        texts = [token.text for token in shown]
    limit = (body.get("options") or {}).get("num_predict") or 0
    n = min(len(texts), limit) if limit > 0 else len(texts)
    message = {"role": "assistant", "content": "".join(texts[len(said.thought) : n])}
    if said.thought:
        message["thinking"] = "".join(texts[: min(n, len(said.thought))])
    reply: Body = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done}
    if body.get("logprobs") and shown:
        reply["logprobs"] = [_logprob(token, body.get("top_logprobs") or 0) for token in shown[:n]]
    if done:
        reply["prompt_eval_count"] = said.prompt_tokens or len(prompt_text(body)) // 4 + 1
        reply["eval_count"] = said.completion_tokens if n == len(texts) and said.completion_tokens else n
        reply["done_reason"] = "length" if n < len(texts) else "stop"
    return json_response(reply)


def shorten(body: Body, context: int | None) -> Body:
    """Return a chat request as Ollama passes it to an LLM of that context: it keeps the end of a longer prompt."""
    text = prompt_text(body)
    most = (body.get("options") or {}).get("num_ctx") or context
    if context is None or len(text) // 4 + 1 <= most:
        return body
    return body | {"messages": [{"role": "user", "content": text[-4 * (most // 2 + 1) :]}]}


def other_response(
    method: str, path: str, content: bytes, models: tuple[str, ...], capabilities: list[str], context: int | None
) -> bytes:
    """Return the response to a request that asks the LLM nothing."""
    match method, path:
        case "GET", "/api/version":
            return json_response({"version": VERSION})
        case "GET", "/api/tags":
            return json_response({"models": [_entry(model) for model in models]})
        case "GET", "/api/ps":
            return json_response({"models": [_entry(m) | {"context_length": context or _NUM_CTX} for m in models]})
        case "POST", "/api/show":
            body, refused = parsed(content)
            return refused or refusal(body, models) or json_response({"model_info": {}, "capabilities": capabilities})
    return response(b"404 page not found", 404, "text/plain")


def parsed(content: bytes) -> tuple[Body, bytes]:
    """Return a request's body, or an empty one and the response that says what is wrong with it."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    return (body, b"") if isinstance(body, dict) else ({}, error_response(400, "invalid request body"))


def refusal(body: Body, models: tuple[str, ...], *, thinks: bool = False) -> bytes:
    """Return Ollama's refusal of a request; empty if there is none."""
    model = body.get("model") or ""
    if not model:
        return error_response(400, "model is required")
    if not 0 <= (body.get("top_logprobs") or 0) <= MAX_TOP:
        return error_response(400, f"top_logprobs must be between 0 and {MAX_TOP}")
    if full_name(model) not in models:
        return error_response(404, f"model '{model}' not found")
    if body.get("think") and not thinks:
        return error_response(400, f'"{model}" does not support thinking')
    return b""


def full_name(model: str) -> str:
    """Return the name with its tag; upper and lower case do not matter.

    >>> full_name("Llama3.2"), full_name("hf.co/me/llm:q4")
    ('llama3.2:latest', 'hf.co/me/llm:q4')
    """
    model = model.lower()
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def _logprob(token: Token, top: int) -> Body:
    entry: Body = {"token": token.text, "logprob": token.logprob}
    return entry | {"top_logprobs": [{"token": t, "logprob": p} for t, p in token.top[:top]]} if top else entry


def _entry(model: str) -> Body:
    """Return a model's entry in a list; its digest is a hash of its name."""
    return {"name": model, "model": model, "digest": sha256(f"stand-in {model}".encode()).hexdigest()}
