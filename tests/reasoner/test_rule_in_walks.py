"""The rule within a walk falls on the options on which the rule over columns falls."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from test_rule import LIKE, REPLY, RESHARE, REST, C, S, some_choices
from worlds import differing, ran, small

from prism_mesa.kernels.walking.steps import choice_draw, choose_option, engage_probability
from prism_mesa.reasoner import RuleParams, RuleReasoner
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.statechart import STATES, AgentState, Statechart, Transition
from prism_mesa.streams import Streams, digest64

SETS = [options for n in (2, 3, 6) for options in combinations((C, S, LIKE, REPLY, RESHARE, REST), n)]


def tables_of(sets):
    """Return the tables of a chart with these open choices: between what each of its triggers may lead to."""
    transitions = [Transition(f"t{i}", AgentState.IDLE, to) for i, options in enumerate(sets) for to in options]
    return WalkTables(Statechart(AgentState, transitions, AgentState.IDLE))


@pytest.mark.parametrize("params", [RuleParams(), RuleParams(slope=4.0, velocity=0.0, media=-2.0)])
def test_the_rule_in_a_walk_chooses_as_over_columns(params):
    rule, tables = RuleReasoner(params), tables_of(SETS)
    numbers = rule.kernel_rule(np.uint64(0))
    assert len(tables.option_sets) == len(SETS)
    for place, options in enumerate(tables.option_sets):
        asked = some_choices(40, place, options)
        traits, shares = asked.traits.astype(np.float32), asked.propensities.astype(np.float32)  # as populations have
        shares[::7], asked.high[::5] = 0.0, asked.low[::5]  # nothing to go by; a band without a width
        asked.traits[:], asked.propensities[:] = traits, shares
        engages, wanted = rule.engage_probability(asked), rule.choose(asked)
        for i, draw in enumerate(asked.draws.tolist()):
            near, seen = (asked.utility[i], asked.low[i], asked.high[i]), (asked.velocity[i], float(asked.media[i]))
            engage = engage_probability(*near, *seen, traits, i, numbers)
            assert engage == engages[i]
            assert STATES[choose_option(place, engage, draw, shares, i, tables.options)] is options[wanted[i]]


def test_draws_in_a_walk_are_those_of_the_streams():
    streams = Streams(5)
    for round_, tick, name, row in [(0, 0, "a", 0), (3, 7, "decides", 41), (9, 2, "b", 10**6)]:
        index = np.uint64(digest64(name))
        drawn = choice_draw(streams.key("choice", round_), tick, index, row)
        assert drawn == streams.uniform("choice", row, round_=round_, tick=tick, index=index)[0]


class Declines(RuleReasoner):
    """Goes by the rule, and then never engages."""

    def choose(self, choices):
        """Return the places of the passive options."""
        return np.full(len(choices.draws), choices.options.index(S))


def test_who_only_begins_as_the_rule_is_asked():
    """Everything that agents compose is then beyond their bands."""
    worlds = [small(reasoner=reasoner, agents_band=0.6) for reasoner in (Declines(), RuleReasoner(), None)]
    for world in worlds:
        for _ in range(3):
            world.step()
    declines, rule, usual = ([world.totals[name] for name in ("open", "likes", "replies")] for world in worlds)
    assert rule == usual
    assert declines[0] > 0
    assert sum(declines[1:]) < sum(rule[1:])


class AsOverColumns(RuleReasoner):
    """The rule, which is not known to be it."""


def test_guards_in_python_meet_agents_whose_choice_is_open_before_they_have_gone_on():
    def depends_on_all(agent, post):
        states = agent.model.population.state.tolist()
        return (agent.row + sum(state * place**2 for place, state in enumerate(states))) % 3 != 0

    own = [replace(t, guard=depends_on_all) if t.trigger == "sees_post" else t for t in social_chart.transitions]
    chart = Statechart(AgentState, own, AgentState.IDLE, timeouts=dict(social_chart.timeouts))
    world = {"chart": chart, "agents_band": 0.8, "agents_activity": 1.0, "agents_activity_sigma": 0.0}
    rule, over_columns = (ran(small(reasoner=kind(), **world)) for kind in (RuleReasoner, AsOverColumns))
    assert rule.totals["open"] > 0
    assert differing(rule, over_columns) == []
