"""One run of the platform: the model is stepped, its records are kept, and a summary is made of them."""

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
from prism_mesa.reasoner.distilled import distilled_record, keep_copy
from prism_mesa.runs.config import INPUT_FILES, Config, given_config
from prism_mesa.runs.identity import code_version, inputs_one_by_one, inputs_version
from prism_mesa.runs.lifecycle import RunResult, go_on_to_completion, run_to_completion, run_without_folder
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.rounds import WITHOUT_EFFECT, RunTimer, run_rounds, run_summary, scope_of
from prism_mesa.runs.summary import summarised
from prism_mesa.runs.work import Records
from prism_mesa.social.cascades import cascades
from prism_mesa.social.chart_checks import guards_that_always_fail
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.shortfalls import KEY, shortfall
from prism_mesa.social.tables import tables_with
from prism_mesa.social.world.kept import KeptWorld
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
    """Run a configuration and keep its records in ``out/<run-id>``.

    Args:
        config: A `Config`, nested values for one, a YAML file, or None for the default run.
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
    work = start_run(config, chart=chart, reasoner=reasoner, prepare=prepare, on_round=on_round)
    return work.keep(out, work.config.name)


def start_run(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    world: KeptWorld | None = None,
) -> "PlatformRun":
    """Return a run whose model is made; arguments and errors are those of `run`, `world` is that of `SocialModel`."""
    watch = RunTimer()
    config = given_config(Config, config)
    model = SocialModel(config, chart=chart, reasoner=reasoner, world=world)
    if prepare is not None:
        prepare(model)
    model.require_agent_fields()
    made_in_python = [given is not None for given in (chart, prepare, reasoner)]
    return PlatformRun(model, config, made_in_python, watch, on_round)


@dataclass(frozen=True)
class PlatformRun:
    """The work of a run of the platform (see `work.Work`)."""

    model: SocialModel
    config: Config
    made_in_python: list[bool]
    watch: RunTimer
    on_round: Callable[[int], None] | None

    def keep(self, out: str | Path, name: str, *, dated: bool = True) -> RunResult:
        """Run it and keep it in a folder (see `lifecycle.run_to_completion`)."""
        with self.model.guard_warnings.deferred(self.model.chart):
            return run_to_completion(self, out, name, self.tables, dated=dated)

    def leave_nothing(self, records: Records, name: str) -> dict[str, Any]:
        """Run it and return its summary (see `lifecycle.run_without_folder`)."""
        with self.model.guard_warnings.deferred(self.model.chart):
            return run_without_folder(self, records, name)

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables that it writes, by name."""
        return tables_with(self.model.platform.attributes.known, self.model.platform.llms.names)

    @property
    def asked(self) -> Reasoner | None:
        """The reasoner, if it asks an LLM."""
        return self.model.reasoner if isinstance(self.model.reasoner, Reasoner) else None

    def go_on(self, folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int) -> RunResult:
        """Go on with it in the folder in which it was stopped (see `lifecycle.go_on_to_completion`)."""
        with self.model.guard_warnings.deferred(self.model.chart):
            return go_on_to_completion(self, folder, manifest, name, round_)

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds after which a checkpoint is made; None: by time; 0: never."""
        return self.config.checkpoint_every

    def scope(self) -> str:
        """Return a name of all values with an effect on the tables."""
        asked = None if self.asked is None else self.asked.params
        how = {} if asked is None else {"answer": asked.answer, "persona": asked.persona}
        return platform_scope(self.config, how, (distilled_record(self.model.reasoner) or {}).get("digest"))

    def facts(self) -> dict[str, Any]:
        """Return configuration, who decides and writes, and whose rows are recorded."""
        model, writer = self.model, self.model.writer
        return {
            "system": "social",
            "seed": self.config.seed,
            "config": self.config.model_dump(mode="json"),
            "code": code_version(),
            "decided_by": model.reasoner.label,
            "note": model.reasoner.note,
            "llm": _llm(self.asked),
            "writer": None if writer is None else _writer(writer),
            "distilled": distilled_record(model.reasoner),
            "notes": list(model.notes),
            "recorded": model.recorded.as_facts(),
            "inputs": inputs_version(self.config),
            "inputs_one_by_one": inputs_one_by_one(self.config),
            "made_in_python": self.made_in_python,
        }

    def carry_out(self, folder: Records) -> str:
        """Run the rounds; it fails if too many answers were fallbacks, or a guard raised each time."""
        model = self.model
        if folder.path is not None:
            keep_copy(model.reasoner, folder.path)
        if folder.checkpoints is not None:
            folder.checkpoints.world = model.platform.world_to_keep
        with warnings.catch_warnings(), closing(model):
            warnings.filterwarnings("ignore", f".*{re.escape(KEY)}", PrismWarning)  # the run's status says it
            run_rounds(model, self.config.rounds, folder, self.watch, self.on_round)
        return shortfall(model.platform) or _failing_guards(model)

    def where(self) -> str:
        """Return the round."""
        return f"round {self.model.round}"

    def finish(self, folder: Records, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write posts, cascades and agents, and return the summary."""
        model = self.model
        trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
        folder.write_whole("posts", post_blocks(model))
        folder.write_whole("cascades", cascade_blocks(model, trees))
        folder.write_whole("agents", agent_blocks(model))
        return run_summary(folder, ending, summarised(model, trees, len(self.watch.rounds)), self.watch)


def platform_scope(params: SocialParams, how: Mapping[str, Any], distilled: str | None) -> str:
    """Return a name of all values with an effect on the tables of a run of a platform (see `work.Work`).

    Args:
        params: Its configuration.
        how: Of who is asked, what null stands for there.
        distilled: The digest of the distilled model that it uses.
    """
    without: dict[str, Any] = {"name": True, "checkpoint_every": True, "records": True, "reasoner": WITHOUT_EFFECT}
    values = params.model_dump(mode="json", exclude=without)
    for group, key in INPUT_FILES:
        values[group][key] = values[group][key] and Path(values[group][key]).name
    values["reasoner"] |= {**how, "distilled": distilled}
    return scope_of(values)


def _failing_guards(model: SocialModel) -> str:
    found = guards_that_always_fail(model.chart)
    return f"{found}; correct it, or leave it out ('prism chart' shows where it stands)" if found else ""


def _writer(writer: Any) -> dict[str, Any]:
    each = [{"name": client.name, **client.decoding} for client in writer.clients.values()]
    return {**each[0], "llms": each} if len(each) > 1 else each[0]


def _llm(reasoner: Reasoner | None) -> dict[str, Any] | None:
    """Return who is asked and how; None where the rule decides."""
    if reasoner is None:
        return None
    own = reasoner.params
    how = {"answer": own.answer, "persona": own.persona, "ledger": own.ledger}
    each = [llm_facts(reasoner.kind, o, getattr(o, "client", None), **how) for o in reasoner.oracles.values()]
    return {**each[0], "name": ", ".join(reasoner.llms), "llms": each} if reasoner.llms else each[0]
