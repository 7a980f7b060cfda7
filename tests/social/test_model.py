"""`SocialModel`: the order of a round, visibility, timeouts, the oracle, reproducibility, and Mesa's own tools."""

from collections import Counter

import mesa
import numpy as np
import pandas as pd
import pytest
from mesa.experimental.scenarios import Scenario
from worlds import differing, facts, named, ran, small

from prism_mesa.errors import ChartError, ConfigError, PrismWarning
from prism_mesa.reasoner import Reasoner, RuleReasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.statechart import AgentState, F, Statechart, Transition, agents_in_state, state_distribution

IDLE, SCROLLING, EVALUATING, COMPOSING, RESTING = (
    AgentState.IDLE,
    AgentState.SCROLLING,
    AgentState.EVALUATING,
    AgentState.COMPOSING,
    AgentState.RESTING,
)
LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.6}


@pytest.fixture(scope="module")
def default():
    """The model without arguments after its first four rounds."""
    return ran(SocialModel(), 4)


def rounds_of(model):
    return model.datacollector.get_model_vars_dataframe()


def moves(model, **wanted):
    rows = model.recorder.tables.get("transitions", [])
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


# without arguments


def test_without_arguments_there_are_1000_agents_who_decide_by_rule(default):
    assert isinstance(default, mesa.Model)
    assert len(default.agents) == 1000
    assert isinstance(default.reasoner, RuleReasoner)
    assert default.params == SocialParams()


def test_all_eight_states_are_visited_and_all_engagements_happen(default):
    shares = rounds_of(default).filter(like="share_").sum()
    assert len(shares) == 8
    assert (shares > 0).all()
    assert all(default.totals[name] > 0 for name in ("likes", "replies", "reshares", "posts", "impressions"))


def test_the_oracle_is_asked_and_the_rule_answers(default):
    assert default.totals["open"] > 100
    assert dict(default.sources) == {"rule": default.totals["open"]}
    assert default.totals["fallback"] == 0


def test_no_guard_of_the_default_chart_fails_or_has_to_run_row_by_row(default):
    assert default.chart.guard_errors == {}
    assert default.row_by_row_guards == set()


def test_shares_of_agent_ticks_add_up_to_1_and_ticks_to_the_agents(default):
    shares = rounds_of(default).filter(like="share_")
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * 4)
    ticks = default.datacollector.get_table_dataframe("ticks")
    counts = ticks.drop(columns=["round", "tick"])
    assert list(counts.columns) == [state.value for state in AgentState]
    assert counts.sum(axis=1).tolist() == [1000] * 40
    assert (ticks["round"].tolist(), ticks["tick"].tolist()) == (
        [r for r in range(4) for _ in range(10)],
        list(range(1, 11)) * 4,
    )
    by_hand = counts.groupby(ticks["round"]).sum() / 10000
    assert by_hand.to_numpy() == pytest.approx(shares.to_numpy())


# the order of a round


def test_everybody_is_idle_between_rounds_but_not_when_the_round_is_collected():
    class Watching(SocialModel):
        def __init__(self, **params):
            super().__init__(**params)
            self.datacollector.model_reporters["active"] = lambda m: 30 - m.state_counts()[IDLE]

    model = small(Watching, **LIVELY)
    model.datacollector.model_vars["active"] = []
    ran(model)
    assert model.state_counts()[IDLE] == 30
    assert rounds_of(model)["active"].tolist() == [30, 30, 30]


def test_a_round_goes_from_feed_ready_at_tick_0_to_round_ends_after_the_last_tick():
    model = ran(small(ticks_per_round=6, **LIVELY), 2)
    ticks = {}
    for row in moves(model):
        ticks.setdefault(row["trigger"], set()).add(row["tick"])
    assert ticks.pop("feed_ready") == {0}
    assert ticks.pop("round_ends") == {7}
    assert set().union(*ticks.values()) <= set(range(1, 7))
    assert Counter(row["trigger"] for row in moves(model, round=0))["feed_ready"] == 30


