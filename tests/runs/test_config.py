"""Configurations: YAML, overrides, and one line for whatever is wrong with them."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pydantic import Field

from prism_mesa import Config, EconomyModel, SocialModel, load_config
from prism_mesa.errors import ConfigError
from prism_mesa.params import Params, list_leaves, merge_values, nest_keys, validate_params
from prism_mesa.runs.config import EconomyConfig, load

ROOT = Path(__file__).parents[2]
DEFAULT = ROOT / "configs" / "default.yaml"


@pytest.fixture
def written(tmp_path):
    def write(text, name="c.yaml"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write


# -- several LLMs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"), [("model", {"gemma3:4b": 0.5, "llama3.2": 0.5}), ("host", {"llama3.2": "http://b:1"})]
)
def test_a_mapping_of_llms_is_one_value_wherever_it_is_given(written, key, value):
    other = {"model": {"a": 1.0, "b": 2.0}, "host": "http://x:1"}, {"host": {"llama3.2": ["http://y:1"]}}
    before = other[key == "host"]
    file = written(yaml.safe_dump({"reasoner": before}))
    text = f"reasoner.{key}={yaml.safe_dump(value, default_flow_style=True).strip()}"
    given = load_config(file, [text])
    assert getattr(given.reasoner, key) == value
    assert merge_values({"reasoner": before}, {"reasoner": {key: value}})["reasoner"][key] == value
    assert nest_keys({"reasoner": before, f"reasoner.{key}": value})["reasoner"][key] == value


def test_an_llm_of_several_cannot_be_set_alone():
    with pytest.raises(ConfigError, match=r"reasoner.model.llama3.2: reasoner.model is set as a whole"):
        load_config(None, ["reasoner.model.llama3.2=.5"])


def test_nations_ask_one_llm(written):
    config = load(EconomyConfig, None, ["reasoner.model={a: 1}", "economy.policy=llm", "reasoner.kind=ollama"])
    with pytest.raises(ConfigError, match=r"only one LLM"):
        EconomyModel(config)


# -- the files that come with PRISM ------------------------------------------------------------------


def dotted(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def test_the_default_file_names_every_key_once():
    named = list(dotted(yaml.safe_load(DEFAULT.read_text(encoding="utf-8"))))
    assert sorted(named) == sorted(key for key, _ in list_leaves(Config))
    assert len(set(named)) == len(named)


def test_the_default_file_is_the_default_config_but_for_who_decides():
    file, own = load_config(DEFAULT), Config()
    assert (file.reasoner.kind, own.reasoner.kind) == ("auto", "rule")
    assert load_config(DEFAULT, ["reasoner.kind=rule"]) == own


def test_every_key_of_the_default_file_says_what_it_is():
    lines = DEFAULT.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for before, line in pairwise(lines)
        if ":" in line and not line.lstrip().startswith("#") and not line.endswith(":")
        if "#" not in line and not before.lstrip().startswith("#")
    ]
    assert [line.split(":")[0] for line in bare] == []


# -- keys and values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "way_out"),
    [
        ("sead", r"allowed here: seed, rounds, .*Did you mean 'seed'\?"),
        ("agents.nn", r"allowed here: n, band, "),
        ("feed.x_algo.author_decai", r"Did you mean 'author_decay'\?"),
        ("reasoner.hosts", r"Did you mean 'host'\?"),
        ("reasoner.rule.slop", r"allowed here: slope, velocity, media\)\. Did you mean 'slope'\?"),
        ("agents_n", r"Did you mean 'agents\.n'\?"),
        ("max_fallback_share", r"Did you mean 'reasoner.max_fallback_share'\?"),
    ],
)
def test_an_unknown_key_is_refused_at_every_level_with_what_is_allowed(key, way_out):
    with pytest.raises(ConfigError, match=rf"^override: {key}: no such key .*{way_out}"):
        load_config(None, [f"{key}=1"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("agents.n=1.5", "agents.n: .*integer.* not 1.5"),
        ("agents.n=many", "agents.n: .*integer.* not 'many'"),
        ("agents.n.x=1", r"agents.n: .*integer, not \{'x': 1\}"),
        ("agents.n=true", "agents.n: .*number, not True"),
        ("agents=null", r"agents: Input should be a group of keys \(n, band, .*\), not None"),
        ("statechart.oracle_enabled=perhaps", "statechart.oracle_enabled: .*boolean.* not 'perhaps'"),
        (
            "feed.mode=x",
            "feed.mode: Input should be 'random', 'chronological', .* or module:object of your own, not 'x'",
        ),
        ("seed=-1", "seed: .*greater than or equal to 0, not -1"),
        ("seed=9223372036854775808", "seed: .*less than 9223372036854775808"),
        ("agents.threshold_mean=1.01", "agents.threshold_mean: .*less than or equal to 1, not 1.01"),
        ("agents.activity=.nan", "agents.activity: .*finite number, not nan"),
        ("clock.start=2026-01-01 00:00:00", "clock.start: .*timezone"),
        ("name=a/b", "name: .*not 'a/b'"),
        ("name=" + "x" * 61, "name: .*not 'xx.{1,60}xx'"),
        ("network.kind=edges", r"network: kind is 'edges', but network.edges does not name a file$"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_key(override, said):
    with pytest.raises(ConfigError, match=f"^override: {said}"):
        load_config(None, [override])


# -- overrides ---------------------------------------------------------------------------------------


def test_an_override_goes_over_the_file_and_the_file_over_the_defaults(written):
    file = written("rounds: 7\nagents: {n: 70, band: 0.3}\n")
    config = load_config(file, ["agents.n=80", "feed.x_algo.weight_like=2"])
    assert (config.rounds, config.agents.n, config.agents.band, config.seed) == (7, 80, 0.3, 42)
    assert (config.feed.x_algo.weight_like, config.feed.x_algo.weight_reply) == (2.0, 27.0)


def test_an_override_is_read_as_yaml():
    config = load_config(
        None,
        [
            "statechart.oracle_enabled=off",
            "clock.start=2030-05-06T07:08:09+02:00",
            "reasoner.temperature=1e-1",
            " name =dash-ed",
            "reasoner.model='7'",
            "posts.file=a b=c.csv",
        ],
    )
    assert config.statechart.oracle_enabled is False
    assert config.clock.start == datetime(2030, 5, 6, 5, 8, 9, tzinfo=UTC)
    assert (config.reasoner.temperature, config.name, config.reasoner.model) == (0.1, "dash-ed", "7")
    assert config.posts.file == "a b=c.csv"


def test_null_takes_a_file_back(written):
    file = written("network: {edges: graph.csv}\n")
    assert load_config(file).network.kind == "edges"
    config = load_config(file, ["network.edges=null"])
    assert (config.network.edges, config.network.kind) == (None, "configuration")


def test_naming_an_edge_list_implies_the_kind_even_over_another_one():
    assert load_config(None, ["network.edges=g.csv"]).network.kind == "edges"
    assert load_config(None, ["network.kind=barabasi_albert", "network.edges=g.csv"]).network.kind == "edges"


def test_an_override_cannot_go_below_a_value_that_another_one_gives():
    with pytest.raises(ConfigError, match=r"agents\.n: agents is a single value, not a group of keys"):
        load_config(None, ["agents=3", "agents.n=3"])


def test_what_lies_below_counts_where_the_file_is_silent(written):
    defaults = {"reasoner": {"kind": "auto", "model": "tiny"}}
    config = load_config(written("reasoner: {kind: rule}\n"), defaults=defaults)
    assert (config.reasoner.kind, config.reasoner.model) == ("rule", "tiny")


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"is empty; write at least one key"),
        ("- 1\n", r"holds a list, not keys and values"),
        ("a: [1\nb: 2\n", r" line 2 is not YAML: "),
        ("agents:\n\tn: 3\n", r" line 2 is not YAML: .*'\\t'"),
        ("a: \x00\n", r"is not YAML: .*special characters are not allowed$"),
        ("seed: 1\nrounds: 2\nseed: 3\n", r" line 3 is not YAML: 'seed' appears here twice"),
        ("agents: {n: 3, n: 4}\n", r" line 1 is not YAML: 'n' appears here twice"),
        ("agents: &a {n: *a}\n", r" line 1 is not YAML: an alias that contains itself"),
        ("reasoner: {modle: x}\n", r"reasoner\.modle: no such key .*Did you mean 'model'\?"),
    ],
)
def test_a_faulty_file_is_one_line_that_names_it(written, text, said):
    with pytest.raises(ConfigError, match=rf"^\S*c\.yaml:? ?{said}") as caught:
        load_config(written(text))
    assert "\n" not in str(caught.value)


def test_a_file_may_have_any_name_and_merge_keys(written):
    file = written("agents: &a {n: 30}\nnetwork: {mean_degree: 5}\nname: ünï\n", "mein ☃.txt")
    assert (load_config(file).agents.n, load_config(file).name) == (30, "ünï")
    twice = written("agents:\n  <<: {n: 30, band: 0.1}\n  n: 40\n")
    assert (load_config(twice).agents.n, load_config(twice).agents.band) == (40, 0.1)


# -- parameters in general ---------------------------------------------------------------------------


class Inner(Params):
    depth: int = Field(1, ge=0)


class Outer(Params):
    inner: Inner = Field(default_factory=Inner)
    flag: bool = False
    maybe: int | None = None


def test_nested_and_merged_build_a_tree_group_by_group():
    base = nest_keys({"a.b": 1, "a.c": 2, "d": 3})
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge_values(base, {"a": {"b": 9}, "d": None}) == {"a": {"b": 9, "c": 2}, "d": None}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


def test_a_truth_value_is_one_only_where_one_is_wanted():
    assert validate_params(Outer, {"flag": True}, "here").flag is True
    with pytest.raises(ConfigError, match=r"^here: inner\.depth: Input should be a number, not True$"):
        validate_params(Outer, {"inner": {"depth": True}}, "here")


def test_a_table_in_the_place_of_a_path_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"network\.edges: Input should be a valid string, not src dst") as caught:
        SocialModel(network_edges=pd.DataFrame({"src": [0, 1], "dst": [1, 2]}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("survey.yaml", r"holds questions of a survey: use 'prism survey RUN .*survey\.yaml'"),
        ("studies/feeds.yaml", r"holds a study: use 'prism study run .*feeds\.yaml'"),
        ("calibrations/cascades.yaml", r"holds a calibration: use 'prism calibrate .*cascades\.yaml'"),
        ("economy.yaml", r"holds a configuration of nations: use 'prism economy .*economy\.yaml'"),
    ],
)
def test_a_file_of_another_command_says_which_one(file, told):
    with pytest.raises(ConfigError, match=told):
        load_config(Path(__file__).parents[2] / "configs" / file)


def test_a_file_of_a_platform_is_none_of_nations():
    with pytest.raises(ConfigError, match=r"holds a configuration of a platform: use 'prism run .*plain\.yaml'"):
        load(EconomyConfig, Path(__file__).parents[2] / "configs" / "plain.yaml")


@pytest.mark.parametrize(
    ("given", "shown"),
    [({"agents.n": 5}, r"\{'agents.n': 5\}"), ("agents.n=5", "'agents.n=5'"), ([5], r"\[5\]"), (5, "5")],
)
def test_overrides_that_are_no_list_of_texts_are_refused_in_one_line(given, shown):
    with pytest.raises(
        ConfigError, match=rf"^overrides: give a list of strings, such as \['agents.n=200'\], not {shown}$"
    ):
        load_config(None, given)
