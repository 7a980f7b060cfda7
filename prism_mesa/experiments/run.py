"""One execution of a configuration: the model is stepped, its records are kept, and a summary is made of them."""

import json
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from prism_mesa.errors import PrismError, RunError
from prism_mesa.experiments.config import INPUT_FILES, Config, make_config
from prism_mesa.experiments.measures import cascade_summary
from prism_mesa.experiments.store import LEDGER, RunFolder, read_table
from prism_mesa.reasoner import Ledger, Reasoner
from prism_mesa.records import ACTIONS, BIG_FIVE, POST_KINDS
from prism_mesa.social.cascades import cascades
from prism_mesa.social.model import SocialModel
from prism_mesa.social.posts import NO_PARENT, POST, REPLY
from prism_mesa.statechart import STATES, Statechart
from prism_mesa.streams import digest64, fresh_seed

_PACKAGES = (
    "prism-mesa",
    "mesa",
    "numpy",
    "pandas",
    "pyarrow",
    "networkx",
    "ollama",
    "xllamacpp",
    "openai",
    "pydantic",
)


@dataclass(frozen=True)
class RunResult:
    """A run that has ended; `summary` is what ``prism run --json`` prints."""

    run_dir: Path
    status: str
    summary: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table: rounds, ticks, transitions, posts, engagements, cascades or agents."""
        return read_table(self.run_dir, name)


def run(
    config: Config | Mapping[str, Any] | None = None,
    *,
    out: str | Path = "results",
    chart: Statechart | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
) -> RunResult:
    """Run a configuration and keep its records in ``out/<run-id>``.

    Args:
        config: A `Config`, nested values for one, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        chart: A chart of your own, as an object.
        prepare: Called with the model before its first round, to add agents of your own. Neither it nor
            `chart` stands in the manifest's configuration, which says so.
        on_round: Called with the number of rounds done, after each round.

    Returns:
        The result; its status is `failed` if more answers were fallbacks than
        `reasoner.max_fallback_share` allows (the tables are kept).

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If the run cannot go on; its folder says so, and keeps what was recorded. The same holds
            for KeyboardInterrupt.
    """
    watch = _Watch()
    if not isinstance(config, Config):
        config = make_config(config or {})
    model = SocialModel(config, chart=chart)
    if prepare is not None:
        prepare(model)
    manifest = _manifest(config, model) | {"made_in_python": [chart is not None, prepare is not None]}
    folder = RunFolder(Path(out), config.name)
    folder.write_manifest(manifest)
    try:
        _run_rounds(model, config.rounds, folder, watch, on_round)
        error = _too_many_fallbacks(model, config)
        status = {"status": "failed", "error": error} if error else {"status": "done"}
        summary = _finish(folder, model, manifest | status, watch)
    except BaseException as fault:
        interrupted = isinstance(fault, KeyboardInterrupt)
        text = "interrupted" if interrupted else str(fault)
        text = text if interrupted or isinstance(fault, PrismError) else f"{type(fault).__name__}: {text}"
        text = f"round {model.round}: {text}"
        with suppress(OSError):  # whatever broke the run may also stand in the way of its records
            folder.write_manifest(manifest | {"status": "failed", "error": text})
            _finish(folder, model, manifest | {"status": "failed", "error": text}, watch)
        kept = f"{folder.path}: {text} (what was recorded is kept there)"
        raise (KeyboardInterrupt(kept) if interrupted else RunError(kept)) from fault
    return RunResult(folder.path, str(status["status"]), summary)


class _Watch:
    """The clocks of a run, from when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.time(), time.process_time()
        self.rounds: list[float] = []
        """CPU seconds of each completed round, without what went into records."""

    def read(self) -> dict[str, float]:
        return {
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.time() - self._wall,
            "round_cpu_s": median(self.rounds[1:] or self.rounds or [0.0]),
        }


