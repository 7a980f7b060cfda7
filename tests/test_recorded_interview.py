"""The interview in the docs says what the agent of that run really did: the run is made again, and its tables read."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from prism_mesa import run
from prism_mesa.experiments.grounding import not_in_records, refers_to
from prism_mesa.experiments.restored import RunRecords
from prism_mesa.experiments.store import read_table

DOCS = Path(__file__).parents[1] / "docs"
INTERVIEW = json.loads((DOCS / "interview.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    result = run({"agents": {"n": 60}, "rounds": 6, "content": "template"}, out=tmp_path_factory.mktemp("run"))
    return RunRecords(result.run_dir)


@pytest.fixture(scope="module")
def agent(records):
    return records.restored(INTERVIEW["agent"]["row"], INTERVIEW["at"])


def test_it_was_that_agent(agent):
    assert agent.name == INTERVIEW["agent"]["name"]
    assert len(INTERVIEW["answers"]) == 4


@pytest.mark.parametrize("answer", INTERVIEW["answers"], ids=lambda answer: answer["question"])
def test_every_answer_refers_to_a_deed_that_stands_in_the_tables(answer, agent, records):
    deeds = refers_to(answer["text"], agent.deeds)
    assert deeds
    assert [asdict(deed) for deed in deeds] == answer["refers_to"]
    assert not_in_records(answer["text"], agent, records.names) == []
    for deed in deeds:
        assert f"In round {deed.round} " in answer["text"]


@pytest.mark.parametrize("answer", INTERVIEW["answers"], ids=lambda answer: answer["question"])
def test_the_deed_is_a_row_of_the_run(answer, agent, records):
    engagements = read_table(records.run_dir, "engagements")
    own = engagements[engagements["agent"] == agent.row]
    posts = read_table(records.run_dir, "posts").set_index("post")
    for deed in answer["refers_to"]:
        if deed["action"] == "post":
            row = posts.loc[deed["post"]]
            assert (row["author"], row["round"], row["text"]) == (agent.row, deed["round"], deed["text"])
        else:
            there = own[["round", "tick", "post", "action"]].astype(object).to_numpy().tolist()
            assert [deed["round"], deed["tick"], deed["post"], deed["action"]] in there


def test_the_page_shows_the_recorded_answers():
    page = (DOCS / "interview.md").read_text(encoding="utf-8")
    for answer in INTERVIEW["answers"]:
        assert answer["question"] in page
        assert answer["text"] in page
