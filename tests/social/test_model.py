"""`SocialModel`: without arguments, from the same seed again, with Mesa's tools, and its parameters."""

import mesa
import pandas as pd
import pytest
from lively_worlds import IDLE, rounds_of
from worlds import Memory, differing, facts, plain_keywords, ran, small

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round import run_round
from prism_mesa.statechart import AgentState, agents_in_state


@pytest.fixture(scope="module")
def default():
    """The model without arguments after its first twelve rounds, a night and a morning."""
    return ran(SocialModel(), 12)


# without arguments


def test_without_arguments_there_are_1000_agents_who_decide_by_rule(default):
    assert isinstance(default, mesa.Model)
    assert len(default.agents) == 1000
    assert isinstance(default.reasoner, RuleReasoner)
    assert default.params == SocialParams()


def test_all_eight_states_are_visited_and_all_engagements_happen(default):
    shares = rounds_of(default).filter(like="share_").sum()
    assert len(shares) == 8
    assert (shares > 0).all()
    assert all(default.totals[name] > 0 for name in ("likes", "replies", "reshares", "posts", "impressions"))


def test_shares_of_agent_ticks_add_up_to_1_and_ticks_to_the_agents(default):
    shares = rounds_of(default).filter(like="share_")
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * 12)
    ticks, n_ticks = default.datacollector.get_table_dataframe("ticks"), default.params.ticks_per_round
    counts = ticks.drop(columns=["round", "tick"])
    assert list(counts.columns) == [state.value for state in AgentState]
    assert counts.sum(axis=1).tolist() == [1000] * (12 * n_ticks)
    assert (ticks["round"].tolist(), ticks["tick"].tolist()) == (
        [r for r in range(12) for _ in range(n_ticks)],
        list(range(1, n_ticks + 1)) * 12,
    )
    by_hand = counts.groupby(ticks["round"]).sum() / (1000 * n_ticks)
    assert by_hand.to_numpy() == pytest.approx(shares.to_numpy())


# the same again


def test_a_recorder_gets_only_the_tables_that_it_wants():
    class Choosy(Memory):
        def wants(self, table):
            return table in ("rounds", "impressions")

    choosy, all_of_it = ran(small(recorder=Choosy())), ran(small())
    wanted = {name: all_of_it.recorder.tables[name] for name in ("rounds", "impressions")}
    assert choosy.recorder.tables == wanted
    assert choosy.events.moves == []
    mine, its = facts_without_records(choosy), facts_without_records(all_of_it)
    assert mine == its
    assert choosy.recorded.n_engaged.tolist() == all_of_it.recorded.n_engaged.tolist() != [0] * 30


def facts_without_records(model):
    class Nobody:
        tables = None

    model.recorder = Nobody()
    told = facts(model)
    del told["records"]
    return told


def test_agents_looked_at_between_rounds_change_nothing():
    looked, plain = small(), small()
    for _ in range(3):
        looked.step()
        plain.step()
        for agent in looked.agents:
            assert agent.feed == agent.feed
            agent.to_dict(), agent.next_post, agent.current_post, agent.interests
    assert differing(looked, plain) == []


# Mesa's tools


def test_mesas_batch_run_takes_plain_keywords_and_seeds():
    world = plain_keywords(agents_n=30, network_mean_degree=6, rounds=2)
    rows = mesa.batch_run(
        SocialModel,
        world | {"feed_mode": ["random", "chronological"]},
        rng=[1, 2],
        number_processes=1,
        display_progress=False,
        data_collection_period=1,
    )
    table = pd.DataFrame(rows)
    last = table.groupby("RunId").last()
    assert len(last) == 4
    assert set(last["feed_mode"]) == {"random", "chronological"}
    for (mode, rng), row in last.set_index(["feed_mode", "rng"]).iterrows():
        alone = ran(SocialModel(**world, feed_mode=mode, seed=rng), 2)
        assert {name: row[name] for name in alone.round_row} == alone.round_row
    assert last["impressions"].nunique() > 1


def test_mesas_agent_sets_work_on_the_agents():
    model = small()
    assert model.agent_types == [SocialAgent]
    assert len(model.agents.select(lambda agent: agent.row < 5)) == 5
    assert sorted(model.agents.get("unique_id")) == list(range(1, 31))
    assert set(model.agents_by_type) == {SocialAgent}
    assert len(model.agents_by_type[SocialAgent]) == 30
    model.agents.set("activity", 0.0)
    assert model.population.activity.tolist() == [0.0] * 30


def test_an_agent_of_mesas_own_is_stepped_beside_the_columns():
    class Clockwork(mesa.Agent):
        ticks = 0

        def step(self):
            self.ticks += 1

    model = small(ticks_per_round=4)
    clock = Clockwork(model)
    ran(model, 2)
    assert clock.ticks == 8
    assert agents_in_state(IDLE, model) == 30


# parameters


def test_keywords_write_over_a_config():
    config = SocialParams(seed=3, agents={"n": 40, "band": 0.3}, network={"mean_degree": 5})
    model = SocialModel(config, agents_n=35, rng=9)
    assert (model.params.agents.n, model.params.agents.band, model.params.network.mean_degree) == (35, 0.3, 5)
    assert model.params.seed == 9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"agent_n": 3}, r"no parameter 'agent_n'\. Did you mean 'agents_n'\?"),
        ({"agents_n": 1}, r"agents\.n: .*greater than or equal to 2"),
        ({"feed_mode": "best"}, r"feed\.mode: .*'best'"),
        ({"rounds": "many"}, r"rounds: .*'many'"),
        ({"seed": -1}, r"seed: .*-1"),
        ({"rng": "chance"}, r"rng: 'chance' is not a whole number"),
        ({"agents_like": 0, "agents_reply": 0, "agents_reshare": 0}, r"like, reply and reshare are all 0"),
        ({"scheduler": "threads"}, r"scheduler: .*'threads'"),
    ],
)
def test_a_parameter_that_is_unknown_or_out_of_range_is_a_config_error(params, message):
    with pytest.raises(ConfigError, match=message):
        small(**params)


# a round that is broken off


@pytest.mark.parametrize("error", [KeyboardInterrupt])
@pytest.mark.parametrize("go_on", ["step", "run_model", "run_for", "run_until", "snapshot"])
def test_nobody_goes_on_with_a_model_whose_round_was_broken_off(monkeypatch, error, go_on):
    def broken(platform):
        raise error

    model = ran(small(), 2)
    monkeypatch.setattr(run_round, "commit", broken)
    with pytest.raises(error):
        model.run_model()
    monkeypatch.undo()
    assert (model.round, model.running) == (2, False)
    for _ in range(2):
        with pytest.raises(RunError, match=rf"round 2 was broken off \({error.__name__}\)"):
            getattr(model, go_on)(*{"run_for": [1], "run_until": [9]}.get(go_on, []))
    assert model.round == 2


@pytest.mark.parametrize("at", ["before", "behind"])
def test_a_step_of_a_users_own_that_raises_beside_the_round_can_be_done_again(at):
    class Mine(SocialModel):
        asks = True

        def step(self):
            if at == "before" and self.round == 1 and self.asks:
                raise ArithmeticError
            super().step()
            if at == "behind" and self.round == 1 and self.asks:
                raise ArithmeticError

    model = small(Mine, rounds=6)
    with pytest.raises(ArithmeticError):
        model.run_model()
    model.asks = False
    model.run_model()
    assert (model.round, model.steps, model.time, model.running) == (5, 6, 6.0, False)
