"""Stances move as the plain rules say, on random worlds and with scripts, and as in the models that were published."""

import sys
from math import floor
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_opinions import after_round
from random_worlds import Echo, Fan, Recruiter, populations
from worlds import Memory, differing, ran, small

from prism_mesa.errors import ConfigError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.round import opinions as moving

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.* no effect:prism_mesa.errors.NotedWarning"),
]
LEANING = {"leaning": {"of": "agent", "range": [-1, 1]}}
BOTH = LEANING | {"slant": {"of": "post", "range": [-1, 1], "inherits": "leaning", "noise": 0.3}}
RULES = {"near": "bounded_confidence", "both": "assimilation_repulsion"}


class Wavering(SocialAgent):
    """Does what every agent does, and changes its own mind, and now and then somebody else's."""

    def step(self):
        super().step()
        if self.model.tick == 2:
            self.leaning = (self.row * 7 + self.model.round * 3) % 9 / 4 - 1
            self.model.agent((self.row + 3) % len(self.model.population)).leaning = 0.5


class Watching(Memory):
    """Keeps, beside the rows, what agents held as the round was committed."""

    model = held = None

    def write(self, table, columns):
        super().write(table, columns)
        if table == "impressions":
            self.held = self.model.population.attributes[:, 0].tolist()

    def rows(self, table, now):
        return [(row["tick"], row["agent"], row["post"]) for row in self.tables[table] if row["round"] == now]


def opinions(**own):
    return {f"opinions_{key}": value for key, value in ({"of": "leaning"} | own).items()}


def held(model):
    return model.population.attributes[:, 0].tolist()


def of_rule(name, distance):
    return {"rule": RULES[name], "confidence" if name == "near" else "repulsion": distance}


