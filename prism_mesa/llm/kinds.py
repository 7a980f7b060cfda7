"""The kinds of LLM clients. Each is declared here once; its class is in the module that `client` names."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True)
class LLMKind:
    """One kind of LLM client.

    Its class has `from_params(params, host, continues=...)`, which makes a client, and `doctor(host, wait_s)`, which
    returns what `prism doctor` says: ok or missing, what there is, and what to do.

    Attributes:
        name: Its value of `reasoner.kind`.
        title: Its name in the output of `prism doctor`.
        words: Its description in reports.
        client: Module and class of the client, which is imported when it is first needed.
        host: Default address of the server; empty if the LLM runs in this process.
        extra: The extra of PRISM that it needs; empty if none.
        without_effect: Keys that have no effect with this kind, and why.
    """

    name: str
    title: str
    words: str
    client: str
    host: str = ""
    extra: str = ""
    without_effect: tuple[tuple[str, str], ...] = ()

    def load(self) -> Any:
        """Return the class of the client."""
        module, _, name = self.client.partition(":")
        return getattr(import_module(f"prism_mesa.llm.clients.{module}"), name)

    def ignores(self, key: str) -> bool:
        """Return whether a key of `reasoner` has no effect with this kind."""
        return any(key in keys.split() for keys, _ in self.without_effect)


_ONLY_OLLAMA: Final = ("num_ctx keep_alive", "only reasoner.kind=ollama can set it")
_ALL: Final = (
    LLMKind("ollama", "Ollama", "an LLM served by Ollama", "ollama:OllamaChatClient", host="http://127.0.0.1:11434"),
    LLMKind(
        "embedded",
        "embedded LLM",
        "the embedded LLM",
        "embedded:EmbeddedChatClient",
        extra="embedded",
        without_effect=(
            ("host", "the embedded LLM is on no server"),
            ("max_concurrency", "the embedded LLM answers one question at a time"),
            ("think cut_prompts", "the embedded LLM has no such setting"),
            _ONLY_OLLAMA,
        ),
    ),
    LLMKind(
        "openai",
        "OpenAI protocol",
        "an LLM behind an OpenAI-compatible server",
        "openai:OpenAIChatClient",
        host="http://127.0.0.1:8000/v1",
        without_effect=(_ONLY_OLLAMA,),
    ),
)
KINDS: Final = {kind.name: kind for kind in _ALL}
SERVED: Final = tuple(kind.name for kind in _ALL if kind.host)
"""Names of the kinds that ask a server."""
KINDS_THAT_ASK: Final = ", ".join(("auto", *KINDS))
"""The values of `reasoner.kind` with which an LLM is asked, for messages."""
