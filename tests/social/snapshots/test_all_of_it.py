"""Worlds with all of it on, attributes to tools: the same however they are run, stopped, taken up or branched."""

import copy
from functools import partial
from random import Random

import pytest
from continued import going_on, tell_apart
from minds import Mind, asked, busy, thought, whim
from random_worlds import LIVE, Echo, Fan, Gossip
from worlds import Memory, differing, plain, ran

from prism_mesa.params import nest_keys
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round import run_round as round_module
from prism_mesa.social.round.feeds import rank_feeds
from prism_mesa.statechart import F

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning"),
]
near_in_leaning = F.post.relevance + F.post.author_leaning * F.agent.leaning - 0.05 * F.post.age
ROUNDS = 4
ON = {
    **{f"network.rates.{name.removeprefix('network_rates_')}": rate for name, rate in LIVE.items() if "rates" in name},
    "network.dynamics": "live",
    "network.mean_degree": 6,
    "network.close_ties": 2,
    "agents.activity": 0.9,
    "agents.activity_sigma": 0.3,
    "agents.band": 0.1,
    "agents.threshold_mean": 0.5,
    "agents.homophily.by": "leaning",
    "content": "llm",
    "agents.rhythm": 0.5,
    "agents.time_zone": "zone",
    "feed.mode": f"{__name__}:near_in_leaning",
    "feed.repeats": True,
    "opinions.of": "leaning",
    "opinions.rate": 0.1,
    "posts.seeded.count": 2,
    "rounds": ROUNDS,
    "ticks_per_round": 6,
    "utility.per_source": 0.5,
    "utility.sensitivity": 0.05,
}
BESIDE = {
    "attributes": {
        "leaning": {"of": "agent", "range": [-1, 1]},
        "zone": {"of": "agent", "range": [-5, 9]},
        "slant": {"of": "post", "range": [-1, 1], "inherits": "leaning", "noise": 0.5},
    },
    "interventions": (
        {"at": 1, "set": {"feed.mode": "bridging"}, "agents": "agent.leaning > 0.3"},
        {"at": 2, "until": 3, "set": {"agents.churn.leave": 0.5, "network.rates.follow": 0.9}},
    ),
}


class Shuffled(SocialModel):
    """Calls its agents in another order each time."""

    @property
    def agents(self):
        return super().agents.shuffle(inplace=False)


EVENTS = ("follow", "unfollow", "mute", "block", "unmute", "unblock")


def decides_about_others(prompt):
    """Think of what the busy ones do, or decide about another agent."""
    event = EVENTS[whim(f"does {prompt}", 6)]
    return busy(prompt) if whim(prompt, 3) else thought((event, {"agent": whim(f"whom {prompt}", 14)}))


def world(seed, kind=SocialModel, **way):
    """Return a world whose sizes, rates and scripts are drawn by its seed."""
    drawn = Random(seed)
    churn = {name: drawn.choice([0.15, 0.3, 0.6]) for name in ("waiting", "join", "leave", "back")}
    candidates = {name: drawn.randrange(1, 5) for name in ("two_hops", "trending", "out_of_network", "search")}
    own = {"seed": seed, "agents.n": drawn.randrange(14, 19), "agents.churn": churn, "feed.candidates": candidates}
    candidates["followed"] = drawn.choice([None, 4])
    own |= {"feed.slots": {"trending": 1, "search": 1, "every": 3}, "feed.attribute": "leaning"}
    own |= {"feed.size": drawn.choice([3, 8, 30]), "feed.window": drawn.choice([1, 2, 4])}
    values = nest_keys(plain(ON | own | way)) | BESIDE
    model = kind(values, recorder=Memory(), reasoner=asked(Mind(thinks=decides_about_others)))
    for row in drawn.sample(range(14), 3):
        drawn.choice([Echo, Fan, Gossip])(model, row)
    return model


@pytest.mark.parametrize("seed", [1, 2])
def test_they_are_the_same_for_any_threads_and_order_and_go_on(seed):
    whole, other = going_on(partial(world, seed), ROUNDS, at=2)
    assert tell_apart(whole, other) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_module, "rank_feeds", partial(rank_feeds, block=5))
        assert differing(whole, ran(world(seed, threads=2), ROUNDS)) == []
    assert differing(whole, ran(world(seed, Shuffled, scheduler="mesa"), ROUNDS)) == []


def test_a_copy_goes_on_like_the_original_and_all_of_it_happens():
    one = ran(world(21), 2)
    branch = copy.deepcopy(one)
    branch.recorder = copy.deepcopy(one.recorder)
    assert differing(ran(one, 2), ran(branch, 2)) == []
    tables = one.recorder.tables
    assert {row["event"] for row in tables["churn"]} == {"join", "leave", "back"}
    assert {row["event"] for row in tables["follows"]} >= {"follow", "unfollow", "mute", "block", "report"}
    assert {row["why"] for row in tables["follows"]} >= {"script", "tool", "engaged", "ignored", "follow_back", "triad"}
    assert {row["event"] for row in tables["thoughts"]} >= {"tool", "thought"}
    assert tables["influences"]
    assert one.totals["impressions"] > 0
