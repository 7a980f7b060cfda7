"""Parameters for asking a language model, with their defaults, units and ranges."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator

from prism_mesa.llm.kinds import IGNORED_KEYS, KINDS, SERVED, ignores
from prism_mesa.params import Params, UserPath

type Source = Literal["llm", "cache", "fallback", "budget", "rule", "distilled", "failed"]
"""The source of an answer. With `failed` there is no answer, and the step was abandoned."""
STAND_INS: Final[tuple[Source, ...]] = ("fallback", "budget")
"""Sources of answers that replace a missing answer of an LLM."""
SHORTFALLS: Final[tuple[Source, ...]] = (*STAND_INS, "failed")
"""Sources of questions that the LLM did not answer."""
type LedgerMode = Literal["live", "cache", "replay"]
Host = Annotated[str, Field(min_length=1)]
Hosts = Host | Annotated[list[Host], Field(min_length=1)]
OLLAMA_MODEL: Final = "llama3.2"


def value_text(value: object) -> str:
    """Return an attribute's value as a key of `LLMParams.model`: `true`, `1`, `left`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


type Think = Literal[False, True, "low", "medium", "high", "max"] | None
type CutPrompts = Literal["useless", "accept"]


def explicit_options(think: Think, num_ctx: int | None = None, cut_prompts: CutPrompts = "useless") -> dict[str, Any]:
    """Return the options that differ from their defaults. The decodings in older ledgers have no such options."""
    options: dict[str, Any] = {} if think is False else {"think": think}
    options |= {} if num_ctx is None else {"num_ctx": num_ctx}
    return options if cut_prompts == "useless" else options | {"cut_prompts": cut_prompts}


DECISION_MODEL: Final = "d1-omni:600m"
"""The default decision model on Ollama."""
_TEXT_OPTIONS: Final = frozenset({"temperature", "seed", "max_tokens", "think", "num_ctx", "continues"})


def decision_decoding(decoding: Mapping[str, Any], orders: int = 1) -> dict[str, Any]:
    """Return the decoding options of a decision, without the options that affect only texts."""
    options = {name: value for name, value in decoding.items() if name not in _TEXT_OPTIONS} | {"answer": "decision"}
    return options | ({"decision_orders": orders} if orders > 1 else {})


