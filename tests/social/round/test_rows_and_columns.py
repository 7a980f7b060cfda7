"""One row equals all rows: `SocialAgent.step()` over all agents does what the columns do, however these are cut."""

import asyncio
from functools import partial
from hashlib import blake2b

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_charts import charts, fails, likes_unasked, skips_one
from random_worlds import Moderator, Recruiter, decider, happenings, populations, with_chart
from worlds import differing, named, ran, small

from prism_mesa.reasoner import Reasoner
from prism_mesa.social import start
from prism_mesa.social.behavior import build_chart, social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round import run_round as round_module
from prism_mesa.social.round import walk as walking
from prism_mesa.social.round.feeds import rank_feeds
from prism_mesa.statechart import AgentState, F, Statechart, Transition

pytestmark = [
    pytest.mark.filterwarnings("ignore:SocialModel. the guard of:prism_mesa.errors.PrismWarning"),
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning"),
]


def whim(prompt):
    """Answer by what the question says: sometimes well, sometimes with nothing to be understood."""
    whim = blake2b(prompt.encode(), digest_size=1).digest()[0]
    if whim % 5 == 0:
        raise TimeoutError("no answer")
    options = [state.value for state in AgentState if f"{state.value}" in prompt.lower()]
    return f'{{"next_state": "{options[whim % len(options)]}"}}'


def by_rows_and_by_columns(rounds=3, reasoner=None, **params):
    def model(scheduler):
        asked = {} if reasoner is None else {"reasoner": reasoner()}
        return ran(small(scheduler=scheduler, **asked, **params), rounds)

    return model("mesa"), model("columns")


class Shuffled(SocialModel):
    """Calls its agents in another order each time."""

    @property
    def agents(self):
        return super().agents.shuffle(inplace=False)


class TickByTick(SocialModel):
    """Does one tick after the other, as if there were something that could look at other agents."""

    def __init__(self, *args, **params):
        super().__init__(*args, **params)
        for tables in self.platform.tables_by_kind:
            tables.is_complete = False


WAYS = {
    "one row after the other": {"scheduler": "mesa"},
    "rows in any order": {"kind": Shuffled, "scheduler": "mesa"},
    "two threads and small blocks": {"threads": 2},
    "tick by tick": {"kind": TickByTick},
}