def _run_rounds(
    model: SocialModel, rounds: int, folder: RunFolder, watch: _Watch, on_round: Callable[[int], None] | None
) -> None:
    """Step the model, with its records going to the folder."""
    model.recorder = folder
    with Ledger(folder.path / LEDGER) as ledger, closing(model.reasoner):
        if isinstance(model.reasoner, Reasoner):
            model.reasoner.record(ledger, f"{_scope(model)}/{folder.path.name}-{fresh_seed():x}")
        for done in range(1, rounds + 1):
            at = time.process_time() - folder.cpu_s
            model.step()
            watch.rounds.append(time.process_time() - folder.cpu_s - at)
            folder.round_done()
            if on_round is not None:
                on_round(done)


_WITHOUT_EFFECT = set(
    "kind model host timeout_s max_concurrency attempts backoff_s max_fallback_share ledger ledger_path".split()
)
"""Parameters of the reasoner that two runs may differ in whose tables are to be the same."""


def _scope(model: SocialModel) -> str:
    """Return a name for all runs that have the same tables, if the LLM's answers are the same."""
    values = model.params.model_dump(mode="json", exclude={"name": True, "reasoner": _WITHOUT_EFFECT})
    for group, key in INPUT_FILES:
        values[group][key] = values[group][key] and Path(values[group][key]).name
    if isinstance(model.reasoner, Reasoner):  # what null stands for
        values["reasoner"] |= {name: getattr(model.reasoner.params, name) for name in ("answer", "persona")}
    return f"{digest64(json.dumps(values, sort_keys=True)):016x}"


def _too_many_fallbacks(model: SocialModel, config: Config) -> str:
    share = model.totals["fallback"] / max(1, model.totals["open"])
    if share <= config.reasoner.max_fallback_share:
        return ""
    reasons = ", ".join(f"{n} {why}" for why, n in getattr(model.reasoner, "reasons", {}).items())
    return (
        f"{share:.1%} of {model.totals['open']} open choices were answered by the fallback ({reasons}); "
        f"reasoner.max_fallback_share allows {config.reasoner.max_fallback_share:.1%}"
    )


def _finish(folder: RunFolder, model: SocialModel, manifest: dict[str, Any], watch: _Watch) -> dict[str, Any]:
    """Write the last tables and the manifest, and return the summary."""
    trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
    folder.write_whole("posts", _post_columns(model))
    kinds = pd.Categorical.from_codes(model.posts.kind[trees["root"]], list(POST_KINDS))
    folder.write_whole("cascades", {**{name: trees[name].to_numpy() for name in trees.columns}, "kind": kinds})
    folder.write_whole("agents", _agent_columns(model))
    folder.close()
    summary = {"run_dir": str(folder.path), "status": manifest["status"]}
    summary |= {"error": manifest["error"]} if manifest.get("error") else {}
    summary |= _summary(model, trees[kinds == "post"], len(watch.rounds)) | watch.read()
    folder.write_manifest(manifest | {"ended": _wall_clock(), "summary": summary})
    return summary


def _summary(model: SocialModel, trees: pd.DataFrame, rounds: int) -> dict[str, Any]:
    shares = model.agent_ticks / max(1, int(model.agent_ticks.sum()))
    totals = model.totals
    return {
        "seed": model.params.seed,
        "agents": int(model.population.present.sum()),
        "follows": model.network.n_edges,
        "rounds": rounds,
        "state_shares": {state.value: float(share) for state, share in zip(STATES, shares, strict=True)},
        "engagement": {name: totals[name] for name in ("likes", "replies", "reshares", "posts")},
        "impressions": totals["impressions"],
        "cascades": cascade_summary(trees),
        "decisions": {
            "open": totals["open"],
            "by_source": dict(sorted(model.sources.items())),
            "rates": _rates(model, rounds),
            "fallback_reasons": dict(sorted(getattr(model.reasoner, "reasons", {}).items())),
            "llm": _spent(model, rounds),
            "fallback": model.reasoner.params.fallback if isinstance(model.reasoner, Reasoner) else None,
            "decided_by": model.reasoner.label,
            "note": model.reasoner.note,
        },
        "guard_errors": dict(model.chart.guard_errors),
        "guards_by_row": sorted(model.rowwise),
        "notes": list(model.notes),
    }


