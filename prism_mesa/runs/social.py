"""One run of a platform, from its model to its records and summary."""

import os
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_mesa.errors import PrismWarning
from prism_mesa.reasoner import AnyReasoner, Reasoner
from prism_mesa.reasoner.distilled import distilled_record, write_copy
from prism_mesa.runs.config import INPUT_FILES, Config, read_config
from prism_mesa.runs.identity import code_version, input_digests, inputs_version
from prism_mesa.runs.lifecycle import RunResult, resume_to_completion, run_in_memory, run_to_completion
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.rounds import WITHOUT_EFFECT, RunTimer, run_rounds, run_summary, scope_name
from prism_mesa.runs.summary import platform_summary
from prism_mesa.runs.work import Records
from prism_mesa.social.chart_checks import guards_that_always_fail
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.acts import covering_acts
from prism_mesa.social.round.choices import FALLBACK_KEY, shortfall
from prism_mesa.social.state.outcomes import cascades
from prism_mesa.social.tables import make_tables
from prism_mesa.social.world.build import KeptWorld
from prism_mesa.statechart import Statechart
from prism_mesa.tables import TableSchema


def run(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    out: str | Path = "results",
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
) -> RunResult:
    """Run a configuration and keep its records in ``out/<run-id>``, without pictures; see `api.runs.run`.

    Warns:
        PrismWarning: At the end, for each guard that raised, with the number of times.
    """
    task = start_run(config, chart=chart, reasoner=reasoner, prepare=prepare, on_round=on_round)
    return task.run_in_folder(out, task.config.name)


def start_run(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    world: KeptWorld | None = None,
) -> "PlatformRun":
    """Return a run with its model; arguments as for `run`, and `world` as for `SocialModel`."""
    timer = RunTimer()
    config = read_config(Config, config)
    model = SocialModel(config, chart=chart, reasoner=reasoner, world=world)
    if prepare is not None:
        prepare(model)
    model.require_agent_fields()
    made_in_python = [value is not None for value in (chart, prepare, reasoner)]
    return PlatformRun(model, config, made_in_python, timer, on_round)


@dataclass(frozen=True)
class PlatformRun:
    """A run of a platform (see `work.RunTask`)."""

    model: SocialModel
    config: Config
    made_in_python: list[bool]
    timer: RunTimer
    on_round: Callable[[int], None] | None

    def run_in_folder(self, out: str | Path, name: str, *, has_date: bool = True) -> RunResult:
        """Run and keep the results in a folder (see `lifecycle.run_to_completion`)."""
        with self.model.guard_warnings.deferred(self.model.platform.charts):
            return run_to_completion(self, out, name, self.tables, has_date=has_date)

    def run_in_memory(self, records: Records, name: str) -> dict[str, Any]:
        """Run and return the summary (see `lifecycle.run_in_memory`)."""
        with self.model.guard_warnings.deferred(self.model.platform.charts):
            return run_in_memory(self, records, name)

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The schemas of the run's tables, by name."""
        platform = self.model.platform
        names = [act.name for act in platform.configured.interventions if act.name is not None]
        covering = [str(act.name) for _, act in covering_acts(platform)]
        return make_tables(platform.attributes.schema, platform.llms.names, names, covering, platform.states)

    @property
    def answerer(self) -> Reasoner | None:
        """The reasoner if it asks an LLM; else None."""
        return self.model.reasoner if isinstance(self.model.reasoner, Reasoner) else None

    def resume(self, folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int) -> RunResult:
        """Resume the run in its folder (see `lifecycle.resume_to_completion`)."""
        with self.model.guard_warnings.deferred(self.model.platform.charts):
            return resume_to_completion(self, folder, manifest, name, round_)

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds from one checkpoint to the next; None: by time; 0: no checkpoints."""
        return self.config.checkpoint_every

    def scope(self) -> str:
        """Return a name for the values that affect the tables."""
        params = None if self.answerer is None else self.answerer.params
        llm_keys = {} if params is None else {"answer": params.answer, "persona": params.persona}
        return platform_scope(self.config, llm_keys, (distilled_record(self.model.reasoner) or {}).get("digest"))

    def facts(self) -> dict[str, Any]:
        """Return the configuration, who decides and writes, and the recorded agents."""
        model, writer = self.model, self.model.writer
        return {
            "system": "social",
            "seed": self.config.seed,
            "config": self.config.model_dump(mode="json"),
            "code": code_version(),
            "decided_by": model.reasoner.label,
            "note": model.reasoner.note,
            "llm": _llm_entry(self.answerer),
            "writer": None if writer is None else _writer_entry(writer),
            "distilled": distilled_record(model.reasoner),
            "notes": list(model.notes),
            "recorded": model.recorded.to_facts(),
            "inputs": inputs_version(self.config),
            "inputs_one_by_one": input_digests(self.config),
            "made_in_python": self.made_in_python,
        }

    def carry_out(self, folder: Records) -> str:
        """Run the rounds; return an error if there were too many fallbacks, or a guard always raised."""
        model = self.model
        if folder.path is not None:
            write_copy(model.reasoner, folder.path)
        if folder.checkpoints is not None:
            folder.checkpoints.world = model.platform.world_to_keep
        with warnings.catch_warnings(), closing(model):
            warnings.filterwarnings("ignore", f".*{re.escape(FALLBACK_KEY)}", PrismWarning)  # the status says so
            run_rounds(model, self.config.rounds, folder, self.timer, self.on_round)
        return shortfall(model.platform) or guards_that_always_fail(model.platform.charts)

    def progress(self) -> str:
        """Return the current round."""
        return f"round {self.model.round}"

    def finish(self, folder: Records, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write posts, cascades and agents, and return the summary."""
        model = self.model
        trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
        folder.replace_table("posts", post_blocks(model))
        folder.replace_table("cascades", cascade_blocks(model, trees))
        folder.replace_table("agents", agent_blocks(model))
        return run_summary(folder, ending, platform_summary(model, trees, len(self.timer.rounds)), self.timer)


def platform_scope(params: SocialParams, llm_keys: Mapping[str, Any], distilled: str | None) -> str:
    """Return a name for the values that affect the tables of a run (see `RunTask.scope`).

    `llm_keys` has the reasoner's keys without nulls; `distilled` is the digest of the distilled model.
    """
    exclude: dict[str, Any] = {"name": True, "checkpoint_every": True, "records": True, "reasoner": WITHOUT_EFFECT}
    values = params.model_dump(mode="json", exclude=exclude)
    for group, key in INPUT_FILES:
        values[group][key] = values[group][key] and Path(values[group][key]).name
    values["reasoner"] |= {**llm_keys, "distilled": distilled}
    return scope_name(values)


def _writer_entry(writer: Any) -> dict[str, Any]:
    llms = [{"name": client.name, **client.decoding} for client in writer.clients.values()]
    return {**llms[0], "llms": llms} if len(llms) > 1 else llms[0]


def _llm_entry(reasoner: Reasoner | None) -> dict[str, Any] | None:
    if reasoner is None:
        return None
    options = {key: getattr(reasoner.params, key) for key in ("answer", "persona", "ledger")}
    oracles = reasoner.oracles.values()
    llms = [llm_facts(reasoner.kind, oracle, getattr(oracle, "client", None), **options) for oracle in oracles]
    return {**llms[0], "name": ", ".join(reasoner.llms), "llms": llms} if reasoner.llms else llms[0]
