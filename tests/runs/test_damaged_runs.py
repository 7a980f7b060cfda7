"""Whatever a manifest, a ledger or a table holds, every command that reads it works or says in one line why not."""

import os
import shutil

import pytest
from advisors import served
from damaged_runs import damage_ledger, damage_table, damaged_manifest, with_manifest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from stand_in import StandIn
from worlds import plain

from prism_mesa.analysis.distill.distill import distill
from prism_mesa.analysis.explain.economy import why_nation
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.survey.questionnaire import Questionnaire
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import DataError, PrismError
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.ledgers import export_ledger, ledger_stats
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.runs.social import run
from prism_mesa.view.plots.drawing import draw_run
from prism_mesa.view.plots.economy import draw_economy

# what is damaged does not depend on how fine its pictures are
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("coarse_pictures")]

WORLD = plain(
    {"agents": {"n": 20, "activity": 0.9, "band": 0.4}, "network": {"mean_degree": 6}, "rounds": 2, "seed": 7}
)
WORLD |= {"ticks_per_round": 5}
QUESTIONS = Questionnaire.model_validate(
    {"questions": [{"id": "q", "ask": "How are you?", "options": ["well", "ill"]}]}
)
FEW = settings(max_examples=int(os.environ.get("PRISM_FUZZ", "2")), suppress_health_check=list(HealthCheck))
"""``PRISM_FUZZ=2000`` tries many."""


@pytest.fixture(scope="module")
def server():
    with StandIn(slots=8) as server:
        yield server


@pytest.fixture(scope="module")
def social(server, tmp_path_factory):
    reasoner = {"kind": "ollama", "host": server.url, "answer": "probabilities"}
    return run(WORLD | {"reasoner": reasoner}, out=tmp_path_factory.mktemp("social")).run_dir


@pytest.fixture(scope="module")
def economy(tmp_path_factory):
    with StandIn(served) as server:
        values = {"rounds": 2, "seed": 3, "economy": {"policy": "llm", "nations": ["Canada", "Sweden"]}}
        values |= {"reasoner": {"kind": "ollama", "host": server.url}}
        return run_economy(values, out=tmp_path_factory.mktemp("economy")).run_dir


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "run"


def talked_with(run_dir, host, out):
    with Interview(run_dir, "3", overrides=[*host], out=out) as talk:
        list(talk.chat_stream("What did you do?"))


def uses(run_dir, server, out):
    """Return everything that reads a run's folder, by name."""
    host = ("reasoner.kind=ollama", f"reasoner.host={server.url}")
    return {
        "replay": lambda: replay(run_dir),
        "why an agent": lambda: list(report_lines(why(run_dir, "3"))),
        "why a nation": lambda: list(why_nation(run_dir, "0")),
        "interview": lambda: talked_with(run_dir, host, out),
        "survey": lambda: survey(run_dir, QUESTIONS, host, agents=2, out=out),
        "distill": lambda: distill([run_dir], out=out),
        "ledger stats": lambda: ledger_stats(run_dir),
        "ledger export": lambda: export_ledger(run_dir, out),
        "pictures": lambda: draw_run(run_dir),
        "pictures of nations": lambda: draw_economy(run_dir),
        **{f"read {table}": lambda table=table: read_table(run_dir, table) for table in RUN_TABLES},
    }


def said_by(use):
    try:
        use()
    except PrismError as error:
        return str(error)
    return ""


def assert_each_works_or_says_why_not(run_dir, server, only=()):
    out = run_dir.parent / "out"
    for name, use in uses(run_dir, server, out).items():
        said = said_by(use) if not only or name in only else ""
        assert "\n" not in said, name
        assert len(said) < 900, name
    shutil.rmtree(out, ignore_errors=True)


@FEW
@given(seed=st.integers(0, 2**32))
def test_a_damaged_manifest_of_a_platform_is_one_line(seed, social, copy, server):
    raw = damaged_manifest((social / "manifest.json").read_text(), seed)
    assert_each_works_or_says_why_not(with_manifest(social, raw, copy), server)


@FEW
@given(seed=st.integers(0, 2**32))
def test_a_damaged_manifest_of_nations_is_one_line(seed, economy, copy, server):
    raw = damaged_manifest((economy / "manifest.json").read_text(), seed)
    own = ("replay", "why a nation", "distill", "interview")
    assert_each_works_or_says_why_not(with_manifest(economy, raw, copy), server, own)


