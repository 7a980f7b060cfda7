"""How the stand-in decides: `/v1/systemone` and `/v1/decisions` as servers of 2026 have them, and break them."""

import json
from hashlib import blake2b
from typing import Any, Literal

from stand_in.brains import Body
from stand_in.wire import error_response, json_response, response

type Dialect = Literal["ollama", "llama.cpp", "sparrow", "openai"]
type Row = Literal[
    "bad question", "too many options", "too long", "not a decision model",
    "unknown model", "not there", "usage",
]  # fmt: skip
type DecisionFault = Literal[
    "missing option", "extra option", "sum", "nan", "strings", "negative", "twice",
    "no answer", "another name", "refusal", "contradiction", "html",
    "error with status 200", "slow", "cut", "server error", "list",
]  # fmt: skip

_PATHS = ("/v1/systemone", "/v1/decisions")
_NOT_THERE = response(b"404 page not found", 404, "text/plain")


def _llama(status: int, message: str, kind: str = "invalid_request_error") -> bytes:
    return error_response(status, {"code": status, "message": message, "type": kind})


ROWS: dict[Row, dict[Dialect, bytes | None]] = {
    "bad question": {
        "ollama": error_response(400, 'question "answer": criteria must not be empty'),
        "llama.cpp": _llama(400, 'questions.answer: "criteria" must be a non-empty object'),
        "sparrow": error_response(422, "a choice question needs criteria: {name: description}, at least 2"),
    },
    "too many options": {"llama.cpp": _llama(400, "too many options (300), this model supports at most 52")},
    "too long": {
        "ollama": error_response(400, "the state exceeds the context length of the model"),
        "llama.cpp": _llama(400, "the request exceeds the available context size", "exceed_context_size_error"),
        "sparrow": None,
    },
    "not a decision model": {
        "ollama": error_response(400, '"llama3.2:latest" is not a decision model'),
        "llama.cpp": _llama(501, "This model is not a decision model", "not_supported_error"),
    },
    "unknown model": {
        "ollama": error_response(404, "model 'd1-omni:600m' not found"),
        "llama.cpp": None,
        "sparrow": None,
        "openai": error_response(404, {"message": "The model `d1` does not exist", "code": "model_not_found"}),
    },
    "not there": {
        "ollama": _NOT_THERE,
        "llama.cpp": _llama(404, "File Not Found", "not_found_error"),
        "sparrow": error_response(404, "not found"),
        "openai": error_response(404, {"message": "Invalid URL (POST /v1/decisions)", "type": "invalid_request_error"}),
    },
    "usage": {"ollama": None, "llama.cpp": None, "sparrow": None, "openai": None},
}
"""What each server says in a case, whatever is asked; None: it lets the case through, and answers."""


