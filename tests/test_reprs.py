"""What models, agents, posts, charts, runs and configurations say of themselves: one line that tells what they are."""

from pathlib import Path

import pytest
from worlds import small

from prism_mesa import (
    Config,
    EconomyModel,
    F,
    Interview,
    Reasoner,
    RunResult,
    SocialAgent,
    SocialModel,
    Statechart,
    Transition,
)
from prism_mesa.analysis.distill.distill import Distilled
from prism_mesa.analysis.survey.survey import SurveyResult
from prism_mesa.domain import Post
from prism_mesa.llm import Ledger
from prism_mesa.llm.clients.ollama import OllamaChatClient
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.reasoner.params import RuleParams
from prism_mesa.runs.replay import Replay
from prism_mesa.social.behavior import social_chart


@pytest.fixture
def model():
    return small(agents_n=40, rng=7)


def test_a_social_model_says_how_far_it_is_and_who_decides(model):
    assert repr(model) == "<SocialModel: 40 agents, round 0 of 20, seed 7, decided by rule-based reasoner>"
    model.step()
    model.agents[3].remove()
    model.step()
    assert repr(model) == "<SocialModel: 39 agents, round 2 of 20, seed 7, decided by rule-based reasoner>"


def test_a_model_of_nations_says_how_far_it_is_and_who_decides():
    model = EconomyModel(economy_nations=["Sweden"], rng=7)
    model.step()
    said = "1 nation, quarter 1 of 40 (2009Q4), seed 7, decided by Taylor's rule (1993)"
    assert repr(model) == f"<EconomyModel: {said}>"
    assert repr(model.nations[0]) == "<RuleAgent 0 'Sweden': decided by Taylor's rule (1993)>"


def test_an_agent_says_its_state_and_the_post_at_hand(model):
    said = {}

    class Talking(SocialAgent):
        def step(self):
            super().step()
            said[self.state.value] = repr(self), self.current_post

    agent = Talking(model, 17, activity=1.0)
    assert repr(agent) == f"<Talking 17 {agent.name!r}: idle>"
    for _ in range(5):
        model.step()
    told, post = said["evaluating"]
    assert told == f"<Talking 17 {agent.name!r}: evaluating post {post.post_id}>"


def test_a_post_says_who_wrote_what():
    post = Post(12, "Rain\n" * 40, author=3, author_name="Ada Kaya", relevance=0.5, likes=1)
    text = repr("Rain\n" * 12 + "...")
    told = f"<Post 12 by 3 'Ada Kaya': post {text}, relevance 0.50, 1 likes, 0 replies, 0 reshares>"
    assert repr(post) == told


def test_a_chart_and_its_transitions_say_what_they_are():
    assert repr(social_chart) == "<Statechart social: 8 states, 28 transitions>"
    transition = Transition("wakes", "idle", "scrolling", guard=F.agent.energy > 3)
    assert repr(transition) == "<Transition idle --wakes--> scrolling [agent.energy > 3]>"
    assert (
        repr([Statechart(["idle", "scrolling"], [transition], "idle")])
        == "[<Statechart chart: 2 states, 1 transition>]"
    )


def test_a_configuration_says_what_was_set():
    assert repr(Config()) == "Config()"
    config = Config(agents={"n": 7}, seed=3, feed={"mode": "random"})
    assert repr(config) == str(config) == "Config(seed=3, agents.n=7, feed.mode='random')"
    assert repr(config.agents) == "AgentsParams(n=7)"


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({}, "results/run-1"),
        ({"agents": 2000, "rounds": 1, "seed": 4}, "2,000 agents, 1 round, seed 4, results/run-1"),
        ({"nations": ["Sweden"], "rounds": 8, "seed": 4}, "1 nation, 8 quarters, seed 4, results/run-1"),
        ({"agents": None, "rounds": 3}, "3 rounds, results/run-1"),
    ],
)
def test_a_result_says_what_is_known_of_it(summary, said):
    assert repr(RunResult(Path("results/run-1"), "done", summary)) == f"<RunResult done: {said}>"


@pytest.mark.parametrize("path", ["a\nb", "a\x1b[2Jb", "a\rb"])
def test_a_result_is_one_line_whatever_its_path_is(path):
    said = repr(RunResult(Path(path), "done", {}))
    assert said.isprintable()
    assert said.startswith("<RunResult done: a")


def test_reasoners_say_who_answers():
    assert repr(RuleReasoner()) == "RuleReasoner(RuleParams())"
    assert repr(RuleReasoner(RuleParams(slope=2.5))) == "RuleReasoner(RuleParams(slope=2.5))"
    client = OllamaChatClient("qwen", host="http://me:pass@llm.example:11434")
    assert repr(client) == "<OllamaChatClient 'qwen' at http://llm.example:11434>"
    assert repr(Reasoner(client)) == "<Reasoner: Ollama qwen at http://llm.example:11434>"


HALF_MADE = [
    *(SocialModel, EconomyModel, SocialAgent, Statechart, RunResult, Replay, SurveyResult, Distilled, Interview),
    *(Reasoner, RuleReasoner, Ledger, OllamaChatClient),
]


@pytest.mark.parametrize("kind", HALF_MADE, ids=lambda kind: kind.__name__)
def test_what_is_only_half_made_can_be_shown(kind):
    thing = kind.__new__(kind)
    assert repr(thing) == object.__repr__(thing)


def test_a_subclass_can_be_shown_before_its_base_is_made(model):
    said = []

    class Talking(SocialAgent):
        def __init__(self, *given):
            said.append(repr(self))
            super().__init__(*given)

    class TalkingModel(SocialModel):
        def __init__(self):
            said.append(repr(self))
            super().__init__(agents_n=40)

    Talking(model, 17)
    TalkingModel()
    assert [text.partition(" object at ")[0].rpartition(".")[2] for text in said] == ["Talking", "TalkingModel"]
