"""A model that takes over from a snapshot cannot be told from one that was never stopped."""

import pytest
from continued import as_bytes, from_bytes, going_on, tell_apart
from lively_worlds import LIVELY
from minds import Mind, asked, busy, whim
from random_worlds import LIVE
from worlds import PLAIN_FILE, Memory, ran, small

from prism_mesa import SocialModel, Statechart, load_config
from prism_mesa.social.behavior import social_chart


def default(**params):
    return SocialModel(agents_n=60, recorder=Memory(), **params)


def calibrated():
    config = load_config(
        PLAIN_FILE.with_name("calibrated.yaml"),
        ["reasoner.kind=rule", "agents.n=80", "agents.activity=0.3", "network.mean_degree=20"],
    )
    return SocialModel(config, recorder=Memory())


def staying_chart():
    """Return a chart by which agents stay, as a round ends, in the middle of what they do."""
    transitions = [transition for transition in social_chart.transitions if transition.trigger != "round_ends"]
    return Statechart(social_chart.states, transitions, social_chart.initial, timeouts=social_chart.timeouts)


ATTRIBUTES = {
    "leaning": {"of": "agent", "range": [-1, 1]},
    "party": {"of": "agent", "values": ["left", "right", "none"]},
    "veracity": {"of": "post", "values": [True, False]},
    "slant": {"of": "post", "range": [-1, 1], "inherits": "leaning", "noise": 0.5},
}
WORLDS = {
    "default": default,
    "plain": small,
    "calibrated": calibrated,
    "staying": lambda: small(**LIVELY, chart=staying_chart(), ticks_per_round=7),
    "lively": lambda: small(**LIVELY),
    "by Mesa": lambda: small(scheduler="mesa"),
    "no history": lambda: small(statechart_max_history_depth=0),
    "templates": lambda: small(**LIVELY, content="template"),
    "x_algo": lambda: default(feed_mode="x_algo", posts_seeded_count=3),
    "bridging": lambda: default(
        **LIVELY, attributes=ATTRIBUTES, feed_mode="bridging", feed_attribute="leaning", feed_slots_trending=2
    ),
    "other groups": lambda: default(
        **LIVELY,
        attributes=ATTRIBUTES,
        feed_mode="bridging",
        feed_attribute="leaning",
        interventions=[{"at": 1, "set": {"feed.attribute": "party"}}],
    ),
    "live": lambda: small(**LIVELY, **LIVE),
    "assigned": lambda: small(
        **LIVELY, interventions=[{"name": "some", "at": 1, "set": {"feed.mode": "random"}, "share": 0.5}]
    ),
    "acts": lambda: default(
        **LIVELY,
        attributes=ATTRIBUTES,
        interventions=[
            {"at": 0, "suspend": {"accounts": "agent.leaning > 0.8", "posts": "remove"}, "until": 4},
            {"name": "gone", "at": 1, "remove": {"posts": "post.slant > 0.5", "coverage": 0.7, "delay": {"median": 2}}},
            {
                "name": "note",
                "at": 1,
                "label": {"posts": "post.veracity == False", "effect": {"like": -1}},
                "share": 0.5,
            },
            {"at": 1, "cap": {"reshares": 1}},
            {"at": 2, "like": {"posts": "post.likes == 0", "n": 2}},
        ],
    ),
    "random": lambda: default(feed_mode="random", agents_activity=0.9, ticks_per_round=5),
    "attributes": lambda: default(**LIVELY, attributes=ATTRIBUTES),
    "opinions": lambda: default(**LIVELY, attributes=ATTRIBUTES, opinions_of="leaning", opinions_by="slant"),
    "reacting": lambda: default(
        **LIVELY,
        attributes=ATTRIBUTES,
        utility_counts=0.5,
        utility_appeal_by_attribute="veracity",
        utility_appeal_by_effect={False: 1.5},
        agents_returns_online=50.0,
        agents_returns_session=20.0,
        agents_returns_first=1,
        interventions=[{"name": "blind", "at": 1, "hide": ["likes"], "share": 0.5}],
    ),
    "repeats": lambda: default(
        **LIVELY,
        attributes={"zone": {"of": "agent", "values": [-5, 0, 5.5]}},
        agents_time_zone="zone",
        agents_rhythm=0.5,
        agents_reshare=0.5,
        feed_repeats=True,
        utility_per_source=0.5,
    ),
    "a share is recorded": lambda: small(**LIVELY, records_transitions=0.3, records_impressions=0.5),
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_model_that_was_stopped_goes_on_as_if_it_had_not_been(world):
    whole, other = going_on(WORLDS[world])
    assert whole.totals["posts"] > 0
    assert tell_apart(whole, other) == []


ASKS = LIVELY | {"agents_band": 0.3, "agents_threshold_mean": 0.5}


def often_useless(prompt):
    """Decide, mostly; now and then say nothing that could be used."""
    return '{"next_state": "composing"}' if whim(prompt, 5) else "Hm."


def test_an_llm_that_was_of_use_once_may_be_useless_later():
    wits = []

    def loses_its_wits(prompt):
        wits.append(prompt)
        return '{"next_state": "composing"}' if len(wits) < 10 else "Hm."

    def make():
        return small(**ASKS, reasoner=asked(Mind(decides=loses_its_wits), attempts=1, max_fallback_share=1.0))

    stopped, other = ran(make(), 2), make()
    other.restore(from_bytes(as_bytes(stopped.snapshot())))
    assert len(wits) > 10
    ran(other, 3)
    assert other.reasoner.reasons["unparsable"] > 20
    stopped.close()
    other.close()


LIMITED = {"max_calls": 90, "max_calls_per_round": 25, "max_tokens": 10**6, "max_fallback_share": 1.0}
MINDS = {
    "choices": (ASKS, lambda: asked(Mind(), max_fallback_share=1.0)),
    "useless answers": (ASKS, lambda: asked(Mind(decides=often_useless), attempts=1, max_fallback_share=1.0)),
    "limits": (ASKS, lambda: asked(Mind(), **LIMITED, spend_on="followed")),
    "archetypes": (ASKS, lambda: asked(Mind(), persona="archetype", archetypes=3)),
    "texts": (ASKS | {"content": "llm"}, lambda: asked(Mind(), **LIMITED)),
    "tools and notes": (
        ASKS | {"content": "llm", "deliberation_notes": 3},
        lambda: asked(Mind(thinks=busy), max_fallback_share=1.0),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mind", MINDS)
def test_what_an_llm_has_said_and_cost_is_known_to_the_model_that_goes_on(mind, caplog):
    params, reasoner = MINDS[mind]
    whole, other = going_on(lambda: small(**params, reasoner=reasoner()))
    assert whole.reasoner.counts.total() > 20
    assert tell_apart(whole, other) == []
    whole.close()
    other.close()
