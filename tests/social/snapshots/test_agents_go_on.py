"""Agents with classes and fields of their own in a model that takes over from a snapshot."""

import re

import pytest
from continued import as_bytes, from_bytes, going_on, tell_apart
from lively_worlds import LIVELY
from worlds import ran, small

from prism_mesa import F, SocialAgent, Statechart, Transition
from prism_mesa.errors import NotRestorableError
from prism_mesa.social.behavior import social_chart


class Counting(SocialAgent):
    """Likes every second post that it reads, as its own field says, and now and then by Mesa's draw; has a child."""

    n_met, leaves_at = 0, 1

    def step(self):
        while (post := self.read()) is not None:
            self.n_met += 1
            if self.n_met % 2 or self.random.random() < 0.3:
                self.like(post)
        if self.n_met == 9:
            Counting(self.model, follows=[self.row], followers=[1, 2])
        if self.n_met == 12:
            SocialAgent(self.model, follows=[0], name="Plain")
        if self.row == 5 and self.now.hour >= self.leaves_at:
            self.remove()


class Diary(SocialAgent):
    """Reshares what it has not written down, and says itself what its state is."""

    def __init__(self, model, row=None, **fields):
        super().__init__(model, row, **fields)
        self.written = []

    def step(self):
        while (post := self.read()) is not None:
            if post.root not in self.written:
                self.reshare(post, f"Number {len(self.written)}")
                self.written.append(post.root)
        if len(self.written) == 3:
            self.name = "A diarist"

    def snapshot(self):
        return {"written": self.written}

    def restore(self, kept):
        self.written = list(kept["written"])


class Hoarder(Diary):
    snapshot = restore = None


def scripted():
    model = small(**LIVELY)
    for row in (9, 5, 3):
        Counting(model, row)
    for row in (4, 17):
        Diary(model, row, engagement_threshold=0.3)
    return model


@pytest.mark.slow
def test_scripts_go_on_with_their_fields_their_children_and_their_draws():
    whole, other = going_on(scripted, rounds=6, at=3)
    assert len(whole.population) > 32
    assert tell_apart(whole, other) == []
    assert len(whole.agents) < len(whole.population)  # who asks for agents puts them in order
    assert [fields_of(agent) for agent in whole.agents] == [fields_of(agent) for agent in other.agents]
    assert whole.random.random() == other.random.random()


def fields_of(agent):
    return type(agent), {name: value for name, value in vars(agent).items() if name != "model"}


def test_agents_of_a_model_act_in_the_order_that_they_had():
    def order_of(model):
        return [
            agent.row for kind, agents in model.agents_by_class.items() if kind is not SocialAgent for agent in agents
        ]

    whole, other = going_on(scripted, rounds=4, at=2)
    assert order_of(whole)[:2] == [9, 3]
    assert order_of(other) == order_of(whole)


def moody():
    chart = Statechart(
        social_chart.states,
        [*social_chart.transitions, Transition("decides", "evaluating", "composing", guard=F.agent.mood > 3)],
        social_chart.initial,
        timeouts=social_chart.timeouts,
    )
    model = small(**LIVELY, chart=chart)
    for agent in model.agents:
        agent.mood = agent.row % 7
    return model


def test_a_field_of_a_plain_agent_that_a_guard_reads_goes_on():
    def cheered():
        model = moody()
        model.agent(3).mood = 7.5
        return model

    stopped, other = ran(cheered(), 2), moody()
    other.restore(from_bytes(as_bytes(stopped.snapshot())))
    assert (other.agent(3).mood, other.agent(4).mood) == (7.5, 4)
    whole = ran(cheered(), 5)
    assert tell_apart_but_records(whole, ran(other, 3)) == []


def tell_apart_but_records(whole, other):
    whole.recorder = other.recorder
    return tell_apart(whole, other)


def test_an_agent_whose_state_nobody_knows_is_named():
    model = small()
    Hoarder(model, 3)
    told = "Hoarder: its state is unknown: add snapshot(), which returns plain data"
    with pytest.raises(NotRestorableError, match=re.escape(told)):
        model.snapshot()


def test_what_mesa_is_to_do_later_is_held_by_no_snapshot():
    model = ran(small(), 1)
    model.schedule_event(model.close, at=4.0)
    with pytest.raises(NotRestorableError, match="a snapshot cannot store scheduled events"):
        model.snapshot()
