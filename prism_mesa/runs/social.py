"""One execution of a configuration: the model is stepped, its records are kept, and a summary is made of them."""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from prism_mesa.errors import PrismWarning
from prism_mesa.llm import Ledger
from prism_mesa.reasoner import AnyReasoner, Reasoner
from prism_mesa.reasoner.distilled import keep_copy, record_of
from prism_mesa.runs.config import INPUT_FILES, Config, make_config
from prism_mesa.runs.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.runs.folder import RunFolder
from prism_mesa.runs.lifecycle import RunResult, RunTimer, provenance, run_to_completion, wall_clock
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.runs.summary import peak_memory_mb, summarised
from prism_mesa.social.cascades import cascades
from prism_mesa.social.chart_checks import guards_that_always_fail
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.shortfalls import KEY, shortfall
from prism_mesa.statechart import Statechart
from prism_mesa.streams import digest64, fresh_seed


def run(
    config: Config | Mapping[str, Any] | None = None,
    *,
    out: str | Path = "results",
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
) -> RunResult:
    """Run a configuration and keep its records in ``out/<run-id>``.

    Args:
        config: A `Config`, nested values for one, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        chart: A chart of your own, as an object.
        reasoner: Who is asked, as an object (``Reasoner(function)``); with `content: llm` it writes as well. The folder
            of such a run has its ledger, but cannot be repeated from the command line.
        prepare: Called with the model before its first round, to add agents of your own. Neither it nor
            `chart` nor `reasoner` stands in the manifest's configuration, which says so.
        on_round: Called with the number of rounds done, after each round.

    Returns:
        The result; its status is `failed` if more answers were fallbacks than
        `reasoner.max_fallback_share` allows, or a guard raised each time that it was asked (the tables are kept).

    Warns:
        PrismWarning: At the end, once for each guard that raised, with its count.

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If the run cannot go on; its folder says so, and keeps what was recorded. The same holds
            for KeyboardInterrupt.
    """
    watch = RunTimer()
    if not isinstance(config, Config):
        config = make_config(config or {})
    model = SocialModel(config, chart=chart, reasoner=reasoner)
    if prepare is not None:
        prepare(model)
    model.require_agent_fields()
    manifest = _manifest(config, model) | {
        "made_in_python": [given is not None for given in (chart, prepare, reasoner)]
    }
    folder = RunFolder(Path(out), config.name)
    keep_copy(model.reasoner, folder.path)

    def work() -> str:
        _run_rounds(model, config.rounds, folder, watch, on_round)
        return shortfall(model.platform) or _failing_guards(model)

    with model.guard_warnings.hold(model.chart):
        return run_to_completion(
            folder, manifest, work, lambda told: _finish(folder, model, told, watch), lambda: f"round {model.round}"
        )


def _run_rounds(
    model: SocialModel, rounds: int, folder: RunFolder, watch: RunTimer, on_round: Callable[[int], None] | None
) -> None:
    """Step the model, with its records going to the folder."""
    model.recorder = folder
    with warnings.catch_warnings(), Ledger(folder.path / LEDGER) as ledger, closing(model):
        if isinstance(model.reasoner, Reasoner):
            model.reasoner.record(ledger, f"{_scope(model)}/{folder.path.name}-{fresh_seed():x}")
        warnings.filterwarnings("ignore", f".*{re.escape(KEY)}", PrismWarning)  # the run's status says it
        for done in range(1, rounds + 1):
            with watch.round(folder):
                model.step()
            folder.round_done()
            if on_round is not None:
                on_round(done)


_WITHOUT_EFFECT = set(
    "kind model host timeout_s max_concurrency attempts backoff_s max_fallback_share ledger ledger_path".split()
)
"""Parameters of the reasoner that two runs may differ in whose tables are to be the same."""


def _scope(model: SocialModel) -> str:
    """Return a name for all runs in which the same happens, if the LLM's answers are the same."""
    values = model.params.model_dump(mode="json", exclude={"name": True, "records": True, "reasoner": _WITHOUT_EFFECT})
    for group, key in INPUT_FILES:
        values[group][key] = values[group][key] and Path(values[group][key]).name
    if isinstance(model.reasoner, Reasoner):  # what null stands for
        values["reasoner"] |= {name: getattr(model.reasoner.params, name) for name in ("answer", "persona")}
    values["reasoner"]["distilled"] = (record_of(model.reasoner) or {}).get("digest")
    return f"{digest64(json.dumps(values, sort_keys=True)):016x}"


def _failing_guards(model: SocialModel) -> str:
    found = guards_that_always_fail(model.chart)
    return f"{found}; correct it, or leave it out ('prism chart' shows where it stands)" if found else ""


def _finish(folder: RunFolder, model: SocialModel, manifest: dict[str, Any], watch: RunTimer) -> dict[str, Any]:
    """Write the last tables and the manifest, and return the summary."""
    trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
    folder.write_whole("posts", post_blocks(model))
    folder.write_whole("cascades", cascade_blocks(model, trees))
    folder.write_whole("agents", agent_blocks(model))
    folder.close()
    summary = {"run_dir": str(folder.path), "status": manifest["status"]}
    summary |= {"error": manifest["error"]} if manifest.get("error") else {}
    summary |= summarised(model, trees, len(watch.rounds)) | watch.read()
    summary |= {"records_cpu_s": folder.cpu_s, "peak_memory_mb": peak_memory_mb()}
    summary["notes"] = [*summary["notes"], *folder.notes]
    folder.write_manifest(manifest | {"ended": wall_clock(), "summary": summary})
    return summary


def _manifest(config: Config, model: SocialModel) -> dict[str, Any]:
    return {
        **provenance(),
        "system": "social",
        "seed": config.seed,
        "config": config.model_dump(mode="json"),
        "decided_by": model.reasoner.label,
        "llm": _llm(model),
        "writer": None if model.writer is None else {"name": model.writer.client.name, **model.writer.client.decoding},
        "distilled": record_of(model.reasoner),
        "notes": list(model.notes),
        "recorded": model.recorded.as_facts(),
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
