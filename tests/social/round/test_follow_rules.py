"""Follows that begin and end are those of `plain_follows` on random worlds, with scripts that have their say."""

from collections import Counter

import pytest
from engagement_charts import ALL_ONLINE, LIKING, always
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_follows import PlainFollows
from random_worlds import populations
from worlds import Memory, ran, small

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.state.relations import split_keys

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*network.rates.* no effect:prism_mesa.errors.NotedWarning"),
]
METHODS = ("follow", "unfollow", "mute", "unmute", "block", "unblock", "report")
_chance = st.sampled_from([0.0, 0.02, 0.2, 1.0])
rates = st.fixed_dictionaries(
    {f"network_rates_{name}": _chance for name in ("follow", "follow_back", "triad", "unfollow", "reciprocal")}
    | {f"network_rates_{name}": st.sampled_from([0.0, 0.01, 0.1]) for name in ("mute", "block", "report")}
    | {"network_rates_engaged": st.sampled_from([1.0, 0.0, 20.0])}
)
_some = st.one_of(st.integers(0, 1), st.integers(0, 60))  # so that some pairs meet again
says = st.lists(st.tuples(st.integers(-1, 3), _some, st.sampled_from(METHODS), _some), max_size=12)


class Outspoken(SocialAgent):
    """Does what every agent does, and in the second tick what it is told to decide."""

    def step(self):
        super().step()
        for say in self.model.says if self.model.tick == 2 else ():
            if say[:2] == (self.model.round, self.row):
                decide(self.model, self.row, *say[2:])


def decide(model, row, method, other):
    """Let an agent decide, and hold what comes of it against the plain rules."""
    n, plain = len(model.population), model.plain
    other = (row + 1 + other % (n - 1)) % n
    if method == "report":
        others = [post for post in range(len(model.posts)) if model.posts.author[post] != row]
        if not others:
            return
        post = others[other % len(others)]
        other, root = int(model.posts.author[post]), int(model.posts.root[post])
        if not gone(model, row, other):
            assert model.agent(row).report(model.post(post, row)) == plain.note(
                row, other, method, "script", post, root
            )
    elif not gone(model, row, other):
        expected = plain.note(row, other, method, "script")
        if expected is None:
            with pytest.raises(AgentError, match="one of the two has blocked the other"):
                model.agent(row).follow(other)
        else:
            assert getattr(model.agent(row), method)(other if method != "mute" else model.agent(other)) == expected


def gone(model, *rows):
    return any(row in model.leaving or not model.population.present[row] for row in rows)


class Watching(Memory):
    """Keeps, beside the rows, the network of the round."""

    model = network = None

    def write(self, table, columns):
        super().write(table, columns)
        if table == "impressions":
            self.network = self.model.network

    def pairs(self, table, first):
        return [(row["agent"], row["post"]) for row in self.tables[table][first:]]


def live(says, leaves, **params):
    """Run a world, and hold what it decides in each round against the plain rules; return it and the rows expected."""
    model = small(**{"network_dynamics": "live", "recorder": Watching()} | params)
    n, recorder = len(model.population), model.recorder
    recorder.model, model.plain = model, PlainFollows(model)
    model.says = [(round_, row % n, *said) for round_, row, *said in says]
    for row in {row for round_, row, *_ in model.says if round_ % 2}:
        Outspoken(model, row)
    expected, done = [], (0, 0)
    for round_ in range(4):
        for said_in, row, *said in model.says:
            if said_in == round_ - 1 and not gone(model, row) and type(model.agent(row)) is SocialAgent:
                decide(model, row, *said)
        if round_ == leaves[0]:
            model.agent(leaves[1] % n).remove()
        expected += a_round(model, model.plain, *done)
        done = tuple(len(recorder.tables[table]) for table in ("impressions", "engagements"))
    return model, expected


def a_round(model, plain, n_read, n_engaged):
    """Run a round, and return the rows of `follows` that the plain rules expect of it."""
    rows, recorder = [], model.recorder
    if plain.noted:
        rows += plain.commit(
            [not gone(model, row) for row in range(len(model.population))], (), model.posts.root.tolist(), model.round
        )
        plain.new |= plain.began
    followed = set(plain.follows)
    model.step()
    assert edges(recorder.network) == followed
    read, engaged = recorder.pairs("impressions", n_read), recorder.pairs("engagements", n_engaged)
    ruled = plain.ruled(model, read, engaged, recorder.network)
    rows += plain.commit(model.population.present, ruled, model.posts.root.tolist(), model.round)
    plain.new = plain.began
    assert_alike(model, plain)
    return rows


