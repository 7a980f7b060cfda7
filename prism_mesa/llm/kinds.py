"""The kinds of LLM clients. Each is declared here once; its class is in the module that `client` names."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True)
class LLMKind:
    """One kind of LLM client.

    Its class has `from_params(params, host, continues=...)` and `doctor(host, wait_s)`, for `prism doctor`.

    Attributes:
        name: Its value of `reasoner.kind`; `title` its name in `prism doctor`, `words` its description in reports.
        client: Module and class of the client, imported when it is first needed.
        host: Default address of the server; empty if the LLM runs in this process.
        extra: The extra of PRISM that it needs; empty if none.
    """

    name: str
    title: str
    words: str
    client: str
    host: str = ""
    extra: str = ""

    def load(self) -> Any:
        """Return the class of the client."""
        module, _, name = self.client.partition(":")
        return getattr(import_module(f"prism_mesa.llm.clients.{module}"), name)


_ALL: Final = (
    LLMKind("ollama", "Ollama", "an LLM served by Ollama", "ollama:OllamaChatClient", host="http://127.0.0.1:11434"),
    LLMKind("embedded", "embedded LLM", "the embedded LLM", "embedded:EmbeddedChatClient", extra="embedded"),
    LLMKind(
        "openai",
        "OpenAI protocol",
        "an LLM behind an OpenAI-compatible server",
        "openai:OpenAIChatClient",
        host="http://127.0.0.1:8000/v1",
    ),
)
KINDS: Final = {kind.name: kind for kind in _ALL}
SERVED: Final = tuple(kind.name for kind in _ALL if kind.host)
"""Names of the kinds that ask a server."""
KINDS_THAT_ASK: Final = ", ".join(("auto", *KINDS))
"""The values of `reasoner.kind` with which an LLM is asked, for messages."""
IGNORED_KEYS: Final = (
    ("host", ("embedded",), "the embedded LLM is on no server"),
    ("max_concurrency", ("embedded",), "the embedded LLM answers one question at a time"),
    ("think cut_prompts", ("embedded",), "the embedded LLM has no such setting"),
    ("num_ctx keep_alive", ("embedded", "openai"), "only reasoner.kind=ollama can set it"),
)
"""Keys of `reasoner` without effect, the kinds with which they have none, and why."""


def ignores(kind: str, key: str) -> bool:
    """Return whether a key of `reasoner` has no effect with a kind."""
    return any(kind in kinds and key in keys.split() for keys, kinds, _ in IGNORED_KEYS)


def first_kind(kind: str) -> str:
    """Return the kind that is tried first: `auto` begins with Ollama."""
    return _ALL[0].name if kind == "auto" else kind
