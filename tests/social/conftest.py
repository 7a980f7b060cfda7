"""Fixtures that several files here share."""

import pytest
from key_worlds import table, words
from stand_in import StandIn
from stand_in.decisions import Decisions
from worlds import small

from prism_mesa.reasoner.distilled import DECLARATION, LINEAR_NAMES, NAMES, DistilledModel, LinearScore, OptionModel
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.round.walk_tables import WalkTables


@pytest.fixture
def agent():
    return small().agent(4)


@pytest.fixture(scope="module")
def server():
    with StandIn() as server:
        yield server


@pytest.fixture(scope="module")
def decider():
    with StandIn(models=("d1-omni:600m",), decisions=Decisions()) as server:
        yield server


@pytest.fixture
def made(tmp_path, server, decider):
    """Return what the worlds are made from: files, a server, and a ledger of it."""
    follows = [(i, (i + step) % 30) for i in range(30) for step in (1, 3, 7)]
    numbers = "engagement_threshold timeout_threshold activity post_rate like reply reshare".split()
    profile = (0.5, 4, 0.8, 0.3, 0.5, 0.25, 0.25)
    choices = [
        OptionModel(
            options=list(options),
            scores=[LinearScore(intercept=0.1, weights=[0.1] * len(LINEAR_NAMES))] * (len(options) - 1),
            rows=1,
        )
        for options in WalkTables(social_chart).option_sets
        if len(options) > 1
    ]
    distilled = DistilledModel(
        format=1,
        kind="logistic",
        features=list(NAMES),
        declaration=DECLARATION,
        persona="individual",
        archetypes=8,
        choices=choices,
        provenance={},
        report={},
    )
    (tmp_path / "distilled.json").write_text(distilled.text(), encoding="utf-8")
    return {
        "edges": table(tmp_path / "edges.csv", ["src", "dst"], follows),
        "profiles": table(tmp_path / "p.csv", ["agent", *numbers], [(i, *profile) for i in range(30)]),
        "bare": table(tmp_path / "bare.csv", ["text"], [(f"{words(i)} {i}",) for i in range(30)]),
        "labels": table(tmp_path / "labels.csv", ["text", "topic"], [(f"{words(i)} {i}", words(i)) for i in range(30)]),
        "distilled": str(tmp_path / "distilled.json"),
        "server": {"reasoner.kind": "ollama", "reasoner.host": server.url},
        "decides": {"reasoner.kind": "ollama", "reasoner.host": decider.url},
        "tmp": tmp_path,
    }