@FEW
@given(seed=st.integers(0, 2**32))
def test_a_damaged_ledger_is_one_line(seed, social, economy, copy, server):
    for run_dir in (social, economy):
        damaged = with_manifest(run_dir, (run_dir / "manifest.json").read_bytes(), copy)
        damage_ledger(damaged / "decisions.sqlite", seed)
        own = ("replay", "why an agent", "distill", "ledger stats", "ledger export")
        assert_each_works_or_says_why_not(damaged, server, own)


READ = tuple(f"read {table}" for table in RUN_TABLES)


@FEW
@given(seed=st.integers(0, 2**32))
def test_a_damaged_table_of_a_platform_is_one_line(seed, social, copy, server):
    damaged = with_manifest(social, (social / "manifest.json").read_bytes(), copy)
    note(damage_table(damaged, seed))
    own = ("replay", "why an agent", "interview", "survey", "pictures")
    assert_each_works_or_says_why_not(damaged, server, (*own, *READ))


@FEW
@given(seed=st.integers(0, 2**32))
def test_a_damaged_table_of_nations_is_one_line(seed, economy, copy, server):
    damaged = with_manifest(economy, (economy / "manifest.json").read_bytes(), copy)
    note(damage_table(damaged, seed))
    own = ("replay", "why a nation", "pictures of nations")
    assert_each_works_or_says_why_not(damaged, server, (*own, *READ))


def test_of_every_column_of_every_table_it_is_known_what_it_holds(social, economy):
    for run_dir in (social, economy):
        for file in run_dir.glob("*.parquet"):
            always = [column.name for column in RUN_TABLES[file.stem].columns if not column.optional]
            assert list(read_table(run_dir, file.stem)) == always


def test_a_name_in_a_table_is_drawn_as_it_stands_and_not_taken_for_a_formula(economy, copy):
    damaged = with_manifest(economy, (economy / "manifest.json").read_bytes(), copy)
    for table, column in (("nations", "name"), ("decisions", "quarter"), ("responses", "nation")):
        rows = read_table(damaged, table)
        rows.assign(**{column: r"$\frac$"}).to_parquet(damaged / f"{table}.parquet")
    assert len(draw_economy(damaged)) == 3


@pytest.mark.parametrize(("debt", "gap"), [(float("inf"), -float("inf")), (float("nan"), float("nan"))])
def test_an_economy_that_ran_away_is_read_and_drawn(debt, gap, economy, copy):
    ran_away = with_manifest(economy, (economy / "manifest.json").read_bytes(), copy)
    for table in ("indicators", "baselines"):
        rows = read_table(ran_away, table)
        rows.assign(debt=debt, output_gap=gap).to_parquet(ran_away / f"{table}.parquet")
        assert len(read_table(ran_away, table)) == len(rows)
    assert len(draw_economy(ran_away)) == 3


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", r"cannot be read: Expecting value"),
        (b"[]", r"cannot be read: it holds a list, not keys and values"),
        (b"{}", r"does not say who was asked"),
        (b"\xff\xfe", r"cannot be read: 'utf-8' codec"),
        (b"[" * 100_000, r"cannot be read: "),
        (b'{"llm": 3}', r"manifest\.json: llm: Input should be a group of keys .*not 3 \(it is damaged"),
        (b'{"llm": {"name": []}}', r"manifest\.json: llm\.name: Input should be a valid string, not \[\]"),
        (b'{"summary": {"rounds": "two"}}', r"manifest\.json: summary\.rounds: Input should be a valid integer"),
        (b'{"summary": {"rounds": 1' + b"0" * 400 + b"}}", r"manifest\.json: summary\.rounds: "),
        (b'{"summary": {"rounds": 1' + b"0" * 5000 + b"}}", r"cannot be read: Exceeds the limit"),
        (b'{"config": {"rounds": 2}, "summary": {"rounds": 3}}', r"3 of 2 rounds cannot have been completed"),
        (b'{"status": null}', r"manifest\.json: status: Input should be a valid string, not None"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(raw, said, social, copy):
    with pytest.raises(DataError, match=said):
        replay(with_manifest(social, raw, copy))


def test_a_manifest_of_gigabytes_is_not_read(copy, social):
    damaged = with_manifest(social, b"{}", copy)
    os.truncate(damaged / "manifest.json", 2**40)  # a hole in it; it takes no room
    with pytest.raises(DataError, match=r"manifest\.json: has more than 64 MB"):
        read_manifest(damaged)