def test_an_agent_fires_at_most_once_a_tick():
    model = ran(small(**LIVELY))
    fired = Counter((row["round"], row["tick"], row["agent"]) for row in moves(model))
    assert set(fired.values()) == {1}


def test_each_move_leaves_the_state_that_the_one_before_entered():
    model = ran(small(agents_band=0.4))
    at = dict.fromkeys(range(30), "idle")
    declared = {(str(t.trigger), t.source.value, t.target.value) for t in social_chart.transitions if t.target}
    for row in moves(model):
        assert row["from_state"] == at[row["agent"]]
        assert (row["trigger"], row["from_state"], row["to_state"]) in declared
        at[row["agent"]] = row["to_state"]
    assert set(at.values()) == {"idle"}


def test_who_comes_online_is_who_gets_feed_ready_and_the_others_stay_idle():
    model = ran(small(agents_activity=0.4))
    opened = Counter(row["round"] for row in moves(model, trigger="feed_ready"))
    assert [opened[k] for k in range(3)] == rounds_of(model)["online"].tolist()
    for k in range(3):
        there = {row["agent"] for row in moves(model, round=k, trigger="feed_ready")}
        assert {row["agent"] for row in moves(model, round=k)} == there
    assert 0 < sum(opened.values()) < 90


def test_agents_of_activity_0_never_come_and_of_activity_1_always():
    assert rounds_of(ran(small(agents_activity=0.0)))["online"].tolist() == [0, 0, 0]
    assert rounds_of(ran(small(**LIVELY)))["online"].tolist() == [30, 30, 30]


def test_a_decision_follows_the_band():
    model = ran(small(agents_band=0.2, **LIVELY))
    agents = {agent.row: agent for agent in model.agents}
    seen = Counter()
    for row in moves(model, from_state="evaluating"):
        agent = agents[row["agent"]]
        relevance = model.post(row["post"], row["agent"]).relevance
        if row["trigger"] == "ignores":
            seen["ignored"] += 1
            assert relevance < agent.low_threshold
        elif row["trigger"] == "decides":
            seen["asked" if row["open"] else "settled"] += 1
            assert row["open"] == (agent.low_threshold <= relevance <= agent.high_threshold)
            assert row["open"] or row["to_state"] == "composing"
    assert min(seen["ignored"], seen["asked"], seen["settled"]) > 5
    assert seen["asked"] == model.totals["open"]


def test_a_band_of_no_width_asks_nobody():
    assert ran(small(agents_band=0.0, **LIVELY)).totals["open"] == 0


def test_with_the_oracle_disabled_nobody_is_asked_and_the_first_option_is_taken():
    model = ran(small(agents_band=1.0, statechart_oracle_enabled=False, **LIVELY))
    assert (model.totals["open"], dict(model.sources)) == (0, {})
    decided = moves(model, trigger="decides")
    assert {row["to_state"] for row in decided} == {"composing"}
    assert len(decided) > 20


def test_composing_becomes_the_action_that_was_drawn_from_the_propensities():
    only_likes = ran(small(agents_reply=0.0, agents_reshare=0.0, **LIVELY))
    assert only_likes.totals["likes"] > 0
    assert (only_likes.totals["replies"], only_likes.totals["reshares"]) == (0, 0)
    mixed = ran(small(agents_n=200, agents_threshold_mean=0.4, agents_like=0.5, agents_reply=0.25, **LIVELY), 4)
    actions = Counter(row["action"] for row in mixed.recorder.tables["engagements"])
    total = sum(actions.values())
    assert total > 500
    assert actions["like"] / total == pytest.approx(0.5, abs=0.06)


def test_asks_action_leaves_the_kind_of_engagement_to_the_oracle():
    model = ran(small(reasoner_asks_action=True, agents_band=0.0, **LIVELY))
    composed = moves(model, trigger="compose_done")
    assert {row["open"] for row in composed} == {True}
    assert model.totals["open"] == len(composed) > 5


# what is visible when


