"""Nations on Mesa: who decides, what is seen and collected, and that a seed makes the same world."""

import mesa
import numpy as np
import pandas as pd
import pytest

from prism_mesa.economy.agent import EconLLMAgent, RuleAgent
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.nations import NATIONS, NationParams
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.errors import ConfigError, NotedWarning


def table(model):
    return model.datacollector.get_agent_vars_dataframe()


def ran(quarters=6, **params):
    model = EconomyModel(**params)
    model.run_for(quarters)
    return model


def test_a_model_without_arguments_is_five_nations_under_taylors_rule():
    model = EconomyModel()
    assert [nation.name for nation in model.nations] == list(NATIONS)
    assert all(isinstance(nation, RuleAgent) for nation in model.nations)
    assert (model.label, model.quarter) == ("Taylor's rule (1993)", "2009Q3")
    model.step()
    assert model.quarter == "2009Q4"


def test_the_datacollector_holds_every_indicator_of_every_nation_and_quarter():
    model = ran(6)
    found = table(model)
    assert list(found.columns) == ["nation", *INDICATORS]
    assert found["nation"].iloc[:5].tolist() == list(NATIONS)
    assert len(found) == 6 * 5
    world = model.datacollector.get_model_vars_dataframe()
    assert (world[["accepted", "no_change", "rejected", "not_understood"]].sum(axis=1) == 5).all()
    weights = found["gdp"].to_numpy().reshape(6, 5)
    mean = (found["inflation"].to_numpy().reshape(6, 5) * weights).sum(axis=1) / weights.sum(axis=1)
    assert world["inflation"].to_numpy() == pytest.approx(mean)


def test_the_same_seed_makes_the_same_world_and_another_one_another():
    assert ran(rng=1).world.equals(ran(rng=1).world)
    assert not ran(rng=1).world.equals(ran(rng=2).world)


def test_arms_share_their_shocks():
    with_, without = ran(1, economy_policy="random"), ran(1, economy_policy="nothing")
    gap = with_.world.demand - without.world.demand
    assert gap == pytest.approx(np.zeros(5))


def test_adding_a_nation_shifts_nobody_elses_shocks():
    few = EconomyModel(economy_nations=["United States", "Sweden"], economy_policy="nothing")
    more = EconomyModel(economy_nations=["United States", "Sweden", "Canada"], economy_policy="nothing")
    few.step()
    more.step()
    assert more.world.demand[:2] == pytest.approx(few.world.demand)


def test_each_nation_may_have_its_own_policy():
    nations = ["United States", {"name": "sweden", "policy": "nothing"}]  # what is not said of Sweden is as known
    model = ran(8, economy_nations=nations)
    assert model.world.policy_rate[1] == NATIONS["Sweden"].policy_rate
    assert model.world.policy_rate[0] != NATIONS["United States"].policy_rate
    assert model.label == "Taylor's rule (1993) for United States; nobody for Sweden"


def test_without_an_llm_at_hand_taylors_rule_decides_and_says_so():
    model = EconomyModel(economy_policy="llm", reasoner_kind="rule")
    assert all(isinstance(nation, RuleAgent) for nation in model.nations)
    assert model.label == "Taylor's rule (1993)"
    assert model.note == "there is no LLM (reasoner.kind=rule asks no LLM): Taylor's rule decides instead"
    assert model.note in model.notes
    assert ran(4, economy_policy="llm", reasoner_kind="rule").world.equals(ran(4).world)


def test_an_llm_and_a_rule_can_share_a_world():
    def llm(prompt):
        return '{"action": "Keep interest rates unchanged", "reasoning": "Wait.", "confidence": 0.5}'

    nations = ["United States", {**NATIONS["Sweden"].model_dump(), "policy": "taylor"}]
    model = ran(3, economy_policy="llm", economy_nations=nations, llm=llm)
    assert [type(nation) for nation in model.nations] == [EconLLMAgent, RuleAgent]
    assert model.totals == {"no_change": 3, "accepted": 3}
    assert model.label.endswith("llm for United States; Taylor's rule (1993) for Sweden")
    model.close()


