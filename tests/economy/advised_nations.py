"""A nation's state, its agent, and clients that advise it."""

import copy
import json
import re
from hashlib import sha256

import mesa
import pandas as pd
from hypothesis import strategies as st

from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.observation import INDICATORS, GlobalState, NationState, SimulationState
from prism_mesa.economy.reading import PolicyDecision
from prism_mesa.llm import LLMClient, LLMParams

LOWER = PolicyDecision(
    action="Lower interest rates by 0.5%",
    reasoning="High unemployment (8%) indicates weak demand. Lower rates stimulate borrowing.",
    confidence=0.85,
)


def nation_state(name, **values):
    return NationState(name=name, **(dict.fromkeys(INDICATORS, 0.0) | values))


STATE = SimulationState(
    turn=1,
    quarter="2010Q1",
    agents={
        "TestNation": nation_state(
            "TestNation",
            gdp_growth=-3.14,
            inflation=0.4,
            unemployment=8.25,
            policy_rate=2.5,
            spending=35.0,
            taxes=34.1,
            debt=87.0,
            trade_balance=0.8,
        ),
        "Neighbor": nation_state("Neighbor", gdp_growth=1.0, policy_rate=3.0),
    },
    global_state=GlobalState(
        interest_rate=2.5, total_economic_value=1000.0, tariffs={"Neighbor": {"TestNation": 12.5}}
    ),
)


def says(action, reasoning="why", confidence=0.5):
    return json.dumps({"action": action, "reasoning": reasoning, "confidence": confidence})


def client_saying(*answers):
    """Return a client of an LLM that says one thing after another, the last for ever; its prompts are in `.prompts`."""
    left, prompts = list(answers), []

    def llm(prompt):
        prompts.append(prompt)
        return left.pop(0) if len(left) > 1 else left[0]

    client = LLMClient(llm, LLMParams(kind="python", backoff_s=0.0))
    client.prompts = prompts
    return client


def agent_saying(decision=LOWER, **given):
    text = decision if isinstance(decision, str) else decision.model_dump_json()
    return EconLLMAgent(mesa.Model(), "TestNation", client_saying(text), **given)


class EconomyModelOf(EconomyModel):
    """A model whose nations an LLM advises; it closes at the end of a block and keeps all records."""

    def __init__(self, llm, **params):
        self.rows = []
        super().__init__(
            llm=LLMClient(llm, LLMParams(kind="python", backoff_s=0.0)), recorder=self, economy_policy="llm", **params
        )

    def write(self, table, columns):
        self.rows.append((table, pd.DataFrame(columns)))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def advised(prompt):
    """Return the nation that a prompt is for."""
    return re.search(r"You advise (.*);|The sentence is by (.*);", prompt)[1]


def adviser(prompt):
    """Answer as the whole prompt says: other prompts, other answers."""
    drawn = sha256(prompt.encode()).digest()
    measures = [
        f"Raise the policy rate by {drawn[1] / 256:.2f} percentage points",
        f"Cut taxes by {drawn[1] / 128:.1f}% of GDP",
        f"Increase government spending by {drawn[1] / 200:.1f}% of GDP",
        f"Impose a {1 + drawn[1] % 20}% tariff on {'Sweden' if advised(prompt) != 'Sweden' else 'Canada'}",
        "Lower the policy rate by 2 percentage points",
    ]
    return says(measures[drawn[0] % len(measures)], f"as {drawn.hex()} says", drawn[2] / 255)


def everything(model):
    """Return what a failed step must leave alone, as values of their own."""
    kept = ("world", "datacollector", "time", "steps", "running", "totals", "read_by")
    return {
        **{name: copy.deepcopy(getattr(model, name)) for name in kept},
        "past": [list(nation.past) for nation in model.nations],
        "chains": [nation.reasoning_chain for nation in model.nations],
        "decided": model.decisions,
        "records": len(model.rows),
    }


def assert_unchanged(model, before):
    """Check that a model is what it was when `everything` was taken."""
    after = everything(model)
    assert before.pop("world").equals(after.pop("world"))
    collected, now = before.pop("datacollector"), after.pop("datacollector")
    if model.steps:
        assert_same_frames(collected, now)
    assert before == after


def assert_same_tables(model, other):
    assert model.world.equals(other.world)
    assert_same_frames(model.datacollector, other.datacollector)
    assert [table for table, _ in model.rows] == [table for table, _ in other.rows]
    for (_, rows), (_, other_rows) in zip(model.rows, other.rows, strict=True):
        pd.testing.assert_frame_equal(rows, other_rows, check_exact=True)


def assert_same_frames(collector, other):
    for frame in ("get_model_vars_dataframe", "get_agent_vars_dataframe"):
        pd.testing.assert_frame_equal(getattr(collector, frame)(), getattr(other, frame)(), check_exact=True)


measures = st.fixed_dictionaries(
    {
        "lever": st.sampled_from(["policy_rate", "spending", "taxes", "tariff", "sanction", "debt"]),
        "how": st.sampled_from(["by", "to"]),
        "size": st.sampled_from([-50, -1, 0, 0.5, 1, 2.5, 10, 100, 1e308]),
        "unit": st.sampled_from(["points", "percent", "percent_of_gdp"]),
        "target": st.sampled_from([None, "Canada", "Sweden", "United States", "Mars", 2]),
    }
)
