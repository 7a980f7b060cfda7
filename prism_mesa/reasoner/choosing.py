"""Makes the reasoner that a configuration asks for. It looks whether a server answers; it asks no question."""

from collections.abc import Callable
from typing import Final

from prism_mesa.errors import ConfigError
from prism_mesa.reasoner.books import Books
from prism_mesa.reasoner.client import ChatClient
from prism_mesa.reasoner.distilled import DistilledReasoner, read_distilled
from prism_mesa.reasoner.embedded import EmbeddedChatClient, PmiOracle
from prism_mesa.reasoner.hosts import Hosts
from prism_mesa.reasoner.ledger import Ledger
from prism_mesa.reasoner.llamacpp import SMOLLM2, embedded_fault
from prism_mesa.reasoner.ollama import OllamaChatClient
from prism_mesa.reasoner.openai import OpenAIChatClient
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import OLLAMA_MODEL, ReasonerParams
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.recorded import recorded_oracle
from prism_mesa.reasoner.rule import RuleReasoner

OLLAMA_HOST: Final = "http://127.0.0.1:11434"
OPENAI_HOST: Final = "http://127.0.0.1:8000/v1"
_LEAST_FAILURES: Final = 5

type AnyReasoner = Reasoner | RuleReasoner | DistilledReasoner


def make_reasoner(params: ReasonerParams) -> AnyReasoner:
    """Return the reasoner of `params.kind`; its `label` and `kind` say which one it is.

    With `auto` that is Ollama where it answers and has the model, else the embedded LLM where it is installed, else
    the distilled model, if one is named, else the rule; its `note` says why not the ones before. In replay nobody is
    looked for: an LLM is known by what the ledger says of it.

    Raises:
        ConfigError: If what is asked for is not there; always, if an address is none.
        DataError: If the ledger cannot be opened, or the file of a distilled model does not fit.
    """
    if params.kind == "rule":
        if params.llm_share < 1 or params.distilled is not None:
            key = "distilled" if params.distilled is not None else "llm_share"
            raise ConfigError(
                f"reasoner.{key}: has no effect with reasoner.kind=rule; set reasoner.kind (auto, distilled)"
            )
        return RuleReasoner(params.rule)
    if params.kind == "distilled":
        if params.llm_share < 1:
            raise ConfigError(
                "reasoner.llm_share: has no effect with reasoner.kind=distilled; name an LLM's kind, or auto"
            )
        return _distilled(params, params.persona)
    books = Books(params.ledger, _shared_ledger(params))
    try:
        return _asking(params, books)
    except BaseException:
        books.close()
        raise


def _distilled(params: ReasonerParams, persona: str | None) -> DistilledReasoner:
    """Return the distilled model of the parameters; `persona` is who asks, or None if that is left to the model.

    Raises:
        ConfigError: If it has learned from other askers.
        DataError: If its file cannot be used.
    """
    model, text = read_distilled(params.distilled or "")
    if persona not in (None, model.persona):
        raise ConfigError(
            f"reasoner.persona: {persona}, but {params.distilled} has learned what an LLM says to persona="
            f"{model.persona}; set that, or distill a run with reasoner.persona={persona}"
        )
    return DistilledReasoner(model, RuleReasoner(params.rule), text)


def _shared_ledger(params: ReasonerParams) -> Ledger | None:
    if params.ledger_path is None:
        return None
    return Ledger(params.ledger_path, read_only=params.ledger == "replay")


def _asking(params: ReasonerParams, books: Books) -> AnyReasoner:
    if books.mode == "replay" and books.shared is not None:
        return _reasoner(params, recorded_oracle(books.shared, params), params.kind, books)
    if params.kind != "auto":
        oracle = _MAKERS[params.kind](params)
        _check(oracle)
        return _reasoner(params, oracle, params.kind, books)
    oracle = _ollama(params)  # a wrong address is an error, a server that is not there is none
    try:
        _check(oracle)
    except ConfigError as error:
        note = f"no Ollama: {str(error).partition(': ')[2].replace(', or set reasoner.kind=rule', '')}"
    else:
        return _reasoner(params, oracle, "ollama", books)
    fault = embedded_fault(_gguf(params))
    if not fault:
        return _reasoner(params, _embedded(params), "embedded", books, note)
    books.close()
    note = f"{note}; the embedded LLM {fault}"
    if params.distilled is not None:
        alone = _distilled(params, params.persona)
        alone.note = note
        return alone
    return RuleReasoner(params.rule, note=note)


def _check(oracle: Oracle) -> None:
    """Look whether servers are there.

    Raises:
        ConfigError: If one is not, or has not the LLM.
    """
    if isinstance(oracle, ChatOracle) and isinstance(oracle.client, Hosts):
        oracle.client.check()


def _reasoner(params: ReasonerParams, oracle: Oracle, kind: str, books: Books, note: str = "") -> Reasoner:
    """Return a reasoner with the form of the answer and of the persona that suit who is asked."""
    scores = oracle.decoding.get("answer") is None
    answer = params.answer or ("probabilities" if scores else "choice")
    persona = params.persona or ("archetype" if scores or kind == "embedded" else "individual")
    resolved = params.model_copy(update={"answer": answer, "persona": persona})
    distilled = _distilled(params, persona) if params.llm_share < 1 else None
    return Reasoner(oracle, params=resolved, books=books, kind=kind, note=note, distilled=distilled)


def _served(params: ReasonerParams, client: Callable[[str], ChatClient], default: str) -> Oracle:
    """Return an LLM on the servers of `params.host` as an oracle."""
    given = params.host or default
    clients = [client(host) for host in ([given] if isinstance(given, str) else given)]
    hosts = Hosts(clients, failures=max(_LEAST_FAILURES, params.max_concurrency + 1))
    return ChatOracle(hosts, params.answer or "choice")


def _ollama(params: ReasonerParams) -> Oracle:
    def client(host: str) -> ChatClient:
        return OllamaChatClient(params.model or OLLAMA_MODEL, host, params.timeout_s, **params.decoding)

    return _served(params, client, OLLAMA_HOST)


def _openai(params: ReasonerParams) -> Oracle:
    if params.model is None:
        raise ConfigError("reasoner.model: empty; with reasoner.kind=openai name the LLM that the server has")
    model = params.model

    def client(host: str) -> ChatClient:
        return OpenAIChatClient(model, host, params.timeout_s, **params.decoding)

    return _served(params, client, OPENAI_HOST)


def _gguf(params: ReasonerParams) -> str:
    """Return the embedded LLM's file; with `auto` a name that is none is meant for a server."""
    is_file = params.model is not None and (params.kind == "embedded" or params.model.endswith(".gguf"))
    return params.model if is_file and params.model is not None else SMOLLM2


def _embedded(params: ReasonerParams) -> Oracle:
    gguf = _gguf(params)
    client = EmbeddedChatClient(
        gguf, temperature=params.temperature, seed=params.seed, max_tokens=params.max_answer_tokens
    )
    if gguf != SMOLLM2:
        client.load()  # whether llama.cpp can read somebody's file is said before a run begins
    return ChatOracle(client, "choice") if params.answer == "choice" else PmiOracle(client, params.rule)


_MAKERS: Final[dict[str, Callable[[ReasonerParams], Oracle]]] = {
    "ollama": _ollama,
    "openai": _openai,
    "embedded": _embedded,
}
