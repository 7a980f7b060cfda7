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
from prism_mesa.reasoner.llm_client import LLMClient
from prism_mesa.reasoner.ollama import OllamaChatClient
from prism_mesa.reasoner.openai import OpenAIChatClient
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import OLLAMA_MODEL, LLMParams, ReasonerParams
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.recorded import recorded_client, recorded_oracle
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
    books = Books(params.ledger, shared_ledger(params))
    try:
        return _asking(params, books)
    except BaseException:
        books.close()
        raise


def make_llm_client(params: LLMParams, *, continues: bool = False) -> tuple[LLMClient | None, str]:
    """Return a client for answers in a form, and None with the reason where `auto` finds no LLM or `rule` wants none.

    With `continues` SmolLM2 continues prompts, which should then show it how (see `EmbeddedChatClient`).

    Raises:
        ConfigError: If what is asked for is not there.
        DataError: If the ledger cannot be opened.
    """
    if params.kind == "rule":
        return None, "reasoner.kind=rule asks no LLM"
    books = Books(params.ledger, shared_ledger(params))
    try:
        if books.mode == "replay" and books.shared is not None:
            recorded = recorded_client(books.shared, params)
            kind = "embedded" if "build" in recorded.decoding else params.kind
            return LLMClient(recorded, params, books=books, kind=kind), ""
        client, kind, note = find_client(params, continues=continues)
    except BaseException:
        books.close()
        raise
    if client is None:
        books.close()
        return None, note
    return LLMClient(client, params, books=books, kind=kind, note=note), note


def make_writer(
    params: ReasonerParams, reasoner: AnyReasoner, *, temperature: float, max_answer_tokens: int
) -> tuple[LLMClient | None, str]:
    """Return who writes texts beside a reasoner, and None with the reason where `auto` found no LLM.

    It is the reasoner's LLM, with a temperature and a length of its own; ledger and limits are the same.

    Raises:
        ConfigError: If the parameters name no LLM.
    """
    if not isinstance(reasoner, Reasoner):
        if params.kind != "auto":
            raise ConfigError(
                f"content: llm needs an LLM, and reasoner.kind={params.kind} asks none; set reasoner.kind "
                "(auto, ollama, embedded, openai), or content: template"
            )
        return None, f"content: no LLM writes, so the words are templates ({reasoner.note})"
    values = {name: getattr(reasoner.params, name) for name in LLMParams.model_fields}
    own = LLMParams(**values | {"temperature": temperature, "max_answer_tokens": max_answer_tokens})
    client: ChatClient | None
    if reasoner.kind == "python":
        client = getattr(reasoner.oracle, "client", None)
    elif reasoner.books.mode == "replay" and reasoner.books.shared is not None:
        client = recorded_client(reasoner.books.shared, own)
    else:
        client, _, _ = find_client(own, continues=True)
    if client is None:
        raise ConfigError("content: llm: the reasoner has no LLM that could write; give one with a chat client")
    return LLMClient(client, own, books=reasoner.books, kind=reasoner.kind, budget=reasoner.budget), ""


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


def shared_ledger(params: LLMParams) -> Ledger | None:
    """Return the ledger beside a run's own, opened, or None if there is to be none."""
    if params.ledger_path is None:
        return None
    return Ledger(params.ledger_path, read_only=params.ledger == "replay")


def _asking(params: ReasonerParams, books: Books) -> AnyReasoner:
    if books.mode == "replay" and books.shared is not None:
        return _reasoner(params, recorded_oracle(books.shared, params), params.kind, books)
    client, kind, note = find_client(params)
    if client is not None:
        return _reasoner(params, _oracle(client, params), kind, books, note)
    books.close()
    if params.distilled is not None:
        alone = _distilled(params, params.persona)
        alone.note = note
        return alone
    return RuleReasoner(params.rule, note=note)


def find_client(params: LLMParams, *, continues: bool = False) -> tuple[ChatClient | None, str, str]:
    """Return the LLM that the parameters name, its kind, and why it is not the one that was wished for first.

    With `auto` that is Ollama where it answers and has the model, else the embedded LLM where it is installed, else
    None. For `continues` see `make_llm_client`.

    Raises:
        ConfigError: If what is asked for is not there; always, if an address is none.
    """
    if params.kind == "embedded":
        return _embedded(params, continues=continues), "embedded", ""
    if params.kind != "auto":
        client = _MAKERS[params.kind](params)
        client.check()
        return client, params.kind, ""
    hosts = _ollama(params)  # a wrong address is an error, a server that is not there is none
    try:
        hosts.check()
    except ConfigError as error:
        note = f"no Ollama: {str(error).partition(': ')[2].replace(', or set reasoner.kind=rule', '')}"
    else:
        return hosts, "ollama", ""
    fault = embedded_fault(_gguf(params))
    if fault:
        return None, "", f"{note}; the embedded LLM {fault}"
    return _embedded(params, continues=continues), "embedded", note


def _oracle(client: ChatClient, params: ReasonerParams) -> Oracle:
    if isinstance(client, EmbeddedChatClient) and params.answer != "choice":
        return PmiOracle(client, params.rule)
    return ChatOracle(client, params.answer or "choice")


def _reasoner(params: ReasonerParams, oracle: Oracle, kind: str, books: Books, note: str = "") -> Reasoner:
    """Return a reasoner with the form of the answer and of the persona that suit who is asked."""
    scores = oracle.decoding.get("answer") is None
    answer = params.answer or ("probabilities" if scores else "choice")
    persona = params.persona or ("archetype" if scores or kind == "embedded" else "individual")
    resolved = params.model_copy(update={"answer": answer, "persona": persona})
    distilled = _distilled(params, persona) if params.llm_share < 1 else None
    return Reasoner(oracle, params=resolved, books=books, kind=kind, note=note, distilled=distilled)


def _served(params: LLMParams, client: Callable[[str], ChatClient], default: str) -> Hosts:
    """Return an LLM on the servers of `params.host`."""
    given = params.host or default
    clients = [client(host) for host in ([given] if isinstance(given, str) else given)]
    return Hosts(clients, failures=max(_LEAST_FAILURES, params.max_concurrency + 1))


def _ollama(params: LLMParams) -> Hosts:
    def client(host: str) -> ChatClient:
        return OllamaChatClient(params.model or OLLAMA_MODEL, host, params.timeout_s, **params.decoding)

    return _served(params, client, OLLAMA_HOST)


def _openai(params: LLMParams) -> Hosts:
    if params.model is None:
        raise ConfigError("reasoner.model: empty; with reasoner.kind=openai name the LLM that the server has")
    model = params.model

    def client(host: str) -> ChatClient:
        return OpenAIChatClient(model, host, params.timeout_s, **params.decoding)

    return _served(params, client, OPENAI_HOST)


def _gguf(params: LLMParams) -> str:
    """Return the embedded LLM's file; with `auto` a name that is none is meant for a server."""
    is_file = params.model is not None and (params.kind == "embedded" or params.model.endswith(".gguf"))
    return params.model if is_file and params.model is not None else SMOLLM2


def _embedded(params: LLMParams, *, continues: bool) -> EmbeddedChatClient:
    gguf, own = _gguf(params), params.decoding
    client = EmbeddedChatClient(gguf, continues=continues and gguf == SMOLLM2, **own)
    if gguf != SMOLLM2:
        client.load()  # whether llama.cpp can read somebody's file is said before a run begins
    return client


_MAKERS: Final[dict[str, Callable[[LLMParams], Hosts]]] = {
    "ollama": _ollama,
    "openai": _openai,
}