class Decisions:
    """The part of a `StandIn` that decides, and knows what it meant.

    Args:
        dialect: As which server.
        row: What is wrong with every request (`ROWS`); `fault`: with every answer.
        only: Whether its LLMs only decide, and do not chat.

    Attributes:
        meant: What it meant, by state and by the options as they were asked.
        asked: The bodies of all requests, with their paths.
    """

    def __init__(
        self,
        dialect: Dialect = "ollama",
        row: Row | None = None,
        fault: DecisionFault | None = None,
        *,
        only: bool = True,
    ) -> None:
        self.dialect, self.row, self.fault, self.only = dialect, row, fault, only
        self.meant: dict[tuple[str, tuple[str, ...]], dict[str, float]] = {}
        self.asked: list[tuple[str, Body]] = []

    def response(self, method: str, path: str, content: bytes) -> tuple[bytes, bool] | None:
        """Return what is sent, and whether the connection is then closed; None: it is no request to decide."""
        if method == "GET" and path == "/v1/models":
            return self._models(), False
        if method != "POST" or path not in _PATHS:
            return None
        body = json.loads(content)
        self.asked.append((path, body))
        if path != ("/v1/decisions" if self.dialect == "openai" else "/v1/systemone"):
            return (ROWS["not there"][self.dialect] or b""), False
        if self.row is not None and (said := ROWS[self.row][self.dialect]) is not None:
            return said, False
        if self.fault == "slow":
            return b"", False
        if self.fault == "html":
            return response(b"<html>Welcome</html>", kind="text/html"), False
        if self.fault == "server error":
            return error_response(500, "the model has crashed"), False
        if self.fault == "error with status 200":
            return error_response(200, "the model is overloaded with decisions"), False
        reply = self._reply(body)
        text = json.dumps(reply)
        if self.fault == "twice":
            text = text.replace('"probabilities": {', '"probabilities": {"scrolling": 0.5, ')
        whole = response(text.encode())
        return (whole[:-10], True) if self.fault == "cut" else (whole, False)

    def _reply(self, body: Body) -> Body:
        listed = self.dialect == "openai"
        question = body["questions"][0] if listed else body["questions"]["answer"]
        scale = question["type"] == "score"
        if listed:
            options = (
                [one["label"] for one in question["levels"]] if scale else [c["value"] for c in question["choices"]]
            )
        else:
            options = list(question["criteria"])
        state = body["input"] if listed else body["state"]
        shares = self._shares(state, options)
        self.meant[state, tuple(options)] = shares
        named: dict[str, Any] = {str(at) if scale else name: share for at, (name, share) in enumerate(shares.items())}
        answer = {"type": question["type"], "probabilities": self._spoiled(named), "confidence": 0.4}
        if scale:
            answer["score"] = sum(at * share for at, share in enumerate(shares.values()))
            answer["legend"] = dict(zip(named, options, strict=True))
        else:
            answer["choice"] = max(shares, key=lambda name: shares[name])
        if self.fault == "contradiction":
            answer["choice"] = min(shares, key=lambda name: shares[name])
        if self.fault == "refusal":
            answer = {"type": "refusal"}
        name = "other" if self.fault == "another name" else "answer"
        if self.fault == "no answer":
            answers: Any = [] if listed else {}
        elif listed:
            answers = [self._as_listed(answer, options) | {"name": name}]
        else:
            answers = {name: answer}
        model = {"ollama": body["model"], "llama.cpp": "tiny.gguf", "sparrow": "sparrow-nano-general-v1.1"}
        tokens = {"ollama": (174, 1), "llama.cpp": (174, 0), "sparrow": (0, 0)}.get(self.dialect, (174, 3))
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        return {"model": model.get(self.dialect, "gpt-6-luna-2026-10"), "answers": answers, "usage": usage}

    def _shares(self, state: str, options: list[str]) -> dict[str, float]:
        """Return shares by a hash, of which the first place gets a little more, rounded as the dialect does."""
        weights = {
            name: 1 + blake2b(f"{state}\x1f{name}".encode()).digest()[0] + (60 if at == 0 else 0)
            for at, name in enumerate(options)
        }
        digits = 4 if self.dialect in ("sparrow", "ollama") else 15
        return {name: round(weight / sum(weights.values()), digits) for name, weight in weights.items()}

    def _spoiled(self, shares: dict[str, Any]) -> dict[str, Any]:
        first = next(iter(shares))
        wrong = {"nan": float("nan"), "negative": -0.2}
        if self.fault == "missing option":
            del shares[first]
        elif self.fault == "extra option":
            shares["flying"] = 0.0
        elif self.fault == "sum":
            shares = {name: share / 2 for name, share in shares.items()}
        elif self.fault == "strings":
            shares = {name: str(share) for name, share in shares.items()}
        elif self.fault in wrong:
            shares[first] = wrong[self.fault]
        return shares

    def _as_listed(self, answer: Body, options: list[str]) -> Body:
        shares = answer.get("probabilities")
        if shares is None:
            return answer
        entries = [{"value": name, "probability": share} for name, share in shares.items()]
        if answer["type"] == "score":
            entries = [
                {"value": int(entry["value"]), "label": label, "probability": entry["probability"]}
                for entry, label in zip(entries, options, strict=False)
            ]
        if self.fault == "twice":
            entries.append(entries[0])
        return {name: value for name, value in answer.items() if name != "legend"} | {"probabilities": entries}

    def _models(self) -> bytes:
        if self.dialect == "sparrow":
            return json_response({"status": "ok", "model": "sparrow-nano-general-v1.1"})
        owner = {"llama.cpp": "llamacpp", "ollama": "library"}.get(self.dialect, "system")
        model: Body = {"id": "d1-omni:600m", "object": "model", "created": 1, "owned_by": owner}
        if self.dialect == "llama.cpp":
            plain = self.row == "not a decision model"
            model["architecture"] = {"output_modalities": ["text" if plain else "decisions"]}
        return json_response({"object": "list", "data": [model]})
