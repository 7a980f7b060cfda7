"""The rows of a quarter, for the DataCollector and for a recorder."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from prism_mesa.economy.llm_agent import thoughts_in_json
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.economy.state import EconomyState, NationDecision
from prism_mesa.economy.tables import OUTCOMES
from prism_mesa.economy.world import World
from prism_mesa.round_model import RoundCollector

WORLD_FIELDS: Final = ("output_gap", "inflation", "unemployment", *OUTCOMES)


class QuarterRecorder(Protocol):
    """Receives a model's records."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows to a table of `economy.tables`, columns in order."""
        ...


def make_datacollector() -> RoundCollector:
    """Return a model's collector: indicators of nations, and the world's means and outcomes."""
    return RoundCollector(
        model_reporters={name: partial(_world_value, name=name) for name in WORLD_FIELDS},
        agent_reporters={"nation": attrgetter("name")} | {name: attrgetter(f"state.{name}") for name in INDICATORS},
    )


def _world_value(model: Any, name: str) -> float:
    state: EconomyState = model.state
    if name in OUTCOMES:
        return sum(decision.outcome == name for decision in state.decided)
    weights = state.seen["gdp"] / state.seen["gdp"].sum()
    return float(weights @ state.seen[name])


def quarter_rows(state: EconomyState, names: Sequence[str], quarter: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a state's last quarter, by table, given the nations' names and the quarter's name."""
    round_ = state.world.quarter - 1
    identity = {
        "round": np.full(len(names), round_),
        "quarter": pd.Categorical.from_codes([0] * len(names), [quarter]),
        "nation": pd.Categorical.from_codes(range(len(names)), names),
    }
    tables = {
        "indicators": {**identity, **state.seen, "inflation_quarter": state.world.inflation},
        "decisions": {**identity, **_decisions(state.decided)},
        "verdicts": _verdicts(state.decided, round_, names),
        "trade": _trade(state.world, round_, names),
    }
    chains = [decision.chain for decision in state.decided if decision.chain is not None]
    if chains:
        fields = ("chain_id", "component", "agent_id", "prompt", "action", "reasoning", "confidence")
        columns = {name: [getattr(chain, name) for chain in chains] for name in fields}
        thoughts = [thoughts_in_json(chain.thoughts) for chain in chains]
        tables["reasoning"] = {"round": np.array([chain.turn for chain in chains]), **columns, "thoughts": thoughts}
    return tables


def _decisions(decided: Sequence[NationDecision]) -> dict[str, Any]:
    actions, policies = [d.action for d in decided], [d.reading.policy for d in decided]
    return {
        "action": [action.action_string for action in actions],
        "confidence": np.array([action.policy_decision.confidence for action in actions]),
        "read_by": [d.reading.read_by for d in decided],
        "policy": ["" if policy is None else str(policy) for policy in policies],
        "measures": ["" if policy is None else policy.model_dump_json() for policy in policies],
        "outcome": [d.outcome for d in decided],
        "reason": [d.reason for d in decided],
        "reasoning": [action.policy_decision.reasoning for action in actions],
        "reasoning_chain_id": [action.reasoning_chain_id for action in actions],
    }


def _verdicts(decided: Sequence[NationDecision], round_: int, names: Sequence[str]) -> dict[str, Any]:
    pairs = [(decision, verdict) for decision in decided for verdict in decision.judgement.verdicts]
    verdicts = [verdict for _, verdict in pairs]
    policies = [(decision.reading.policy, verdict.measure) for decision, verdict in pairs]
    subjects = [str(policy.measures[index] if policy and index >= 0 else policy) for policy, index in policies]
    return {
        "round": np.full(len(verdicts), round_),
        "nation": pd.Categorical.from_codes([decision.row for decision, _ in pairs], names),
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
        "importer": pd.Categorical.from_codes(importer, names),
        "exporter": pd.Categorical.from_codes(exporter, names),
        "imports": world.imports[importer, exporter],
        "tariff": world.tariff[importer, exporter],
        "sanction": world.sanction[importer, exporter],
    }
