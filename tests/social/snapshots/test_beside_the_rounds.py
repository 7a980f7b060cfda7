"""What goes on beside the rounds of a model: guards that raise, collectors, what users do between rounds."""

import pytest
from continued import as_bytes, from_bytes, going_on, inner_differences, tell_apart, unlike
from lively_worlds import LIVELY, rounds_of
from mesa import DataCollector
from minds import Mind, asked
from worlds import ran, small

from prism_mesa import AgentState, SocialAgent, SocialModel, Statechart, Transition
from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.behavior import social_chart


def sensitive(agent, post):
    """Hold for a while; then raise at every post."""
    if agent.model.round > 1:
        raise KeyError("mood")
    return False


def never_well(agent, post):
    raise ValueError("unwell")


def with_guards(**params):
    own = [
        Transition("decides", "evaluating", "composing", guard=sensitive),
        Transition("decides", "evaluating", "resting", guard=never_well),
    ]
    chart = Statechart(
        social_chart.states, [*social_chart.transitions, *own], social_chart.initial, timeouts=social_chart.timeouts
    )
    return small(**LIVELY, chart=chart, **params)


@pytest.mark.filterwarnings("ignore:.*the guard of")
def test_what_guards_raised_and_whether_they_ever_gave_a_value_is_known():
    whole, other = going_on(with_guards, rounds=5, at=3)
    first, second = (model.chart.failing_guards() for model in (whole, other))
    assert [(guard.n_errors, guard.always_fails, guard.errors) for guard in first] == [
        (guard.n_errors, guard.always_fails, guard.errors) for guard in second
    ]
    assert [guard.always_fails for guard in second] == [False, True]
    assert tell_apart(whole, other) == []


def collecting():
    model = small(**LIVELY)
    model.datacollector = DataCollector(
        model_reporters={"posts": lambda m: len(m.posts), "kinds": lambda m: {"a": (1, [m.round])}},
        agent_reporters={"state": lambda agent: agent.state.value},
        agenttype_reporters={SocialAgent: {"row": "row"}},
        tables={"ticks": ["round", "tick", *model.datacollector.tables["ticks"]][2:], "own": ["x"]},
    )
    return model


def test_what_a_collector_of_a_users_own_has_collected_goes_on():
    whole, other = going_on(collecting, rounds=4, at=2)
    one, two = whole.datacollector, other.datacollector
    assert one.get_agent_vars_dataframe().equals(two.get_agent_vars_dataframe())
    assert len(two.get_agent_vars_dataframe()) == 4 * 30
    assert one.get_agenttype_vars_dataframe(SocialAgent).equals(two.get_agenttype_vars_dataframe(SocialAgent))
    assert rounds_of(whole).equals(rounds_of(other))
    assert unlike(whole.snapshot(), other.snapshot()) == []


def test_a_collector_of_something_else_is_refused():
    with pytest.raises(DataError, match="its model_reporters differ from the run"):
        collecting().restore(ran(small(**LIVELY), 1).snapshot())


def test_what_users_do_between_rounds_goes_on():
    def acted():
        model = ran(small(**LIVELY, statechart_max_history_depth=4), 2)
        agent = next(model.agent(row) for row in range(30) if model.agent(row).n_unread > 1)
        post = agent.read()
        agent.like(post)
        agent.reply(post, "Well, well")
        agent.write("Good morning")
        agent.read()
        agent.name, agent.engagement_threshold, agent.timeout_threshold, agent.post_rate = "Zoe", 0.9, 9, 0.9
        model.agent(9).state, model.agent(9).ticks_in_state = AgentState.SCROLLING, 3
        model.agent(10).extraversion, model.agent(10).pending_action = 2, "reshare"
        model.population.interests[3], model.population.propensities[3] = model.population.interests[4], (1, 0, 0)
        model.events.notes.append((3, 4, "It rains", 5))
        model.agent(7).remove()
        SocialAgent(model, follows=[1, 2], followers=[3], activity=1.0)
        model.population.activity[4] = 0.0
        return model

    whole, stopped = acted(), acted()
    other = small(**LIVELY, statechart_max_history_depth=4)
    other.restore(from_bytes(as_bytes(stopped.snapshot())))
    assert list(inner_differences(stopped, other)) == []
    assert (len(other.population), len(other.agents)) == (31, 30)
    other.recorder, whole.recorder = None, None
    assert tell_apart_silently(ran(whole, 3), ran(other, 3)) == []
    assert "Good morning" in other.posts.texts


def tell_apart_silently(whole, other):
    whole.recorder = other.recorder = small().recorder
    return tell_apart(whole, other)


def test_a_snapshot_before_the_first_round_is_one_too():
    whole, other = going_on(lambda: small(**LIVELY), rounds=2, at=0)
    assert tell_apart(whole, other) == []


