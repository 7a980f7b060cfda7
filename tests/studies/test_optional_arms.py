"""Arms whose LLM may be missing: their runs are skipped, named with the reason, and run as soon as the LLM is there."""

import json

import pandas as pd
import pytest
from ollama_server import chat_answer, models, serving
from worlds import plain

from prism_mesa import Study
from prism_mesa.errors import ConfigError
from prism_mesa.studies.listing import list_folders

SMALL = plain(
    {
        "agents.n": 12,
        "rounds": 2,
        "network.mean_degree": 4,
        "agents.activity": 0.9,
        "agents.post_rate": 0.5,
        "agents.band": 0.3,
    }
)
NOBODY = "http://127.0.0.1:9"


def study(out, host=NOBODY, optional=True, **values):
    """Return a study of the rule and of two LLMs of a server, which need not be there."""
    llm = {"reasoner.kind": "ollama", "reasoner.host": host, "reasoner.max_fallback_share": 1.0}
    arms = {"rule": {"reasoner.kind": "rule"}} | {
        name: llm | {"reasoner.model": name} | ({"optional": True} if optional else {}) for name in ("here", "away")
    }
    given = {"question": "Who?", "base": SMALL, "arms": arms, "seeds": 2, "measures": ["likes"], "keep": "measures"}
    return Study({**given, **values}, out=out)


def statuses(result):
    return result.runs.groupby("arm")["status"].agg(lambda found: "/".join(sorted(set(found)))).to_dict()


@pytest.fixture
def server():
    """A server of Ollama's kind that has one of the two LLMs."""
    with serving(tags=models("here:latest"), always=chat_answer('{"next_state": "scrolling"}')) as found:
        yield found


def test_runs_of_an_arm_without_its_llm_are_skipped_and_named_and_its_expectations_stay_open(server, jobs, tmp_path):
    expect = ["likes: away < rule", "likes: here < rule"]
    result = study(tmp_path, server.url, seeds=3, expect=expect).run(report=False)
    assert (result.status, statuses(result)) == ("done", {"rule": "done", "here": "done", "away": "skipped"})
    assert len(jobs) == 6
    assert result.runs["reason"].str.contains("'away' is not on the server").tolist() == [False] * 6 + [True] * 3
    [said] = [note for note in result.notes if "away" in note]
    assert "'away' is not on the server" in said
    away, here = result.analysis.expectations
    assert (away.verdict, away.n, away.missing) == ("open", 0, 0)
    assert here.n == 3
    assert set(result.analysis.sensitivity["factor"]) == {"arm", "seed"}


def test_a_server_that_is_not_there_skips_both_and_is_asked_once_for_each_arm(jobs, tmp_path):
    result = study(tmp_path, vary={"agents.activity": [0.5, 0.6]}).run(report=False)
    assert statuses(result) == {"rule": "done", "here": "skipped", "away": "skipped"}
    assert len([note for note in result.notes if NOBODY in note]) == 2


def test_once_the_llm_is_there_the_same_study_runs_what_was_skipped(server, jobs, tmp_path):
    first = study(tmp_path, server.url).run(report=False)
    server.gets["/api/tags"] = models("here:latest", "away:latest")
    status = study(tmp_path, server.url).status()
    assert (status.status, status.done, status.skipped, status.missing, status.failures) == ("done", 4, 2, 0, ())
    jobs.clear()
    result = study(tmp_path, server.url).run(report=False, retry=False)
    assert [job.config["reasoner"]["model"] for job in jobs] == ["away", "away"]
    assert set(statuses(result).values()) == {"done"}
    assert result.notes == tuple(note for note in first.notes if "away" not in note)
    assert result.facts["attempts"].eq(1).all()


def test_without_optional_a_missing_llm_is_an_error_before_anything_runs(tmp_path, jobs):
    with pytest.raises(ConfigError, match=r"here: reasoner\.host"):
        study(tmp_path, optional=False).run()
    assert not jobs


def test_a_plan_leaves_out_what_is_skipped(tmp_path, jobs):
    plan = study(tmp_path, seeds=4).plan()
    assert (plan.runs, plan.done, plan.pilot, len(jobs)) == (12, 2, 2, 2)
    assert sum(NOBODY in note for note in plan.notes) == 2


def test_commands_and_the_report_say_what_was_skipped(server, jobs, tmp_path, prism):
    file = tmp_path / "who.yaml"
    values = study(tmp_path, server.url).design.params.model_dump(mode="json", exclude_unset=True)
    file.write_text(json.dumps(values), encoding="utf-8")
    code, out, _ = prism("study", "run", file, "--out", tmp_path, "--json")
    found = json.loads(out)
    assert (code, found["status"]) == (0, "done")
    assert found["runs"] == {"done": 4, "failed": 0, "skipped": 2, "missing": 0}
    assert "2 skipped" in prism("study", "status", file, "--out", tmp_path)[1]
    report = (tmp_path / "who" / "report.md").read_text(encoding="utf-8")
    assert "6 runs planned: 4 done, 0 failed, 2 skipped, 0 missing" in report
    assert "'away' is not on the server" in report
    [listing] = [one for one in list_folders(tmp_path) if one.kind == "study"]
    assert (listing.status, listing.state) == ("done", "done, 4 of 6 runs done, 2 skipped")
    assert pd.read_parquet(tmp_path / "who" / "runs.parquet")["status"].tolist() == ["done"] * 4 + ["skipped"] * 2
