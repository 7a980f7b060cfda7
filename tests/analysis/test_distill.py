"""Distilling an LLM's choices: held out rows, fitting, the file, and deciding with it."""

import json

import numpy as np
import pytest
from worlds import differing, ran, small

from prism_mesa.analysis.distill.dataset import TrainingExample, TrainingSet, split_blocks
from prism_mesa.analysis.distill.distill import auc, calibration, fit_model, js_divergence, log_loss
from prism_mesa.analysis.distill.fit import fit_scores
from prism_mesa.domain import Post
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.reasoner import (
    DistilledReasoner,
    Persona,
    PlacedQuestion,
    Question,
    Reasoner,
    ReasonerParams,
    RuleParams,
    RuleReasoner,
    make_reasoner,
    read_distilled,
)
from prism_mesa.reasoner.distilled import OptionModel
from prism_mesa.reasoner.features import DECLARATION, LINEAR_NAMES, NAMES, feature_columns
from prism_mesa.reasoner.rule import detailed_columns
from prism_mesa.social.round.choices import goes_to_llm
from prism_mesa.statechart import AgentState
from prism_mesa.streams import Streams

C, S, LIKE, REPLY, RESHARE = (
    AgentState.COMPOSING,
    AgentState.SCROLLING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
)


def asks(n, options=(C, S), seed=0):
    """Return questions of `n` agents, of 12 personas about 20 posts."""
    draw = Streams(seed)
    u = {name: draw.uniform(name, np.arange(n)).tolist() for name in ("match", "relevance", "low", "draw", "trait")}
    return [
        PlacedQuestion(
            Question(
                Persona(
                    f"p{i % 12}",
                    (f"topic {i % 12}",),
                    traits=(1 + 4 * u["trait"][i], 3.9, 3.6, 2.7, 3.9),
                    low=0.3 * u["low"][i],
                ),
                AgentState.EVALUATING,
                "decides",
                options,
                Post(
                    i,
                    f"post {i % 20}",
                    relevance=u["relevance"][i],
                    velocity=i % 5,
                    likes=i % 7,
                    media_type="image" * (i % 3),
                ),
                match=2 * u["match"][i] - 1,
            ),
            agent=i,
            draw=u["draw"][i],
        )
        for i in range(n)
    ]


def known_rule(ask):
    """Return what the LLM of these tests gives the first option."""
    return 1 / (1 + np.exp(-(-0.5 + 2 * ask.question.match + 1.5 * (ask.question.persona.traits[0] - 3.1) / 0.78)))


def examples(n=400, chance=known_rule):
    found = [
        TrainingExample(ask, (chance(ask), 1 - chance(ask)), str(i), ask.question.persona.name, ask.question.post.text)
        for i, ask in enumerate(asks(n))
    ]
    return TrainingSet({(C, S): found}, "individual", 8, {"llm": "a test"}, RuleParams())


@pytest.fixture(scope="module")
def model():
    return fit_model(examples(), "logistic")


def a_file(folder, model, **changed):
    values = {**json.loads(model.text()), **changed}
    (folder / "distilled.json").write_text(json.dumps(values))
    return folder / "distilled.json"


# -- fitting -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_is_fitted_to_one_question_that_was_asked_twice():
    columns = np.ones((len(NAMES), 2))
    scores = fit_scores("logistic", columns, np.array([[0.7, 0.3], [0.7, 0.3]]))
    chances = OptionModel(options=[LIKE, REPLY], scores=scores, rows=2).probabilities(columns)
    assert chances[0] == pytest.approx(chances[1])
    assert chances.shape == (2, 2)


def test_a_known_rule_is_found_again(model):
    found = dict(zip(LINEAR_NAMES, model.choices[0].scores[0].weights, strict=True))
    assert found["extraversion"] == pytest.approx(1.5, abs=0.15)
    assert abs(found["log_likes"]) < 0.1
    others = asks(200, seed=5)
    said = np.array([DistilledReasoner(model).chances(ask.question)[0] for ask in others])
    assert abs(said - [known_rule(ask) for ask in others]).max() < 0.06


