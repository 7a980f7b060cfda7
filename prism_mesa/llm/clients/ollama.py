"""The client for an Ollama server. It asks once, and names what went wrong.

The `ollama` package costs more than a second of CPU to import, so that happens on first use.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError, did_you_mean, one_line
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.cut_prompts import WholePrompts
from prism_mesa.llm.clients.decisions import DecidesOverHTTP, check_capability
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.clients.ollama_errors import client_faults, connection_fault, ollama_fault
from prism_mesa.llm.clients.responses import guarded, kept
from prism_mesa.llm.clients.thoughts import completed
from prism_mesa.llm.clients.urls import reported_count
from prism_mesa.llm.params import CutPrompts, Think, later_options

if TYPE_CHECKING:
    from ssl import SSLContext

    from ollama import AsyncClient, ChatResponse

_CHECK_TIMEOUT_S = 10.0
_WAY_OUT = "start it with 'ollama serve', or set reasoner.kind=rule"


class OllamaChatClient(DecidesOverHTTP):
    """Asks one LLM on one Ollama server.

    Each event loop has connections of its own (`event_loop.Connections`). A call takes at most `timeout_s`, however
    slowly the server sends.

    Attributes:
        digest: Which build of the LLM the server has; empty until `check`.
        server_version: Likewise.

    Raises:
        ConfigError: If `host` is no address, `model` is empty, or a number is out of range.
    """

    def __init__(
        self,
        model: str = "llama3.2",
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
        super().__init__(model, host, timeout_s, decoding | later_options(think, num_ctx, cut_prompts))
        self._asked: dict[str, Any] = {"think": think, "keep_alive": keep_alive}
        self.digest = ""
        self.server_version = ""
        self._whole = WholePrompts(self.decoding, "reasoner.num_ctx={}")
        self._context: int | None = None

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self.host}>"

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return f"Ollama {self.name} at {self.host}"

    @property
    def _full_name(self) -> str:
        return self.name if ":" in self.name.rsplit("/", 1)[-1] else f"{self.name}:latest"

    def _more(self) -> dict[str, Any]:
        return {name: value for name, value in self._asked.items() if name == "keep_alive" and value is not None}

    async def chat(
        self, prompt: str, schema: dict[str, Any] | None = None, seed_offset: int = 0, top_logprobs: int = 0
    ) -> Completion:
        """Return the LLM's answer to `prompt`, constrained to `schema` where the LLM supports it.

        Raises:
            OracleError: With one of the reasons that `ollama_errors` lists.
        """
        client = await self._connections.client()
        own = self.decoding
        options = {"temperature": own["temperature"], "num_predict": own["max_tokens"]}
        options["seed"] = own["seed"] + seed_offset
        options |= {"num_ctx": own["num_ctx"]} if "num_ctx" in own else {}
        messages = [{"role": "user", "content": prompt}]
        more = self._asked | ({"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {})
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await client.chat(self.name, messages, format=schema, options=options, **more)
        except client_faults() as error:
            raise ollama_fault(error, self.label, self.timeout_s) from error
        latency_ms = (time.perf_counter() - started) * 1000
        spent = reported_count(response.prompt_eval_count), reported_count(response.eval_count)
        self._context = await self._loaded_context(client) if self._context is None else self._context
        self._whole.check(self.label, prompt, spent, self._context)
        return self._completion(response, spent, latency_ms)

    async def _loaded_context(self, client: "AsyncClient") -> int:
        """Return the context of the loaded LLM, else the requested context; 0 if both are unknown."""
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                loaded = {entry.model: entry.context_length for entry in (await client.ps()).models}
        except client_faults():
            loaded = {}
        return loaded.get(self._full_name) or loaded.get(self.name) or int(self.decoding.get("num_ctx", 0))

    def _completion(self, response: "ChatResponse", spent: tuple[int, int], latency_ms: float) -> Completion:
        text = response.message.content or ""
        if response.done is not True:
            raise OracleError("partial", f"{self.label}: the answer broke off: {text[:80]!r}")
        places = tuple(
            tuple((entry.token, entry.logprob) for entry in place.top_logprobs or [place])
            for place in response.logprobs or ()
        )
        return completed(
            self.label,
            Completion(text, *spent, latency_ms, places, cut=response.done_reason == "length"),
            thought=response.message.thinking,
            tokens=[place.token for place in response.logprobs or ()],
            decoding=self.decoding,
        )

    def check(self, *, decides: bool = False) -> None:
        """Check that the server answers and has the LLM; keep the LLM's digest and the server's version.

        Raises:
            ConfigError: If not (MissingLLMError), or if the LLM is not of the kind that `decides` says.
        """
        try:
            models = self.models(_CHECK_TIMEOUT_S)
        except OracleError as error:
            way_out = "leave out /v1, or set reasoner.kind=openai" if self.host.endswith("/v1") else _WAY_OUT
            raise MissingLLMError(f"reasoner.host: {error}: {way_out}") from error
        if self.name not in models and self._full_name not in models:
            has = ", ".join(sorted(models)[:10]) or "none"
            raise MissingLLMError(
                f"reasoner.model: {self.name!r} is not on the server (it has: {has}): 'ollama pull {self.name}'"
                f"{did_you_mean(self.name, [name.removesuffix(':latest') for name in models])}"
            )
        [can] = run_now(self._capabilities(self.name))
        check_capability(self.name, can, decides=decides)
        if can and "thinking" not in can and not decides and self.decoding.get("think") not in (None, False):
            way_out = f"(the server says: {', '.join(sorted(can))}): set reasoner.think=false"
            raise ConfigError(f"reasoner.think: {self.name!r} does not think {way_out}")
        self.digest = models.get(self._full_name) or models.get(self.name, "")
        self.server_version = run_now(self._version())

    def models(self, timeout_s: float) -> dict[str, str]:
        """Return the digests of the LLMs that the server has, by name.

        Raises:
            OracleError: If it does not answer in time, or not as Ollama does.
        """
        timeout_s = min(self.timeout_s, timeout_s)
        try:
            return run_now(self._models(timeout_s))
        except client_faults() as error:
            what = connection_fault(error, timeout_s)
            raise OracleError("refused", f"{self.host} does not answer ({what})") from error

    def deciding(self, models: Sequence[str]) -> list[str]:
        """Return which of these LLMs are decision models (`reasoner.answer=decision`), by what the server says."""
        can = run_now(self._capabilities(*models))
        return [name for name, abilities in zip(models, can, strict=True) if "decision" in abilities]

    async def _models(self, timeout_s: float) -> dict[str, str]:
        async with asyncio.timeout(timeout_s), self._connect() as client:
            return {entry.model or "": entry.digest or "" for entry in (await client.list()).models}

    async def _version(self) -> str:
        """Return the server's version, or an empty string if it does not say."""
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S), self._plain_http() as client:
                reply = await client.get(f"{self.host}/api/version")
                return str(reply.json().get("version", ""))
        except client_faults():
            return ""

    def _connect(self) -> "AsyncClient":
        from ollama import AsyncClient

        return AsyncClient(self.host, timeout=self.timeout_s, limits=kept(self.host), **self._http())

    def _http(self) -> dict[str, Any]:
        http = guarded(self._given, key := os.environ.get("OLLAMA_API_KEY", "")) | {"verify": _trusted()}
        http["headers"] |= {"Authorization": f"Bearer {key}"} if key else {}
        return http


@cache
def _trusted() -> "SSLContext":
    """Return which servers are trusted, read once in a process: that takes longer than to ask a server."""
    import httpx

    return httpx.create_ssl_context()
