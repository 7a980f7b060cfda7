"""What the stand-in for Ollama says: plain functions of the request."""

import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from stand_in.policies import with_policies

type Body = dict[str, Any]
type Top = tuple[tuple[str, float], ...]
type Brain = Callable[[Body], str | Said | Awaitable[str | Said]]

MAX_TOP = 20  # what Ollama gives at most per token
_LETTERS_ASKED = re.compile(r"one letter only: ([A-Z](?:, [A-Z])+)")
_POST = re.compile(r"\bpost (\d{1,9})\b")
_PIECE = re.compile(r"\s?_?[^\W_]{1,12}|\s?[^\w\s]+|\s+|_")
_IMPROBABLE: Top = tuple(
    (f" {word}", -12.0 - place / 4)
    for place, word in enumerate("the a to and of in is it for on with as at by an be or so no we".split())
)


@dataclass(frozen=True)
class Token:
    """A piece of an answer.

    Attributes:
        logprob: Of this piece after those before it, 0 or below.
        top: What else could stand here, with logprobs, best first; at most 20 are sent.
    """

    text: str
    logprob: float
    top: Top = ()


@dataclass(frozen=True)
class Said:
    """An LLM's answer.

    Attributes:
        tokens: The pieces of `text`; if none are given, it is cut into some that are nearly certain.
        prompt_tokens: How many the prompt has; 0 means "four characters each".
        completion_tokens: How many the answer has; 0 means "as many as `tokens`".
        thought: The pieces of what it thought before; with an empty `text`, all that it said.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought: tuple[Token, ...] = ()


def prompt_text(body: Body) -> str:
    """Return everything that a chat request tells the LLM, as one text."""
    return "\n".join(str(message.get("content") or "") for message in body.get("messages") or ())


def choose_by_hash(body: Body) -> Said:
    """Answer what a hash of the whole prompt says; seed and temperature do not matter.

    Constrained to a JSON schema, the answer takes one of the values of each ``enum`` in it. The logprobs, where
    asked for, are those of a distribution over these answers whose best is the one given: the product over
    an answer's tokens is its probability.

    Some arrays that may be empty hold an entry: one of the ``anyOf`` of objects that they allow, such as calls of
    tools. A whole number that is called `post` is then one of the last that the prompt calls a post. Where the prompt
    names a nation's instruments, an `action` is a policy in words.

    >>> choose_by_hash({"messages": [{"content": "Which?"}], "format": {"enum": ["like", "reply"]}}).text
    '"reply"'
    """
    digest = blake2b(prompt_text(body).encode("utf-8", "replace"), digest_size=16).digest()
    number = int.from_bytes(digest[:8], "big")
    if not body.get("format"):
        letters = _LETTERS_ASKED.findall(prompt_text(body))
        return _one_letter(letters[-1].split(", "), digest) if letters else Said(_remark(number, prompt_text(body)))
    schema = body["format"] if isinstance(body["format"], dict) else {"properties": {"answer": {"type": "boolean"}}}
    answer = _with_posts(_fitting(schema, number, schema), number, _POST.findall(prompt_text(body))[-4:])
    text = json.dumps(with_policies(answer, number, prompt_text(body)))
    if not body.get("logprobs"):
        return Said(text)
    rivals = (json.dumps(_fitting(schema, number + more, schema)) for more in range(1, _n_choices(schema, schema)))
    weights = {rival: math.exp(digest[8 + place % 8] / 64) for place, rival in enumerate(rivals)}
    return Said(text, _weighed(text, weights | {text: math.exp(4.5)}))


def _remark(number: int, prompt: str) -> str:
    """Return a sentence, and not the one that the prompt ends with: nobody answers with what was said."""
    remarks = [f"I would choose {1 + (number + more) % 9}." for more in range(9)]
    return next((remark for remark in remarks if remark not in prompt[-80:]), remarks[0])


def _one_letter(letters: list[str], digest: bytes) -> Said:
    """Return one of the letters, with log-probabilities of all of them by the bytes of a hash."""
    weights = {letter: 1.0 + digest[8 + place % 8] for place, letter in enumerate(letters)}
    best = max(weights, key=lambda letter: weights[letter])
    total = sum(weights.values())
    ranked = sorted(((letter, math.log(weight / total)) for letter, weight in weights.items()), key=lambda top: -top[1])
    return Said(best, (Token(best, ranked[0][1], tuple(ranked)),))


def pieces(text: str) -> list[str]:
    """Return `text` cut into what could be tokens.

    >>> pieces('{"next_state": "scrolling"}')
    ['{"', 'next', '_state', '":', ' "', 'scrolling', '"}']
    """
    return _PIECE.findall(text)


def nearly_certain(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text of which nothing is known, each of them likely and its rivals improbable."""
    return tuple(Token(piece, -0.01, ((piece, -0.01), *_IMPROBABLE[1:])) for piece in pieces(text))


