import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from read_reports import WHEN, both_forms, read_markdown, read_page
from study_results import ALL, HOSTILE, LONG, factorial, make_result, many, nothing_yet, sobol, two_arms

from prism_mesa.runs.process import machine
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.statistics.analysis import RunTable, analyse
from prism_mesa.studies.statistics.significance import holm
from prism_mesa.view.study import figures, report
from prism_mesa.view.study.contents import measure_meaning
from prism_mesa.view.study.numbers import p_value
from prism_mesa.view.study.report import study_html, write_report

WRITTEN = " ".join(HOSTILE.split())


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """Return a report as a page and as Markdown; each is made once."""
    made = {}

    def get(make):
        if make not in made:
            made[make] = both_forms(make(tmp_path_factory.getbasetemp()))
        return made[make]

    return get


@pytest.mark.parametrize("make", [study for name, study in ALL.items() if name != "many"])
def test_page_and_markdown_have_the_same_tables_and_whole_rows(forms, make):
    html, text = forms(make)
    rows = read_page(html).rows()
    assert rows == read_markdown(text).rows()
    assert len(rows) > 20
    for table in read_markdown(text).tables:
        assert {len(row) for row in table} == {len(table[0])}


@pytest.mark.parametrize("form", [0, 1])
def test_each_expectation_stands_with_its_verdict_its_sentence_and_its_figures(forms, form):
    text = (read_page, read_markdown)[form](forms(two_arms)[form]).text
    assert "Of 3 expectations, 1 holds, 1 fails and 1 stays open." in text
    for shown in (
        "✓ holds gini_impressions: ranked > chronological Holds: gini_impressions is larger",
        "✗ fails reshares: ranked > chronological Fails: reshares is not larger but smaller",
        "? open cascade_mean: ranked > chronological Open: the difference of cascade_mean",
        "means 0.7444 and 0.7088; 20 pairs, 0 missing",
    ):
        assert shown in text


def test_a_report_has_one_p_for_one_comparison_and_names_its_family(tmp_path):
    """The short answer and the differences had two: one after Holm over expectations, one over all differences."""
    values = {f"m{k}": np.random.default_rng(k).normal(0.3, 1, (3, 12)) for k in range(3)}
    names = ("a", "b", "c")
    runs = pd.DataFrame(
        {"arm": np.repeat(names, 12), "seed": [*range(12)] * 3, "status": "done", "reason": ""}
        | {name: many.ravel() for name, many in values.items()}
    ).assign(run=[f"r{place}" for place in range(36)])
    table = RunTable(runs, names, (), tuple(values))
    analysis = analyse(table, ["m0: b > a", "m1: b < a", "m0: c = a within 0.2"])
    rows = read_page(both_forms(make_result(tmp_path, table, analysis))[0]).rows()
    shown = [row for row in rows if len(row) == 8 and row[0] in ("b \u2212 a", "c \u2212 a", "c \u2212 b")]
    assert [row[4] for row in shown[:2]] == [p_value(analysis.expectations[place].p_holm) for place in (0, 2)]
    assert [row[5] for row in shown[:3]] == ["expectations", "expectations, of a margin", "other differences"]
    others = analysis.differences[analysis.differences["family"] == "other differences"]
    assert others["p_holm"].tolist() == holm(others["p"]).tolist()
    assert len(others) == 6
    assert not any("p" in row or "p (Mann-Whitney)" in row for row in rows)
    assert all("over 3 expectations" in verdict.sentence for verdict in analysis.expectations)


def test_the_answers_are_those_of_the_analysis(forms, tmp_path):
    answers = two_arms(tmp_path).analysis.answers
    row = answers[(answers["measure"] == "reshares") & (answers["arm"] == "ranked")].iloc[0]
    expected = ["ranked", f"{row['mean']:,.0f}", f"[{row['low']:,.0f}, {row['high']:,.0f}]"]
    expected += [f"{row['median']:,.0f}", f"{row['sd']:,.0f}", "20", "0"]
    assert expected in read_page(forms(two_arms)[0]).rows()


def test_what_is_missing_is_counted_beside_every_mean(forms):
    rows = [row for row in read_page(forms(factorial)[0]).rows() if len(row) == 8 and row[3].startswith("[")]
    missing = Counter(int(row[-1]) for row in rows)
    assert missing == {1: 4, 0: 2, 3: 2}  # of two measures in four conditions: 3 failed, 2 missing
    assert all(int(row[-2]) + int(row[-1]) == 25 for row in rows)


