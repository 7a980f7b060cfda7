"""Kinds of reasoners, told apart without loading those that are not there."""

import pytest

from prism_mesa.reasoner import DistilledModel, DistilledReasoner, Reasoner, RuleReasoner, asks_llm, is_distilled
from prism_mesa.reasoner.distilled import Linear, OptionModel
from prism_mesa.reasoner.features import DECLARATION, LINEAR_NAMES, NAMES
from prism_mesa.statechart import AgentState


class Moody(RuleReasoner):
    """A rule of a user's own."""


def learned():
    facts = {"features": list(NAMES), "declaration": DECLARATION, "persona": "individual", "archetypes": 1}
    options = [AgentState.COMPOSING, AgentState.SCROLLING]
    scores = [Linear(intercept=0.2, weights=[0.0] * len(LINEAR_NAMES))]
    facts |= {"choices": [OptionModel(options=options, scores=scores, rows=1)], "provenance": {}, "report": {}}
    return DistilledReasoner(DistilledModel(format=1, kind="logistic", **facts))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (RuleReasoner, (False, False)),
        (Moody, (False, False)),
        (learned, (False, True)),
        (lambda: Reasoner(lambda prompt: "composing"), (True, False)),
    ],
)
def test_one_asks_and_one_has_learned(make, expected):
    reasoner = make()
    assert (asks_llm(reasoner), is_distilled(reasoner)) == expected


def test_nobody_has_learned_nothing():
    assert not is_distilled(None)
