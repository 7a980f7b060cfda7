"""When a run ends: after its rounds, or as soon as somebody sets `running` to False; and steps without a round."""

import mesa
import pytest
from worlds import small

from prism_mesa import SocialAgent, SocialModel
from prism_mesa.errors import PrismWarning
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
    "as SolaraViz": lambda model: [model.step() for _ in iter(lambda: model.running, False)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Stops, StopsFirst, StopsByReporter, StopsByOwnReporter])
def test_running_set_to_false_ends_the_run_with_that_round(kind, way):
    model = small(kind, rounds=6)
    WAYS[way](model)
    assert (model.round, model.running, model.time) == (STOPS_IN, False, STOPS_IN + 1)


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


def test_a_step_that_opens_no_round_says_so_once_and_comes_to_an_end():
    class Forgets(SocialModel):
        def step(self):
            self.agents.shuffle_do("step")

    model = small(Forgets, rounds=3)
    with pytest.warns(PrismWarning, match=r"Forgets\.step has run no round: call super\(\)\.step\(\)") as said:
        model.run_model()
    assert (len(said), model.round, model.steps) == (1, -1, 3)
    assert any("has run no round" in note for note in model.notes)
