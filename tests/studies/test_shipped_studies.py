"""The studies that come with PRISM: each can be run as it is, says what it found, and sets nothing in vain."""

import warnings
from pathlib import Path

import pytest

from prism_mesa.errors import PrismWarning
from prism_mesa.params import merge_values, nest_keys
from prism_mesa.reasoner.distilled import read_distilled
from prism_mesa.runs.config import make_config
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.social.model import SocialModel
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.params import read_study, settings
from prism_mesa.studies.statistics.expectation import parse_expectation

ROOT = Path(__file__).parents[2]
STUDIES = {file.stem: file for file in sorted((ROOT / "configs" / "studies").glob("*.yaml"))}


def conditions(study, most=None):
    """Return the configuration of each condition, by hand, or of some that hold every value of the few factors."""
    base = study.base
    if isinstance(base, str):
        [file] = [file for file in (ROOT / base, ROOT / "configs" / "studies" / base) if file.is_file()]
        base = read_yaml(file)
    points = [{}]
    for key, values in study.vary.items():
        points = [point | {key: value} for point in points for value in values]
    arms = [settings(arm) for arm in study.arms.values()] or [{}]
    changes = [{**study.set, **arm, **point} for arm in arms for point in points]
    for values in changes[:: -(-len(changes) // most) if most else 1]:
        yield make_config(merge_values(nest_keys(base), nest_keys(values)))


@pytest.fixture(autouse=True)
def _beside_the_studies(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "configs" / "studies")  # as `prism study` does


@pytest.mark.parametrize("name", STUDIES)
def test_a_shipped_study_begins_with_what_it_found_and_names_what_there_is(name):
    text, study = STUDIES[name].read_text(encoding="utf-8"), read_study(STUDIES[name])
    found = [line for line in text.split("question:")[0].splitlines() if line]
    assert all(line.startswith("#") for line in found)
    assert len(" ".join(found)) > 300
    for measure in study.measures:
        find_measure(measure)
    for expected in study.expect:
        parse_expectation(expected, measures=study.measures, arms=list(study.arms), factors=study.vary)


@pytest.mark.parametrize("name", STUDIES)
def test_no_condition_of_a_shipped_study_sets_a_key_in_vain(name, monkeypatch):
    monkeypatch.chdir(ROOT)  # from where the file of a distilled model is named
    for config in conditions(read_study(STUDIES[name]), most=6):
        if config.reasoner.kind not in ("embedded", "ollama"):  # whose LLM need not be there
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrismWarning)
                n = max(150, config.network.blocks * (round(config.network.mean_degree) + 1))
                SocialModel(config.model_copy(update={"agents": config.agents.model_copy(update={"n": n})})).close()


@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"sensitivity", "six_feeds"}))
def test_a_shipped_study_lives_in_the_default_world_with_visits_that_end_before_the_feed_does(name):
    study = read_study(STUDIES[name])
    assert study.base == {}
    assert study.keep == "measures"
    assert all(config.agents.session <= config.feed.size / 10 for config in conditions(study, most=6))


def test_the_distilled_model_that_comes_along_is_of_smollm2_and_settles_every_choice_of_the_chart():
    model, _ = read_distilled(ROOT / "configs" / "studies" / "smollm2.json")
    assert model.provenance["llm"] == "SmolLM2-135M-Instruct"
    assert list(model.by_options) == [("composing", "scrolling")]