def test_a_reshare_is_seen_from_the_next_round_on_and_never_earlier():
    model = small(agents_threshold_mean=0.3, agents_like=0.0, agents_reply=0.0, agents_reshare=1.0, feed_size=40)
    seen = 0
    for _ in range(4):
        model.step()
        p, posts = model.population, model.posts
        shown = np.concatenate([p.feed[i, : p.n_feed[i]] for i in range(len(p))])
        assert (posts.round[shown] <= model.round).all()
        new = np.flatnonzero((posts.kind == 2) & (posts.round == model.round + 1))
        assert len(new) == model.round_row["reshares"] > 0
        assert not np.isin(new, shown).any()
        seen += int((posts.kind[shown] == 2).sum())
    assert seen > 0


def test_counters_are_those_of_the_opening_of_the_round_for_everybody_in_it():
    read = []

    def notes_what_it_reads(agent, post):
        read.append((agent.model.round, post.root, post.likes + post.replies + post.reshares, post.velocity))

    arrows = [t for t in social_chart.transitions if t.trigger != "sees_post"]
    sees = Transition("sees_post", SCROLLING, EVALUATING, action=notes_what_it_reads)
    chart = Statechart(AgentState, [*arrows, sees], IDLE, timeouts={RESTING: 2})
    ran(small(statechart_chart=named(chart, "reading"), agents_threshold_mean=0.3, **LIVELY), 4)
    told = {}
    for round_, root, engaged, velocity in read:
        told.setdefault((round_, root), set()).add((engaged, velocity))
    assert all(len(values) == 1 for values in told.values())
    assert {next(iter(v))[0] for (round_, _), v in told.items() if round_ == 0} == {0}
    assert max(next(iter(v))[0] for v in told.values()) > 0


def test_a_post_leaves_the_feeds_after_its_window():
    model = small(feed_window=2, feed_size=100, **LIVELY)
    for _ in range(5):
        model.step()
        p = model.population
        shown = np.concatenate([p.feed[i, : p.n_feed[i]] for i in range(30)])
        assert (model.posts.round[shown] > model.round - 2).all()


# timeouts


def test_an_agent_times_out_after_its_own_ticks_and_rests_for_two():
    model = small(agents_post_rate=0.0, ticks_per_round=12, agents_activity=1.0, agents_activity_sigma=0.0)
    model.agent(0).timeout_threshold = 3
    ran(model, 1)
    told = [(row["tick"], row["to_state"]) for row in moves(model, agent=0)]
    assert told == [
        (0, "scrolling"),
        (3, "resting"),
        (5, "scrolling"),
        (8, "resting"),
        (10, "scrolling"),
        (13, "idle"),
    ]
    others = [(row["tick"], row["to_state"]) for row in moves(model, agent=1)]
    assert others == [(0, "scrolling"), (5, "resting"), (7, "scrolling"), (12, "resting"), (13, "idle")]


def test_a_timeout_comes_before_any_other_trigger():
    model = ran(small(statechart_default_timeout_ticks=1, **LIVELY))
    assert {row["trigger"] for row in moves(model)} == {"feed_ready", "timeout", "round_ends"}
    assert model.totals["impressions"] == 0


def test_a_draft_that_times_out_is_dropped():
    chart = Statechart(
        AgentState,
        [t for t in social_chart.transitions if t.trigger != "compose_done"]
        + [
            Transition("compose_done", COMPOSING, s, guard=F.agent.ticks_in_state > 99)
            for s in AgentState
            if "eng" in s
        ],
        IDLE,
        timeouts={RESTING: 2},
    )
    model = ran(small(statechart_chart=named(chart, "stuck"), agents_threshold_mean=0.3, **LIVELY))
    assert {row["trigger"] for row in moves(model, from_state="composing")} == {"timeout", "round_ends"}
    assert model.totals["likes"] + model.totals["replies"] + model.totals["reshares"] == 0
    assert {agent.pending_action for agent in model.agents} == {None}
    assert {agent.current_post for agent in model.agents} == {None}


# the same again


def test_the_same_seed_gives_the_same_columns():
    params = {"agents_band": 0.4, "feed_mode": "x_algo", "seed": 5}
    assert differing(ran(small(**params)), ran(small(**params))) == []