def test_batches_run_with_mesa_and_every_seed_is_another_run():
    arms = {"economy_policy": ["taylor", "nothing"]}
    found = mesa.batch_run(EconomyModel, arms, rng=[1, 2], max_steps=4, display_progress=False)
    frame = pd.DataFrame(found)
    assert set(frame["economy_policy"]) == {"taylor", "nothing"}
    assert frame.groupby(["economy_policy", "seed" if "seed" in frame else "RunId"])["inflation"].first().nunique() == 4


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"economy_polcy": "taylor"}, "'economy_polcy'.*'economy_policy'"),
        ({"economy_policy": "communism"}, r"economy\.policy"),
        ({"economy_nations": ["Swedn"]}, "'Sweden'"),
        ({"economy_nations": ["Sweden", "sweden"]}, "nations: 'sweden'"),
        ({"economy_nations": []}, "economy: nations: 0"),
        ({"economy_nations": [{"name": "Sweden", "polcy": "llm"}]}, "polcy.*'policy'"),
        ({"economy_nations": [3]}, "nations.*the keys of a new nation"),
        ({"economy_limits_lower_bound": 5, "economy_limits_highest_rate": 1}, "highest_rate=1"),
        ({"economy_macro_demand_lag_1": 1.9}, "demand_lag_1=1.9"),
        ({"economy_first_quarter": "2009Q5"}, r"economy\.first_quarter"),
        ({"rng": "seven"}, "rng: 'seven'"),
        ({"llm": lambda prompt: ""}, "llm: no nation uses it"),
    ],
)
def test_bad_input_is_one_line_that_says_where_and_what(params, says):
    with pytest.raises(ConfigError, match=says) as caught:
        EconomyModel(**params)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given", [["Brazil"], "Brazil", [{"name": "Brazil"}], [{"name": "Brazil", "policy": "nothing"}]]
)
def test_a_name_that_is_not_known_makes_a_nation_with_default_values_and_is_noted(given):
    with pytest.warns(NotedWarning, match="Brazil is an unknown nation with default values"):
        model = EconomyModel(economy_nations=given)
    [brazil] = model.params.economy.nations
    assert brazil == NationParams(name="Brazil", policy=brazil.policy)
    assert "Brazil is an unknown nation" in model.notes[0]


def test_a_nation_that_is_removed_leaves_the_nations_and_decides_nothing_more():
    whole, model = (EconomyModel(rounds=4, economy_nations=["Canada", "Australia", "Sweden"]) for _ in range(2))
    model.step()
    gone = model.nations[1]
    gone.remove()
    assert [nation.name for nation in model.nations] == ["Canada", "Sweden"]
    model.run_model()
    whole.run_model()
    held = model.datacollector.get_agent_vars_dataframe().xs(gone.unique_id, level="AgentID")
    assert len(held) == 1
    assert model.world.policy_rate[1] == model.nation_state(1).policy_rate == held["policy_rate"].iloc[0]
    assert whole.world.policy_rate[1] != model.world.policy_rate[1]
    assert len(model.decisions) == 3


def test_a_nation_of_an_llm_that_is_removed_is_not_asked():
    asked = []

    def llm(prompt):
        asked.append(prompt)
        return '{"action": "Raise rates by a quarter of a point", "reasoning": "Prices rise.", "confidence": 0.7}'

    model = EconomyModel(rounds=1, economy_policy="llm", llm=llm, economy_nations=["Canada", "Sweden"])
    model.nations[0].remove()
    model.run_model()
    assert [prompt for prompt in asked if "advise Canada" in prompt] == []
    assert model.decisions[0].reading.read_by == "rule"
    assert model.decisions[1].action.action_string.startswith("Raise")


def test_what_a_nation_is_told_holds_its_target_and_the_barriers_between_it_and_others():
    prompts = []

    def llm(prompt):
        prompts.append(prompt)
        action = "Impose a 10% tariff on Canada" if "advise Sweden" in prompt else "Keep interest rates unchanged"
        return f'{{"action": "{action}", "reasoning": "So.", "confidence": 0.5}}'

    model = ran(2, economy_policy="llm", economy_nations=["Sweden", "Canada"], llm=llm)
    model.close()
    swedish, canadian = (next(p for p in prompts[2:] if f"advise {name}" in p) for name in ("Sweden", "Canada"))
    assert "Inflation target: 2.0%, usual unemployment: 7.0%" in swedish
    assert "your tariff on it 10.0%" in swedish
    assert "its tariff on you 10.0%" in canadian


def test_a_share_of_the_variance_of_shocks_is_common_to_all_nations():
    def demand(**macro):
        keys = {f"economy_macro_{name}": value for name, value in macro.items()}
        return ran(1, economy_policy="nothing", **keys).world.demand

    calm = demand(demand_sd=0)
    national, common, both = (demand(common=share) - calm for share in (0, 1, 0.36))
    assert common == pytest.approx(np.full(5, common[0]))
    assert both == pytest.approx(0.8 * national + 0.6 * common)
