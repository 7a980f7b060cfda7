"""What an agent is asked, and the numbers it is decided by: written out for one and for many, and the same."""

import json
from dataclasses import fields

import numpy as np
import pytest
from random_worlds import decider
from worlds import ran, small

from prism_mesa.reasoner import DetailedChoices, DistilledReasoner, Reasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import build_chart

LIVELY = {"agents_band": 0.6, "agents_activity": 1.0, "agents_post_rate": 0.6, "reasoner_asks_action": True}


class TellsOfItself(SocialAgent):
    """Says of itself what it is anyway, so that its questions are read from it, one by one."""

    name = SocialAgent.name


def asked(persona, *, of_themselves):
    """Return the questions of a short run, by their place."""
    heard = {}
    with Reasoner(lambda prompt: json.dumps({"next_state": "composing"}), persona=persona, archetypes=3) as reasoner:
        reasoner.on_answer = lambda ask, answer: heard.update({(ask.round, ask.tick, ask.agent): ask})
        model = small(reasoner=reasoner, **LIVELY | {"reasoner_asks_action": False})
        for row in range(30 if of_themselves else 0):
            TellsOfItself(model, row)
        ran(model)
    return heard


@pytest.mark.parametrize("persona", ["individual", "archetype"])
def test_a_question_read_from_an_agent_is_the_one_written_from_columns(persona):
    columns = asked(persona, of_themselves=False)
    assert len(columns) > 20
    assert any(ask.question.history for ask in columns.values()) == (persona == "individual")
    agents = asked(persona, of_themselves=True)
    assert agents.keys() == columns.keys()
    same = [place for place in columns if persona == "individual" or columns[place].question.post.kind != "reply"]
    assert [agents[place] for place in same] == [columns[place] for place in same]


class Noted(DistilledReasoner):
    """Notes each row of numbers that it decides by."""

    def probabilities(self, choices):
        columns = [getattr(choices, field.name) for field in fields(DetailedChoices) if field.name != "options"]
        self.rows += [(choices.options, *map(str, row)) for row in zip(*map(np.ndarray.tolist, columns), strict=True)]
        return super().probabilities(choices)


def decided_by(scheduler):
    found = Noted(decider(build_chart(asks_action=True), share=0).model)
    found.rows = []
    model = ran(small(reasoner=found, scheduler=scheduler, **LIVELY))
    assert len(found.rows) == model.totals["open"] > 20
    return sorted(found.rows)


def test_the_numbers_of_a_question_are_those_of_the_columns():
    assert decided_by("mesa") == decided_by("columns")
