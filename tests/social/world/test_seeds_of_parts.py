"""Agents and network can have seeds of their own, so that a study can vary one of them at a time."""

import numpy as np
import pytest
from worlds import plain

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.model import SocialModel

LEANING = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}}


def world(**keys):
    """Return who the agents are, a newcomer among them, and what stands for the network before it came."""
    values = {"agents.n": 40, "network.close_ties": 2, "utility.sensitivity": 0.03, **LEANING}
    model = SocialModel(plain(values | {key.replace("__", "."): value for key, value in keys.items()}))
    network = model.network.checksum
    SocialAgent(model)
    people = model.platform.population
    who = (people.interests, people.traits, people.engagement_threshold, people.propensities, people.attributes)
    return np.concatenate([np.ravel(column) for column in who]), network


@pytest.mark.parametrize("part", ["agents", "network"])
def test_a_seed_of_a_part_changes_this_part_alone(part):
    (who, network), (others, other_network) = world(seed=1), world(**{"seed": 1, f"{part}__seed": 2})
    assert np.array_equal(who, others) == (part != "agents")
    assert (network == other_network) == (part != "network")


def test_parts_with_their_own_seeds_do_not_depend_on_the_seed_of_the_run():
    one, other = world(seed=1, agents__seed=5, network__seed=6), world(seed=2, agents__seed=5, network__seed=6)
    assert np.array_equal(one[0], other[0])
    assert one[1] == other[1]
