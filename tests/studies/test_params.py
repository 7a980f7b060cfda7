import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.params import MEASURES, flatten, read_study, study_params

LEAST = {"question": "Does it?"}


def refused(**values):
    with pytest.raises(ConfigError) as error:
        study_params({**LEAST, **values}, "mine.yaml")
    said = str(error.value)
    assert said.startswith("mine.yaml: ")
    assert ": : " not in said
    assert "\n" not in said
    return said


def test_a_question_is_enough():
    params = study_params(LEAST, "mine.yaml")
    assert params.seeds == 20
    assert params.paired
    assert params.keep == "tables"
    assert params.measures == list(MEASURES)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"arm": {}}, "arm: no such key"),
        ({"question": ""}, "question"),
        ({"limits": {"second": 5}}, "limits.second: no such key"),
        ({"limits": {"seconds": 0}}, "limits.seconds"),
        ({"seeds": 0}, "seeds: give from 1 to"),
        ({"seeds": True}, "seeds"),
        ({"seeds": [1, 1]}, "seeds: give different seeds"),
        ({"seeds": []}, "seeds"),
        ({"measures": []}, "measures"),
        ({"measures": ["likes", "likes"]}, "'likes' occurs twice"),
        ({"collect": ["round"]}, "'round' is not a table"),
        ({"keep": "all"}, "keep: Input should be 'tables' or 'measures'"),
        ({"base": 3}, "base"),
        ({"design": [1]}, "design"),
        ({"arms": ["a", "b"]}, "arms: give the name of each arm"),
        ({"arms": {True: {}}}, "arms"),
        ({"arms": {"a/b": {}}}, "'a/b'"),
        ({"arms": {"a": {"seed": 3}}}, "arms.a: seed: "),
        ({"set": {"seed": 3}}, "set: seed: "),
        ({"vary": {"seed": [3]}}, "vary: seed: "),
        ({"vary": {"agents.n": []}}, "agents.n: give at least one value, each once"),
        ({"vary": {"agents.band": [0.1, "0.1"]}}, "agents.band: give at least one value, each once"),
        ({"vary": {"agents.n": 5}}, "vary.agents.n"),
        ({"arms": {"a": {"feed": {"mode": "random"}}}, "vary": {"feed.mode": ["random"]}}, "arms.a: feed.mode: is in"),
        ({"set": {"agents.n": 5}, "vary": {"agents.n": [6]}}, "set: agents.n: is in 'vary', too"),
        ({"arms": {"a": {"feed": {"mode": "random"}, "feed.mode": "x_algo"}}}, "arms.a: feed.mode: occurs twice"),
        ({"name": "a/b"}, "name"),
    ],
)
def test_what_a_study_cannot_be_is_said_in_one_line(values, said):
    assert said in refused(**values)


def test_an_arm_that_changes_nothing_may_be_left_blank():
    assert study_params({**LEAST, "arms": {"plain": None}}, "mine.yaml").arms == {"plain": {}}


def test_keys_are_the_same_nested_or_dotted():
    assert [key for key, _ in flatten({"feed": {"mode": "random", "x_algo": {"weight_like": 1}}, "agents.n": 10})] == [
        "feed.mode",
        "feed.x_algo.weight_like",
        "agents.n",
    ]


def test_an_expectation_may_go_without_quotes():
    params = study_params({**LEAST, "expect": [{"likes": "a > b"}, "likes: a < b"]}, "mine.yaml")
    assert params.expect == ["likes: a > b", "likes: a < b"]
    assert "expect.0" in refused(expect=[{"likes": "a > b", "posts": "a > b"}])


def test_a_file_that_is_no_study_is_said_by_its_name(tmp_path):
    for text, said in (("", "is empty"), ("- 1", "holds a list"), ("a: [", "is not YAML"), ("question: 5", "question")):
        file = tmp_path / "study.yaml"
        file.write_text(text)
        with pytest.raises(ConfigError, match=said) as error:
            read_study(file)
        assert str(error.value).startswith(str(file))
    with pytest.raises(ConfigError, match="no such study file"):
        read_study(tmp_path / "other.yaml")
