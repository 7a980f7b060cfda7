"""One run of nations: the model is stepped, its records are kept, and a summary is made of them."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.economy.impulse_response import Follows, rate_response
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams, quarter_name
from prism_mesa.economy.reading import Reading
from prism_mesa.economy.tables import ECONOMY_TABLES, OUTCOMES
from prism_mesa.llm import LLMClient
from prism_mesa.runs.config import EconomyConfig, given_config
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.lifecycle import RunResult, run_to_completion
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.rounds import WITHOUT_EFFECT, RunTimer, as_before, run_rounds, run_summary, scope_of
from prism_mesa.runs.run_files import has_table, read_table

BASELINES = ("taylor", "nothing")
"""Policies that every run is compared with, under the same shocks."""

_RESPONSES: tuple[Follows, ...] = ("held", "taylor")


def run_economy(
    config: EconomyConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    out: str | Path = "results",
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
    readings: Mapping[tuple[int, str], Reading] | None = None,
) -> RunResult:
    """Run nations and keep their records in ``out/<run-id>``.

    Args:
        config: An `EconomyConfig`, nested values for one, a YAML file, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        llm: Who is asked, as for `EconomyModel`; None: what the configuration names.
        readings: How answers were read before, by quarter and nation; what is not in it is read now.
        on_round: Called with the number of quarters done, before the first, which may take a minute, and after each.

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If an LLM gave no usable answer, or the run cannot go on for another reason; its folder says so, and
            keeps what was recorded. The same holds for KeyboardInterrupt.
    """
    watch = RunTimer()
    config = given_config(EconomyConfig, config)
    model = EconomyModel(config, llm=llm)
    model.readings = readings or {}
    work = NationsRun(model, config, watch, on_round)
    return run_to_completion(work, out, config.name, ECONOMY_TABLES)


@dataclass(frozen=True)
class NationsRun:
    """The work of a run of nations (see `work.Work`)."""

    model: EconomyModel
    config: EconomyConfig
    watch: RunTimer
    on_round: Callable[[int], None] | None

    @property
    def asked(self) -> LLMClient | None:
        """The LLM, if one is asked."""
        llm: LLMClient | None = self.model.llm
        return llm

    @property
    def checkpoint_every(self) -> int:
        """0: none is made; what was answered stands in the ledger, and all else is computed again in no time."""
        return 0

    def scope(self) -> str:
        """Return a name of all values with an effect on the tables."""
        return scope_of(self.model.params.model_dump(mode="json", exclude={"name": True, "reasoner": WITHOUT_EFFECT}))

    def facts(self) -> dict[str, Any]:
        """Return configuration and who decides."""
        model = self.model
        return {
            "system": "economy",
            "seed": self.config.seed,
            "config": self.config.model_dump(mode="json"),
            "code": code_version(),
            "decided_by": model.label,
            "note": model.note,
            "notes": list(model.notes),
            "llm": None if model.llm is None else _llm(model.llm, model),
        }

    def carry_out(self, folder: RunFolder) -> str:
        """Run the quarters; none of them fails without an error."""
        with closing(self.model):
            if self.on_round is not None:
                self.on_round(0)
            run_rounds(self.model, self.config.rounds, folder, self.watch, self.on_round)
        return ""

    def where(self) -> str:
        """Return the quarter."""
        return quarter_name(self.config.economy.first_quarter, self.model.world.quarter)

    def finish(self, folder: RunFolder, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write nations, responses and baselines, and return the summary."""
        model = self.model
        seen = read_table(folder.path, "indicators") if has_table(folder.path, "indicators") else pd.DataFrame()
        quarters = int(seen["round"].nunique()) if len(seen) else 0
        baselines = {name: _baseline(model, name, quarters) for name in BASELINES}
        folder.write_whole("nations", _nations(model))
        folder.write_whole("responses", _columns(_responses(model)))
        folder.write_whole("baselines", _columns(pd.concat(baselines.values(), ignore_index=True)))
        return run_summary(folder, ending, summarised_economy(model, seen, baselines), self.watch)


def _llm(llm: LLMClient, model: EconomyModel) -> dict[str, Any]:
    """Return who is asked and how."""
    styles = {getattr(nation, "prompt_style", None) for nation in model.nations} - {None}
    return llm_facts(llm.kind, llm.client, llm.client, prompt_style=next(iter(styles)), ledger=llm.params.ledger)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    return {str(name): table[name].to_numpy() for name in table.columns}


