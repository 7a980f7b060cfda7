"""Null models and ablations: what they take away, and the threshold at which they engage as often."""

from math import exp, log, sqrt

import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.params import merge_values, nest_keys
from prism_mesa.runs.config import Config, make_config
from prism_mesa.studies.validation import variants as matching
from prism_mesa.studies.validation.variants import (
    VARIANTS,
    matched_threshold,
    reshare_rate,
    search_worlds,
    select_variants,
)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_a_configuration_that_differs(name):
    full = Config.model_validate(
        {
            "utility": {"sensitivity": 0.03},
            "agents": {"popularity": 0.5, "persistence": 0.5, "post_sigma": 1.7, "hours": [1, 2] * 12},
            "network": {"mean_degree": 300, "close_ties": 4},
        }
    ).model_dump(mode="json")
    other = make_config(merge_values(full, nest_keys(dict(VARIANTS[name].overrides))))
    assert other.model_dump(mode="json") != full


def test_the_null_of_one_probability_leaves_nothing_that_differs_between_posts_or_persons():
    overrides = VARIANTS["one_probability"].overrides
    assert set(overrides.values()) == {0.0, None}  # None: closeness is no reason
    assert {"utility.weight", "utility.appeal_sigma", "agents.threshold_sd", "agents.propensity_sigma"} <= {*overrides}
    assert all(variant.matched for variant in VARIANTS.values() if variant.null)


def test_variants_are_chosen_by_name_or_by_kind_each_once():
    assert select_variants(["nulls", "no_appeal", "one_probability"]) == (
        "one_probability",
        "constant_per_hop",
        "no_appeal",
    )
    assert select_variants(["all"]) == tuple(VARIANTS)
    assert select_variants([]) == ()
    with pytest.raises(ConfigError, match="Did you mean 'no_appeal'"):
        select_variants(["no_apeal"])


CONFIG = Config.model_validate({"utility": {"sensitivity": 0.03}, "agents": {"threshold_mean": 0.6}})


@pytest.mark.parametrize(
    ("rate", "threshold", "most"),
    [
        (lambda threshold: 0.01 * exp(-(threshold - 0.55) / 0.03), 0.55 + 0.03 * log(10), 3),  # logistic
        (  # steep: by secants
            lambda threshold: 0.01 * exp(-((max(threshold - 0.3, 0) / 0.03) ** 2) / 2),
            0.3 + 0.03 * sqrt(2 * log(10)),
            matching.MAX_STEPS,
        ),
        (lambda threshold: 0.0, None, matching.MAX_STEPS),  # cannot be reached
    ],
)
def test_the_threshold_is_found_at_which_rates_are_equal(monkeypatch, rate, threshold, most):
    steps = []
    monkeypatch.setattr(matching, "reshare_rate", lambda config, seeds: rate(config.agents.threshold_mean))
    match = matched_threshold(CONFIG, {"utility.mood": 0.0}, [0.001], on_step=lambda: steps.append(1))
    assert match.is_close == (threshold is not None)
    assert len(steps) <= most
    assert threshold is None or match.threshold == pytest.approx(threshold, abs=0.03 * matching.MAX_DISTANCE)


def test_a_rate_is_that_of_all_seeds_together(monkeypatch):
    counts = {7: (1, 1000), 8: (9, 1000), 9: (0, 2000), 10: (10, 4000)}

    class Run:
        def __init__(self, config):
            self.reshares, self.impressions = counts.pop(config.seed)

        def run_in_memory(self, *_):
            engagement = {"reshares": self.reshares}
            return {"status": "done", "engagement": engagement, "impressions": self.impressions}

    monkeypatch.setattr(matching, "start_run", Run)
    assert reshare_rate(CONFIG.model_copy(update={"seed": 7}), 4) == 20 / 8000
    assert not counts


def test_a_threshold_is_looked_for_in_a_small_world_first_and_found_in_the_world_itself(monkeypatch):
    large = CONFIG.model_copy(update={"agents": CONFIG.agents.model_copy(update={"n": 60_000})})
    tried = []

    def run(config, seeds):  # the same threshold is passed more often where there are more agents
        tried.append((config.agents.n, seeds))
        return 0.01 * exp(-(config.agents.threshold_mean - config.agents.n / 1e6) / 0.03)

    monkeypatch.setattr(matching, "reshare_rate", run)
    found = matched_threshold(large, {"utility.mood": 0.0}, [0.001, 0.002])
    assert found.is_close
    assert found.threshold == pytest.approx(0.06 + 0.03 * log(5), abs=0.03 * matching.MAX_DISTANCE)
    assert list(dict.fromkeys(tried)) == [(matching.SMALL_AGENTS, matching.SEEDS), (60_000, 1)]
    assert search_worlds(CONFIG) == ((CONFIG, matching.SEEDS),)


def test_no_llm_is_asked_while_a_threshold_is_looked_for():
    asked = Config.model_validate({"reasoner": {"kind": "embedded", "archetypes": 16}})
    assert [world.reasoner.kind for world, _ in search_worlds(asked)] == ["rule"]
    distilled = Config.model_validate({"reasoner": {"kind": "distilled", "distilled": "model.json"}})
    assert [world.reasoner.kind for world, _ in search_worlds(distilled)] == ["distilled"]