def lived(happens, block=None, rounds=3, share=None, **params):
    """Return a world after some rounds, with what happens to its agents before each of them.

    An LLM decides a `share` of what is left open, and a distilled model the rest; None: the rule decides all of it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "check_chart", lambda *given: ())  # it takes most of the time
        if block is not None:
            patch.setattr(walking, "MAX_EVENTS", 20 * block)
            patch.setattr(walking, "MIN_SHARED_AGENTS", block)
            patch.setattr(round_module, "rank_feeds", partial(rank_feeds, block=block))
        asked = {} if share is None else {"reasoner": decider(params["chart"], share)}
        model = small(**params, **asked)
        for round_ in range(rounds):
            for happening in happens:
                if happening.round == round_:
                    happening.to(model)
            model.step()
        model.close()
    return model


def assert_equal_in_other_ways(ways, block, happens, params):
    plain = lived(happens, **params)
    for way in ways:
        other = lived(happens, block if "threads" in WAYS[way] else None, **params, **WAYS[way])
        assert differing(other, plain) == [], way


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 7), populations, charts(), happenings(scripts=()))
def test_a_world_is_the_same_in_every_way_of_running_it_whatever_the_chart(block, params, chart, happens):
    assert_equal_in_other_ways(WAYS, block, happens, with_chart(params, chart))


def its_order_counts(way, happens):
    """Return whether scripts are in each other's way: whoever is brought in first has the next row.

    Who was thrown out before its turn can bring in nobody.
    """
    kinds = [happening.what for happening in happens if happening.what in (Moderator, Recruiter)]
    if "threads" in WAYS[way] or Recruiter not in kinds:
        return False
    return Moderator in kinds or (WAYS[way].get("scheduler") == "mesa" and len(kinds) > 1)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 7), populations, charts(), happenings())
def test_so_it_is_with_agents_that_have_scripts_of_their_own(block, params, chart, happens):
    # scripts make it go tick by tick anyway
    ways = [way for way in WAYS if way != "tick by tick" and not its_order_counts(way, happens)]
    assert_equal_in_other_ways(ways, block, happens, with_chart(params, chart))


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 7), populations, charts(), happenings(scripts=()), st.sampled_from([0, 0.3, 0.7, 1]))
def test_so_it_is_whoever_decides_what_is_left_open(block, params, chart, happens, share):
    ways = [way for way in WAYS if way != "rows in any order"]
    assert_equal_in_other_ways(ways, block, happens, with_chart(params, chart) | {"share": share})


@pytest.mark.parametrize("fallback", ["first", "rule", "stay"])
def test_they_are_equal_when_an_llm_is_asked_and_sometimes_fails(fallback, caplog):
    rows, columns = by_rows_and_by_columns(
        agents_n=20,
        agents_band=0.5,
        agents_activity=1.0,
        reasoner_asks_action=True,
        reasoner=lambda: Reasoner(whim, fallback=fallback, backoff_s=0),
    )
    assert columns.totals["fallback"] > 0
    assert columns.totals["open"] > columns.totals["fallback"]
    assert differing(rows, columns) == []
    for model in (rows, columns):
        model.reasoner.close()


def open_everywhere(*more):
    """Return a chart that asks when a round opens and closes, and in two states in between."""
    own = [
        Transition("feed_ready", AgentState.IDLE, AgentState.RESTING),
        Transition("round_ends", AgentState.SCROLLING, AgentState.RESTING),
        *more,
    ]
    kept = build_chart(asks_action=True).transitions
    return Statechart(AgentState, [*kept, *own], AgentState.IDLE, timeouts={AgentState.RESTING: 2}, name="open")


OPEN = {
    "walks in one go": open_everywhere(),
    "asks Python": open_everywhere(Transition("ignores", AgentState.EVALUATING, AgentState.IDLE, guard=fails)),
    "acts": open_everywhere(
        Transition("decides", AgentState.EVALUATING, AgentState.RESTING, F.agent.n_unread > 2, likes_unasked)
    ),
}


@pytest.mark.parametrize("kind", OPEN)
def test_they_are_equal_in_whatever_order_the_answers_to_many_ticks_arrive(kind, caplog):
    def reasoner(seed):
        async def llm(prompt):
            await asyncio.sleep(blake2b(f"{seed} {prompt}".encode(), digest_size=1).digest()[0] / 255 * 0.01)
            came.append(prompt)
            return whim(prompt)

        return Reasoner(llm, max_concurrency=16, attempts=1)

    def model(seed, **way):
        came.clear()
        found = ran(small(reasoner=reasoner(seed), chart=OPEN[kind], **params, **way), 2)
        found.reasoner.close()
        return found, list(came)

    came = []
    params = {"agents_n": 12, "agents_band": 0.5, "agents_activity": 1.0, "ticks_per_round": 8}
    (first, one_order), (second, other_order) = model(1), model(2)
    rows, _ = model(3, scheduler="mesa")
    assert one_order != other_order
    assert differing(first, second) == differing(first, rows) == []
    opens = {row["tick"] for row in first.recorder.tables["transitions"] if row["open"]}
    assert len(opens) > 5
    assert opens >= {0, 9}


@pytest.mark.slow
def test_the_order_in_which_agents_step_does_not_matter():
    chart = Statechart(
        AgentState,
        [*social_chart.transitions, Transition("decides", "evaluating", "resting", fails, likes_unasked)],
        AgentState.IDLE,
        timeouts={AgentState.RESTING: 2},
    )
    params = {"agents_band": 0.4, "agents_activity": 0.9, "statechart_chart": named(chart, "shuffled")}
    shuffled = ran(small(Shuffled, scheduler="mesa", **params), 4)
    in_order, columns = by_rows_and_by_columns(4, **params)
    assert differing(shuffled, in_order) == differing(shuffled, columns) == []


@pytest.mark.parametrize("trigger", ["sees_post", "ignores", "decides"])
def test_the_history_names_the_post_that_was_decided_about_also_where_an_action_reads_the_next(trigger):
    def acting(transition):
        action = skips_one if transition.trigger == trigger else None
        return Transition(transition.trigger, transition.source, transition.target, transition.guard, action)

    chart = Statechart(AgentState, [acting(transition) for transition in social_chart.transitions], AgentState.IDLE)
    rows, columns = by_rows_and_by_columns(chart=chart, agents_activity=1.0, agents_post_rate=0.6)
    assert differing(rows, columns) == []
