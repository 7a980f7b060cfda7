"""Texts that an LLM writes do not depend on the order of answers, nor do limits on them."""

import asyncio

import pytest
from minds import Mind, busy, published, whim
from worlds import differing
from writing_worlds import NO_CHOICE, lively

from prism_mesa.social.content.drafts import N_CONCURRENT
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST


def all_differing(one, other):
    """Return in what two worlds differ, notes included."""
    return differing(one, other) + ["notes"] * (one.notebook.as_columns() != other.notebook.as_columns())


# -- in any order --------------------------------------------------------------------------------------


class Shuffled(SocialModel):
    """Calls its agents in another order each time."""

    @property
    def agents(self):
        return super().agents.shuffle(inplace=False)


class TickByTick(SocialModel):
    def _make(self, world, chart):
        super()._make(world, chart)
        self.tables.is_complete = False


class Late(Mind):
    """Answers after a time that follows from what it is asked, and a seed."""

    def __init__(self, seed, **parts):
        super().__init__(**parts)
        self.seed = seed

    async def __call__(self, prompt):
        await asyncio.sleep(whim(f"{self.seed} {prompt}", 20) / 2000)
        return super().__call__(prompt)


WAYS = {
    "one row after the other": {"scheduler": "mesa"},
    "rows in any order": {"kind": Shuffled, "scheduler": "mesa"},
    "two threads": {"threads": 2},
    "tick by tick": {"kind": TickByTick},
}


BUSY = {"agents_post_rate": 0.4, "network_mean_degree": 10, "deliberation_iterations": 2}


@pytest.fixture(scope="module")
def known():
    return lively(Mind(thinks=busy), 4, **BUSY)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_agents_write_and_do_is_the_same_in_every_way_of_running(way, known):
    other = lively(Mind(thinks=busy), 4, **BUSY, **WAYS[way])
    assert all_differing(other, known) == []


LIMITS = ({"max_calls": 45}, {"max_calls_per_round": 15}, {"max_calls": 50, "max_calls_per_round": 20})


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS)
def test_a_limit_goes_to_the_same_agents_whichever_answer_comes_first(limits):
    known = lively(Mind(thinks=busy), 4, options=limits, **BUSY)
    assert known.written["budget"] > 0 < known.written["written"]
    for seed in range(2):
        other = lively(Late(seed, thinks=busy), 4, options=limits, **BUSY)
        assert all_differing(other, known) == []
        assert other.written == known.written


def limited(**way):
    limits = {"max_calls": 60, "max_calls_per_round": 21}
    return lively(Mind(thinks=busy), 4, options=limits, **NO_CHOICE, **BUSY, **way)


@pytest.fixture(scope="module")
def limited_in_columns():
    return limited()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_limit_on_texts_goes_to_the_same_agents_in_every_way_of_running(way, limited_in_columns):
    one, other = limited_in_columns, limited(**WAYS[way])
    assert one.written["budget"] > 0 < one.written["written"]
    assert all_differing(one, other) == []


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 7, 30, 60])
def test_choices_and_texts_share_one_limit_and_what_is_left_over_is_counted(most):
    mind = Mind()
    model = lively(mind, 4, options={"max_calls": most})
    calls = model.reasoner.usage["calls"] + model.writer.usage["calls"]
    assert calls == len(mind.prompts) == most
    found = published(model)
    assert model.written.total() == len(found)
    assert model.written["budget"] == len(found) - model.written["written"] > 0
    assert model.written["failed"] == 0
    silent = [(kind, words) for kind, _, _, words in found if ": " not in words[:10]]
    assert len(silent) == model.written["budget"]
    assert all(words in model.posts.corpus.texts if kind == POST else words == "" for kind, words in silent)


def test_a_limit_is_spent_on_the_most_followed_first():
    model = lively(Mind(), 1, options={"max_calls": 24, "spend_on": "followed"}, **NO_CHOICE, agents_post_rate=0.8)
    wrote = {author for kind, _, author, words in published(model) if kind == POST and words.startswith("post: ")}
    others = {author for kind, round_, author, _ in published(model) if kind == POST and round_ == 0} - wrote
    followers = model.network.n_followers
    assert len(wrote) == N_CONCURRENT < len(others)
    assert min(followers[list(wrote)]) >= max(followers[list(others)])
