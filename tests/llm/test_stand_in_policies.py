"""What the stand-in for Ollama proposes to a nation."""

import pytest
from stand_in.policies import with_policies

RATE = "Instruments: the policy rate (percentage points)."
RAISE, LOWER = (f"{verb} the policy rate by 0.25 percentage points" for verb in ("Raise", "Lower"))
HOLD = "Keep everything as it is"


def test_every_third_number_proposes_the_next_policy_or_to_hold_all():
    told = [with_policies({"action": "yes"}, number, RATE)["action"] for number in range(12)]
    assert told == [HOLD] * 3 + [RAISE] * 3 + [LOWER] * 3 + [HOLD] * 3


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ({"action": "yes", "reason": "so"}, {"action": RAISE, "reason": "so"}),
        ({"policy": "yes"}, {"policy": RAISE}),
        ([{"policy": "a"}, {"policy": "b"}], [{"policy": RAISE}, {"policy": RAISE}]),
        ({"call": {"action": "yes"}, "n": 3}, {"call": {"action": RAISE}, "n": 3}),
        ({"action": 3, "policy": ["yes"]}, {"action": 3, "policy": ["yes"]}),
        ("yes", "yes"),
    ],
)
def test_what_is_called_an_action_or_a_policy_is_filled_in_wherever_it_is(value, filled):
    assert with_policies(value, 3, RATE) == filled


@pytest.mark.parametrize(
    ("instrument", "n"), [("the policy rate", 2), ("government spending", 4), ("tariffs on a named nation", 2)]
)
def test_only_policies_for_the_instruments_that_are_named_are_proposed(instrument, n):
    prompt = f"Instruments: {instrument} (percent)."
    told = {with_policies({"policy": ""}, 3 * i, prompt)["policy"] for i in range(20)}
    assert len(told) == n + 1
    assert HOLD in told


@pytest.mark.parametrize("prompt", ["the policy rate", "Instruments: magic.", ""])
def test_without_instruments_the_answer_stays(prompt):
    assert with_policies({"action": "yes"}, 3, prompt) == {"action": "yes"}
