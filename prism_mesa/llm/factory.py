"""Makes the client of the language model that a configuration names, and looks whether its server answers."""

from typing import Final

from prism_mesa.errors import ConfigError, MissingLLMError
from prism_mesa.llm.client import LLMClient
from prism_mesa.llm.clients.base import ChatClient
from prism_mesa.llm.clients.embedded import EmbeddedChatClient
from prism_mesa.llm.clients.llamacpp import SMOLLM2, embedded_fault
from prism_mesa.llm.clients.ollama import OllamaChatClient
from prism_mesa.llm.clients.openai import OpenAIChatClient
from prism_mesa.llm.clients.pool import HostPool
from prism_mesa.llm.clients.recorded import recorded_client
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import Ledger
from prism_mesa.llm.params import LLMParams

OLLAMA_HOST: Final = "http://127.0.0.1:11434"
OPENAI_HOST: Final = "http://127.0.0.1:8000/v1"
_LEAST_FAILURES: Final = 5


def make_llm_client(params: LLMParams, *, continues: bool = False) -> tuple[LLMClient | None, str]:
    """Return a client for answers in a form, and None with the reason where `auto` finds no LLM or `rule` wants none.

    With `continues` SmolLM2 continues prompts, which should then show it how (see `EmbeddedChatClient`).

    Raises:
        ConfigError: If what is asked for is not there.
        DataError: If the ledger cannot be opened.
    """
    if isinstance(params.model, dict):
        raise ConfigError("reasoner.model: only one LLM can be asked here: give its name")
    if params.kind == "rule":
        return None, "reasoner.kind=rule asks no LLM"
    store = answer_store(params)
    try:
        if store.mode == "replay" and store.shared is not None:
            recorded = recorded_client(store.shared, params)
            kind = "embedded" if "build" in recorded.decoding else params.kind
            return LLMClient(recorded, params, store=store, kind=kind), ""
        client, kind, note = find_client(params, continues=continues)
    except BaseException:
        store.close()
        raise
    if client is None:
        store.close()
        return None, note
    return LLMClient(client, params, store=store, kind=kind, note=note), note


def answer_store(params: LLMParams) -> AnswerStore:
    """Return what is known before: the ledger beside a run's own, opened, if the parameters name one."""
    shared = None if params.ledger_path is None else Ledger(params.ledger_path, read_only=params.ledger == "replay")
    return AnswerStore(params.ledger, shared)


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
        client = _served(params)
        client.check(decides=params.decides)
        notes = (str(getattr(host, "note", "")) for host in client.clients)
        return client, params.kind, "; ".join(dict.fromkeys(filter(None, notes)))
    hosts = _served(params)  # a wrong address is an error, a server that is not there is none
    try:
        hosts.check(decides=params.decides)
    except MissingLLMError as error:  # an LLM that is there and cannot do what is asked is an error
        note = f"no Ollama: {str(error).partition(': ')[2].replace(', or set reasoner.kind=rule', '')}"
    else:
        return hosts, "ollama", ""
    fault = embedded_fault(_gguf(params))
    fault = "is no decision model" if params.decides and _gguf(params) == SMOLLM2 else fault
    if fault:
        return None, "", f"{note}; the embedded LLM {fault}"
    return _embedded(params, continues=continues), "embedded", note


def _served(params: LLMParams) -> HostPool:
    """Return an LLM on the servers of `params.host`."""

    def client(host: str) -> ChatClient:
        if params.kind == "openai":
            return OpenAIChatClient(params.one_llm, host, params.timeout_s, **params.decoding)
        own = params.decoding | {"keep_alive": params.keep_alive}
        return OllamaChatClient(params.one_llm, host, params.timeout_s, **own)

    if params.kind == "openai" and params.model is None:
        raise ConfigError("reasoner.model: empty; with reasoner.kind=openai name the LLM that the server has")
    hosts = params.hosts or [OPENAI_HOST if params.kind == "openai" else OLLAMA_HOST]
    return HostPool([client(host) for host in hosts], failures=max(_LEAST_FAILURES, params.max_concurrency + 1))


def _gguf(params: LLMParams) -> str:
    """Return the embedded LLM's file; with `auto` a name that is none is meant for a server."""
    is_file = params.model is not None and (params.kind == "embedded" or str(params.model).endswith(".gguf"))
    return str(params.model) if is_file else SMOLLM2


def _embedded(params: LLMParams, *, continues: bool) -> EmbeddedChatClient:
    gguf, own = _gguf(params), {name: params.decoding[name] for name in ("temperature", "seed", "max_tokens")}
    client = EmbeddedChatClient(gguf, continues=continues and gguf == SMOLLM2, **own)
    if gguf != SMOLLM2 or params.decides:
        client.load(decides=params.decides)  # an unreadable file ends the run before it begins
    return client