def test_without_expectations_the_largest_differences_or_indices_are_listed(forms):
    text = read_page(forms(factorial)[0]).text
    assert "The study states no expectations. The largest of 4 differences, by effect size d_z" in text
    assert text.index("cascade_mean 0.398") < text.index("engagement_per_impression 0.00015")
    text = read_page(forms(sobol)[0]).text
    assert "The strongest factor of each measure: reshares: agents.activity (total Sobol index 0.490" in text
    assert "The first 8 of 512 conditions; all are in runs.parquet." in text
    assert "300 of 512 runs, failed ones first" in text


def test_a_study_without_runs_says_so(forms):
    text = read_page(forms(nothing_yet)[0]).text
    assert "incomplete 2 runs planned: 0 done, 0 failed, 2 missing." in text
    assert "No run has been finished yet, so there is no answer." in text
    assert "There is nothing to draw yet." in text
    assert "nan" not in re.findall(r"\w+", text.lower())


def test_failures_are_named_with_run_seed_ending_and_reason(forms):
    rows = read_page(forms(factorial)[0]).rows()
    assert ["all-00003", "0.1", "chronological", "4", "timeout", "timeout: 600 s are over"] in rows
    assert ["all runs", "100", "95", "3", "2"] in rows
    assert any(row[-1] == WRITTEN for row in rows if row)
    assert any(row[-1].startswith("the worker was gone") and len(row[-1]) <= 240 < len(LONG) for row in rows if row)
    assert "Failed runs are not random" in read_page(forms(factorial)[0]).text


def test_who_decided_is_summed_up_with_its_fallbacks(forms):
    sums = ["118,750", "950", "0.8%", "85,500", "11,400,000", "llm 85,500, cache 32,300, fallback 950"]
    assert ["all runs", "llm SmolLM2-135M", *sums] in read_page(forms(factorial)[0]).rows()


def test_a_row_of_a_run_leads_to_its_folder_and_to_why_or_to_the_command_that_repeats_it(forms):
    html, text = forms(two_arms)
    assert "runs/ranked-00014/" in [attrs["href"] for tag, attrs in read_page(html).tags if tag == "a"]
    assert "[ranked-00014](runs/ranked-00014/)" in text
    assert any(re.fullmatch(r"prism why \S+/runs/ranked-00014 AGENT", row[-1]) for row in read_page(html).rows() if row)
    html, text = forms(factorial)
    assert re.search(r"prism study run STUDY.yaml --out \S+ --keep tables", text)
    [command] = [row[-1] for row in read_page(html).rows() if row and row[0] == "all-00004"]
    assert re.fullmatch(r"prism run \S+/base.yaml feed.mode=x_algo seed=5", command)
    assert not [attrs for tag, attrs in read_page(html).tags if tag == "a" and attrs["href"].startswith("runs/")]


@pytest.mark.slow
def test_nothing_that_somebody_wrote_becomes_markup(forms):
    html, text = forms(many)
    for page in (read_page(html), read_markdown(text)):
        assert "script" not in {tag for tag, _ in page.tags}
        assert not [attrs for tag, attrs in page.tags if tag == "a" and "evil" in attrs["href"]]
        assert page.text.count(WRITTEN) > 20
    assert read_page(html).rows() == read_markdown(text).rows()


@pytest.mark.parametrize("make", [study for name, study in ALL.items() if name != "many"])
def test_a_page_asks_for_nothing_and_runs_nothing(forms, make):
    html, _ = forms(make)
    tags = read_page(html).tags
    assert not {"script", "link", "iframe", "object", "base"} & {tag for tag, _ in tags}
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on") or name == "src"]
    outside = {attrs["href"] for _, attrs in tags if "href" in attrs and "//" in attrs["href"]}
    assert outside == {"https://doi.org/10.18564/jasss.4259"}
    assert not re.search(r"@import|url\((?!['\"]?#)", html)


def test_links_within_the_page_lead_somewhere(forms):
    tags = read_page(forms(two_arms)[0]).tags
    names = [attrs["id"] for _, attrs in tags if "id" in attrs]
    inside = [attrs["href"][1:] for tag, attrs in tags if tag == "a" and attrs["href"].startswith("#")]
    assert len(names) == len(set(names))
    assert len(inside) == 10
    assert set(inside) <= set(names)