def _nations(model: EconomyModel) -> dict[str, Any]:
    """Return the table of nations: their parameters, with what null stands for, and who decides."""
    start = model.macro.start()
    told = pd.DataFrame([nation.model_dump(exclude={"policy"}) for nation in model.macro.nations])
    told["unemployment"], told["policy_rate"] = start.unemployment, start.policy_rate
    told["inflation"] = start.inflation
    told["policy"] = [getattr(nation, "rule", "llm") for nation in model.nations]
    return _columns(told)


def _responses(model: EconomyModel) -> pd.DataFrame:
    """Return what a rise of the first nation's rate by a point for a year does, without other shocks."""
    nations, params = tuple(model.macro.nations), model.macro.params
    return pd.concat([_response(nations, params, follows) for follows in _RESPONSES], ignore_index=True)


@lru_cache(maxsize=16)
def _response(nations: tuple[NationParams, ...], params: MacroParams, follows: Follows) -> pd.DataFrame:
    return rate_response(nations, params, follows=follows).assign(follows=follows)


@as_before()
def _baseline(model: EconomyModel, policy: str, quarters: int) -> pd.DataFrame:
    """Return the indicators of the same nations and shocks under another policy."""
    own = model.params.economy
    nations = [nation.model_copy(update={"policy": None}) for nation in own.nations]
    settings = own.model_copy(update={"policy": policy, "nations": tuple(nations)})
    other = EconomyModel(model.params.model_copy(update={"economy": settings}))
    rows = []
    for _ in range(quarters):
        other.step()
        rows.append(pd.DataFrame({"round": other.world.quarter - 1, "nation": other.macro.names, **other.seen}))
    columns = ["round", "nation", *other.seen]
    table = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)
    return table.assign(policy=policy)


def summarised_economy(
    model: EconomyModel, table: pd.DataFrame, baselines: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Return what a run of nations comes to, in numbers: what ``prism economy --json`` prints.

    Args:
        model: The model, for what was decided and asked.
        table: The table `indicators`; empty if no quarter was completed.
        baselines: The same under other policies.
    """
    own, quarters = model.params.economy, int(table["round"].nunique()) if len(table) else 0
    usage, sources = (model.llm.usage, model.llm.counts) if model.llm is not None else ({}, {})
    return {
        "seed": model.params.seed,
        "nations": list(model.macro.names),
        "rounds": quarters,
        "quarters": [own.first_quarter, quarter_name(own.first_quarter, quarters - 1)] if quarters else [],
        "policy": own.policy,
        "decided_by": model.label,
        "note": model.note,
        "notes": [note for note in model.notes if note != model.note],
        "decisions": {
            "made": sum(model.totals.values()),
            **{name: model.totals[name] for name in OUTCOMES},
            "read_by": dict(sorted(model.read_by.items())),
            "by_source": dict(sorted(sources.items())),
            "failures": dict(sorted(model.llm.reasons.items())) if model.llm is not None else {},
            "llm": {"calls": usage.get("calls", 0), "tokens": _tokens(usage)},
        },
        "indicators": _by_nation(table),
        "loss": _losses(table, model),
        "baseline_loss": {name: _losses(of, model) for name, of in baselines.items()},
    }


def _tokens(usage: Mapping[str, int]) -> int:
    return usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)


_TOLD = ("gdp_growth", "output_gap", "inflation", "unemployment", "policy_rate", "debt", "trade_balance")


def _by_nation(table: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return mean, standard deviation and last value of some indicators by nation."""
    if table.empty:
        return {}
    return {
        str(nation): {
            name: {"mean": float(of[name].mean()), "sd": float(of[name].std(ddof=0)), "last": float(of[name].iloc[-1])}
            for name in _TOLD
        }
        for nation, of in table.groupby("nation", sort=False, observed=True)
    }


def _losses(table: pd.DataFrame, model: EconomyModel) -> float | None:
    """Return the mean over nations and quarters of squared inflation beyond target plus squared output gap.

    The quadratic loss of Svensson (1997, doi:10.1016/S0014-2921(96)00055-4) with equal weights, in points squared.
    """
    if table.empty:
        return None
    targets = dict(zip(model.macro.names, model.macro.target, strict=True))
    beyond = table["inflation"] - table["nation"].astype(str).map(targets)
    return float((beyond**2 + table["output_gap"] ** 2).mean())