@pytest.mark.slow
def test_what_follows_a_rule_beats_the_rule_and_the_majority_on_what_was_held_out(model):
    judged = model.report["choices"][0]
    assert judged["explained"] > 0.9
    assert {name: better["blocks"] for name, better in judged["better"].items()} == {"rule": 16, "majority": 16}
    assert judged["verdict"].startswith("beats the rule by +")


@pytest.mark.slow
def test_an_llm_that_is_pure_chance_is_said_not_to_be_beaten_and_why():
    noise = Streams(3).uniform("noise", np.arange(240))
    found = fit_model(examples(240, lambda ask: noise[ask.agent] ** 4), "logistic").report["verdict"]
    assert found.startswith("does not beat both")
    assert "do not generalise" in found


def test_trees_say_what_scikit_learn_says_and_a_third_option_has_its_share():
    some = asks(600, (LIKE, REPLY, RESHARE))
    columns = feature_columns(detailed_columns((LIKE, REPLY, RESHARE), some))
    first = np.array([known_rule(ask) for ask in some])
    true = np.stack([first, (1 - first) / 4, (1 - first) * 3 / 4], axis=1)
    for kind, least in (("logistic", 0.01), ("boosting", 0.03)):
        found = OptionModel(options=[LIKE, REPLY, RESHARE], scores=fit_scores(kind, columns, true), rows=1)
        assert js_divergence(true, found.probabilities(columns)) < least


def test_no_persona_and_no_post_that_is_tried_was_fitted_to():
    rows = examples(700).by_options[C, S]
    blocks = split_blocks(rows)
    assert sorted(np.concatenate([tried for _, tried in blocks]).tolist()) == list(range(700))
    for known, tried in blocks:
        assert len(known)
        for name in ("persona", "text"):
            assert not {getattr(rows[i], name) for i in known} & {getattr(rows[i], name) for i in tried}


# -- measures ----------------------------------------------------------------------------------------


def test_measures_of_small_cases():
    true, said = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.8, 0.2], [0.4, 0.6]])
    assert log_loss(true, said) == pytest.approx(-(np.log(0.8) + np.log(0.6)) / 2)
    assert auc(true, said) == 1.0
    assert auc(true, said[::-1]) == 0.0
    assert auc(true, np.full((2, 2), 0.5)) == 0.5
    assert js_divergence(true, true) == 0.0
    assert js_divergence(true, true[::-1]) == pytest.approx(1.0)
    assert calibration(true, said, 2) == [{"said": 0.4, "true": 0.0, "n": 1}, {"said": 0.8, "true": 1.0, "n": 1}]


