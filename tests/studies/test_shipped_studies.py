"""The studies that come with PRISM: each can be run as it is, says what it found, and sets nothing in vain."""

import warnings
from pathlib import Path

import pytest

from prism_mesa.errors import PrismWarning
from prism_mesa.params import merged, nested
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
        yield make_config(merged(nested(base), nested(values)))


@pytest.fixture(autouse=True)
def _beside_the_studies(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "configs" / "studies")  # as `prism study` does


def test_there_are_these_eight():
    assert set(STUDIES) == {
        *("media", "network_position", "feeds", "feed_switch", "six_feeds", "who_decides", "robustness", "sensitivity"),
    }


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
                n = max(150, round(config.network.mean_degree) + 1)
                SocialModel(config.model_copy(update={"agents": config.agents.model_copy(update={"n": n})})).close()


@pytest.mark.parametrize("name", ["media", "network_position"])
def test_the_two_by_two_studies_are_200_runs_of_500_agents_and_50_rounds_by_rule(name):
    study = read_study(STUDIES[name])
    made = list(conditions(study))
    assert len(made) * study.seeds == 200
    assert {(config.agents.n, config.rounds, config.reasoner.kind) for config in made} == {(500, 50, "rule")}
    assert study.keep == "measures"


def test_the_distilled_model_that_comes_along_is_of_smollm2_and_settles_every_choice_of_the_chart():
    model, _ = read_distilled(ROOT / "configs" / "studies" / "smollm2.json")
    assert model.provenance["llm"] == "SmolLM2-135M-Instruct"
    assert list(model.by_options) == [("composing", "scrolling")]
