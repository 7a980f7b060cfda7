"""Which of several LLMs each agent has."""

import numpy as np
import pytest
from worlds import plain

from prism_mesa import Reasoner, SocialModel
from prism_mesa.errors import ConfigError

SIDES = {"side": {"of": "agent", "values": ["left", "right"], "share": [0.25, 0.75]}}


def says(text):
    return lambda prompt: text


def model_with(n=2_000, llms=("a", "b"), seed=1, **options):
    reasoner = Reasoner({llm: says("scrolling") for llm in llms}, **options)
    return SocialModel(
        plain({"agents": {"n": n}, "network": {"mean_degree": 2}, "attributes": SIDES}), reasoner=reasoner, rng=seed
    )


def llms_in(model):
    return np.array(model.platform.llms.assigned_names(np.arange(len(model.population)), model.population))


def test_as_many_agents_have_an_llm_as_its_share_says():
    with_a = (llms_in(model_with(model={"a": 0.2, "b": 0.8})) == "a").mean()
    assert with_a == pytest.approx(0.2, abs=0.03)


def test_shares_of_any_sum_are_scaled_and_that_is_noted():
    model, same = model_with(model={"a": 1, "b": 3}), model_with(model={"a": 0.25, "b": 0.75})
    assert (llms_in(model) == llms_in(same)).all()
    assert [any("add up to 4" in note for note in one.notes) for one in (model, same)] == [True, False]


def test_an_agent_has_its_llm_by_the_seed_and_its_id_alone():
    few, many = llms_in(model_with(n=500)), llms_in(model_with(n=2_000))
    assert (few == many[:500]).all()
    assert (llms_in(model_with(n=500, seed=2)) != few).any()
    assert (llms_in(model_with(n=500, llms=("b", "a"))) == few).all()  # the order of the names is none


def test_an_attribute_says_which_llm_an_agent_has():
    model = model_with(model_by="side", model={"left": "b", "right": "a"})
    side = model.population.attributes[:, 0]
    assert (llms_in(model) == np.where(side == 0, "b", "a")).all()


@pytest.mark.parametrize(
    ("values", "model", "wanted"),
    [
        ([True, False], {True: "a", False: "b"}, {1.0: "a", 0.0: "b"}),
        ([3, 1], {3: "b", 1: "a"}, {3.0: "b", 1.0: "a"}),
        ([0.5, 2.0], {"0.5": "a", 2.0: "a"}, {0.5: "a", 2.0: "a"}),
    ],
)
def test_values_that_are_no_texts_are_keys_as_yaml_writes_them(values, model, wanted):
    llms = sorted(set(wanted.values()))
    reasoner = Reasoner({llm: says("scrolling") for llm in llms}, model_by="x", model=model)
    world = plain(
        {"agents": {"n": 50}, "network": {"mean_degree": 2}, "attributes": {"x": {"of": "agent", "values": values}}}
    )
    made = SocialModel(world, reasoner=reasoner, rng=1)
    assert llms_in(made).tolist() == [wanted[kept] for kept in made.population.attributes[:, 0].tolist()]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"model_by": "side", "model": {"left": "a"}}, "'right'.*side .left, right., not for left"),
        ({"model_by": "side", "model": {"left": "a", "right": "b", "up": "a"}}, "'up'.*for left, right, up"),
        ({"model_by": "town", "model": {"left": "a"}}, "model_by: .town. is not an attribute"),
        ({"model_by": "side"}, "model_by"),
        ({"model_by": "side", "model": {"left": 0.5, "right": 0.5}}, "left: give the name"),
        ({"model": {"a": "b"}}, "a: give a share"),
        ({"model": {"a": 0}}, "a: give a share"),
        ({"model": {"a": 1}, "host": {"b": "http://127.0.0.1:1"}}, "host: 'b' is not asked"),
        ({"model": {"a": 1}, "kind": "embedded"}, "kind=embedded has one LLM"),
    ],
)
def test_a_mapping_that_says_no_llm_is_refused(own, said):
    with pytest.raises(ConfigError, match=said):
        SocialModel(plain({"attributes": SIDES, "reasoner": own}))


def test_an_archetype_is_of_agents_of_one_llm():
    model = model_with(persona="archetype", archetypes=3)
    rows = np.arange(len(model.population))
    kinds, llms = model.platform.archetypes.assign(model.population, rows), llms_in(model)
    assert len(np.unique(kinds)) == 6
    assert all(len(set(llms[kinds == kind])) == 1 for kind in np.unique(kinds))
