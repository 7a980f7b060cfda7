"""The client for an Ollama server."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError, did_you_mean, printable, redact_credentials
from prism_mesa.llm.clients.base import Completion, Schema, timed
from prism_mesa.llm.clients.decisions import check_capability, reported_count
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.clients.server import CHECK_TIMEOUT_S, ServerClient
from prism_mesa.llm.params import DECISION_MODEL, OLLAMA_MODEL, CutPrompts, LLMParams, Think, explicit_options

_REMEDY = "start it with 'ollama serve', or set reasoner.kind=rule"
_MAX_LISTED = 8


class OllamaChatClient(ServerClient):
    """Asks one LLM on one Ollama server. A call takes at most `timeout_s`, even if the response is slow.

    `check` sets `digest` and `server_version`. The module `server` lists the reasons for errors.
    """

    key_variable = "OLLAMA_API_KEY"
    more_context = "reasoner.num_ctx={0}"

    def __init__(
        self,
        model: str = OLLAMA_MODEL,
        host: str = "http://127.0.0.1:11434",
        timeout_s: float = 30.0,
        temperature: float = 0.0,
        seed: int = 0,
        max_tokens: int = 256,
        think: Think = False,
        num_ctx: int | None = None,
        keep_alive: int | str | None = None,
        cut_prompts: CutPrompts = "useless",
    ) -> None:
        decoding = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        super().__init__(model, host, timeout_s, decoding | explicit_options(think, num_ctx, cut_prompts))
        self._think, self._keep_alive = think, keep_alive
        self._context: int | None = None

    @classmethod
    def from_params(cls, params: LLMParams, host: str, *, continues: bool = False) -> Self:
        """Return the client of the configured LLM on a server."""
        return cls(params.single_llm, host, params.timeout_s, keep_alive=params.keep_alive, **params.decoding)

    @property
    def label(self) -> str:
        """The client's name in summaries."""
        return f"Ollama {self.name} at {self.host}"

    @property
    def _full_name(self) -> str:
        return self.name if ":" in self.name.rsplit("/", 1)[-1] else f"{self.name}:latest"

    def _decision_options(self) -> dict[str, Any]:
        return {} if self._keep_alive is None else {"keep_alive": self._keep_alive}

    @timed
    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the LLM's answer to `prompt`, constrained to `schema` if the LLM supports it."""
        decoding = self.decoding
        options = {"temperature": decoding["temperature"], "num_predict": decoding["max_tokens"]}
        options["seed"] = decoding["seed"] + seed_offset
        options |= {"num_ctx": decoding["num_ctx"]} if "num_ctx" in decoding else {}
        body = {"model": self.name, "messages": [{"role": "user", "content": prompt}], "stream": False}
        body |= {"options": options, "format": schema, "think": self._think, "keep_alive": self._keep_alive}
        body |= {"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {}
        body = {name: value for name, value in body.items() if value is not None}
        reply = await self.request(f"{self.host}/api/chat", body)
        if not isinstance(reply, dict):
            raise self._shape_error()
        token_counts = reported_count(reply.get("prompt_eval_count")), reported_count(reply.get("eval_count"))
        self._context = await self._loaded_context() if self._context is None else self._context
        self._refuse_cut_prompt(prompt, token_counts, self._context)
        message, logprobs = reply.get("message"), reply.get("logprobs") or ()
        if isinstance(message, dict) and reply.get("done") is not True:
            raise OracleError("partial", f"{self.label}: the answer broke off: {str(message.get('content'))[:80]!r}")
        return self._completion(message, logprobs, token_counts, truncated=reply.get("done_reason") == "length")

    async def _loaded_context(self) -> int:
        """Return the context of the loaded LLM, else the configured context; 0 if both are unknown."""
        loaded: dict[str, Any] = {}
        with suppress(OracleError, LookupError, TypeError, AttributeError):
            reply = await self.request(f"{self.host}/api/ps", timeout_s=CHECK_TIMEOUT_S)
            loaded = {entry["model"]: reported_count(entry.get("context_length")) for entry in reply["models"]}
        return loaded.get(self._full_name) or loaded.get(self.name) or int(self.decoding.get("num_ctx", 0))

    def check(self, *, needs_decisions: bool = False) -> None:
        """Check that the server has the LLM, and that it can chat (or decide). Raises ConfigError if not."""
        try:
            models = self.models(CHECK_TIMEOUT_S)
        except OracleError as error:
            remedy = "leave out /v1, or set reasoner.kind=openai" if self.host.endswith("/v1") else _REMEDY
            raise MissingLLMError(f"reasoner.host: {error}: {remedy}") from error
        if self.name not in models and self._full_name not in models:
            names = ", ".join(sorted(models)[:10]) or "none"
            hint = did_you_mean(self.name, [name.removesuffix(":latest") for name in models])
            fault = f"{self.name!r} is not on the server (it has: {names}): 'ollama pull {self.name}'{hint}"
            raise MissingLLMError(f"reasoner.model: {fault}")
        [capabilities] = run_now(self.capabilities(self.name))
        check_capability(self.name, capabilities, needs_decisions=needs_decisions)
        thinks = self.decoding.get("think") not in (None, False)
        if capabilities and "thinking" not in capabilities and not needs_decisions and thinks:
            remedy = f"(the server says: {', '.join(sorted(capabilities))}): set reasoner.think=false"
            raise ConfigError(f"reasoner.think: {self.name!r} does not think {remedy}")
        self.digest = models.get(self._full_name) or models.get(self.name, "")
        with suppress(OracleError, AttributeError):
            version = run_now(self.request(f"{self.host}/api/version", timeout_s=CHECK_TIMEOUT_S))
            self.server_version = str(version.get("version", ""))

    def models(self, timeout_s: float) -> dict[str, str]:
        """Return the digests of the server's LLMs by name. Raises OracleError if it does not answer like Ollama."""
        try:
            reply = run_now(self.request(f"{self.host}/api/tags", timeout_s=timeout_s))
            return {str(entry["model"]): str(entry.get("digest") or "") for entry in reply["models"]}
        except OracleError as error:
            fault = "" if error.reason == "not-json" else str(error).removeprefix(f"{self.label}: ")
        except (LookupError, TypeError, AttributeError):
            fault = ""
        fault = fault or "the server is not an Ollama server"
        raise OracleError("refused", f"{self.host} does not answer ({fault})")

    def decision_models(self, models: Sequence[str]) -> list[str]:
        """Return the names of the LLMs that, according to the server, are decision models."""
        capabilities = run_now(self.capabilities(*models))
        return [name for name, abilities in zip(models, capabilities, strict=True) if "decision" in abilities]

    @classmethod
    def doctor(cls, host: str | None, wait_s: float) -> tuple[bool, str, str]:
        """Return whether Ollama answers and has the default LLM, a description of its state, and a remedy."""
        try:
            client = cls(host=host or "http://127.0.0.1:11434")
            models = [printable(name) for name in client.models(wait_s)]
        except (ConfigError, OracleError) as error:
            remedy = "start it with ollama serve (https://ollama.com), or use reasoner.kind=embedded or rule"
            return False, printable(redact_credentials(str(error))), remedy
        more = f", and {len(models) - _MAX_LISTED} more" if len(models) > _MAX_LISTED else ""
        decision_names = ", ".join(client.decision_models(models)) or f"none (ollama pull {DECISION_MODEL})"
        state = f"answers at {client.host}; models: {', '.join(models[:_MAX_LISTED]) or 'none'}{more}"
        has_default = any(name.partition(":")[0] == OLLAMA_MODEL for name in models)
        remedy = "" if has_default else f"ollama pull {OLLAMA_MODEL}, or name one with reasoner.model=..."
        return has_default, f"{state}; decision models (reasoner.answer=decision): {decision_names}", remedy
