"""The client for any server that speaks OpenAI's chat protocol: vLLM, llama-server, LM Studio. It asks once.

The key is read from the environment (`OPENAI_API_KEY`; many servers of one's own need none) and nowhere written down;
a user and password in the address are sent in its place.
The `openai` package is an extra, imported on first use.
"""

import asyncio
import logging
import os
import re
import time
from typing import TYPE_CHECKING, Any, Final, Literal

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError, did_you_mean
from prism_mesa.extras import how_to_install
from prism_mesa.llm.clients.base import Completion, status_reason
from prism_mesa.llm.clients.cut_prompts import WholePrompts
from prism_mesa.llm.clients.decisions import DecidesOverHTTP, check_capability
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.clients.responses import guarded, kept, retry_after_s
from prism_mesa.llm.clients.thoughts import completed
from prism_mesa.llm.clients.urls import reported_count
from prism_mesa.llm.params import CutPrompts, Think, later_options

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Model
    from openai.types.chat import ChatCompletion

KEY = "OPENAI_API_KEY"
_NO_KEY = "none"
_CHECK_TIMEOUT_S = 10.0
_OPTIONAL: Final = ("temperature", "seed", "reasoning_effort", "chat_template")
"""Options that some servers refuse, by the name in their error."""
_MORE_CONTEXT: Final = "OLLAMA_CONTEXT_LENGTH={0} for the server, or reasoner.kind=ollama reasoner.num_ctx={0}"

type Server = Literal["", "openai", "ollama", "vllm", "llama.cpp"]
_SERVERS: Final[dict[str, Server]] = {"library": "ollama", "vllm": "vllm", "llamacpp": "llama.cpp"}
"""Which program a list of LLMs is of, by the owner that it names."""

logger = logging.getLogger("prism_mesa.llm")


