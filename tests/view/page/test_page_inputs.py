"""The inputs of the page: what they change, and what becomes of wrong ones."""

import pytest

from prism_mesa.params import list_leaves
from prism_mesa.social.params import SocialParams
from prism_mesa.view.page.inputs import INTERVENTION, apply_inputs, input_values, make_inputs

CONFIG = SocialParams(seed=5, rounds=20)


def test_every_input_is_of_a_parameter_and_holds_its_value_at_first():
    keys = {item.key for item in make_inputs(CONFIG)}
    assert keys - set(INTERVENTION) <= {key for key, _ in list_leaves(SocialParams)}
    assert input_values(CONFIG).keys() == keys
    for item in make_inputs(CONFIG):
        value = input_values(CONFIG)[item.key]
        if item.kind == "select":
            assert value in item.choices
        if item.kind == "slider":
            assert item.low <= value <= item.high


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("seed", "7", 7),
        ("rounds", 3, 3),
        ("feed.mode", "random", "random"),
        ("agents.band", 0.1, 0.1),
        ("reasoner.max_calls", "12", 12),
        ("reasoner.answer", "choice", "choice"),
        ("statechart.oracle_enabled", False, False),
    ],
)
def test_a_changed_input_is_a_parameter(key, value, read):
    params, faults = apply_inputs(CONFIG, {**input_values(CONFIG), key: value})
    group, _, name = key.rpartition(".")
    assert getattr(getattr(params, group) if group else params, name) == read
    assert not faults


def test_a_wrong_input_keeps_the_others():
    values = input_values(CONFIG) | {"seed": "seven", "rounds": 3, "reasoner.max_calls": "-1"}
    params, faults = apply_inputs(CONFIG, values)
    assert (params.rounds, params.seed, params.reasoner.max_calls) == (3, 5, None)
    assert faults["seed"] == "input: seed: 'seven' is not a whole number"
    assert "reasoner.max_calls" in faults["reasoner.max_calls"]


def test_inputs_that_are_right_only_together_both_count():
    config = SocialParams.model_validate({"attributes": {"side": {"of": "agent", "values": ["left", "right"]}}})
    alone, faults = apply_inputs(config, input_values(config) | {"feed.mode": "bridging"})
    assert alone.feed.mode == "chronological"
    assert "feed.attribute" in faults["feed.mode"]
    both = input_values(config) | {"feed.mode": "bridging", "feed.attribute": "side", "seed": "x"}
    params, faults = apply_inputs(config, both)
    assert (params.feed.mode, params.feed.attribute, list(faults)) == ("bridging", "side", ["seed"])


def test_an_intervention_is_added_to_those_of_the_config():
    config = CONFIG.model_copy(update={"interventions": ()})
    values = input_values(config) | {"intervention.key": "feed.mode", "intervention.value": "random"}
    values |= {"intervention.at": "4", "intervention.until": "9"}
    params, faults = apply_inputs(config, values)
    [added] = params.interventions
    assert (added.at, added.until, added.set, added.is_targeted) == (4, 9, {"feed.mode": "random"}, False)
    assert not faults
