import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.params import MEASURES, flat, read_study, study_params

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


def test_a_study_without_a_question_is_none():
    with pytest.raises(ConfigError, match=r"mine\.yaml: question: Field required"):
        study_params({}, "mine.yaml")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"arm": {}}, "arm: no such key (allowed here: question, name"),
        ({"limits": {"second": 5}}, "limits.second: no such key (allowed here: seconds, memory_gb, calls)"),
        ({"limits": {"seconds": 0}}, "limits.seconds"),
        ({"limits": {"seconds": "soon"}}, "limits.seconds"),
        ({"seeds": 0}, "seeds: give from 1 to 1,000,000 seeds, not 0"),
        ({"seeds": True}, "seeds: give a whole number, or a list of seeds, not True"),
        ({"seeds": [1, 1]}, "seeds: give different seeds of at least 0"),
        ({"seeds": []}, "seeds: give a whole number, or a list of seeds"),
        ({"seeds": 2.5}, "seeds: give a whole number"),
        ({"measures": []}, "measures"),
        ({"measures": ["likes", "likes"]}, "'likes' stands there twice"),
        ({"collect": ["round"]}, "'round' is no table (there are rounds, ticks"),
        ({"keep": "all"}, "keep: Input should be 'tables' or 'measures', not 'all'"),
        ({"base": 3}, "base: give a file, or values by key, not 3"),
        ({"design": [1]}, "design: give a file, or values by key"),
        ({"arms": ["a", "b"]}, "arms: give each arm its name, and the values that it changes"),
        ({"arms": {True: {}}}, "the name True is no text: write it in quotes"),
        ({"arms": {"a/b": {}}}, "the name 'a/b' holds more than letters"),
        ({"arms": {"a": {"seed": 3}}}, "the study's own key 'seeds' says which seeds there are"),
        ({"set": {"seed": 3}}, "the study's own key 'seeds' says which seeds there are"),
        ({"vary": {"seed": [3]}}, "the study's own key 'seeds' says which seeds there are"),
        ({"vary": {"agents.n": []}}, "agents.n: give at least one value, each once"),
        ({"vary": {"agents.n": [5, 5]}}, "agents.n: give at least one value, each once"),
        ({"vary": {"agents.n": 5}}, "vary.agents.n"),
        ({"arms": {"a": {"feed": {"mode": "random"}}}, "vary": {"feed.mode": ["random"]}}, "stands in 'vary' too"),
        ({"name": "a/b"}, "name: String should match"),
        ({"name": ".."}, "name: String should match"),
        ({"vary": {"agents.band": [0.1, "0.1"]}}, "agents.band: give at least one value, each once"),
        ({"set": {"agents.n": 5}, "vary": {"agents.n": [6]}}, "set: agents.n: stands in 'vary' too"),
        ({"arms": {"a": {"feed": {"mode": "random"}, "feed.mode": "x_algo"}}}, "arms.a: feed.mode: stands there twice"),
        ({"question": ""}, "question"),
    ],
)
def test_what_a_study_cannot_be_is_said_in_one_line(values, said):
    assert said in refused(**values)


def test_an_arm_that_changes_nothing_may_be_left_blank():
    assert study_params({**LEAST, "arms": {"plain": None}}, "mine.yaml").arms == {"plain": {}}


def test_keys_are_the_same_nested_or_dotted():
    assert [key for key, _ in flat({"feed": {"mode": "random", "x_algo": {"weight_like": 1}}, "agents.n": 10})] == [
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
