"""What the stand-in for Ollama sends: HTTP responses, and bodies of the shapes that Ollama 0.35 gives them."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Literal

from stand_in.brains import MAX_TOP, Body, Said, Token, nearly_certain, pieces, prompt_text

type Ending = Literal["done", "none", "error"]

VERSION = "0.35.0-stand-in"
BUSY = "server busy, please try again.  maximum pending requests exceeded"
_ENDED = "an error was encountered while running the model: unexpected EOF"
_NUM_CTX = 4096
_LEVELS = ("low", "medium", "high", "max")
_MODIFIED = "2025-01-01T00:00:00Z"
_SIZE = 2_019_393_189
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "3.2B",
    "quantization_level": "Q4_K_M",
}


@dataclass(frozen=True)
class Times:
    """When an answer is finished (seconds since 1970), and how long it waited for a slot and held it, in seconds."""

    finished: float
    waited: float
    held: float


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


def stream_response(values: list[Any]) -> bytes:
    """Return a chunked HTTP response with one JSON line per value."""
    lines = [json.dumps(value).encode() + b"\n" for value in values]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n\r\n"


def answer_response(path: str, body: Body, given: str | Said, times: Times, ending: Ending = "done") -> bytes:
    """Return the response to a chat or generate request, streamed unless it says ``"stream": false``.

    An ending of `none` leaves out ``done`` and all that comes with it.
    """
    said = given if isinstance(given, Said) else Said(given)
    tokens = said.tokens or (nearly_certain(said.text) if body.get("logprobs") else ())
    texts = [token.text for token in tokens] or pieces(said.text)
    if said.thought:
        return _thoughtful_response(path, body, said, times)
    limit = (body.get("options") or {}).get("num_predict") or 0
    n = min(len(texts), limit) if limit > 0 else len(texts)
    n_tokens = said.completion_tokens if n == len(texts) and said.completion_tokens else n
    end = _end(path, body, said, n_tokens, times) | {"done_reason": "length" if n < len(texts) else "stop"}
    if body.get("stream") is False:
        whole = _part(path, body, "".join(texts[:n]), tokens[:n], times)
        match ending:
            case "done":
                return json_response(whole | end)
            case "none":
                return json_response(whole)
            case "error":
                return error_response(500, _ENDED)
    parts = [_part(path, body, texts[at], tokens[at : at + 1], times) for at in range(n)]
    match ending:
        case "done":
            parts.append(_part(path, body, "", (), times) | end)
        case "error":
            parts.append({"error": _ENDED})
    return stream_response(parts)


def _thoughtful_response(path: str, body: Body, said: Said, times: Times) -> bytes:
    """Return the response, not streamed, of an LLM that thought: its log-probabilities begin with its thought."""
    tokens = said.thought + (said.tokens if said.text else ())
    limit = (body.get("options") or {}).get("num_predict") or len(tokens)
    kept = tokens[:limit]
    content = "".join(token.text for token in kept[len(said.thought) :])
    whole = _part(path, body, content, kept, times) | _end(path, body, said, len(kept), times)
    whole["message"]["thinking"] = "".join(token.text for token in kept[: len(said.thought)])
    return json_response(whole | {"done_reason": "length" if len(kept) < len(tokens) else "stop"})


def loading_response(path: str, body: Body, reason: Literal["load", "unload"], now: float) -> bytes:
    """Return the response to a request that only loads or unloads the model."""
    return json_response(_part(path, body, "", (), Times(now, 0, 0)) | {"done": True, "done_reason": reason})


def shortened(body: Body, context: int | None) -> Body:
    """Return a chat request as Ollama gives it to an LLM of that context: of a longer prompt it keeps the end."""
    text = prompt_text(body)
    most = (body.get("options") or {}).get("num_ctx") or context
    if context is None or len(text) // 4 + 1 <= most:
        return body
    return body | {"messages": [{"role": "user", "content": text[-4 * (most // 2 + 1) :]}]}


def other_response(
    method: str,
    path: str,
    content: bytes,
    models: tuple[str, ...],
    loaded: dict[str, float],
    can: list[str],
    context: int | None = None,
) -> bytes:
    """Return the response to whatever asks for no answer of an LLM.

    `loaded` says when each loaded model will be unloaded, in seconds since 1970.
    """
    match method, path:
        case "GET" | "HEAD", "/":
            found = response(b"Ollama is running", kind="text/plain; charset=utf-8")
        case "GET" | "HEAD", "/api/version":
            found = json_response({"version": VERSION})
        case "GET" | "HEAD", "/api/tags":
            found = json_response({"models": [_entry(model) | {"modified_at": _MODIFIED} for model in models]})
        case "GET", "/api/ps":
            found = json_response({"models": [_running(model, until, context) for model, until in loaded.items()]})
        case "POST", "/api/show":
            body, refused = parsed(content)
            found = refused or refusal(path, body, models) or json_response(_shown(full_name(body["model"]), can))
        case _, "/" | "/api/version" | "/api/tags" | "/api/ps" | "/api/show" | "/api/chat" | "/api/generate":
            found = response(b"405 method not allowed", 405, "text/plain")
        case _:
            found = response(b"404 page not found", 404, "text/plain")
    return found.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else found


def parsed(content: bytes) -> tuple[Body, bytes]:
    """Return a request's body, or an empty one and the response that says what is wrong with it."""
    if not content.strip():
        return {}, error_response(400, "missing request body")
    try:
        body = json.loads(content)
    except ValueError as error:
        at = error.pos if isinstance(error, json.JSONDecodeError) else 0
        wrong = content.decode("utf-8", "replace")[at : at + 1]
        said = f"invalid character {wrong!r} looking for beginning of value" if wrong else "unexpected EOF"
        return {}, error_response(400, said)
    for part, kind in {"": dict, "model": str, "messages": list, "prompt": str, "options": dict}.items():
        value = body.get(part) if part else body
        if value is not None and not isinstance(value, kind):
            return {}, error_response(
                400, f"json: cannot unmarshal {part or 'body'} into Go value of type {kind.__name__}"
            )
    return body, b""


