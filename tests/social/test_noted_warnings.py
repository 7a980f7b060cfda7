"""Whatever a model warns of stands in its notes."""

import warnings

import pytest
from worlds import small

from prism_mesa import Reasoner, Statechart, Transition
from prism_mesa.errors import NotedWarning
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.behavior import social_chart


def answers_some(prompt):
    return "scrolling" if len(prompt) % 3 else "no answer"


def with_a_guard_that_raises():
    broken = Transition("sees_post", "scrolling", "resting", guard=lambda agent, post: post.no_such_field)
    transitions = [broken, *social_chart.transitions]
    return Statechart(states=social_chart.states, transitions=transitions, initial=social_chart.initial)


MODELS = {
    "fallbacks": lambda: small(rounds=3, agents_band=0.5, reasoner=Reasoner(answers_some)),
    "guards": lambda: small(rounds=3, chart=with_a_guard_that_raises()),
    "keys": lambda: small(rounds=3, feed_x_algo_rate_like=0.1),
}


@pytest.mark.parametrize("run", ["run_model", "step by step"])
@pytest.mark.parametrize("make", MODELS)
def test_what_a_model_warns_of_stands_in_its_notes(make, run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MODELS[make]()
        if run == "run_model":
            model.run_model()
        else:
            for _ in range(3):
                model.step()
        model.close()
    said = [str(one.message).removeprefix("SocialModel: ") for one in caught if one.category is NotedWarning]
    assert said
    assert [text for text in said if text not in "; ".join(model.notes)] == []
    assert len(set(model.notes)) == len(model.notes)


def test_why_another_one_decides_than_was_wished_for_is_a_note_of_the_model():
    assert "no Ollama: nobody there" in small(reasoner=RuleReasoner(note="no Ollama: nobody there")).notes
