"""The client for servers with OpenAI's chat protocol: OpenAI, vLLM, llama-server, LM Studio.

If the address has a user and a password, they replace the key.
"""

import logging
import os
import re
from typing import Any, Final, Literal, Self

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError, did_you_mean
from prism_mesa.llm.clients.base import Completion, Schema, timed
from prism_mesa.llm.clients.decisions import check_capability, reported_count
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.clients.server import CHECK_TIMEOUT_S, ServerClient
from prism_mesa.llm.params import CutPrompts, LLMParams, Think, explicit_options

_NO_KEY: Final = "none"
_OPTIONAL_SETTINGS: Final = ("temperature", "seed", "reasoning_effort", "chat_template")
"""Names, in servers' errors, of options that some servers refuse."""
_MAX_ERROR_CHARS: Final = 2000

type Server = Literal["", "openai", "ollama", "vllm", "llama.cpp"]
_SERVERS: Final[dict[str, Server]] = {"library": "ollama", "vllm": "vllm", "llamacpp": "llama.cpp"}
"""The server's program for each value of `owned_by` in its list of LLMs."""

logger = logging.getLogger("prism_mesa.llm")


class OpenAIChatClient(ServerClient):
    """Asks one LLM on one server. `digest` is empty, because the protocol does not reveal the LLM's build.

    The module `server` lists the reasons for errors.

    Attributes:
        server: The server's program; empty if unknown. `check` finds it in the server's list of LLMs.
    """

    key_variable = "OPENAI_API_KEY"
    more_context = "OLLAMA_CONTEXT_LENGTH={0} for the server, or reasoner.kind=ollama reasoner.num_ctx={0}"

    def __init__(
        self,
        model: str,
        host: str = "http://127.0.0.1:8000/v1",
        timeout_s: float = 30.0,
        temperature: float = 0.0,
        seed: int = 0,
        max_tokens: int = 256,
        think: Think = False,
        cut_prompts: CutPrompts = "useless",
    ) -> None:
        decoding = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        super().__init__(model, host, timeout_s, decoding | explicit_options(think, cut_prompts=cut_prompts))
        self.server: Server = "openai" if self.host.startswith("https://api.openai.com:") else ""
        self._think = think
        self._refused_options: set[str] = set()

    @classmethod
    def from_params(cls, params: LLMParams, host: str, *, continues: bool = False) -> Self:
        """Return the client of the configured LLM on a server."""
        if params.model is None:
            raise ConfigError("reasoner.model: empty; with reasoner.kind=openai name the LLM that the server has")
        return cls(params.single_llm, host, params.timeout_s, **params.decoding)

    @classmethod
    def doctor(cls, host: str | None, wait_s: float) -> tuple[bool, str, str]:
        """Return True, instructions for the configuration, and no remedy, without asking a server."""
        key = f"the key {cls.key_variable} is {'set' if os.environ.get(cls.key_variable, '').strip() else 'not set'}"
        return True, f"reasoner.kind=openai with reasoner.host and reasoner.model; {key}", ""

    def _read_key(self) -> str:
        return super()._read_key() or _NO_KEY

    def _decision_options(self) -> dict[str, Any]:
        # with a cache, llama.cpp does not count cached tokens
        return {"cache_prompt": False} if self.server == "llama.cpp" else {}

    @timed
    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the LLM's answer to `prompt`, constrained to `schema` if the server supports it."""
        body: dict[str, Any] = {"model": self.name, "messages": [{"role": "user", "content": prompt}]}
        body |= {"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {}
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        reply = await self._send_chat(body, seed_offset)
        usage = reply.get("usage") if isinstance(reply, dict) else None
        counts = usage if isinstance(usage, dict) else {}
        n_in, n_out = (reported_count(counts.get(f"{part}_tokens")) for part in ("prompt", "completion"))
        if self.server in ("", "ollama"):  # other servers refuse a prompt that is too long
            self._refuse_cut_prompt(prompt, (n_in, n_out))
        try:
            [choice] = reply["choices"]
            reason, logprobs = choice.get("finish_reason"), (choice.get("logprobs") or {}).get("content") or []
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._shape_error() from None
        if reason == "content_filter":
            fault = f"{self.label}: the server's content filter cut the answer"
            raise OracleError("refusal", fault, tokens=(n_in, n_out))
        return self._completion(choice.get("message"), logprobs, (n_in, n_out), truncated=reason == "length")

    async def _send_chat(self, body: dict[str, Any], seed_offset: int) -> Any:
        """Send a chat request. If the server refuses an optional setting, repeat the request without the setting."""
        while True:
            omitted_names = set(self._refused_options)
            response = await self._send(f"{self.host}/chat/completions", body | self._options(seed_offset))
            is_refused = response.status_code == 400
            error_text = response.error_text(_MAX_ERROR_CHARS) if is_refused else ""
            refused_names = _refused_settings(error_text) - omitted_names
            if not refused_names:
                return self._parse_json(response)
            if new_names := refused_names - self._refused_options - {"max_tokens"}:
                logger.warning("%s refuses %s: PRISM omits it from now on", self.label, " and ".join(sorted(new_names)))
            self._refused_options |= refused_names

    def _options(self, seed_offset: int) -> dict[str, Any]:
        decoding = self.decoding
        limit_name = "max_completion_tokens" if "max_tokens" in self._refused_options else "max_tokens"
        options = {"temperature": decoding["temperature"], "seed": decoding["seed"] + seed_offset}
        options[limit_name] = decoding["max_tokens"]
        effort, template = _thinking_options(self.server, self._think)
        options |= {} if effort is None else {"reasoning_effort": effort}
        options = {name: value for name, value in options.items() if name not in self._refused_options}
        return options if "chat_template" in self._refused_options else options | template

    def check(self, *, needs_decisions: bool = False) -> None:
        """Check that the server's list of LLMs, if any, has the LLM. Raises ConfigError if not."""
        try:
            models = run_now(self._list_models())
        except OracleError as error:
            if error.reason == "http-404":
                return
            fault = str(error).removeprefix(f"{self.label}: ")
            remedy = f"set {self.key_variable}" if error.reason == "http-401" else "start it, or set reasoner.host"
            raise MissingLLMError(f"reasoner.host: {self.host} does not answer ({fault}): {remedy}") from error
        if models and self.name not in models:
            names = ", ".join(sorted(models)[:10])
            fault = f"{self.name!r} is not on the server (it has: {names}){did_you_mean(self.name, models)}"
            raise MissingLLMError(f"reasoner.model: {fault}")
        model = models.get(self.name, {})
        self.server = self.server or _SERVERS.get(str(model.get("owned_by", "")), "")
        capabilities = _listed_capabilities(model)
        if self.server == "ollama":
            [capabilities] = run_now(self.capabilities(self.name))
        check_capability(self.name, capabilities, needs_decisions=needs_decisions)

    @property
    def note(self) -> str:
        """Why `think` is not sent; empty if it is sent or unnecessary."""
        if self.server or self._think in (False, None):
            return ""
        return f"reasoner.think: not sent, because {self.host} does not name its program (Ollama, vLLM, llama.cpp)"

    async def _list_models(self) -> dict[str, dict[str, Any]]:
        try:
            reply = await self.request(f"{self.host}/models", timeout_s=CHECK_TIMEOUT_S)
            return {str(model["id"]): dict(model) for model in reply.get("data") or ()}
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._shape_error() from None


def _listed_capabilities(model: dict[str, Any]) -> frozenset[str]:
    """Return an LLM's capabilities according to llama.cpp's list of models; empty if unknown."""
    architecture = model.get("architecture")
    modalities = architecture.get("output_modalities") if isinstance(architecture, dict) else None
    names = {"decisions": "decision", "text": "completion"}
    return frozenset(names[name] for name in names if isinstance(modalities, list) and name in modalities)


def _refused_settings(error_text: str) -> set[str]:
    if "max_completion_tokens" in error_text:
        return {"max_tokens"}
    is_refusal = re.search("support|unrecognized", error_text, re.IGNORECASE)
    return {name for name in _OPTIONAL_SETTINGS if is_refusal and name in error_text}


def _thinking_options(server: Server, think: Think) -> tuple[str | None, dict[str, Any]]:
    """Return the `reasoning_effort` (None: not sent) and additional fields that set whether the LLM thinks."""
    if think is None or not server:
        return None, {}
    levels = {True: "medium", False: "none", "max": "xhigh"}
    level = levels.get(think, str(think))
    if server in ("vllm", "llama.cpp"):
        thinks = think is not False
        template = {"enable_thinking": thinks, "thinking": thinks} | ({"reasoning_effort": level} if thinks else {})
        return None, {"chat_template_kwargs": template}
    return (None if server == "openai" and think is False else level), {}
