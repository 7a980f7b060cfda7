"""What a model collects for its users: PRISM's rows, reporters that are added, and collectors that take their place."""

import mesa
import pytest
from worlds import small

from prism_mesa import SocialModel
from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import ConfigError, DataError

ROUNDS = 3


def their_collector():
    return mesa.DataCollector(
        model_reporters={"n": lambda model: len(model.agents), "round": "round", "last": [max, [[1, 2]]]},
        agent_reporters={"ticks": "ticks_in_state", "of": lambda agent: agent.row},
    )


class After(SocialModel):
    """Sets its collector after `super().__init__`, as Mesa's examples do."""

    def __init__(self, **params):
        super().__init__(**params)
        self.datacollector = their_collector()


class Before(SocialModel):
    def __init__(self, **params):
        self.datacollector, self.own = their_collector(), 1
        super().__init__(**params)


class CollectsItself(After):
    def step(self):
        super().step()
        self.datacollector.collect(self)


class CollectsFirst(After):
    def step(self):
        self.datacollector.collect(self)
        super().step()


class CollectsPrisms(SocialModel):
    def __init__(self, **params):
        super().__init__(**params)
        self.datacollector.collect(self)

    def step(self):
        super().step()
        self.datacollector.collect(self)


@pytest.mark.parametrize("kind", [SocialModel, After, Before, CollectsItself, CollectsFirst, CollectsPrisms])
def test_each_round_gives_one_row_whoever_collects_it(kind):
    model = small(kind, rounds=ROUNDS)
    model.run_model()
    assert len(model.datacollector.get_model_vars_dataframe()) == ROUNDS
    assert model.prism_datacollector.get_model_vars_dataframe()["present"].tolist() == [30] * ROUNDS
    ticks = model.prism_datacollector.get_table_dataframe("ticks")
    assert len(ticks) == ROUNDS * model.params.ticks_per_round
    if model.datacollector is not model.prism_datacollector:
        assert len(model.datacollector.get_agent_vars_dataframe()) == 30 * ROUNDS


def test_reporters_are_added_to_what_is_collected():
    model = small(
        rounds=2,
        agent_reporters={"state": "state", "middle": lambda agent: agent.engagement_threshold},
        model_reporters={"seed": "seed", "counts": SocialModel.state_counts, "size": [len, ["abc"]]},
    )
    model.run_model()
    rounds = model.datacollector.get_model_vars_dataframe()
    assert {"likes", "seed", "counts", "size"} <= set(rounds.columns)
    assert rounds["seed"].tolist() == [model.seed] * 2
    agents = model.datacollector.get_agent_vars_dataframe()
    assert agents.loc[2.0, "middle"].tolist() == model.population.engagement_threshold.tolist()


@pytest.mark.parametrize("kind", [SocialModel, EconomyModel])
def test_reporters_that_cannot_be_added_are_named(kind):
    own = next(iter(kind().datacollector.model_reporters))
    with pytest.raises(ConfigError, match=f"model_reporters: {own!r} is already collected"):
        kind(model_reporters={own: "seed"})
    with pytest.raises(ConfigError, match=r"agent_reporters: give reporters by name.* not 'state'"):
        kind(agent_reporters="state")


def test_batch_run_returns_what_a_user_collects():
    world = {"agents_n": [10, 20], "rounds": 2, "network_mean_degree": 3}
    rows = mesa.batch_run(After, world, rng=[1, 2], max_steps=9, data_collection_period=1, display_progress=False)
    assert sorted({(row["RunId"], row["Step"], row["n"]) for row in rows}) == [
        (run, step, n) for run, n in enumerate([10, 20, 10, 20]) for step in (1.0, 2.0)
    ]
    added = world | {"agents_n": 10, "agent_reporters": [{"at": "row"}]}
    rows = mesa.batch_run(SocialModel, added, rng=[1], max_steps=9, display_progress=False)
    assert [(row["AgentID"], row["at"]) for row in rows] == [(row + 1, row) for row in range(10)]
    assert all(row["total_likes"] == rows[0]["total_likes"] for row in rows)


@pytest.mark.parametrize("kind", [After, Before])
def test_what_was_collected_goes_on_from_a_snapshot(kind):
    whole, first, rest = (small(kind, rounds=4) for _ in range(3))
    whole.run_model()
    first.run_for(2)
    rest.restore(first.snapshot())
    rest.run_model()
    for collector in ("datacollector", "prism_datacollector"):
        one, two = getattr(whole, collector), getattr(rest, collector)
        assert one.get_model_vars_dataframe().equals(two.get_model_vars_dataframe())
    assert whole.datacollector.get_agent_vars_dataframe().equals(rest.datacollector.get_agent_vars_dataframe())
    with pytest.raises(DataError, match="datacollector: its model_reporters differ from the run"):
        small(rounds=4).restore(first.snapshot())
