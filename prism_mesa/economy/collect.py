"""The rows of a quarter, for the DataCollector and for a recorder."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from prism_mesa.economy.llm_agent import thoughts_in_json
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.economy.state import Decided, EconomyState, HasState, outcome_of
from prism_mesa.economy.tables import OUTCOMES
from prism_mesa.economy.world import World
from prism_mesa.round_model import RoundCollector

WORLD_FIELDS: Final = ("output_gap", "inflation", "unemployment", *OUTCOMES)


class QuarterRecorder(Protocol):
    """Where a model's records go."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows to a table of `economy.tables`, columns in order."""
        ...


def make_datacollector() -> RoundCollector:
    """Return the collector of every model: of nations their indicators, of the world means and outcomes."""
    return RoundCollector(
        model_reporters={name: partial(_of_world, name=name) for name in WORLD_FIELDS},
        agent_reporters={"nation": attrgetter("name")} | {name: attrgetter(f"state.{name}") for name in INDICATORS},
    )


def _of_world(model: HasState, name: str) -> float:
    state = model.state
    if name in OUTCOMES:
        return sum(outcome_of(one) == name for one in state.decided)
    weights = state.seen["gdp"] / state.seen["gdp"].sum()
    return float(weights @ state.seen[name])


def rows_of(state: EconomyState, names: Sequence[str], quarter: str) -> dict[str, dict[str, Any]]:
    """Return the rows of the last quarter of a state, by table; `names` are all nations, `quarter` is its name."""
    round_ = state.world.quarter - 1
    place = {
        "round": np.full(len(names), round_),
        "quarter": pd.Categorical.from_codes([0] * len(names), [quarter]),
        "nation": _named(range(len(names)), names),
    }
    tables = {
        "indicators": {**place, **state.seen, "inflation_quarter": state.world.inflation},
        "decisions": {**place, **_decisions(state.decided)},
        "verdicts": _verdicts(state.decided, round_, names),
        "trade": _trade(state.world, round_, names),
    }
    chains = [one.chain for one in state.decided if one.chain is not None]
    if chains:
        fields = ("chain_id", "component", "agent_id", "prompt", "action", "reasoning", "confidence")
        columns = {name: [getattr(chain, name) for chain in chains] for name in fields}
        thoughts = [thoughts_in_json(chain.thoughts) for chain in chains]
        tables["reasoning"] = {"round": np.array([chain.turn for chain in chains]), **columns, "thoughts": thoughts}
    return tables


def _named(rows: Sequence[int], names: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(list(rows), list(names))


def _decisions(decided: Sequence[Decided]) -> dict[str, Any]:
    return {
        "action": [one.action.action_string for one in decided],
        "confidence": np.array([one.action.policy_decision.confidence for one in decided]),
        "read_by": [one.reading.read_by for one in decided],
        "policy": [str(one.reading.policy) if one.reading.policy is not None else "" for one in decided],
        "measures": [one.reading.policy.model_dump_json() if one.reading.policy else "" for one in decided],
        "outcome": [outcome_of(one) for one in decided],
        "reason": [one.reason for one in decided],
        "reasoning": [one.action.policy_decision.reasoning for one in decided],
        "reasoning_chain_id": [one.action.reasoning_chain_id for one in decided],
    }


def _verdicts(decided: Sequence[Decided], round_: int, names: Sequence[str]) -> dict[str, Any]:
    verdicts = [verdict for decision in decided for verdict in decision.judgement.verdicts]
    rows, subjects = [], []
    for decision in decided:
        for verdict in decision.judgement.verdicts:
            policy = decision.reading.policy
            rows.append(decision.row)
            subjects.append(str(policy.measures[verdict.measure] if policy and verdict.measure >= 0 else policy))
    return {
        "round": np.full(len(verdicts), round_),
        "nation": _named(rows, names),
        "measure": np.array([verdict.measure for verdict in verdicts], dtype=np.int64),
        "of": pd.Series(subjects, dtype="string"),
        "check": pd.Series([verdict.check for verdict in verdicts], dtype="string"),
        "passed": np.array([verdict.passed for verdict in verdicts], dtype=np.bool_),
        "reason": pd.Series([verdict.reason for verdict in verdicts], dtype="string"),
    }


def _trade(world: World, round_: int, names: Sequence[str]) -> dict[str, Any]:
    importer, exporter = np.nonzero(~np.eye(len(names), dtype=np.bool_))
    return {
        "round": np.full(len(importer), round_),
        "importer": _named(importer.tolist(), names),
        "exporter": _named(exporter.tolist(), names),
        "imports": world.imports[importer, exporter],
        "tariff": world.tariff[importer, exporter],
        "sanction": world.sanction[importer, exporter],
    }