def embedded_brain() -> Brain:
    """Return a brain that asks the LLM inside this process (SmolLM2, 135M), at temperature 0, one answer at a time.

    Raises:
        ConfigError: If its packages are missing.
    """
    from prism_mesa.llm.clients.embedded import EmbeddedChatClient

    client = EmbeddedChatClient()

    async def brain(body: Body) -> Said:
        schema = body["format"] if isinstance(body.get("format"), dict) else None
        seed = int((body.get("options") or {}).get("seed") or 0)
        top = MAX_TOP if body.get("logprobs") else 0
        said = await client.chat(prompt_text(body), schema, seed_offset=seed, top_logprobs=top)
        tokens = _matched(said.text, said.top_logprobs) if top else ()
        return Said(said.text, tokens, said.prompt_tokens, said.completion_tokens)

    return brain


def _resolved(schema: Any, root: Body) -> Body:
    """Follow ``$ref`` (to ``#/$defs/Name``) and take the first of ``anyOf``."""
    while isinstance(schema, dict) and ("$ref" in schema or schema.get("anyOf")):
        reference = str(schema.get("$ref", "")).rsplit("/", 1)[-1]
        schema = root.get("$defs", {}).get(reference) if reference else schema["anyOf"][0]
    return schema if isinstance(schema, dict) else {}


def _fitting(schema: Any, number: int, root: Body) -> Any:
    """Return a value that fits the schema, chosen by `number`."""
    schema = _resolved(schema, root)
    if schema.get("enum"):
        return schema["enum"][number % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    if "properties" in schema:
        return {name: _fitting(part, number, root) for name, part in schema["properties"].items()}
    match schema.get("type"):
        case "boolean":
            return number % 2 == 0
        case "integer" | "number":
            low = schema.get("minimum", 0)
            return low + number % (int(schema.get("maximum", low + 9) - low) + 1)
        case "string":
            return "yes" if number % 2 else "no"
        case "array":
            least = schema.get("minItems", 0)
            if not least and number // 7 % 3 == 0 and schema.get("maxItems", 0) > 0:
                return [_one_of(schema.get("items"), number // 21, root)]
            return [_fitting(schema.get("items"), number, root)] * least
        case "null":
            return None
    return {}


def _one_of(schema: Any, number: int, root: Body) -> Any:
    """Return a value that fits the schema; of several kinds of objects it takes any."""
    kinds = schema.get("anyOf", ()) if isinstance(schema, dict) else ()
    if len(kinds) > 1 and all("properties" in kind for kind in kinds):
        return _fitting(kinds[number % len(kinds)], number // len(kinds), root)
    return _fitting(schema, number, root)


def _with_posts(value: Any, number: int, posts: list[str]) -> Any:
    """Return an answer in which whole numbers called `post` are posts that there are, if any are known."""
    if isinstance(value, list):
        return [_with_posts(part, number, posts) for part in value]
    if not isinstance(value, dict) or not posts:
        return value
    return {
        name: int(posts[number % len(posts)])
        if name == "post" and type(part) is int
        else _with_posts(part, number, posts)
        for name, part in value.items()
    }


def _n_choices(schema: Any, root: Body) -> int:
    """Return the length of the longest ``enum``, at least 1."""
    schema = _resolved(schema, root)
    return max(
        [len(schema.get("enum", "x")), *(_n_choices(part, root) for part in schema.get("properties", {}).values())]
    )


def _weighed(text: str, weights: dict[str, float]) -> tuple[Token, ...]:
    """Return the tokens of `text`, each with the logprobs of all that the weighed answers have at its place."""
    alive = [(pieces(rival), weight) for rival, weight in weights.items()]
    tokens = []
    for place, piece in enumerate(pieces(text)):
        mass: dict[str, float] = {}
        for parts, weight in alive:
            at = parts[place] if place < len(parts) else "<end>"
            mass[at] = mass.get(at, 0.0) + weight
        total = sum(mass.values())
        ranked = sorted(mass.items(), key=lambda one: (-one[1], one[0]))
        top = [(at, round(math.log(weight / total), 6) + 0.0) for at, weight in ranked]
        tokens.append(Token(piece, dict(top)[piece], (*top, *_IMPROBABLE)[:MAX_TOP]))
        alive = [one for one in alive if one[0][place : place + 1] == [piece]]
    return tuple(tokens)


def _matched(text: str, tops: tuple[Top, ...]) -> tuple[Token, ...]:
    """Return the tokens of `text`, given what could have stood at each place; a schema may have forced another."""
    tokens = []
    for top in tops:
        if not text:
            break
        likely = ((piece, logprob) for piece, logprob in top if piece and text.startswith(piece))
        piece, logprob = next(likely, (pieces(text)[0], top[-1][1] if top else 0.0))
        tokens.append(Token(piece, logprob, top))
        text = text[len(piece) :]
    return (*tokens, *nearly_certain(text))
