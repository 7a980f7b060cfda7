"""When a run ends: after its rounds, or as soon as somebody sets `running` to False; and steps without a round."""

import mesa
import pytest
from worlds import small

from prism_mesa import SocialAgent, SocialModel
from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import PrismWarning
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run

STOPS_IN = 2


class Stopper(SocialAgent):
    def step(self):
        if self.model.round == STOPS_IN:
            self.model.running = False


class Stops(SocialModel):
    """An agent stops it."""

    def __init__(self, **params):
        super().__init__(**params)
        Stopper(self)


class StopsFirst(SocialModel):
    def step(self):
        if self.round + 1 == STOPS_IN:
            self.running = False
        super().step()


class StopsByReporter(SocialModel):
    def __init__(self, **params):
        super().__init__(model_reporters={"stop": self.stop}, **params)

    @staticmethod
    def stop(model):
        model.running = model.running and model.round < STOPS_IN


class StopsByOwnReporter(SocialModel):
    def __init__(self, **params):
        super().__init__(**params)
        self.datacollector = mesa.DataCollector(model_reporters={"stop": StopsByReporter.stop})


WAYS = {
    "run_model": lambda model: model.run_model(),
    "run_for": lambda model: model.run_for(6),
    "run_until": lambda model: model.run_until(6),
    "as SolaraViz": lambda model: [model.step() for _ in iter(lambda: model.running, False)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Stops, StopsFirst, StopsByReporter, StopsByOwnReporter])
def test_running_set_to_false_ends_the_run_with_that_round(kind, way):
    model = small(kind, rounds=6)
    WAYS[way](model)
    assert (model.round, model.running, model.time) == (STOPS_IN, False, STOPS_IN + 1)


def test_batch_run_ends_a_run_that_stops():
    rows = mesa.batch_run(
        Stops, {"agents_n": 20, "network_mean_degree": 3, "rounds": 6}, rng=[1], max_steps=9, display_progress=False
    )
    assert [row["Step"] for row in rows] == [STOPS_IN + 1]


def test_nations_that_stop_end_their_run():
    class Calm(EconomyModel):
        def step(self):
            self.running = self.world.quarter < 1
            super().step()

    model = Calm(rounds=5)
    model.run_for(5)
    assert (model.world.quarter, model.running) == (2, False)


def test_run_for_goes_on_beyond_the_rounds_and_from_where_a_run_has_stopped():
    model = small(rounds=2)
    model.run_for(4)
    assert (model.round, model.running) == (3, False)
    stopped = small(Stops, rounds=9)
    stopped.run_for(9)
    stopped.run_for(2)
    assert stopped.round == STOPS_IN + 2


def test_a_kept_run_ends_where_running_was_set_to_false_and_says_so(tmp_path):
    world = {"agents": {"n": 20}, "network": {"mean_degree": 3}, "rounds": 6}
    made = run(world, out=tmp_path, prepare=lambda model: Stopper(model))
    assert (made.status, made.summary["rounds"]) == ("done", STOPS_IN + 1)
    assert made.table("rounds")["round"].tolist() == [0, 1, 2]
    assert f"running was set to False: the run ended after {STOPS_IN + 1} of 6 rounds" in made.summary["notes"]


def test_a_run_whose_chart_stops_it_is_repeated(tmp_path, monkeypatch):
    (tmp_path / "stopping.py").write_text(
        "from prism_mesa.social.behavior import build_chart\n"
        "from prism_mesa import Statechart, Transition, AgentState\n"
        "base = build_chart()\n"
        "def stop(agent, context):\n"
        "    if agent.model.round == 2:\n"
        "        agent.model.running = False\n"
        "start = Transition('feed_ready', 'idle', 'scrolling', action=stop)\n"
        "rest = [t for t in base.transitions if t.trigger != 'feed_ready']\n"
        "chart = Statechart(states=base.states, transitions=[start, *rest], initial=base.initial)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    world = {"agents": {"n": 30, "activity": 1}, "network": {"mean_degree": 3}, "rounds": 6}
    made = run(world | {"statechart": {"chart": "stopping:chart"}}, out=tmp_path / "results")
    assert made.summary["rounds"] == 3
    assert replay(made.run_dir, trust=True).equal


def test_a_step_that_opens_no_round_says_so_once_and_comes_to_an_end():
    class Forgets(SocialModel):
        def step(self):
            self.agents.shuffle_do("step")

    model = small(Forgets, rounds=3)
    with pytest.warns(PrismWarning, match=r"Forgets\.step has opened no round: call super\(\)\.step\(\)") as said:
        model.run_model()
    assert (len(said), model.round, model.steps) == (1, -1, 3)
    assert any("has opened no round" in note for note in model.notes)


def test_a_step_may_run_several_rounds():
    class Daily(SocialModel):
        def step(self):
            for _ in range(2):
                super().step()

    model = small(Daily, rounds=4)
    model.run_model()
    assert (model.round, model.steps) == (3, 2)