def _check_keep_alive(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= 10**9
    is_text = isinstance(value, str) and len(value) <= 20 and re.fullmatch(r"-?(\d+(\.\d+)?(ms|s|m|h))+", value)
    if value is None or is_number or is_text:
        return value
    raise ValueError("give seconds, -1 for ever, or a duration like 10m")


class LLMParams(Params):
    """How PRISM asks an LLM: its address, its limits, and its ledger."""

    kind: str
    model: Host | dict[Annotated[Host, BeforeValidator(value_text)], float | str] | None = Field(
        default=None,
        description="Name of the LLM, or path of a GGUF file (embedded); null: llama3.2 with Ollama (d1-omni:600m for "
        "answer=decision), SmolLM2 embedded; several LLMs: {NAME: SHARE, ...}, or {VALUE: NAME, ...} with model_by",
    )
    host: Hosts | dict[str, Hosts] | None = Field(
        default=None,
        description="Address of the server, or a list of addresses; null: "
        f"{', '.join(f'{KINDS[kind].host} ({kind})' for kind in SERVED)}; several LLMs: {{NAME: ADDRESS, ...}}",
    )
    timeout_s: float = Field(30.0, gt=0, le=86_400, description="Seconds after which an attempt counts as unanswered")
    temperature: float = Field(0.0, ge=0, le=100, description="Sampling temperature; 0: always the likeliest token")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Sampling seed of the LLM (not the run's seed)")
    max_answer_tokens: int = Field(default=256, ge=1, le=1_000_000, description="Maximum tokens of an answer")
    think: Think = Field(
        default=False,
        description="Whether, or how much, the LLM thinks before it answers; null: the server decides. Thoughts count "
        "towards max_answer_tokens",
    )
    num_ctx: int | None = Field(
        None, ge=1, le=10**8, description="Ollama's limit on tokens of prompt plus answer; null: Ollama's default"
    )
    keep_alive: Annotated[int | str, BeforeValidator(_check_keep_alive)] | None = Field(
        None,
        description="Time for which Ollama keeps the LLM: seconds, or text (10m); -1: forever; null: Ollama's default",
    )
    cut_prompts: CutPrompts = Field(
        "useless", description="Answers to prompts that the server cut: useless discards them; accept keeps them"
    )
    max_concurrency: int = Field(default=8, ge=1, le=1024, description="Maximum number of parallel questions")
    attempts: int | None = Field(
        None, ge=1, le=100, description="Attempts at a question after temporary failures or useless answers"
    )
    backoff_s: float = Field(
        default=0.5, ge=0, le=600, description="Seconds before the second attempt; doubled for each further attempt"
    )
    max_calls: int | None = Field(default=None, ge=0, le=10**12, description="Maximum calls in a run; null: no limit")
    max_tokens: int | None = Field(default=None, ge=0, le=10**15, description="Maximum tokens in a run (with prompts)")
    max_seconds: float | None = Field(
        None, ge=0, le=31_536_000, description="Maximum seconds of waiting in a run; makes runs differ, but not replays"
    )
    max_calls_per_round: int | None = Field(default=None, ge=0, le=10**12, description="Maximum calls in a round")
    max_tokens_per_round: int | None = Field(default=None, ge=0, le=10**15, description="Maximum tokens in a round")
    max_seconds_per_round: float | None = Field(
        default=None, ge=0, le=31_536_000, description="Maximum seconds of waiting in a round"
    )
    ledger: LedgerMode = Field(
        "live", description="live: always ask; cache: ask only if the ledger has no answer; replay: never ask"
    )
    ledger_path: UserPath | None = Field(
        None, min_length=1, description="File of a ledger that runs share; cache and replay read it"
    )

    @field_validator("model", mode="before")
    @classmethod
    def _check_model(cls, model: Any) -> Any:
        if not isinstance(model, str | dict | None) or model in ("", {}):
            raise ValueError("give the name of an LLM, or of several {NAME: SHARE, ...}")
        if isinstance(model, dict) and any(value is None for value in model.values()):
            raise ValueError("a name has no share: write a space after each colon, {NAME: SHARE, ...}")
        return model

    def as_llm(self, **changes: Any) -> "LLMParams":
        """Return only the parameters of `LLMParams`, with some changed."""
        return LLMParams(**{name: getattr(self, name) for name in LLMParams.model_fields} | changes)

    @property
    def needs_decisions(self) -> bool:
        """Whether a decision model is asked."""
        return False

    @property
    def single_llm(self) -> str:
        """Name of the single LLM; by default the default LLM of an Ollama server."""
        return str(self.model or (DECISION_MODEL if self.needs_decisions else OLLAMA_MODEL))

    @property
    def hosts(self) -> list[str]:
        """The configured addresses of the LLM, or of all LLMs."""
        by_llm = self.host if isinstance(self.host, dict) else {self.single_llm: self.host}
        entries = [by_llm.get(llm) for llm in (by_llm if isinstance(self.model, dict) else [self.single_llm])]
        return [host for entry in entries for host in ([entry] if isinstance(entry, str) else entry or ())]

    @property
    def decoding(self) -> dict[str, Any]:
        """The decoding options of a chat client with these parameters."""
        options = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_answer_tokens}
        num_ctx = None if self.kind in SERVED and ignores(self.kind, "num_ctx") else self.num_ctx
        return options | explicit_options(self.think, num_ctx, self.cut_prompts)


def gguf_file(params: LLMParams) -> str | None:
    """Return the file of the embedded LLM; None for SmolLM2. With `auto`, names without ``.gguf`` belong to servers."""
    is_file = params.model is not None and (params.kind == "embedded" or str(params.model).endswith(".gguf"))
    return str(params.model) if is_file else None


_LLM_KEYS: Final = ("host", "model", "model_by")
_EXCLUDED_KEYS: Final = ("kind", "rule", "distilled", "llm_share", "asks_action", *_LLM_KEYS)


def llm_keys(kind: type[LLMParams], *excluded: str, with_address: bool = True) -> str:
    """Return the keys that configure questions to an LLM, separated by spaces, except those in `excluded`.

    The keys of its model and host are included if `with_address` is true.
    """
    names = [name for name in kind.model_fields if name not in _EXCLUDED_KEYS or (with_address and name in _LLM_KEYS)]
    return " ".join(f"reasoner.{name}" for name in names if name not in excluded)


def _kind_condition(kinds: Collection[str], keys: str) -> Callable[[Any], bool]:
    """Return a condition: whether an LLM of these kinds is asked. For `host`, the configured kind is tested."""
    return lambda facts: (facts.params.reasoner.kind if keys == "host" else facts.kind) in kinds


WITHOUT_EFFECT: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    *((keys, _kind_condition(kinds, keys), reason) for keys, kinds, reason in IGNORED_KEYS),
    (
        "model",  # the name is not a file, and `auto` chose the embedded LLM
        lambda facts: (
            facts.kind == "embedded" != facts.params.reasoner.kind
            and not str(facts.params.reasoner.model or ".gguf").endswith(".gguf")
        ),
        "no server has it, and the embedded LLM is a file (.gguf)",
    ),
    ("backoff_s", lambda facts: facts.params.reasoner.attempts == 1, "reasoner.attempts=1: nothing is asked again"),
)
"""Keys of an LLM that have no effect under a condition, with the condition and the reason."""