chances = st.tuples(
    st.sampled_from(["near", "both"]),
    st.sampled_from([0.05, 0.2, 0.5, 1.0]),
    st.sampled_from([0.5, 0.01, 1.0]),
    st.sampled_from(["read", "engaged"]),
    st.sampled_from([None, "slant"]),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(populations, chances, st.lists(st.tuples(st.sampled_from([Wavering, Echo, Fan, Recruiter]), st.integers(0, 60))))
def test_stances_are_those_of_the_plain_rules(params, how, scripts):
    rule, distance, rate, when, by = how
    own = {key: value for key, value in params.items() if not key.startswith("records")}
    own |= {
        "attributes": BOTH | {name: of for name, of in params.get("attributes", {}).items() if name not in BOTH},
        "recorder": Watching(),
        **opinions(rate=rate, when=when, by=by, **of_rule(rule, distance)),
    }
    model = small(**own)
    recorder = model.recorder
    recorder.model = model
    for row, kind in {row % len(model.population): kind for kind, row in scripts}.items():
        kind(model, row)
    for now in range(3):
        model.step()
        posts = list(zip(model.posts.root.tolist(), model.posts.author.tolist(), strict=True))
        read = recorder.rows("impressions" if when == "read" else "engagements", now)
        once = {row[1:]: row for row in read[::-1]}
        stands = model.posts.attributes[:, 0].tolist() if by else None
        rows = [row for row in read if once[row[1:]] is row]
        expected = after_round(recorder.held, rows, posts, rule=rule, rate=rate, distance=distance, stands=stands)
        row = recorder.tables["opinions"][-1]
        moved = sum(a != b for a, b in zip(expected[0], recorder.held, strict=True))
        moves = [tuple(one.values())[1:] for one in recorder.tables["influences"] if one["round"] == now]
        assert (held(model), row["drawn_on"], row["pushed_away"], moves) == expected
        assert (row["round"], row["moved"]) == (now, moved)


def camps(model):
    """Return how many groups there are that hold nearly the same, but for those of less than a twentieth."""
    stances = np.sort(model.population.attributes[:, 0])
    groups = np.split(stances, np.flatnonzero(np.diff(stances) > 0.03) + 1)
    return sum(len(group) > 0.05 * len(stances) for group in groups)


@pytest.mark.parametrize("confidence", [0.4, 0.2, 0.14])
def test_bounded_confidence_leaves_as_many_camps_as_fit_into_the_range(confidence):
    # Deffuant et al. 2000: where all meet all, there are as many as the integer part of 1 / (2 d)
    world = {"agents_n": 300, "network_kind": "erdos_renyi", "network_mean_degree": 30, "agents_activity": 1.0}
    world |= {"agents_activity_sigma": 0.0, "agents_post_rate": 1.0, "feed_mode": "random", "feed_window": 1}
    world |= {"feed_size": 2, "ticks_per_round": 4, "agents_like": 1.0, "agents_reply": 0.0, "agents_reshare": 0.0}
    world |= {"rounds": 50, "recorder": None, "attributes": {"stance": {"of": "agent", "range": [0, 1]}}}
    model = small(**world, rng=1, **opinions(of="stance", rate=0.5, confidence=confidence))
    model.run_model()
    assert camps(model) == floor(1 / (2 * confidence))


def test_repulsion_leaves_two_camps_at_the_ends_where_assimilation_ends_in_one():
    # Flache et al. 2017: where differences beyond a point push away, opinions go to both ends
    world = {
        "agents_activity": 1.0,
        "agents_activity_sigma": 0.0,
        "agents_post_rate": 0.8,
        "rounds": 25,
        "agents_n": 120,
    }
    ends = {}
    for repulsion in (0.5, 1.0):
        model = small(
            **world, attributes=LEANING, **opinions(rule="assimilation_repulsion", rate=0.5, repulsion=repulsion)
        )
        model.run_model()
        ends[repulsion] = np.array(held(model))
    assert (np.abs(ends[0.5]) > 0.99).mean() > 0.9
    assert 0.1 < (ends[0.5] > 0).mean() < 0.9
    assert np.std(ends[1.0]) < 0.05


# -- rules of a user's own ---------------------------------------------------------------------------------


def deffuant(columns):
    gap = columns["read"] - columns["stance"]
    return columns["stance"] + np.where(abs(gap) <= 0.4 * 2, 0.3, 0.0) * gap


def by_relevance(columns):
    assert not columns["agent.leaning"].flags.writeable
    weight = 0.2 * columns["post.relevance"] * columns["post.in_network"]
    return columns["stance"] + weight * (columns["read"] - columns["stance"])


def own_rule(function):
    """Return where `opinions.rule` finds a function of a test."""
    setattr(sys.modules.setdefault("rules_of_tests", ModuleType("rules_of_tests")), function.__name__, function)
    return f"rules_of_tests:{function.__name__}"


@pytest.mark.parametrize("when", ["read", "engaged"])
def test_a_rule_of_ones_own_can_say_what_one_that_comes_with_prism_does(when):
    world = {"agents_activity": 0.9, "agents_post_rate": 0.5, "attributes": LEANING}
    shipped = ran(small(**world, **opinions(rate=0.3, confidence=0.4, when=when)), 4)
    own = ran(small(**world, **opinions(rule=own_rule(deffuant), when=when)), 4)
    assert held(own) == held(shipped) != held(small(**world))
    assert differing(own, shipped) == []


def test_a_rule_of_ones_own_reads_what_feeds_read():
    model = ran(small(agents_activity=0.9, attributes=LEANING, **opinions(rule=own_rule(by_relevance))), 4)
    assert model.totals["drawn_on"] > 20


def too_far(columns):
    return columns["stance"] + 2


def of_all(columns):
    return columns["stance"] - columns["stance"].mean() / 9


def fails(columns):
    return columns["conviction"]


ASKED = iter(range(10**6))


def another(columns):
    return columns["stance"] * (1 - 0.001 * next(ASKED))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (too_far, r"wrong return value: \S+ is not a number in -1\.\.1"),
        (of_all, "returned other values for some rows"),
        (another, "a second call with the same rows returned other"),
        (fails, r"raised KeyError: 'conviction' \(test_moving.py:\d+ in fails\)"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_one_line(function, told):
    model = small(agents_activity=0.9, attributes=LEANING, **opinions(rule=own_rule(function)))
    with pytest.raises(ConfigError, match=f"^opinions.rule: rules_of_tests:{function.__name__}: {told}") as error:
        ran(model, 4)
    assert "\n" not in str(error.value)


# -- settings ----------------------------------------------------------------------------------------------


def test_rates_change_in_a_run_from_their_round_on():
    changes = [{"at": 1, "set": {"opinions.rate": 0.0}}, {"at": 3, "set": {"opinions.rate": 0.9}}]
    model = small(agents_activity=0.9, rounds=5, attributes=LEANING, interventions=changes, **opinions(rate=0.3))
    ran(model, 5)
    moved = [row["moved"] > 0 for row in model.recorder.tables["opinions"]]
    assert moved == [False, True, False, False, True, True]


def test_what_moved_an_agent_leads_from_what_it_held_to_what_it_holds():
    world = {"agents_activity": 0.9, "attributes": LEANING, "records_impressions": 0.5, **opinions(rate=0.3)}
    model = small(**world)
    first, read = held(model), model.recorded["impressions"]
    stances = list(first)
    ran(model, 4)
    for row in model.recorder.tables["influences"]:
        assert read[row["agent"]]
        assert stances[row["agent"]] == row["before"] != row["after"]
        stances[row["agent"]] = row["after"]
    assert stances == [now if kept else was for now, was, kept in zip(held(model), first, read, strict=True)] != first


def test_the_tables_say_how_stances_are_spread():
    model = small(agents_activity=0.9, attributes=LEANING, **opinions(rate=0.3))
    stances = [held(model)]
    for _ in range(3):
        model.step()
        stances.append(held(model))
    rows, parts = model.recorder.tables["opinions"], model.recorder.tables["stances"]
    assert [row["round"] for row in rows] == [-1, 0, 1, 2]
    for row, own in zip(rows, stances, strict=True):
        gaps = np.array(own) - np.mean(own)
        assert row["mean"] == pytest.approx(np.mean(own))
        assert row["sd"] == pytest.approx(np.std(own))
        skewness, kurtosis = np.mean(gaps**3) / np.std(own) ** 3, np.mean(gaps**4) / np.std(own) ** 4
        assert row["bimodality"] == pytest.approx((skewness**2 + 1) / kurtosis)
        counted = [part for part in parts if part["round"] == row["round"]]
        assert [part["agents"] for part in counted] == np.histogram(own, 50, (-1, 1))[0].tolist()
        assert [part["stance"] for part in counted] == pytest.approx(np.arange(-0.98, 1, 0.04).tolist())


def test_no_part_of_a_thread_divides_what_an_agent_has_read(monkeypatch):
    world = {"agents_activity": 0.9, "attributes": LEANING, **opinions(rate=0.3)}
    whole = ran(small(**world), 4)
    monkeypatch.setattr(moving, "PART_SIZE", 3)
    assert differing(ran(small(**world, threads=2), 4), whole) == []
    assert whole.totals["impressions"] > 60