def test_a_model_that_took_over_can_be_taken_over_from():
    _, other = going_on(lambda: small(**LIVELY), rounds=4, at=2)
    third = small(**LIVELY)
    third.restore(from_bytes(as_bytes(other.snapshot())))
    third.recorder.tables = other.recorder.tables
    assert tell_apart(other, third) == []


def test_what_was_restored_does_not_change_with_what_it_came_from():
    stopped, other = ran(small(**LIVELY), 2), small(**LIVELY)
    other.restore(stopped.snapshot())
    before = as_bytes(other.snapshot())
    ran(stopped, 2)
    assert as_bytes(other.snapshot()) == before


class Moody(RuleReasoner):
    """A rule that grows tired, and says so."""

    def __init__(self):
        super().__init__()
        self.n_chosen = 0

    def choose(self, choices):
        self.n_chosen += len(choices.draws)
        return super().choose(choices) * (self.n_chosen % 3 > 0)

    def snapshot(self):
        return {"n_chosen": self.n_chosen}

    def restore(self, kept):
        self.n_chosen = kept["n_chosen"]


def test_a_reasoner_of_a_users_own_says_its_state_itself():
    whole, other = going_on(lambda: small(**LIVELY, reasoner=Moody()), rounds=5, at=2)
    assert whole.reasoner.n_chosen == other.reasoner.n_chosen > 0
    assert tell_apart(whole, other) == []


def test_a_feed_that_was_longer_than_it_can_be_now_loses_its_end():
    stopped = ran(small(**LIVELY, feed_size=20), 3)
    other = small(**LIVELY, feed_size=4)
    other.restore(from_bytes(as_bytes(stopped.snapshot())))
    row = int(stopped.population.n_feed.argmax())
    assert stopped.population.n_feed[row] > 4
    assert other.population.feed[row].tolist() == stopped.population.feed[row, :4].tolist()
    assert [post.post_id for post in other.agent(row).feed] == other.population.feed[row].tolist()[
        int(other.population.n_read[row]) :
    ]
    ran(other, 1)


class Weather:
    def __init__(self):
        self.days = []

    def snapshot(self):
        return {"days": self.days}

    def restore(self, kept):
        self.days = kept["days"]


class Town(SocialModel):
    def __init__(self, **params):
        super().__init__(**params)
        self.mayor, self.n_steps, self.weather = "Ann", 0, Weather()

    def step(self):
        super().step()
        self.n_steps += 1
        self.weather.days.append(self.round)


def test_what_users_gave_a_model_goes_on():
    whole, other = going_on(lambda: small(Town, **LIVELY), rounds=4, at=2)
    assert (other.mayor, other.n_steps, other.weather.days) == ("Ann", 4, [0, 1, 2, 3])
    assert tell_apart(whole, other) == []


def test_mesas_ways_of_running_go_on():
    stopped, other = ran(small(**LIVELY, rounds=5), 2), small(**LIVELY, rounds=5)
    other.restore(from_bytes(as_bytes(stopped.snapshot())))
    assert (other.steps, other.time, other.running) == (2, 2.0, True)
    other.run_for(1)
    assert (other.steps, other.time, other.round) == (3, 3.0, 2)
    other.run_model()
    assert (other.steps, other.time, other.round, other.running) == (5, 5.0, 4, False)
    ended = small(**LIVELY, rounds=5)
    ended.restore(from_bytes(as_bytes(other.snapshot())))
    assert (ended.steps, ended.running) == (5, False)


def test_answers_that_the_runs_ledger_holds_are_not_asked_for_again(tmp_path):
    choices = LIVELY | {"agents_band": 0.3}
    minds = Mind(), Mind(), Mind()

    def make(mind, ledger):
        reasoner = asked(mind, persona="archetype", archetypes=3, max_fallback_share=1.0)
        reasoner.record(ledger, "a run")
        return small(**choices, reasoner=reasoner)

    with Ledger(tmp_path / "whole.sqlite") as one, Ledger(tmp_path / "stopped.sqlite") as two:
        whole, stopped, other = make(minds[0], one), make(minds[1], two), make(minds[2], two)
        ran(whole, 4)
        snapshot = ran(stopped, 2).snapshot()
        other.restore(from_bytes(as_bytes(snapshot)))
        ran(other, 2)
    assert set(minds[0].prompts) == set(minds[1].prompts) | set(minds[2].prompts)
    assert not set(minds[1].prompts) & set(minds[2].prompts)
    assert whole.reasoner.counts == other.reasoner.counts
    assert whole.reasoner.usage == other.reasoner.usage
    for model in (whole, stopped, other):
        model.close()
