"""The interviews in the docs: the run is made again, and what the agent said is compared with its tables."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from worlds import plain

from prism_mesa.analysis.interview.evidence import find_references, find_unrecorded
from prism_mesa.analysis.interview.transcript import Exchange, as_markdown
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.run_files import read_table
from prism_mesa.runs.social import run

DOCS = Path(__file__).parents[2] / "docs"
HELD, FREE = (
    json.loads((DOCS / name).read_text(encoding="utf-8")) for name in ("interview.json", "interview-free.json")
)
BOTH = pytest.mark.parametrize("recorded", [HELD, FREE], ids=["held", "free"])
ANSWERS = pytest.mark.parametrize("answer", HELD["answers"], ids=lambda answer: answer["question"])


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    result = run(plain({"agents": {"n": 60}, "rounds": 6, "content": "template"}), out=tmp_path_factory.mktemp("run"))
    return RunRecords(result.run_dir)


@pytest.fixture(scope="module")
def agent(records):
    return records.snapshot(HELD["agent"]["row"], HELD["at"])


@BOTH
def test_it_was_that_agent_of_that_run(recorded, agent):
    assert recorded["agent"] == {"row": agent.row, "name": agent.name}
    assert (recorded["run"], recorded["at"]) == (HELD["run"], HELD["at"])
    assert [answer["question"] for answer in recorded["answers"]] == [one["question"] for one in HELD["answers"]]
    assert len(recorded["answers"]) == 4


@BOTH
def test_what_the_check_says_of_an_answer_is_what_the_tables_say(recorded, agent, records):
    for answer in recorded["answers"]:
        assert answer["refers_to"] == [
            asdict(activity) for activity in find_references(answer["text"], agent.activities)
        ]
        assert answer["not_in_records"] == find_unrecorded(answer["text"], agent, records.names)


@ANSWERS
def test_the_deed_is_a_row_of_the_run(answer, agent, records):
    assert answer["refers_to"]
    assert answer["not_in_records"] == []
    engagements = read_table(records.run_dir, "engagements")
    own = engagements[engagements["agent"] == agent.row]
    posts = read_table(records.run_dir, "posts").set_index("post")
    for activity in answer["refers_to"]:
        assert f"In round {activity['round']} " in answer["text"]
        if activity["action"] == "post":
            row = posts.loc[activity["post"]]
            assert (row["author"], row["round"], row["text"]) == (agent.row, activity["round"], activity["text"])
        else:
            there = own[["round", "tick", "post", "action"]].astype(object).to_numpy().tolist()
            assert [activity["round"], activity["tick"], activity["post"], activity["action"]] in there


@BOTH
def test_the_page_shows_the_transcript(recorded, agent):
    page = (DOCS / "interviews.md").read_text(encoding="utf-8")
    dates = re.findall(r"^- date: (.*)$", page, re.MULTILINE)
    transcript = []
    for answer in recorded["answers"]:
        activities = [activity for activity in agent.activities if asdict(activity) in answer["refers_to"]]
        transcript.append(Exchange(**answer | {"refers_to": activities}))
    shown = as_markdown(recorded, dates[recorded is FREE], transcript).removeprefix("# Interview\n")
    assert re.sub("^#", "##", shown, flags=re.MULTILINE) in page
