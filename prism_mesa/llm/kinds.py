"""The kinds of LLM clients, each declared once."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True)
class LLMKind:
    """A kind of LLM client, whose class has `from_params(params, host, continues=...)` and `doctor(host, wait_s)`.

    Attributes:
        name: The value of `reasoner.kind`.
        title: The name in `prism doctor`; `phrase` is the name in reports.
        client: Module and class of the client.
        host: Default address of the server; empty if the LLM runs in this process.
    """

    name: str
    title: str
    phrase: str
    client: str
    host: str = ""

    def load(self) -> Any:
        """Return the class of the client."""
        module, _, name = self.client.partition(":")
        return getattr(import_module(f"prism_mesa.llm.clients.{module}"), name)


_KINDS: Final = (
    LLMKind("ollama", "Ollama", "an LLM served by Ollama", "ollama:OllamaChatClient", host="http://127.0.0.1:11434"),
    LLMKind("embedded", "embedded LLM", "the embedded LLM", "embedded:EmbeddedChatClient"),
    LLMKind(
        *("openai", "OpenAI protocol", "an LLM behind an OpenAI-compatible server", "openai:OpenAIChatClient"),
        host="http://127.0.0.1:8000/v1",
    ),
)
KINDS: Final = {kind.name: kind for kind in _KINDS}
SERVED: Final = tuple(kind.name for kind in _KINDS if kind.host)
"""Names of the kinds that ask a server."""
LLM_KINDS: Final = ", ".join(("auto", *KINDS))
"""Values of `reasoner.kind` with which an LLM is asked, for messages."""
IGNORED_KEYS: Final = (
    ("host", ("embedded",), "the embedded LLM needs no server"),
    ("max_concurrency", ("embedded",), "the embedded LLM answers one question at a time"),
    ("think cut_prompts", ("embedded",), "the embedded LLM has no such setting"),
    ("num_ctx keep_alive", ("embedded", "openai"), "only reasoner.kind=ollama can set it"),
)
"""Keys of `reasoner` that some kinds of client ignore, with the kinds and the reason."""


def ignores(kind: str, key: str) -> bool:
    """Return whether a kind ignores a key of `reasoner`."""
    return any(kind in kinds and key in keys.split() for keys, kinds, _ in IGNORED_KEYS)


def first_kind(kind: str) -> str:
    """Return the kind to try first: Ollama for `auto`."""
    return _KINDS[0].name if kind == "auto" else kind
