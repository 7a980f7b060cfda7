"""How the stand-in for Ollama breaks: the named faults, and the bytes each sends."""

import json
from collections.abc import Callable
from typing import Any, Literal

from stand_in.brains import Body, Said, prompt_text
from stand_in.wire import error_response, json_response, response

type FaultName = Literal[
    "timeout",
    "drip",
    "dropped",
    "partial-body",
    "bad-request",
    "not-found",
    "server-error",
    "busy",
    "error-dict",
    "error-array",
    "not-done",
    "not-json",
    "wrong-shape",
    "json-array",
    "empty",
    "useless",
    "invalid-state",
]
type Fault = FaultName | Callable[[int, Body], FaultName | None] | None

FAULTS: dict[FaultName, str] = {
    "timeout": "no answer",
    "drip": "a byte now and then, so that no single read takes long",
    "dropped": "the connection closes instead of an answer",
    "partial-body": "the connection closes in the midst of an answer",
    "bad-request": "400",
    "not-found": "404, as if the model were not there",
    "server-error": "500",
    "busy": "503, as if the queue were full",
    "error-dict": "400 with an `error` that is a JSON object",
    "error-array": "500 with a JSON array for a body",
    "not-done": "an answer with `done` = false",
    "not-json": "200 with HTML",
    "wrong-shape": "200 with a JSON object that is no answer",
    "json-array": "200 with a JSON array",
    "empty": "an answer without content",
    "useless": "prose where JSON was wanted",
    "invalid-state": "JSON that fits the schema but for its values, which are none of the options",
}

AT_ONCE: frozenset[FaultName] = frozenset({"dropped", "bad-request", "not-found", "busy", "error-dict"})
"""Faults that take neither a slot nor time."""
HELD_BACK: frozenset[FaultName] = frozenset({"timeout", "drip"})
"""Faults that keep their slot until the client gives up."""

_HTML = b"<html><body>Welcome to nginx!</body></html>"


def first_attempts(
    name: FaultName, times: int = 1, *, by_seed: bool = False
) -> Callable[[int, Body], FaultName | None]:
    """Return a fault that meets the first `times` requests with each prompt, and none after.

    With `by_seed`, a prompt with another seed counts as another prompt.
    """
    seen: dict[tuple[str, Any], int] = {}

    def fault(number: int, body: Body) -> FaultName | None:
        key = prompt_text(body), (body.get("options") or {}).get("seed") if by_seed else None
        seen[key] = seen.get(key, 0) + 1
        return name if seen[key] <= times else None

    return fault


def fault_response(fault: FaultName | None, model: str) -> bytes:
    """Return what the server sends for a fault that is a whole response; empty if it is none."""
    match fault:
        case "bad-request":
            return error_response(400, "invalid options: num_ctx")
        case "not-found":
            return error_response(404, f"model '{model}' not found")
        case "server-error":
            return error_response(500, "llama runner process has terminated: exit status 2")
        case "busy":
            return error_response(503, "server busy, please try again.  maximum pending requests exceeded")
        case "error-dict":
            return error_response(400, {"code": 400, "message": "invalid format"})
        case "error-array":
            return json_response(["out", "of", "memory"], 500)
        case "not-json":
            return response(_HTML, kind="text/html")
        case "wrong-shape":
            return json_response({"message": "hi", "response": ["hi"], "done": True})
        case "json-array":
            return json_response([1, 2])
    return b""


def spoiled(said: Said, fault: FaultName | None, body: Body) -> Said:
    """Return the LLM's answer, or the useless one of its fault."""
    match fault:
        case "empty":
            return Said("")
        case "useless":
            return Said("Sure! I think I would keep scrolling.")
        case "invalid-state":
            schema = body.get("format")
            names = schema.get("properties", {}) if isinstance(schema, dict) else {}
            return Said(json.dumps(dict.fromkeys(names or ["next_state"], "flying")))
    return said