def _spent(model: SocialModel, rounds: int) -> dict[str, float]:
    """Return calls and tokens of the LLM, and how many that is for 1,000 agent-rounds."""
    usage = getattr(model.reasoner, "usage", Counter())
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    thousands = max(1, len(model.population) * rounds) / 1000
    return {
        "calls": usage["calls"],
        "tokens": tokens,
        "calls_per_1000_agent_rounds": usage["calls"] / thousands,
        "tokens_per_1000_agent_rounds": tokens / thousands,
    }


def _rates(model: SocialModel, rounds: int) -> dict[str, float]:
    """Return open choices per agent and round, and the shares of them that were fallbacks, known, or beyond a limit."""
    asked = max(1, model.totals["open"])
    return {
        "open": model.totals["open"] / max(1, len(model.population) * rounds),
        "fallback": model.totals["fallback"] / asked,
        "cache": model.sources["cache"] / asked,
        "budget": model.sources["budget"] / asked,
    }


def _post_columns(model: SocialModel) -> dict[str, Any]:
    posts = model.posts
    media = [posts.media(i) for i in range(len(posts.texts))]
    texts = {"text": posts.texts, "media_type": [m[0] for m in media], "media_description": [m[1] for m in media]}
    columns: dict[str, Any] = {"post": np.arange(len(posts)), "round": posts.round, "author": posts.author}
    columns["kind"] = pd.Categorical.from_codes(posts.kind, list(POST_KINDS))
    for name in ("parent", "root"):
        values = getattr(posts, name)
        columns[name] = pd.Series(values, dtype="Int32").mask(values == NO_PARENT)
    for name in ("likes", "replies", "reshares", "impressions", "velocity"):
        columns[name] = getattr(posts, name)
    for name, values in texts.items():  # a reply has no text of its own
        codes, distinct = pd.factorize(np.array(values, dtype=object))
        columns[name] = pd.Categorical.from_codes(
            np.where(posts.kind == REPLY, -1, codes[posts.text_id]), list(distinct)
        )
    return columns


def _agent_columns(model: SocialModel) -> dict[str, Any]:
    people = model.population
    agents = np.arange(len(people))
    columns: dict[str, Any] = {"agent": agents, "id": pd.Series(people.ids), "name": pd.Series(people.names)}
    columns["interests"] = pd.Series([";".join(words) for words in model.topics.words_of(people.interests)])
    columns |= {trait: people.traits[:, i] for i, trait in enumerate(BIG_FIVE)}
    for name in ("engagement_threshold", "timeout_threshold", "activity", "post_rate"):
        columns[name] = getattr(people, name)
    columns |= {action: people.propensities[:, i] for i, action in enumerate(ACTIONS)}
    columns["followers"], columns["followees"] = model.network.n_followers, model.network.n_followees
    own = model.posts.author[model.posts.kind == POST]
    columns["posts"] = np.bincount(own, minlength=len(people))
    columns["scripted"], columns["present"] = people.scripted, people.present
    return columns


def _manifest(config: Config, model: SocialModel) -> dict[str, Any]:
    return {
        "status": "running",
        "started": _wall_clock(),
        "seed": config.seed,
        "config": config.model_dump(mode="json"),
        "decided_by": model.reasoner.label,
        "llm": _llm(model),
        "notes": list(model.notes),
        "working_directory": str(Path.cwd()),
        "packages": {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "machine": platform.platform(),
        "git": _git_revision(),
    }


def _llm(model: SocialModel) -> dict[str, Any] | None:
    """Return who was asked and how; None where the rule decides."""
    reasoner = model.reasoner
    if not isinstance(reasoner, Reasoner):
        return None
    oracle, own = reasoner.oracle, reasoner.params
    return {
        "kind": reasoner.kind,
        "name": oracle.name,
        "digest": oracle.digest,
        "server": getattr(getattr(oracle, "client", None), "server_version", ""),
        "decoding": dict(oracle.decoding),
        "answer": own.answer,
        "persona": own.persona,
        "ledger": own.ledger,
    }


def _wall_clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Return the revision of the checkout that PRISM runs from (``-dirty`` if changed); None without git."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
