"""Makes the client of the configured LLM, and checks that its server answers."""

from typing import Final

from prism_mesa.errors import ConfigError, MissingLLMError
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.client import LLMClient
from prism_mesa.llm.clients.base import ChatClient
from prism_mesa.llm.clients.embedded import SMOLLM2, embedded_fault
from prism_mesa.llm.clients.pool import HostPool
from prism_mesa.llm.clients.recorded import recorded_client
from prism_mesa.llm.kinds import KINDS, first_kind
from prism_mesa.llm.ledger import Ledger
from prism_mesa.llm.params import LLMParams, gguf_file

_MIN_FAILURES: Final = 5


def make_llm_client(params: LLMParams, *, continues: bool = False) -> tuple[LLMClient | None, str]:
    """Return a client for structured answers, or None and the reason (`auto` finds no LLM, or the kind is `rule`).

    With `continues`, SmolLM2 continues prompts (see `EmbeddedChatClient`).
    Raises ConfigError if the LLM is missing, and DataError if the ledger cannot be opened.
    """
    if isinstance(params.model, dict):
        raise ConfigError("reasoner.model: only one LLM can be asked here: give its name")
    if params.kind == "rule":
        return None, "reasoner.kind=rule asks no LLM"
    store = answer_store(params)
    try:
        if store.mode == "replay" and store.shared_ledger is not None:
            replay_client = recorded_client(store.shared_ledger, params)
            kind = "embedded" if "build" in replay_client.decoding else params.kind
            return LLMClient(replay_client, params, store=store, kind=kind), ""
        client, kind, note = find_client(params, continues=continues)
    except BaseException:
        store.close()
        raise
    if client is None:
        store.close()
        return None, note
    return LLMClient(client, params, store=store, kind=kind, note=note), note


def answer_store(params: LLMParams) -> AnswerStore:
    """Return the store of recorded answers, with the shared ledger if the parameters name one."""
    ledger = None if params.ledger_path is None else Ledger(params.ledger_path, read_only=params.ledger == "replay")
    return AnswerStore(params.ledger, ledger)


def find_client(params: LLMParams, *, continues: bool = False) -> tuple[ChatClient | None, str, str]:
    """Return the configured LLM, its kind, and a note.

    `auto` chooses Ollama if it answers and has the model, else the embedded LLM if it is installed, else None. The note
    gives the reason. For `continues` see `make_llm_client`. Raises ConfigError if the LLM is missing, or an address is
    wrong.
    """
    kind = first_kind(params.kind)
    make_client = KINDS[kind].load().from_params
    if not KINDS[kind].host:
        return make_client(params, "", continues=continues), kind, ""
    failures = max(_MIN_FAILURES, params.max_concurrency + 1)
    pool = HostPool([make_client(params, host) for host in params.hosts or [KINDS[kind].host]], failures=failures)
    try:
        pool.check(needs_decisions=params.needs_decisions)
    except MissingLLMError as error:
        if params.kind != "auto":
            raise
        note = f"no Ollama: {str(error).partition(': ')[2].replace(', or set reasoner.kind=rule', '')}"
    else:
        notes = (str(getattr(host, "note", "")) for host in pool.clients)
        return pool, kind, "; ".join(dict.fromkeys(filter(None, notes)))
    fault = embedded_fault(gguf_file(params) or SMOLLM2)
    fault = "is not a decision model" if params.needs_decisions and gguf_file(params) is None else fault
    if fault:
        return None, "", f"{note}; the embedded LLM {fault}"
    return KINDS["embedded"].load().from_params(params, "", continues=continues), "embedded", note
