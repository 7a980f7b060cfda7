import pandas as pd
from study_results import factorial, two_arms

from prism_mesa.studies.study import StudyPlan, StudyStatus
from prism_mesa.view.study.summary import plan_lines, status_lines, study_lines


def test_the_end_of_a_study_is_its_question_its_runs_its_verdicts_and_where_the_report_is(tmp_path):
    lines = study_lines(two_arms(tmp_path))
    assert lines[:2] == [
        ("question", "Does a ranked feed make attention more unequal?"),
        ("runs", "40 runs planned: 40 done, 0 failed, 0 missing"),
    ]
    assert [what for what, _ in lines[2:]] == ["holds", "", "open", "", "fails", ""]
    assert lines[6] == ("fails", "reshares: ranked > chronological")
    assert lines[7][1].startswith("Fails: reshares is not larger")
    assert "report" not in [what for what, _ in lines]
    (tmp_path / "report.html").touch()
    assert study_lines(two_arms(tmp_path))[-1] == ("report", str(tmp_path / "report.html"))


def test_failed_runs_are_named_with_their_reasons_and_a_study_without_expectations_tells_means(tmp_path):
    lines = study_lines(factorial(tmp_path))
    failed = [text for what, text in lines if what == "failed"]
    assert failed[0] == "all-00003 (all, seed 4): timeout: 600 s are over"
    assert len(failed) == 3
    means = [text for what, text in lines if what == "mean"]
    assert means
    assert all("95 % interval" in text and "n = " in text for text in means)
    assert ("note", "2 runs of an earlier version of this study are stale: they are kept, and not counted.") in lines


def test_the_status_counts_runs_and_names_the_first_failures():
    failures = tuple((f"run{n}", f"ranked, seed {n}", "timeout") for n in range(7))
    lines = status_lines(
        "feeds", StudyStatus(40, 20, 7, 13, 0, failures, {"another version of the code": ["a", "b", "c"]})
    )
    assert lines[0] == ("study", "feeds (incomplete)")
    assert lines[1] == ("runs", "40 planned: 20 done, 7 failed, 13 missing")
    assert [text for what, text in lines if what == "failed"][4] == "run4 (ranked, seed 4): timeout"
    assert ("", "and 2 more: runs.parquet has their reasons") in lines
    assert any(what == "note" and "stale: 3 runs" in text for what, text in lines)


def test_a_plan_tells_runs_time_calls_and_widths():
    widths = pd.DataFrame(
        [("reshares", "arm", "ranked", "chronological", 50.25), ("reshares", "agents.band", 0.1, 0.02, 4.0)],
        columns="measure term left right half_width".split(),
    )
    lines = plan_lines(StudyPlan(200, 4, 4, 50, 4, 2, 2.5, 2.4, 1.2, 12_000.0, widths, ("a note",)))
    assert lines[0] == ("runs", "200 runs (4 conditions x 50 seeds); 4 are done, 4 of them as a pilot")
    assert lines[1] == ("time", "2.5 h of CPU in all; 1.2 h of wall time are left with 2 workers")
    assert lines[2] == ("LLM", "12,000 calls")
    assert [text for _, text in lines[3:5]] == [
        "reshares: differences between arms to within ± 50.2 (95 %)",
        "reshares: differences between levels of agents.band to within ± 4 (95 %)",
    ]
    assert lines[5][1].startswith("estimated from the 4 runs done so far")
    assert lines[6:] == [("note", "a note")]