# -- the file ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_is_plain_data_and_decides_as_the_model_it_was_made_of(tmp_path, model):
    again, text = read_distilled(a_file(tmp_path, model))
    assert again == model
    assert (again.features, again.declaration) == (list(NAMES), DECLARATION)
    assert DistilledReasoner(again).answer(asks(50)) == DistilledReasoner(model, text=text).answer(asks(50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"features": ["match", "mood"]},
            r"distilled\.json: its features differ from this version",
        ),
        ({"declaration": "0"}, "its features differ from this version"),
        ({"format": 2}, "format: Input should be 1, not 2"),
        ({"choices": []}, "choices: List should have at least 1 item"),
        ({"pickle": 1}, "pickle: no such key"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(tmp_path, model, changed, complaint):
    with pytest.raises(DataError, match=complaint) as refused:
        read_distilled(a_file(tmp_path, model, **changed))
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_trees_that_do_not_end_are_refused(tmp_path, model):
    loop = {"base": 0, "roots": [0], "feature": [0], "threshold": [0], "left": [0], "right": [0], "value": [0]}
    choice = {"options": ["composing", "scrolling"], "scores": [loop], "rows": 1}
    with pytest.raises(DataError, match=r"distilled\.json"):
        read_distilled(a_file(tmp_path, model, choices=[choice]))


def test_a_file_too_large_for_a_model_is_refused_unread(tmp_path):
    with (tmp_path / "distilled.json").open("wb") as file:
        file.truncate(5_000_000_000)  # takes no room
    with pytest.raises(DataError, match=r"distilled\.json: .*too large"):
        read_distilled(tmp_path)


def test_a_missing_file_and_a_missing_name_say_how_to_make_one(tmp_path):
    with pytest.raises(DataError, match=r"no such file; prism distill RUN makes one"):
        read_distilled(tmp_path / "none.json")
    for given in ({"kind": "distilled"}, {"kind": "ollama", "llm_share": 0.5}):
        with pytest.raises(ConfigError, match=r"needs reasoner\.distilled, a model file: prism distill RUN makes one"):
            small(reasoner_kind=given["kind"], reasoner_llm_share=given.get("llm_share", 1.0))


@pytest.mark.slow
def test_who_asks_must_be_who_the_model_learned_from(tmp_path, model):
    params = ReasonerParams(kind="distilled", distilled=str(a_file(tmp_path, model)), persona="archetype")
    with pytest.raises(ConfigError, match=r"persona: archetype, but .* persona=individual"):
        make_reasoner(params)


# -- deciding ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_row_has_the_same_chances_alone_and_among_all(model):
    some, reasoner = asks(300), DistilledReasoner(model)
    together = reasoner.probabilities(detailed_columns((C, S), some))
    alone = [reasoner.probabilities(detailed_columns((C, S), [ask]))[0] for ask in some]
    assert (together == np.array(alone)).all()


@pytest.mark.slow
def test_options_that_nobody_was_asked_about_are_left_to_the_rule_and_counted_so(model):
    some = asks(20, (LIKE, REPLY, RESHARE))
    found = DistilledReasoner(model).answer(some)
    assert {answer.source for answer in found} == {"rule"}
    assert [a.choice for a in found] == [a.choice for a in RuleReasoner().answer(some)]


def asked_with(share, model, scheduler="columns"):
    """Return a world after a round, and who went to its LLM, which likes odd prompts: (round, tick, agent)."""
    went = set()

    def llm(prompt):
        return json.dumps({"next_state": "composing" if len(prompt) % 2 else "scrolling"})

    distilled = DistilledReasoner(model) if share < 1 else None
    with Reasoner(llm, params=ReasonerParams(llm_share=share), distilled=distilled) as reasoner:
        reasoner.on_answer = lambda ask, answer: went.add((ask.round, ask.tick, ask.agent))
        world = ran(small(agents_band=0.4, agents_activity=0.9, reasoner=reasoner, scheduler=scheduler), 2)
    return world, went


@pytest.mark.slow
def test_the_share_is_keyed_the_rest_is_distilled_and_both_are_counted_apart(model):
    world, went = asked_with(0.5, model)
    asked = world.sources["llm"] + world.sources["cache"]
    assert len(went) == asked > 15
    assert asked + world.sources["distilled"] == world.totals["open"]
    assert asked / world.totals["open"] == pytest.approx(0.5, abs=0.15)
    assert not differing(world, asked_with(0.5, model)[0])


def test_who_goes_to_the_llm_with_a_small_share_also_does_with_a_larger_one():
    draws = {}
    for share in (0.2, 0.6):
        world = small().platform
        world.round, world.reasoner = 3, type("R", (), {"llm_share": share})()
        rows = np.arange(30)
        draws[share] = goes_to_llm(world, rows, np.zeros(30, np.int64), rows % 7)
    assert (draws[0.6] | ~draws[0.2]).all()
    assert 0 < draws[0.2].sum() < draws[0.6].sum() < 30


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_agents_one_by_one_decide_and_go_to_the_llm_as_columns_do(model, share):
    (columns, went), (one_by_one, went_too) = (asked_with(share, model, kind) for kind in ("columns", "mesa"))
    assert not differing(columns, one_by_one)
    assert went == went_too
    assert bool(went) == bool(share)