def edges(network):
    followed, follower = (column.tolist() for column in network.edges())
    return set(zip(follower, followed, strict=True))


def assert_alike(model, plain):
    network, relations = model.network, model.relations
    assert edges(network) == plain.follows
    assert all((row[1:] > row[:-1]).all() for row in map(network.followees, range(network.n_agents)))
    for keys, known in ((relations.muted, plain.muted), (relations.blocked, plain.blocked)):
        assert list(zip(*(column.tolist() for column in split_keys(keys)), strict=True)) == sorted(known)
    close = {(a, b) for a in range(network.n_agents) for b in close_ties(network, a)}
    assert close <= plain.follows


def close_ties(network, agent):
    return network.close_indices[network.close_indptr[agent] : network.close_indptr[agent + 1]].tolist()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(populations, rates, says, st.tuples(st.integers(0, 3), st.integers(0, 60)))
def test_follows_are_those_of_the_plain_rules(params, rates, says, leaves):
    own = {key: value for key, value in (params | rates).items() if not key.startswith("records")}
    own["utility_per_source"] = own["utility_counts"] = 0.0  # plain rules ask for utility after the round
    own["interventions"] = [act for act in own.get("interventions", ()) if not {"hide", "suspend"} & {*act}]
    model, expected = live(says, leaves, **own)
    rows = [tuple(row.values()) for row in model.recorder.tables["follows"]]
    assert rows == expected
    assert model.relations.counts == Counter(row[3] for row in rows)


TAKEN_BACK = [
    (0, 0, "mute", 0),
    (1, 0, "unmute", 0),
    (0, 0, "block", 1),
    (0, 2, "block", 27),  # agent 0, who blocks it as well
    (1, 0, "unblock", 1),
    (2, 0, "follow", 1),  # refused: who was blocked blocks as well
    (2, 2, "unblock", 27),
    (3, 0, "mute", 2),
    (3, 0, "unmute", 2),  # in one round, so neither
    (3, 0, "unblock", 5),  # of whom nothing is blocked
    (3, 0, "follow", 1),  # which holds, now that no block does
]


def test_mutes_and_blocks_that_are_taken_back_are_those_of_the_plain_rules():
    model, expected = live(TAKEN_BACK, (9, 0), network_dynamics="fixed")
    rows = [tuple(row.values()) for row in model.recorder.tables["follows"]]
    assert rows == expected
    assert [row[:4] for row in rows if row[5] == "script"] == [
        *((0, 0, 1, "mute"), (0, 0, 2, "block"), (0, 2, 0, "block")),
        *((1, 0, 1, "unmute"), (1, 0, 2, "unblock"), (2, 2, 0, "unblock"), (3, 0, 2, "follow")),
    ]
    assert not len(model.relations.hidden)


def test_an_agent_that_engages_with_a_post_does_not_unfollow_mute_or_block_its_author():
    rates = {f"network_rates_{name}": 1.0 for name in ("unfollow", "mute", "block", "report")}
    rates |= {f"network_rates_{name}": 0.0 for name in ("follow", "follow_back", "triad")}
    dull = ALL_ONLINE | rates | {"network_dynamics": "live", "agents_threshold_mean": 0.9, "agents_band": 0.0}
    engaged, decided = {}, {}
    for name, chart in (("likes all", always(LIKING)), ("likes some", build_chart())):
        tables = ran(small(**dull, chart=chart), 3).recorder.tables
        engaged[name] = {(row["round"], row["agent"], row["post"]) for row in tables.get("engagements", [])}
        decided[name] = {(row["round"], row["agent"], row["post"]) for row in tables.get("follows", [])}
        assert not engaged[name] & decided[name]
    assert len(engaged["likes all"]) > 30
    assert not decided["likes all"]
    assert len(decided["likes some"]) > 30  # of the same posts, ignored


def test_followees_of_followees_who_are_unlike_are_followed_less():
    own = {"network_rates_triad": 1.0, "agents_n": 60, **ALL_ONLINE}
    own |= {"attributes": {"party": {"of": "agent", "values": ["left", "right"]}}, "agents_homophily_by": "party"}
    model, expected = live([], (9, 0), **own, agents_homophily_following=5.0)
    rows = [tuple(row.values()) for row in model.recorder.tables["follows"]]
    assert rows == expected
    party = model.population.attributes[:, 0]
    alike = [party[row[1]] == party[row[2]] for row in rows if row[5] == "triad"]
    assert len(alike) > 20
    assert sum(alike) > 0.9 * len(alike)
