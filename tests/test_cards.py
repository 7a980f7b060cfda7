"""What a notebook shows of charts, agents, posts, policies and runs: HTML in which all that was given is escaped."""

from html.parser import HTMLParser

import pytest
from worlds import small

from prism_mesa import EconomyModel, Statechart, Transition
from prism_mesa.domain import Post
from prism_mesa.economy.policy import Measure, Policy
from prism_mesa.economy.validator import Judgement, Verdict
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.social.behavior import social_chart
from prism_mesa.view.summaries import run_html

HOSTILE = "<script>alert(1)</script>\u202e\n<img src=x onerror=alert(2)> & more"


class _Read(HTMLParser):
    """Keeps the tags and the text of HTML, and notices what is not closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def test_a_post_shows_its_author_text_and_engagement():
    post = Post(
        7, "Tea at noon", 2, "Ann", relevance=0.62, round=3, kind="reply", parent=5, likes=1200, impressions=4000
    )
    text = _Read(post._repr_html_()).text
    assert text.startswith("reply of 5 7 by Ann (2), round 3 Tea at noon")
    assert "relevance 0.62" in text
    assert "1,200 likes, 0 replies, 0 reshares from 4,000 impressions" in text


@pytest.mark.parametrize(
    "shown",
    [
        Post(1, HOSTILE, 2, HOSTILE, media_type=HOSTILE, media_description=HOSTILE, about=HOSTILE),
        Policy(measures=(Measure(lever="tariff", size=2, unit="points", target=HOSTILE),)),
        Judgement(verdicts=(Verdict(measure=0, check="target", passed=False, reason=HOSTILE),)),
        Statechart(["idle", "resting"], [Transition(HOSTILE, "idle", "resting")], "idle", name=HOSTILE),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_what_others_wrote_is_text_and_nothing_else(shown):
    read = _Read(shown._repr_html_())
    assert not {"script", "img"} & set(read.tags)
    assert "<script>alert(1)</script>" in read.text
    assert "\u202e" not in read.text


def test_a_chart_shows_each_transition_once_and_those_alike_in_one_line():
    read = _Read(social_chart._repr_html_())
    assert read.text.startswith("chart social 8 states, 28 transitions")
    assert "any but idle round_ends idle" in read.text
    assert "evaluating decides post.utility > agent.high_threshold composing" in read.text
    assert "evaluating decides else ?" in read.text
    assert "resting timeout after 2 ticks scrolling" in read.text


def test_an_agent_shows_who_it_is_and_its_unread_feed():
    model = small(agents_n=20, agents_activity=1.0, rng=3)
    agent = model.agents[4]
    agent.name = HOSTILE
    read = _Read(agent._repr_html_())
    assert "script" not in read.tags
    assert "idle, for 0 ticks" in read.text
    assert "nothing unread in its feed" in read.text
    assert f"row 4, id {agent.agent_id}" in read.text


def test_a_model_shows_how_far_it_is_and_what_came_of_it():
    model = small(agents_n=20, agents_activity=1.0, rng=3, rounds=4)
    at_first = _Read(model._repr_html_()).text
    assert at_first.startswith("model 0 of 4 rounds 20 agents, seed 3 feed ")
    assert at_first.endswith("so far no round yet")
    model.step()
    read = _Read(model._repr_html_())
    assert read.text.startswith("model 1 of 4 rounds 20 agents, seed 3 agent-ticks of round 0: ")
    assert f"scrolling {model.round_row['share_scrolling']:.1%}, " in read.text
    assert f"{model.totals['impressions']:,} impressions, {model.totals['likes']:,} likes" in read.text
    assert f"follows {model.network.n_edges:,}, " in read.text


def test_a_policy_shows_its_measures_and_a_nation_where_it_stands():
    policy = Policy(measures=(Measure(lever="policy_rate", size=0.25, unit="points"),))
    assert "policy rate by +0.25 points" in _Read(policy._repr_html_()).text
    assert _Read(Policy()._repr_html_()).text == "policy hold no measure"
    nation = next(iter(EconomyModel().agents))
    text = _Read(nation._repr_html_()).text
    assert text.startswith(f"nation {nation.name} decided by {nation.decided_by}")
    assert f"unemployment {nation.state.unemployment:.1f} %" in text


def test_a_run_without_a_summary_shows_its_state_and_its_folder(tmp_path):
    result = RunResult(tmp_path / HOSTILE.replace("/", ""), "died", {}, state="died in round 7 of 56")
    read = _Read(run_html(result))
    assert "died in round 7 of 56" in read.text
    assert "script" not in read.tags
