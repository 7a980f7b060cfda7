"""No number is too large, no time too late, no text of a configuration too odd for one line that names it."""

import re
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa import Config, EconomyModel, SocialModel, load_config
from prism_mesa.analysis.survey.questionnaire import read_questionnaire
from prism_mesa.errors import MAX_MESSAGE_LENGTH, ConfigError, PrismError, PrismWarning, did_you_mean
from prism_mesa.params import list_leaves, nest_keys, validate_params
from prism_mesa.runs.config import EconomyConfig, load

HUGE = (10**30, -(10**30), 1e308, -1e308, 2**63, 10**5000)
KINDS = {Config: SocialModel, EconomyConfig: EconomyModel}


def refused(call):
    """Return what is said of a fault, in one line of bounded length, or an empty string if there is none."""
    try:
        call()
    except ConfigError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) <= MAX_MESSAGE_LENGTH
        return said
    return ""


def repr_of(value):
    return "huge" if isinstance(value, int) and value > 10**100 else str(value)[:20]


# -- numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_number_is_refused_with_its_key_or_makes_a_model(kind):
    for key, value in product(dict(list_leaves(kind)), HUGE):
        said = refused(
            lambda key=key, value=value: KINDS[kind](validate_params(kind, nest_keys({key: value}), "config"))
        )
        assert not said or said.startswith(f"config: {key.partition('.')[0]}"), (key, repr_of(value))


@pytest.mark.parametrize("rng", [10**30, -1, float("inf"), float("nan"), 1.5, "9" * 5000, 10**5000], ids=repr_of)
def test_a_seed_that_is_none_is_one_line(rng):
    with pytest.raises(ConfigError, match=r"^SocialModel: (rng|seed): .*(whole number|Input should be)"):
        SocialModel(rng=rng)


# -- times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["clock.start=0001-01-01T00:00:00+01:00"],
            r"clock\.start: Input should be in the years 1 to 9999, also in UTC",
        ),
        (
            ["clock.start=9999-12-31T00:00:00Z", "rounds=24"],
            r"rounds=24 of clock\.round_minutes=60 from .*the year 9999",
        ),
        (["clock.round_minutes=525600", "rounds=8000"], r"rounds=8000 of clock\.round_minutes=525600.* run past"),
        (
            ["rounds=10000000", "ticks_per_round=10000"],
            r"rounds=10000000 of ticks_per_round=10000 are more than",
        ),
        (
            ["clock.start=2030"],
            r"clock\.start: Input should be a time with its offset, such as 2026-01-01T00:00:00Z, not 2030",
        ),
    ],
)
def test_a_time_that_is_none_or_runs_out_is_said_up_front(overrides, said):
    with pytest.raises(ConfigError, match=f"^override: (: )?{said}"):
        load_config(None, overrides)


@pytest.mark.parametrize("first", ["9999Q4", "9990Q1"])
def test_no_run_can_come_to_the_year_9999(first):
    with pytest.raises(ConfigError, match=r"economy\.first_quarter"):
        load(EconomyConfig, None, ["rounds=41", f"economy.first_quarter={first}"])


# -- YAML --------------------------------------------------------------------------------------------

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ODD = {
    "2026-02-30": "'2026-02-30' is not a date or time",
    "!!int foo": "'foo' is not a whole number",
    "9" * 5000: r"'9+ \[...\] 9+' is not a whole number",
    "[" * 600 + "]" * 600: "more than 50 nested levels",
    '"\\UFFFFFFFF"': "OverflowError",
    "&a {b: *a}": "an alias that contains itself",
    "&a [*a]": "an alias that contains itself",
    LAUGHS: "aliases that make more than 50,000 values",
    "*nobody": "found undefined alias",
    "!!python/name:os.system": "could not determine a constructor",
    "{n: 1, n: 2}": "'n' appears here twice",
    "0100": "'0100' is not a number: write text in quotes",
    "1:30": "'1:30' is not a number: write text in quotes",
}


@pytest.mark.parametrize(("text", "why"), ODD.items(), ids=[text[:20] for text in ODD])
def test_what_yaml_makes_no_value_of_is_one_line_in_files_and_overrides(text, why, tmp_path):
    assert re.search(f"^override: agents.n: .*{why}", refused(lambda: load_config(None, [f"agents.n={text}"])))
    file = tmp_path / "c.yaml"
    file.write_text(f"agents:\n  n:\n    {text}\n".replace("\nb:", "\n    b:") if "\n" not in text else text, "utf-8")
    assert re.search(rf"^{file}:( line \d+)? is not YAML: .*{why}", refused(lambda: load_config(file)))
    assert re.search(rf"^{file}: ?", refused(lambda: read_questionnaire(file)))


def test_a_text_of_five_megabytes_is_refused_before_a_letter_of_it_is_looked_at(tmp_path):
    (tmp_path / "c.yaml").write_text(f"name: {'x' * 5_000_000}")
    begun = time.process_time()
    with pytest.raises(ConfigError, match=r"c\.yaml: 5,000,006 bytes are too many for a config file"):
        load_config(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match=r"^override: name: 5,000,000 characters; at most 1,048,576 are allowed"):
        load_config(None, [f"name={'x' * 5_000_000}"])
    assert time.process_time() - begun < 0.5


def test_a_group_given_as_a_whole_comes_beside_its_keys():
    config = load_config(None, ["agents.n=30", "agents={band: 0.5}"])
    assert (config.agents.n, config.agents.band) == (30, 0.5)
    with pytest.raises(ConfigError, match=r"^agents: is a group of keys \(n given before\), not a single value"):
        load_config(None, ["agents.n=30", "agents=5"])


TEXTS = st.text(max_size=60) | st.text("[]{}:,-&*!|>'\"%@ \n\tab01.e#?<=~_", max_size=60)


@given(key=TEXTS | st.sampled_from([key for key, _ in list_leaves(Config)]), value=TEXTS)
def test_of_any_override_comes_a_config_or_one_line(key, value):
    refused(lambda: load_config(None, [f"{key}={value}"]))
    refused(lambda: load(EconomyConfig, None, [f"{key}={value}"]))


# -- messages ----------------------------------------------------------------------------------------


def test_a_message_is_never_longer_than_600_characters_and_keeps_its_ends():
    for kind in (PrismError, ConfigError, PrismWarning):
        said = str(kind("where: " + "x" * 10_000 + " do this instead"))
        assert len(said) == MAX_MESSAGE_LENGTH == 600
        assert said.startswith("where: xxx")
        assert said.endswith("xxx do this instead")
    assert str(ConfigError("y" * 600)) == "y" * 600


@pytest.mark.parametrize("kind", [ConfigError, PrismError])
def test_a_message_is_one_line_whatever_a_user_has_written(kind):
    assert str(kind("statechart.chart: a\nb\x85c\u2028d\x1b[31m: no")) == "statechart.chart: a b c d [31m: no"


@pytest.mark.parametrize("name", ["idle", "'idle'", "x" * 100_000])
def test_nobody_is_asked_whether_they_meant_what_they_typed(name):
    assert did_you_mean(name, ["idle", "x" * 100_000]) == ""


@pytest.mark.parametrize(
    ("key", "offered"),
    [
        ("n", "'agents.n'"),
        ("kind", "'network.kind' or 'reasoner.kind'"),
        ("agents.rounds", "'rounds'"),
        ("nn", "'agents.n'"),
    ],
)
def test_a_key_of_another_group_is_offered_with_its_group(key, offered):
    with pytest.raises(ConfigError, match=rf"^override: {key}: no such key .* Did you mean {offered}\?$"):
        load_config(None, [f"{key}=1"])