def check_written(folder, page, text):
    """Check a report that was written: it has its figures, once each, and is not large."""
    html, markdown = page.read_text("utf-8"), text.read_text("utf-8")
    named = re.findall(r"!\[Figure \d+\]\((figures/[^)]+)\)", markdown)
    files = {f"figures/{file.name}" for file in (folder / "figures").iterdir()}
    assert files == set(named)
    assert html.count("<svg ") == html.count("</svg>") == html.count("<figcaption>") == len(named) >= 1
    assert all((folder / file).read_bytes().startswith(b"\x89PNG") for file in named)
    assert "<script" not in html
    assert html.count("font-family:") == html.count("font-family: var(--sans)")
    assert page.stat().st_size < 1_200_000


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_the_same_study_gives_the_same_report_with_its_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "wall_clock", lambda: "2026-01-02T03:04:05+00:00")  # the minute may change in between
    monkeypatch.setattr(figures, "MAX_MEASURES", 1)
    written = write_report(two_arms(tmp_path), date=WHEN)
    check_written(tmp_path, *written)
    html, markdown = [file.read_text("utf-8") for file in written]
    assert read_page(html).rows() == read_markdown(markdown).rows()
    first = [file.read_bytes() for file in written]
    drawn = {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()}
    assert [file.read_bytes() for file in write_report(two_arms(tmp_path), date=WHEN)] == first
    assert {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()} == drawn


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_a_study_of_ten_thousand_runs_has_a_small_page(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "to_png", lambda figure: b"\x89PNG")
    result = sobol(tmp_path, n=1250)
    page, text = write_report(result)
    assert len(result.table.runs) == 10_000
    assert page.stat().st_size < 1_000_000
    assert text.stat().st_size < 200_000


def test_a_notebook_shows_verdicts_and_answers(tmp_path):
    html = study_html(two_arms(tmp_path))
    page = read_page(html)
    assert "Does a ranked feed make attention more unequal?" in page.text
    assert "✗ fails" in page.text
    assert sum("ranked" in row for row in page.rows()) == 3
    assert len(html) < 20_000


def test_the_report_has_the_study_file_and_the_versions_of_the_folder(tmp_path):
    result = two_arms(tmp_path)
    assert "arms:\n  chronological:\n    feed.mode: chronological\n" in both_forms(result)[1]
    (tmp_path / "study.yaml").write_text("question: as it was written  # with a remark\n", encoding="utf-8")
    (tmp_path / "study.json").write_text("{", encoding="utf-8")
    assert "written 2026-11-23 04:05 UTC" in both_forms(result)[1]
    made = {"started": "2026-01-02T03:04:05+00:00", "packages": {"mesa": "3.5.9"}, "git": "abc123"}
    (tmp_path / "study.json").write_text(json.dumps({"made": made}), encoding="utf-8")
    html, text = both_forms(result)
    for form in (read_page(html).text, " ".join(text.split())):
        for part in ("as it was written # with a remark", "2026-01-02 03:04 UTC", "mesa 3.5.9", "abc123"):
            assert part in form


def test_what_no_run_stands_behind_is_not_compared(forms, tmp_path):
    result = factorial(tmp_path)
    for name in ("differences", "groups", "effects"):
        getattr(result.analysis, name)["n"] = 0
    titles = re.findall(r"<h3>([^<]+)</h3>", both_forms(result)[0])
    assert {"Differences", "Groups", "Effects"}.isdisjoint(titles)
    assert {"Differences", "Groups", "Effects"} <= set(re.findall(r"<h3>([^<]+)</h3>", forms(factorial)[0]))


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("follow_ei@leaning", "E-I index of follows by `leaning`"),
        ("cross_cutting@leaning", r"impressions of .*leaning.*share"),
        ("my_module:cross@leaning", "^$"),
    ],
)
def test_a_measure_by_an_attribute_has_its_meaning(name, meaning):
    assert re.search(meaning, measure_meaning(name))


def test_a_measure_of_a_users_own_is_described_by_the_first_sentence_of_its_docstring(tmp_path, monkeypatch):
    docstring = '"""Share of agents who read,\n    and never post. Those who left too."""'
    (tmp_path / "lurking_measures.py").write_text(f"def lurkers(run):\n    {docstring}\n    return 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert measure_meaning("lurking_measures:lurkers") == ""  # a report imports nothing
    assert find_measure("lurking_measures:lurkers").meaning == "Share of agents who read, and never post"
    assert measure_meaning("lurking_measures:lurkers") == "Share of agents who read, and never post"


@pytest.mark.parametrize(("paired", "size"), [(True, "d_z"), (False, "r")])
def test_differences_have_the_effect_size_that_fits_and_it_is_named(tmp_path, paired, size):
    result = two_arms(tmp_path)
    object.__setattr__(result.table, "paired", paired)
    row = result.analysis.differences.iloc[0]
    rows = read_page(both_forms(result)[0]).rows()
    [head] = [row for row in rows if row[:2] == ["compared", "difference"]]
    first = next(cells for cells in rows if cells[0] == f"{row['left']} \u2212 {row['right']}")
    assert (head[3], first[3]) == (size, f"{row['d_z' if paired else 'rank_biserial']:.2f}")
