"""Seeds: the same without being asked for, drawn and kept where None is given; and what else a model is made from."""

import mesa
import numpy as np
import pytest
from mesa.experimental.scenarios import Scenario

from prism_mesa import SocialModel, load_config, run, run_economy
from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import ConfigError

SMALL = {"agents_n": 20, "network_mean_degree": 3}
WAYS = {
    "rng": lambda kind: kind(rng=None),
    "seed": lambda kind: kind(seed=None),
    "config": lambda kind: kind({"seed": None}),
    "scenario": lambda kind: kind(scenario=Scenario(seed=None)),
}


@pytest.mark.parametrize("kind", [SocialModel, EconomyModel])
def test_three_models_made_alike_have_the_same_seed(kind):
    assert {kind().seed for _ in range(3)} == {42}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [SocialModel, EconomyModel])
def test_a_seed_of_none_draws_one_and_keeps_it(kind, way):
    one, two = WAYS[way](kind), WAYS[way](kind)
    assert one.seed != two.seed
    assert one.seed == one.params.seed
    again = kind(rng=one.seed)
    assert np.array_equal(again.streams.uniform("any", [1, 2]), one.streams.uniform("any", [1, 2]))


@pytest.mark.parametrize("make", [run, run_economy])
def test_a_run_without_a_seed_keeps_the_one_that_it_drew(tmp_path, make):
    file = tmp_path / "run.yaml"
    file.write_text("seed: null\nrounds: 1\n")
    runs = [make(file, out=tmp_path, pictures=False) for _ in range(2)]
    seeds = [one.manifest["seed"] for one in runs]
    assert seeds[0] != seeds[1]
    assert seeds == [one.manifest["config"]["seed"] for one in runs]
    again = make({"seed": seeds[0], "rounds": 1}, out=tmp_path, pictures=False)
    table = "posts" if make is run else "indicators"
    assert again.table(table).equals(runs[0].table(table))


def test_batch_run_and_reset_give_models_their_seeds():
    rows = mesa.batch_run(SocialModel, SMALL | {"rounds": 1}, rng=[5, 6], max_steps=1, display_progress=False)
    assert [row["rng"] for row in rows] == [5, 6]
    assert SocialModel(scenario=Scenario(rng=5, **SMALL), rng=5).seed == 5
    assert SocialModel(scenario=Scenario(**SMALL), rng="7").seed == 7


@pytest.mark.parametrize("given", ["my.yaml", 10, 3.5, [1], object()])
@pytest.mark.parametrize("kind", [SocialModel, EconomyModel])
def test_what_is_no_configuration_is_refused_with_what_to_give(kind, given):
    with pytest.raises(ConfigError, match=rf"{kind.__name__}: config: give nested values or .* load_config\(path\)"):
        kind(given)


def test_a_model_takes_what_load_config_reads(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("agents: {n: 20}\nseed: 5\n")
    model = SocialModel(load_config(file))
    assert (len(model.population), model.seed) == (20, 5)