def refusal(path: str, body: Body, models: tuple[str, ...], *, thinks: bool = False) -> bytes:
    """Return what Ollama says to a request that it would not even schedule; empty if it would."""
    model = body.get("model") or ""
    shape = body.get("format")
    if not model and path != "/api/generate":
        return error_response(400, "model is required")
    if not 0 <= (body.get("top_logprobs") or 0) <= MAX_TOP:
        return error_response(400, f"top_logprobs must be between 0 and {MAX_TOP}")
    if full_name(model) not in models:
        return error_response(404, f"model '{model}' not found")
    if (think := body.get("think")) and think not in (True, *_LEVELS):
        return error_response(400, f'invalid think value: "{think}" (must be "high", "medium", "low", "max", ...)')
    if think and not thinks:
        return error_response(400, f'"{model}" does not support thinking')
    if shape and shape != "json" and not isinstance(shape, dict):
        quoted = json.dumps(json.dumps(shape))
        return error_response(500, f'invalid format: {quoted}; expected "json" or a valid JSON Schema object')
    return b""


def only_loads(body: Body) -> bool:
    """Whether a request says nothing to the LLM."""
    return not body.get("messages") and not body.get("prompt")


def full_name(model: str) -> str:
    """Return the name with its tag; upper and lower case do not matter.

    >>> full_name("Llama3.2"), full_name("hf.co/me/llm:q4")
    ('llama3.2:latest', 'hf.co/me/llm:q4')
    """
    model = model.lower()
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def _part(path: str, body: Body, text: str, tokens: tuple[Token, ...], times: Times) -> Body:
    part: Body = {"model": body["model"], "created_at": _time(times.finished)}
    if path == "/api/chat":
        part["message"] = {"role": "assistant", "content": text}
    else:
        part["response"] = text
    part["done"] = False
    if body.get("logprobs") and tokens:
        part["logprobs"] = [_logprob(token, body.get("top_logprobs") or 0) for token in tokens]
    return part


def _end(path: str, body: Body, said: Said, n_tokens: int, times: Times) -> Body:
    """Return what only the last part has; reading a token is taken to cost a fifth of writing one."""
    n_prompt = said.prompt_tokens or len(prompt_text(body)) // 4 + 1
    reading = times.held * n_prompt / (n_prompt + 5 * n_tokens)
    end: Body = {
        "done": True,
        "total_duration": _ns(times.waited + times.held),
        "load_duration": _ns(times.waited),
        "prompt_eval_count": n_prompt,
        "prompt_eval_duration": _ns(reading),
        "eval_count": n_tokens,
        "eval_duration": _ns(times.held - reading),
    }
    if path == "/api/generate" and not body.get("raw"):
        end["context"] = list(range(1, n_prompt + n_tokens + 1))
    return end


def _logprob(token: Token, top: int) -> Body:
    entry = _token(token.text, token.logprob)
    return entry | {"top_logprobs": [_token(*one) for one in token.top[:top]]} if top else entry


def _token(text: str, logprob: float) -> Body:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def _ns(seconds: float) -> int:
    return max(round(seconds * 1e9), 1)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _shown(model: str, can: list[str]) -> Body:
    return {
        "modelfile": f"# Modelfile generated by the stand-in\nFROM {model}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {"general.architecture": "llama", "llama.context_length": _NUM_CTX},
        "capabilities": can,
        "modified_at": _MODIFIED,
    }


def _running(model: str, until: float, context: int | None) -> Body:
    return _entry(model) | {"expires_at": _time(until), "size_vram": 0, "context_length": context or _NUM_CTX}


def _entry(model: str) -> Body:
    """Return what a list of models says of one; its digest is a hash of its name."""
    digest = sha256(f"stand-in {model}".encode()).hexdigest()
    return {"name": model, "model": model, "size": _SIZE, "digest": digest, "details": _DETAILS}