def test_another_seed_gives_another_run():
    one, other = ran(small(seed=5)), ran(small(seed=6))
    assert {"names", "interests", "posts.author", "history", "network"} <= set(differing(one, other))


def test_whether_a_recorder_listens_does_not_matter():
    listened, alone = ran(small()), ran(small(recorder=None))
    mine, its = facts(listened), {**facts_without_records(alone)}
    assert {name for name in its if mine[name] != its[name]} == set()
    assert alone.events.moves == []


def facts_without_records(model):
    class Nobody:
        tables = None

    model.recorder = Nobody()
    told = facts(model)
    del told["records"]
    return told


def test_agents_looked_at_between_rounds_change_nothing():
    looked, plain = small(), small()
    for _ in range(3):
        looked.step()
        plain.step()
        for agent in looked.agents:
            assert agent.feed == agent.feed
            agent.to_dict(), agent.next_post, agent.current_post, agent.interests
    assert differing(looked, plain) == []


# charts of users' own


def test_a_chart_is_named_as_module_and_object():
    viral = SocialModel(agents_n=30, statechart_chart="prism_mesa.social.behavior:viral_chart")
    assert viral.chart.name == "viral"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("nonsense", "write it as module:object"),
        ("no.such.module:chart", "cannot import 'no.such.module'"),
        (
            "prism_mesa.social.behavior:RESTING",
            r"'RESTING' is no Statechart \(charts in .*: social_chart, viral_chart\)",
        ),
        ("math:chart", r"'chart' is no Statechart \(charts in math: none\)"),
    ],
)
def test_a_chart_that_is_not_there_is_a_config_error(where, message):
    with pytest.raises(ConfigError, match=rf"statechart\.chart: {where}: {message}"):
        small(statechart_chart=where)


def test_a_chart_with_an_unreachable_state_is_refused():
    chart = Statechart([IDLE, SCROLLING, RESTING], [Transition("feed_ready", IDLE, SCROLLING)], IDLE, name="island")
    with pytest.raises(ChartError, match="chart island: resting: no path of transitions leads to this state"):
        small(statechart_chart=named(chart, "island"))


def test_a_guard_that_raises_counts_as_false_and_is_counted_unless_strict():
    def breaks(agent, post):
        raise ZeroDivisionError("no ground")

    arrows = [*social_chart.transitions, Transition("feed_ready", IDLE, RESTING, guard=breaks)]
    where = named(Statechart(AgentState, arrows, IDLE), "breaking")
    model = small(statechart_chart=where, **LIVELY)
    with pytest.warns(PrismWarning, match=r"breaks\(\)\] raised each of the 30 times"):
        ran(model, 2)
    assert {row["to_state"] for row in moves(model, trigger="feed_ready")} == {"scrolling"}
    assert list(model.chart.guard_errors.values()) == [60]
    assert model.row_by_row_guards == {"idle --feed_ready--> resting [breaks()]"}
    with pytest.raises(ZeroDivisionError, match="no ground"):
        ran(small(statechart_chart=where, statechart_strict=True, **LIVELY), 1)


def test_a_chart_may_evaluate_without_a_post_at_hand():
    arrows = [t for t in social_chart.transitions if t.trigger != "feed_ready"]
    chart = Statechart(AgentState, [*arrows, Transition("feed_ready", IDLE, EVALUATING)], IDLE, timeouts={RESTING: 2})
    model = small(statechart_chart=named(chart, "hasty"), **LIVELY)
    with pytest.warns(PrismWarning, match=r"raised 30 times \(AttributeError: 'NoneType'"):
        ran(model, 1)
    first = moves(model, tick=1)
    assert {row["trigger"] for row in first} == {"decides"}
    assert {row["post"] for row in first} == {-1}


def test_two_models_do_not_share_the_count_of_guard_errors():
    one, other = small(), small()
    one.chart.guard_errors["x"] += 1
    assert other.chart.guard_errors == social_chart.guard_errors == {}


# the oracle, played by a function