class OpenAIChatClient(DecidesOverHTTP):
    """Asks one LLM on one server.

    Attributes:
        digest: Empty: the protocol does not say which build of an LLM answers.
        server: Which program answers, as far as its address or, after `check`, its list of LLMs says so; else "".

    Raises:
        ConfigError: If `host` is no address, a setting or the key cannot be one, or the extra is not installed.
    """

    digest = ""
    server_version = ""

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
        super().__init__(model, host, timeout_s, decoding | later_options(think, cut_prompts=cut_prompts))
        _installed()
        _key()
        self.server: Server = "openai" if self.host.startswith("https://api.openai.com/") else ""
        self._think = think
        self._refused: set[str] = set()
        self._whole = WholePrompts(self.decoding, _MORE_CONTEXT)

    def _connect(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        http, query = dict(self._given), self._given.get("params", {})
        http.pop("params", None)
        return AsyncOpenAI(
            base_url=self.host,
            api_key=_key(),
            timeout=self.timeout_s,
            max_retries=0,
            default_query=query,
            http_client=DefaultAsyncHttpxClient(**guarded(http, _key(), *query.values()), limits=kept(self.host)),
        )

    async def chat(
        self, prompt: str, schema: dict[str, Any] | None = None, seed_offset: int = 0, top_logprobs: int = 0
    ) -> Completion:
        """Return the LLM's answer to `prompt`, constrained to `schema` where the server supports it.

        Raises:
            OracleError: With one of the reasons that `ollama_errors` lists.
        """
        client = await self._connections.client()
        more: dict[str, Any] = {"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {}
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": form}
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._create(client, prompt, seed_offset, more)
        except _faults() as error:
            raise self._fault(error) from error
        latency_ms = (time.perf_counter() - started) * 1000
        usage = getattr(response, "usage", None)
        read, wrote = (reported_count(getattr(usage, f"{what}_tokens", 0)) for what in ("prompt", "completion"))
        if self.server in ("", "ollama"):  # the others refuse a prompt that is too long
            self._whole.check(self.label, prompt, (read, wrote))
        return self._completion(response, (read, wrote), latency_ms)

    def _http(self) -> dict[str, Any]:
        http = guarded(self._given, key := _key())
        http["headers"] |= {"Authorization": f"Bearer {key}"} if key != _NO_KEY else {}
        return http

    def _more(self) -> dict[str, Any]:
        return {"cache_prompt": False} if self.server == "llama.cpp" else {}  # else cached tokens are not counted

    async def _create(
        self, client: "AsyncOpenAI", prompt: str, seed_offset: int, more: dict[str, Any]
    ) -> "ChatCompletion":
        """Ask, and if a server refuses an option that it need not have, ask without it now and from then on."""
        import openai

        while True:
            left_out = set(self._refused)
            try:
                response: ChatCompletion = await client.chat.completions.create(
                    model=self.name,
                    messages=[{"role": "user", "content": prompt}],
                    **more,
                    **self._options(seed_offset),
                )
                return response
            except openai.BadRequestError as error:
                refused = _unsupported(str(error.message)) - left_out
                if not refused:
                    raise
                if news := refused - self._refused - {"max_tokens"}:
                    logger.warning("%s refuses %s: it is asked without", self.label, " and ".join(sorted(news)))
                self._refused |= refused

    def _options(self, seed_offset: int) -> dict[str, Any]:
        """Return the options of a request, each as the server wants it."""
        own = self.decoding
        most = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
        options = {"temperature": own["temperature"], "seed": own["seed"] + seed_offset, most: own["max_tokens"]}
        effort, body = _how_to_think(self.server, self._think)
        options |= {} if effort is None else {"reasoning_effort": effort}
        options = {name: value for name, value in options.items() if name not in self._refused}
        return options | ({"extra_body": body} if body and "chat_template" not in self._refused else {})

    def _completion(self, response: "ChatCompletion", spent: tuple[int, int], latency_ms: float) -> Completion:
        try:
            [choice] = response.choices
            text = choice.message.content or ""
            tokens = (choice.logprobs.content or []) if choice.logprobs else []
            places = tuple(
                tuple((str(top.token), float(top.logprob)) for top in token.top_logprobs) for token in tokens
            )
            said = [str(token.token) for token in tokens]
            thought = any(getattr(choice.message, name, None) for name in ("reasoning", "reasoning_content"))
            text.strip()
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise OracleError("wrong-shape", f"{self.label}: the answer is no chat answer") from error
        if choice.finish_reason == "content_filter":
            raise OracleError("refusal", f"{self.label}: the server's content filter cut the answer", tokens=spent)
        return completed(
            self.label,
            Completion(text, *spent, latency_ms, places, cut=choice.finish_reason == "length"),
            thought=thought,
            tokens=said,
            decoding=self.decoding,
        )

    def _fault(self, error: Exception) -> OracleError:
        """Return a failure with the word that `ollama_errors` has for it; the key is cut out of what is told."""
        reason, said = self._named(error)
        after_s = retry_after_s(getattr(error, "response", None), self.timeout_s)
        return OracleError(reason, f"{self.label}: {_without_key(said)}", retry_after_s=after_s)

    def _named(self, error: Exception) -> tuple[str, str]:
        import openai

        match error:
            case TimeoutError() | openai.APITimeoutError():
                return "timeout", f"no answer within {self.timeout_s:g} s"
            case openai.APIStatusError(status_code=status):
                told = _without_key(str(error.message))[:200]
                return status_reason(status), f"the server says {told} (status {status})"
            case OracleError(reason=reason):
                return reason, str(error)
            case openai.APIConnectionError():
                dropped = "Connect" not in type(error.__cause__).__name__
                reason, what = ("dropped", "the connection broke") if dropped else ("refused", "no connection")
                return reason, f"{what} ({error.__cause__})"
            case openai.APIError() | ValueError() | RecursionError():
                return "not-json", "the answer is no JSON"
        return "wrong-shape", "the answer is JSON, but no chat answer"

    def check(self, *, decides: bool = False) -> None:
        """Check that the server answers and, if it lists its LLMs, has this LLM.

        Raises:
            ConfigError: If not (MissingLLMError), or if the LLM is not of the kind that `decides` says.
        """
        import openai

        try:
            listed = run_now(self._listed())
        except openai.NotFoundError:
            return
        except _faults() as error:
            fault = str(self._fault(error)).removeprefix(f"{self.label}: ")
            way_out = (
                f"set {KEY}" if isinstance(error, openai.AuthenticationError) else "start it, or set reasoner.host"
            )
            raise MissingLLMError(f"reasoner.host: {self.host} does not answer: {fault}: {way_out}") from error
        if listed and self.name not in listed:
            raise MissingLLMError(
                f"reasoner.model: {self.name!r} is not on the server (it has: {', '.join(sorted(listed)[:10])})"
                f"{did_you_mean(self.name, listed)}"
            )
        model = listed.get(self.name)
        self.server = self.server or _SERVERS.get(str(getattr(model, "owned_by", "")), "")
        can = _modalities(model)
        if self.server == "ollama":
            [can] = run_now(self._capabilities(self.name))
        check_capability(self.name, can, decides=decides)

    @property
    def note(self) -> str:
        """Why `think` is not sent; empty if it is, or need not be."""
        if self.server or self._think in (False, None):
            return ""
        return f"reasoner.think: not sent, as {self.host} does not say which program it is (Ollama, vLLM, llama.cpp)"

    async def _listed(self) -> dict[str, "Model"]:
        async with asyncio.timeout(min(self.timeout_s, _CHECK_TIMEOUT_S)), self._connect() as client:
            return {str(model.id): model for model in (await client.models.list()).data or ()}


def _modalities(model: object) -> frozenset[str]:
    """Return what an LLM can do, according to llama.cpp's list of models; empty if it does not say."""
    architecture = getattr(model, "architecture", None)
    listed = architecture.get("output_modalities") if isinstance(architecture, dict) else None
    known = {"decisions": "decision", "text": "completion"}
    return frozenset(known[name] for name in known if name in listed) if isinstance(listed, list) else frozenset()


def _unsupported(told: str) -> set[str]:
    """Return which of the options that a request need not have a server refuses."""
    if "max_completion_tokens" in told:
        return {"max_tokens"}
    return {name for name in _OPTIONAL if name in told and re.search("support|unrecognized", told, re.IGNORECASE)}


def _how_to_think(server: Server, think: Think) -> tuple[str | None, dict[str, Any]]:
    """Return the `reasoning_effort` (None: not sent) and further fields with which a server is told how to think."""
    if think is None or not server:
        return None, {}
    levels = {True: "medium", False: "none", "max": "xhigh"}
    level = levels.get(think, str(think))
    if server in ("vllm", "llama.cpp"):
        thinks = think is not False
        own = {"enable_thinking": thinks, "thinking": thinks} | ({"reasoning_effort": level} if thinks else {})
        return None, {"chat_template_kwargs": own}
    return (None if server == "openai" and think is False else level), {}


def _faults() -> tuple[type[Exception], ...]:
    """Return the exceptions that the `openai` package lets through."""
    import openai

    return openai.OpenAIError, OracleError, TimeoutError, ValueError, TypeError, AttributeError, RecursionError


def _key() -> str:
    key = os.environ.get(KEY, "").strip() or _NO_KEY
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{KEY}: holds characters that no key has (white space, or no ASCII): set it anew")
    return key


def _without_key(text: str) -> str:
    key = _key()
    return text if key == _NO_KEY else text.replace(key, "***")


def _installed() -> None:
    from importlib.util import find_spec

    if find_spec("openai") is None:
        raise MissingLLMError(f"reasoner.kind: openai is not installed: {how_to_install('openai', 'openai')}")
