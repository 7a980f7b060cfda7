"""`SocialAgent`: its fields and what they refuse, its history and export, and agents that come, go or are scripted."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from worlds import FROM_FILE, differing, ran, small

from prism_mesa.domain import Post
from prism_mesa.errors import AgentError, ChartError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.statechart import (
    AgentState,
    F,
    Statechart,
    StateTransition,
    Transition,
    agents_in_state,
    state_distribution,
)

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING


@pytest.fixture
def agent():
    return small().agent(4)


# the validation table of the data model


@pytest.mark.parametrize("state", ["scrolling", "nowhere", None, 1])
def test_a_state_that_is_no_agent_state_is_a_type_error_and_changes_nothing(agent, state):
    with pytest.raises(TypeError, match=r"SocialAgent\.state: .* is no AgentState"):
        agent.state = state
    assert agent.state is IDLE


@pytest.mark.parametrize("ticks", [-1, -(2**40), 2**31, 1.5, math.nan, "3", None])
def test_ticks_in_state_below_0_or_not_whole_are_a_value_error(agent, ticks):
    agent.ticks_in_state = 3
    with pytest.raises(ValueError, match=r"SocialAgent\.ticks_in_state: .* is no whole number from 0 on"):
        agent.ticks_in_state = ticks
    assert agent.ticks_in_state == 3


@pytest.mark.parametrize("threshold", [-0.001, 1.001, math.nan, math.inf])
def test_an_engagement_threshold_outside_0_to_1_is_a_value_error(agent, threshold):
    with pytest.raises(ValueError, match=r"SocialAgent\.engagement_threshold: .* is not in 0\.\.1"):
        agent.engagement_threshold = threshold


@pytest.mark.parametrize("threshold", [0, -5, 0.5, 2.5, 2**31, math.nan])
def test_a_timeout_threshold_of_no_whole_tick_is_a_value_error(agent, threshold):
    with pytest.raises(ValueError, match=r"SocialAgent\.timeout_threshold: .* is no whole number from 1 on"):
        agent.timeout_threshold = threshold
    assert agent.timeout_threshold == 5


@pytest.mark.parametrize("name", ["activity", "post_rate"])
def test_rates_are_probabilities(agent, name):
    with pytest.raises(ValueError, match=rf"SocialAgent\.{name}: 1\.2 is not in 0\.\.1"):
        setattr(agent, name, 1.2)


def test_a_pending_action_is_one_of_three_or_none(agent):
    for action in ("like", "reply", "reshare", None):
        agent.pending_action = action
        assert agent.pending_action == action
    with pytest.raises(ValueError, match="pending_action: 'shout' is none of like, reply, reshare, None"):
        agent.pending_action = "shout"


def test_the_fields_have_the_data_models_defaults(agent):
    assert (agent.state, agent.ticks_in_state, list(agent.state_history)) == (IDLE, 0, [])
    assert (agent.timeout_threshold, agent.max_history_depth) == (5, 50)
    assert 0 <= agent.engagement_threshold <= 1


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0])
def test_a_field_reads_as_it_was_set_and_every_valid_end_is_allowed(agent, value):
    agent.engagement_threshold = value
    assert agent.engagement_threshold == value
    agent.timeout_threshold, agent.ticks_in_state, agent.state = 1, 0, RESTING
    assert (agent.timeout_threshold, agent.ticks_in_state, agent.state) == (1, 0, RESTING)


def test_the_band_lies_half_to_either_side_of_the_threshold():
    agent = small(agents_band=0.3).agent(0)
    agent.engagement_threshold = 0.5
    assert agent.low_threshold == pytest.approx(0.35)
    assert agent.high_threshold == pytest.approx(0.65)


def test_setting_a_field_of_one_agent_touches_no_other():
    changed, plain = small(), small()
    changed.agent(3).activity = 0.123
    assert differing(changed, plain) == ["activity"]
    assert [i for i in range(30) if changed.population.activity[i] != plain.population.activity[i]] == [3]


# who it is


def test_an_agent_tells_who_it_is_from_its_columns(agent):
    assert agent.agent_id == "4"
    assert agent.unique_id == 5
    assert sum(agent.propensities.values()) == pytest.approx(1)
    assert agent.traits == {name: getattr(agent, name) for name in agent.traits}
    assert all(1 <= score <= 5 for score in agent.traits.values())
    assert 1 <= len(agent.interests) <= 3
    agent.name = "Zoe Zhang"
    assert agent.name == "Zoe Zhang"


def test_an_unknown_attribute_is_an_attribute_error(agent):
    with pytest.raises(AttributeError, match="'SocialAgent' object has no attribute 'mood'"):
        _ = agent.mood


@pytest.mark.parametrize(
    ("relevance", "velocity", "interested", "engages"),
    [
        (0.61, 0, True, True),
        (0.6, 0, False, False),
        (0.5, 101, False, True),
        (0.5, 100, False, False),
        (0.4, 101, False, True),
        (0.39, 500, False, False),
    ],
)
def test_interest_is_above_the_band_and_a_viral_post_inside_it_engages(relevance, velocity, interested, engages):
    agent = small(agents_band=0.2).agent(0)
    agent.engagement_threshold = 0.5
    post = Post(relevance=relevance, velocity=velocity)
    assert (agent.is_interested(post), agent.should_engage(post)) == (interested, engages)


# history and export


def walk(agent, n):
    for _ in range(n):
        agent.fire("feed_ready")
        agent.fire("round_ends")


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_history_keeps_the_last_entries_first_in_first_out(depth):
    agent = small(statechart_max_history_depth=depth).agent(0)
    agent.fire("feed_ready")
    for length in range(1, 8):
        assert len(agent.state_history) == min(depth, length)
        agent.fire("round_ends" if agent.state is SCROLLING else "feed_ready")
    walk_agents = [(IDLE, SCROLLING), (SCROLLING, IDLE)] * 4
    assert [(e.from_state, e.to_state) for e in agent.state_history] == walk_agents[:8][-depth:]


def test_history_of_depth_0_keeps_nothing_and_agents_move_all_the_same():
    none, some = ran(small(statechart_max_history_depth=0)), ran(small())
    assert all(len(agent.state_history) == 0 for agent in none.agents)
    assert none.agent(0).to_dict()["state_history"] == []
    assert differing(none, some) == ["history", "history.count"]


def test_history_is_never_longer_than_its_depth_in_a_run():
    model = ran(small(statechart_max_history_depth=4, agents_activity=1.0))
    assert max(len(agent.state_history) for agent in model.agents) == 4


def test_history_reads_as_a_list(agent):
    walk(agent, 2)
    history = agent.state_history
    assert len(history) == 4
    assert history[0].trigger == "feed_ready"
    assert history[-1].trigger == "round_ends"
    assert history[1:3] == list(history)[1:3]
    assert history == list(history)
    assert "feed_ready" in repr(history)
    assert history != []


def test_an_entry_can_be_appended_and_comes_back_whole():
    model = ran(small(), 1)
    time = model.now
    entry = StateTransition(IDLE, SCROLLING, "feed_ready", time, {"post_id": 0})
    model.agent(0).state_history.append(entry)
    assert model.agent(0).state_history[-1] == entry


def test_an_entry_of_a_trigger_that_the_model_does_not_know_is_refused(agent):
    entry = StateTransition(IDLE, SCROLLING, "sneezes", agent.now)
    with pytest.raises(AgentError, match="'sneezes' is no trigger of social"):
        agent.state_history.append(entry)


def test_timestamps_are_simulated_time_in_utc():
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    model = ran(small(clock_start=start, ticks_per_round=8), 2)
    entries = [entry for agent in model.agents for entry in agent.state_history]
    assert entries
    assert all(entry.timestamp.utcoffset() == timedelta(0) for entry in entries)
    assert {e.timestamp for e in entries if e.trigger == "feed_ready"} <= {start, start + timedelta(hours=1)}
    ends = {e.timestamp for e in entries if e.trigger == "round_ends"}
    assert ends <= {start + timedelta(minutes=54), start + timedelta(minutes=114)}  # tick 9 of 10 equal parts
    for agent in model.agents:
        times = [entry.timestamp for entry in agent.state_history]
        assert times == sorted(times)


def test_the_export_is_the_data_models_json():
    model = small(agents_activity=1.0)
    while not any(e.trigger == "sees_post" for e in model.agent(7).state_history):
        model.step()
    told = model.agent(7).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert list(told) == ["agent_id", "current_state", "ticks_in_state", "state_history"]
    assert (told["agent_id"], told["current_state"]) == ("7", "idle")
    for entry in told["state_history"]:
        assert list(entry) == ["from_state", "to_state", "trigger", "timestamp", "context"]
        assert entry["timestamp"].endswith("Z")
        assert entry["from_state"] in list(AgentState)
    seen = next(entry for entry in told["state_history"] if entry["trigger"] == "sees_post")
    assert (seen["from_state"], seen["to_state"]) == ("scrolling", "evaluating")
    post = model.post(seen["context"]["post_id"], 0)
    assert post.author in model.network.followees(7)
    opened = next(entry for entry in told["state_history"] if entry["trigger"] == "feed_ready")
    assert opened["context"] is None


# firing by hand


def test_firing_by_hand_returns_the_new_state_or_none(agent):
    assert agent.fire("sees_post") is None
    assert agent.fire("no such trigger") is None
    assert agent.fire("feed_ready") is SCROLLING
    assert agent.state is SCROLLING


def test_an_open_choice_fired_by_hand_is_asked_and_counted():
    model = small(agents_band=0.4)
    agent = model.agent(0)
    agent.state, agent.engagement_threshold = AgentState.EVALUATING, 0.5
    assert agent.fire("decides", Post(relevance=0.5)) in (AgentState.COMPOSING, SCROLLING)
    assert (model.counts["open"], model.sources["rule"]) == (1, 1)
    agent.state = AgentState.EVALUATING
    assert agent.fire("decides", Post(relevance=0.9)) is AgentState.COMPOSING
    assert model.counts["open"] == 1


def test_a_mapping_will_do_as_context(agent):
    agent.state = AgentState.EVALUATING
    assert agent.fire("decides", {"relevance": 1.0, "post_id": "post_123"}) is AgentState.COMPOSING
    assert agent.state_history[-1].context is None  # no post of this platform


def test_an_action_that_raises_leaves_the_agent_as_it_was():
    def breaks(agent, post):
        raise RuntimeError("out of paper")

    model = small()
    model.chart = Statechart([IDLE, SCROLLING], [Transition("feed_ready", IDLE, SCROLLING, action=breaks)], IDLE)
    agent = model.agent(0)
    agent.ticks_in_state = 2
    with pytest.raises(RuntimeError, match="out of paper"):
        agent.fire("feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (IDLE, 2, 0)


def test_a_transition_that_the_history_cannot_hold_is_refused_before_its_action_runs():
    ran_too_early = []
    acts = Transition("wakes", IDLE, SCROLLING, action=lambda agent, post: ran_too_early.append(agent.row))
    agent = small().agent(4)
    with pytest.raises(AgentError, match="'wakes' is no trigger of social"):
        Statechart([IDLE, SCROLLING], [acts], IDLE).fire(agent, "wakes")
    assert (agent.state, ran_too_early) == (IDLE, [])


def test_a_choice_that_was_not_offered_cannot_be_applied(agent):
    with pytest.raises(ChartError, match=r"idle --feed_ready--> resting: not declared \(targets: scrolling\)"):
        agent.model.chart.apply(agent, "feed_ready", RESTING)


def test_a_step_of_an_idle_agent_does_nothing(agent):
    agent.step()
    assert (agent.state, agent.ticks_in_state) == (IDLE, 0)


def test_a_step_counts_the_tick_and_times_out_at_the_threshold():
    agent = small().agent(0)
    agent.state, agent.timeout_threshold = SCROLLING, 3
    seen = []
    for _ in range(3):
        agent.step()
        seen.append((agent.state, agent.ticks_in_state))
    assert seen == [(SCROLLING, 1), (SCROLLING, 2), (RESTING, 0)]


def test_resting_ends_after_two_ticks_whatever_the_agents_own_threshold():
    agent = small().agent(0)
    agent.state, agent.timeout_threshold = RESTING, 100
    agent.step()
    assert (agent.state, agent.ticks_in_state) == (RESTING, 1)
    agent.step()
    assert agent.state is SCROLLING


# agents that come and go


def test_a_new_agent_follows_and_is_followed_from_the_next_round_on():
    model = ran(small(agents_activity=1.0, agents_activity_sigma=0.0, feed_size=50, agents_post_rate=0.9), 1)
    loud = SocialAgent(model, follows=[3, 4], followers=[5], post_rate=1.0, engagement_threshold=0.25, name="Newcomer")
    assert (loud.row, loud.unique_id, loud.name, loud.engagement_threshold) == (30, 31, "Newcomer", 0.25)
    assert model.network.followees(30).tolist() == [3, 4]
    assert 30 in model.network.followees(5)
    first = len(model.posts)
    ran(model, 1)
    written = [i for i in range(first, len(model.posts)) if model.posts.author[i] == 30 and model.posts.kind[i] == 0]
    assert len(written) == 1
    row = model.population
    assert written[0] in row.feed[5, : row.n_feed[5]]
    assert {int(model.posts.author[i]) for i in row.feed[30, : row.n_feed[30]]} <= {3, 4}
    assert row.n_feed[30] > 0


def test_a_new_agent_shifts_nobody_elses_draws():
    with_newcomer, without = small(), small()
    newcomer = SocialAgent(with_newcomer)
    newcomer.post_rate = 0.0  # alone: follows nobody, followed by nobody
    ran(with_newcomer), ran(without)
    a, b = with_newcomer.population, without.population
    for name in ("names", "state", "engagement_threshold", "activity", "ticks_in_state"):
        assert list(getattr(a, name)[:30]) == list(getattr(b, name)), name
    assert with_newcomer.posts.author.tolist() == without.posts.author.tolist()
    assert with_newcomer.totals["likes"] == without.totals["likes"]
    assert [with_newcomer.history.entries(i) for i in range(30)] == [without.history.entries(i) for i in range(30)]


def test_a_new_agents_id_is_nobody_elses(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    model = small(network_edges=str(tmp_path / "edges.csv"), **FROM_FILE)
    made = [SocialAgent(model).agent_id for _ in range(2)]
    assert len({"1", "2", "3", *made}) == 5
    assert model.population.ids == ["1", "2", "3", *made]


def test_mesas_create_agents_makes_new_ones():
    model = small()
    made = SocialAgent.create_agents(model, 3, activity=1.0, timeout_threshold=[2, 3, 4])
    assert sorted(agent.row for agent in made) == [30, 31, 32]
    assert [agent.timeout_threshold for agent in made] == [2, 3, 4]
    assert len(ran(model, 1).agents) == 33


@pytest.mark.parametrize("row", [-1, 30, 1000])
def test_there_is_no_agent_outside_the_population(row):
    with pytest.raises(AgentError, match=rf"row {row} holds no agent \(rows: 0 \.\. 29\)"):
        SocialAgent(small(), row)


@pytest.mark.parametrize("others", [{"follows": [30]}, {"followers": [-1]}])
def test_a_new_agent_cannot_follow_who_is_not_there(others):
    model = small()
    with pytest.raises(AgentError, match="holds no agent"):
        SocialAgent(model, **others)
    assert len(model.population) == 30


@pytest.mark.parametrize("fields", [{"mood": 1}, {"max_history_depth": 3}, {"scripted": True}, {"step": None}])
def test_a_field_that_is_unknown_or_cannot_be_set_is_named_and_no_agent_is_made(fields):
    model = small()
    with pytest.raises(AgentError, match=f"SocialAgent has no field '{next(iter(fields))}' that can be set"):
        SocialAgent(model, **fields)
    assert len(model.population) == len(model.agents) == 30


def test_a_new_agent_with_a_bad_value_is_not_on_the_platform():
    model = small()
    with pytest.raises(AgentError, match=r"engagement_threshold: 7 is not in 0\.\.1"):
        SocialAgent(model, engagement_threshold=7)
    ran(model, 1)
    assert len(model.agents) == 30
    assert agents_in_state(IDLE, model) == 30


def test_an_agent_taken_over_keeps_its_row_and_the_ordinary_one_is_replaced():
    model = small()
    before = model.agent(6)
    after = SocialAgent(model, 6, name="Six")
    assert model.agent(6) is after
    assert before not in model.agents
    assert len(model.agents) == 30
    assert len({agent.unique_id for agent in model.agents}) == 30


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_removed_agent_is_gone_from_the_next_round_on_and_its_posts_stay(scheduler):
    model = ran(small(scheduler=scheduler, agents_post_rate=1.0, agents_activity_sigma=0.0), 1)
    posts = model.posts.author.tolist().count(8)
    model.agent(8).remove()
    assert len(model.agents) == 29
    first = len(model.posts)
    ran(model, 2)
    assert len(model.agents) == 29
    assert sum(model.state_counts().values()) == 29
    assert model.posts.author[:first].tolist().count(8) == posts
    assert 8 not in model.posts.author[first:].tolist()
    ticks = model.datacollector.get_table_dataframe("ticks")
    assert ticks.drop(columns=["round", "tick"]).sum(axis=1).tolist() == [30] * 10 + [29] * 20


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_all_counts_of_states_say_the_same_after_an_agent_was_removed(scheduler):
    model = ran(small(scheduler=scheduler, agents_activity=0.7), 1)
    agents = list(model.agents)

    def all_count(left):
        for counted in (model, model.agents, agents, list(model.agents)):
            assert sum(state_distribution(counted).values()) == left
            assert state_distribution(counted) == state_distribution(model)
            assert agents_in_state(IDLE, counted) == agents_in_state(IDLE, model)
        assert sum(agent.has_left for agent in agents) == 30 - left

    all_count(30)
    for gone, row in enumerate((8, 3, 20), 1):
        model.agent(row).remove()
        all_count(30 - gone)
        model.step()
        all_count(30 - gone)


class Counter(SocialAgent):
    """Throws somebody out in the middle of a round, and counts before and after."""

    def step(self):
        if self.model.tick == 3 and not self.model.round:
            self.model.agent(2).remove()
        self.model.said.append((state_distribution(self.model), state_distribution(self.model.agents)))


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_counts_within_a_round_agree_as_well(scheduler):
    model = small(scheduler=scheduler, agents_activity=1.0)
    Counter(model, 9)
    model.said = []
    ran(model, 2)
    assert [one for one, _ in model.said] == [other for _, other in model.said]
    assert {sum(one.values()) for one, _ in model.said} == {30, 29}


def test_agents_come_in_the_order_of_rows_whatever_was_asked_for_before():
    model = small()
    model.agent(17)
    Echo(model, 25)
    model.agent(3)
    assert [agent.row for agent in model.agents] == list(range(30))
    Echo(model, 4)
    SocialAgent(model)
    model.agent(11).remove()
    rows = [*range(11), *range(12, 31)]
    assert [agent.row for agent in model.agents] == rows
    assert [agent.row for agent in model.agents_by_type[SocialAgent]] == [row for row in rows if row not in (4, 25)]
    assert [agent.row for agent in model.agents_by_type[Echo]] == [4, 25]
    model.step()
    assert [agent.row for agent in model.agents] == rows


def test_a_removed_agent_cannot_be_taken_over():
    model = small()
    model.agent(8).remove()
    with pytest.raises(AgentError, match="row 8 holds no agent"):
        SocialAgent(model, 8)
    ran(model, 1)
    with pytest.raises(AgentError, match="row 8 holds no agent"):
        SocialAgent(model, 8)


class Moderator(SocialAgent):
    """Throws another agent out in the middle of round 1."""

    def step(self):
        if (self.model.round, self.model.tick) == (1, 3):
            for row in (2, 9, 15):
                self.model.agent(row).remove()


class Recruiter(SocialAgent):
    """Brings in an agent in the middle of round 0, and looks around."""

    def step(self):
        if (self.model.round, self.model.tick) == (0, 2):
            SocialAgent(self.model, follows=[self.row], activity=1.0)
        assert len(self.model.agents) >= 30


@pytest.mark.parametrize("kind", [Moderator, Recruiter])
def test_agents_that_go_or_come_during_a_round_do_so_alike_for_rows_and_columns(kind):
    def model(scheduler):
        world = small(scheduler=scheduler, agents_activity=0.9, agents_band=0.4)
        kind(world, 9)
        return ran(world, 3)

    rows, columns = model("mesa"), model("columns")
    assert differing(rows, columns) == []
    assert sum(columns.state_counts().values()) == (27 if kind is Moderator else 31)


# agents with a script of their own


class Echo(SocialAgent):
    """Reads its whole feed and reshares all of it."""

    def step(self):
        while (post := self.read()) is not None:
            self.reshare(post)


def test_a_bot_that_reshares_everything_shows_in_the_tables():
    model = small(agents_activity=0.0, agents_post_rate=0.5, agents_activity_sigma=0.0, feed_size=100)
    Echo(model, 11)
    ran(model, 2)
    reads = model.recorder.tables["engagements"]
    assert {row["agent"] for row in reads} == {11}
    assert {row["action"] for row in reads} == {"reshare"}
    followed = set(model.network.followees(11).tolist())
    shown = [i for i in range(len(model.posts)) if model.posts.kind[i] == 0 and model.posts.author[i] in followed]
    assert sorted(row["post"] for row in reads) == shown
    rounds = model.datacollector.get_model_vars_dataframe()
    assert rounds["reshares"].sum() == rounds["impressions"].sum() == len(shown) > 3
    passed_on = [i for i in range(len(model.posts)) if model.posts.kind[i] == 2]
    assert sorted(model.posts.parent[passed_on].tolist()) == shown
    assert {int(a) for a in model.posts.author[passed_on]} == {11}
    assert all(model.posts.reshares[i] == 1 for i in shown)


def test_a_bot_likes_replies_and_writes_and_it_appears_in_the_next_round():
    class Chatty(SocialAgent):
        def step(self):
            if self.model.tick == 1 and (post := self.read()) is not None:
                self.like(post)
                self.like(post)  # once is enough
                self.reply(post)
                self.write("Hear, hear")

    model = small(agents_activity=0.0, agents_post_rate=0.9, agents_activity_sigma=0.0)
    Chatty(model, 0, post_rate=0.0)
    ran(model, 1)
    posts = model.posts
    assert (model.totals["likes"], model.totals["replies"], model.totals["posts"]) == (1, 1, (posts.round == 0).sum())
    mine = [i for i in range(len(posts)) if posts.author[i] == 0]
    assert [posts.round[i] for i in mine] == [1, 1]
    reply, own = mine
    assert (posts.kind[reply], posts.root[reply], posts.kind[own], posts.parent[own]) == (1, reply, 0, -1)
    assert posts.likes[posts.parent[reply]] == posts.replies[posts.parent[reply]] == 1
    assert model.post(own, 0).text == "Hear, hear"


def test_a_script_is_called_once_a_tick_also_when_the_agent_is_idle():
    calls = []

    class Counting(SocialAgent):
        def step(self):
            calls.append((self.model.round, self.model.tick))

    model = small(ticks_per_round=3)
    agent = Counting(model, 2, activity=0.0)
    assert agent.scripted
    assert not model.agent(3).scripted
    ran(model, 2)
    assert calls == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]


def test_what_a_script_reads_is_an_impression_and_is_not_shown_again():
    class Reader(SocialAgent):
        def step(self):
            while (post := self.read()) is not None:
                read.append(post.post_id)

    read = []
    model = small(agents_activity=0.0, agents_post_rate=0.4, agents_activity_sigma=0.0)
    Reader(model, 0)
    ran(model, 4)
    assert len(read) == len(set(read)) == model.totals["impressions"]
    assert len(read) > 3


def test_guards_and_agents_read_the_same_numbers(agent):
    agent.engagement_threshold = 0.3
    assert (F.agent.engagement_threshold == 0.3)(agent, None) is True