def says(state):
    return f'{{"next_state": "{state.value}"}}'


def test_a_function_can_be_the_llm():
    prompts = []

    def keen(prompt):
        prompts.append(prompt)
        return says(COMPOSING)

    with Reasoner(keen) as reasoner:
        model = ran(small(reasoner=reasoner, agents_band=0.4, **LIVELY))
    asked = [row for row in moves(model, trigger="decides") if row["open"]]
    assert {row["to_state"] for row in asked} == {"composing"}
    assert model.totals["open"] == len(asked) == sum(model.sources.values())
    assert model.sources["llm"] == len(prompts) == len(set(prompts))
    names = [agent.name for agent in model.agents]
    assert all(any(name in prompt for name in names) for prompt in prompts)


def test_an_llm_that_always_declines_leaves_only_what_the_chart_settles():
    with Reasoner(lambda prompt: says(SCROLLING)) as reasoner:
        model = ran(
            small(reasoner=reasoner, agents_band=1.0, agents_threshold_mean=0.5, agents_threshold_sd=0.0, **LIVELY)
        )
    assert model.totals["likes"] == model.totals["replies"] == model.totals["reshares"] == 0
    assert {(row["open"], row["to_state"]) for row in moves(model, trigger="decides")} == {(True, "scrolling")}


@pytest.mark.parametrize(("fallback", "goes_to"), [("first", {"composing"}), ("stay", set())])
def test_an_answer_that_never_comes_is_a_fallback_and_counted(fallback, goes_to, caplog):
    def silent(prompt):
        raise TimeoutError("nobody there")

    with Reasoner(silent, fallback=fallback, backoff_s=0) as reasoner:
        model = ran(small(reasoner=reasoner, agents_band=0.4, **LIVELY), 2)
    assert model.totals["fallback"] == model.totals["open"] == model.sources["fallback"] > 0
    assert {row["to_state"] for row in moves(model, trigger="decides") if row["open"]} == goes_to
    assert rounds_of(model)["fallback"].sum() == model.totals["fallback"]
    assert "fallback" in caplog.text


def test_who_stays_is_asked_again_until_it_times_out():
    def silent(prompt):
        raise TimeoutError("nobody there")

    with Reasoner(silent, fallback="stay", backoff_s=0) as reasoner:
        model = small(reasoner=reasoner)
        agent = model.agent(0)
        agent.state, agent.engagement_threshold, agent.timeout_threshold = EVALUATING, 0.5, 3
        told = []
        for _ in range(3):
            agent.step()
            told.append((agent.state, agent.ticks_in_state, model.counts["open"]))
    assert told == [(EVALUATING, 1, 1), (EVALUATING, 2, 2), (SCROLLING, 0, 2)]


# Mesa's tools


def test_mesas_run_for_runs_rounds():
    model = small()
    model.run_for(4)
    assert model.round == 3
    assert len(rounds_of(model)) == 4


def test_a_model_stops_running_after_its_rounds():
    model = small(rounds=3)
    model.run_model()
    assert (model.round, model.running) == (2, False)


def test_mesas_batch_run_takes_plain_keywords_and_seeds():
    rows = mesa.batch_run(
        SocialModel,
        {"agents_n": 30, "network_mean_degree": 6, "feed_mode": ["random", "chronological"], "rounds": 2},
        rng=[1, 2],
        number_processes=1,
        display_progress=False,
        data_collection_period=1,
    )
    table = pd.DataFrame(rows)
    last = table.groupby("RunId").last()
    assert len(last) == 4
    assert set(last["feed_mode"]) == {"random", "chronological"}
    for (mode, rng), row in last.set_index(["feed_mode", "rng"]).iterrows():
        alone = ran(SocialModel(agents_n=30, network_mean_degree=6, feed_mode=mode, rounds=2, seed=rng), 2)
        assert {name: row[name] for name in alone.round_row} == alone.round_row
    assert last["impressions"].nunique() > 1


