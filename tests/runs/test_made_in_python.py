"""Runs that were given something in Python: what is advised to who wants to repeat them from their folders."""

import pytest
from worlds import plain

from prism_mesa import Ledger, Reasoner, replay, why
from prism_mesa.errors import DataError
from prism_mesa.llm import AnswerStore
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import social_chart

WORLD = plain({"agents.n": 40, "agents.band": 0.2, "rounds": 4, "network.mean_degree": 6, "seed": 1})


def cook(prompt):
    return "composing" if "cooking" in prompt else "scrolling"


def test_a_run_whose_answers_came_from_a_function_is_repeated_as_is_advised(tmp_path):
    first = run(WORLD, out=tmp_path, reasoner=Reasoner(cook))
    assert first.summary["decisions"]["open"]
    ledger = first.run_dir / "decisions.sqlite"
    advice = r"was given reasoner in Python: run it again there, with run\(config, reasoner=\.\.\.\)$"
    for repeat in (lambda: replay(first), lambda: why(first, 3)):
        with pytest.raises(DataError, match=advice):
            repeat()
    with Ledger(ledger) as answers, Reasoner(cook, store=AnswerStore("replay", answers)) as oracle:
        again = run(WORLD, out=tmp_path, reasoner=oracle)
    assert again.table("engagements").equals(first.table("engagements"))
    assert set(again.summary["decisions"]["by_source"]) == {"cache"}


def test_a_run_with_a_chart_and_the_rule_is_advised_no_ledger(tmp_path):
    made = run(WORLD, out=tmp_path, chart=social_chart, prepare=lambda model: None)
    with pytest.raises(
        DataError, match=r"given chart and prepare in Python.* with run\(config, chart=\.\.\., prepare=\.\.\.\)$"
    ):
        replay(made)
