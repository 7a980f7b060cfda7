"""Seeds: the same without being asked for, drawn and kept where None is given; and what else a model is made from."""

import numpy as np
import pytest
from mesa.experimental.scenarios import Scenario

from prism_mesa import SocialModel, run, run_economy
from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import ConfigError

WAYS = {
    "rng": lambda kind: kind(rng=None),
    "seed": lambda kind: kind(seed=None),
    "config": lambda kind: kind({"seed": None}),
    "scenario": lambda kind: kind(scenario=Scenario(seed=None)),
}


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


@pytest.mark.parametrize("given", ["my.yaml", [1]])
@pytest.mark.parametrize("kind", [SocialModel, EconomyModel])
def test_what_is_no_configuration_is_refused_with_what_to_give(kind, given):
    with pytest.raises(ConfigError, match=rf"{kind.__name__}: config: give nested values or .*load_config\(path\)"):
        kind(given)