def test_a_mesa_scenario_holds_parameters():
    class Quiet(Scenario):
        agents_n: int = 25
        agents_post_rate: float = 0.0
        network_mean_degree: float = 4.0

    model = SocialModel(scenario=Quiet(rng=7))
    assert (len(model.agents), model.params.agents.post_rate, model.params.seed) == (25, 0.0, 7)


def test_the_datacollectors_frames_have_a_row_a_round_and_a_column_a_measure():
    frame = rounds_of(ran(small()))
    assert len(frame) == 3
    assert {"online", "posts", "impressions", "likes", "replies", "reshares", "open", "fallback"} <= set(frame.columns)
    assert {f"share_{state.value}" for state in AgentState} <= set(frame.columns)


def test_queries_answer_from_the_model_and_from_its_agents_alike():
    model = small()
    for row, state in enumerate([SCROLLING, SCROLLING, RESTING]):
        model.agent(row).state = state
    for asked in (model, model.agents, list(model.agents)):
        assert agents_in_state(SCROLLING, asked) == 2
        assert agents_in_state("resting", asked) == 1
        assert state_distribution(asked) == {**dict.fromkeys(AgentState, 0), SCROLLING: 2, RESTING: 1, IDLE: 27}


def test_mesas_agent_sets_work_on_the_agents():
    model = small()
    assert model.agent_types == [SocialAgent]
    assert len(model.agents.select(lambda agent: agent.row < 5)) == 5
    assert sorted(model.agents.get("unique_id")) == list(range(1, 31))
    assert set(model.agents_by_type) == {SocialAgent}
    assert len(model.agents_by_type[SocialAgent]) == 30
    model.agents.set("activity", 0.0)
    assert model.population.activity.tolist() == [0.0] * 30


def test_mesas_remove_all_agents_empties_the_platform():
    model = ran(small(), 1)
    model.remove_all_agents()
    ran(model, 1)
    assert len(model.agents) == 0
    assert sum(model.state_counts().values()) == 0
    assert model.round_row["online"] == 0


def test_an_agent_of_mesas_own_is_stepped_beside_the_columns():
    class Clockwork(mesa.Agent):
        ticks = 0

        def step(self):
            self.ticks += 1

    model = small(ticks_per_round=4)
    clock = Clockwork(model)
    ran(model, 2)
    assert clock.ticks == 8
    assert agents_in_state(IDLE, model) == 30


# parameters


def test_keywords_write_over_a_config():
    config = SocialParams(seed=3, agents={"n": 40, "band": 0.3}, network={"mean_degree": 5})
    model = SocialModel(config, agents_n=35, rng=9)
    assert (model.params.agents.n, model.params.agents.band, model.params.network.mean_degree) == (35, 0.3, 5)
    assert model.params.seed == 9


@pytest.mark.parametrize("rng", [11, "11", np.int64(11)])
def test_mesas_rng_is_the_seed(rng):
    assert small(rng=rng).params.seed == 11


def test_a_generator_as_rng_draws_a_seed():
    one, other = (small(rng=np.random.default_rng(4)).params.seed for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"agent_n": 3}, r"no parameter 'agent_n'\. Did you mean 'agents_n'\?"),
        ({"agents_n": 1}, r"agents\.n: .*greater than or equal to 2"),
        ({"agents_band": -0.1}, r"agents\.band"),
        ({"agents_threshold_mean": 1.5}, r"agents\.threshold_mean"),
        ({"agents_post_rate": -1}, r"agents\.post_rate"),
        ({"feed_mode": "best"}, r"feed\.mode: .*'best'"),
        ({"rounds": "many"}, r"rounds: .*'many'"),
        ({"seed": -1}, r"seed: .*-1"),
        ({"rng": "chance"}, r"rng: 'chance' is no whole number"),
        ({"agents_like": 0, "agents_reply": 0, "agents_reshare": 0}, r"like, reply and reshare are all 0"),
        ({"scheduler": "threads"}, r"scheduler: .*'threads'"),
    ],
)
def test_a_parameter_that_is_unknown_or_out_of_range_is_a_config_error(params, message):
    with pytest.raises(ConfigError, match=message):
        small(**params)
