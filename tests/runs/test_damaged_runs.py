"""With a damaged manifest, ledger or table, every reader of a run works or fails in one line."""

import os
import shutil

import pytest
from advisors import served
from damage import damaged_json, damaged_parquet, damaged_sqlite
from hypothesis import HealthCheck, given, settings
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


def message_of(use):
    try:
        use()
    except PrismError as error:
        return str(error)
    return ""


def assert_each_works_or_says_why_not(run_dir, server, readers):
    out = run_dir.parent / "out"
    for name, use in uses(run_dir, server, out).items():
        message = message_of(use) if name in readers else ""
        assert "\n" not in message, name
        assert len(message) < 900, name
    shutil.rmtree(out, ignore_errors=True)


READ = tuple(f"read {table}" for table in RUN_TABLES)
MANIFEST, LEDGER = "manifest.json", "decisions.sqlite"


def copied(run_dir, to, **files):
    """Return a copy of a run with other bytes in some files."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(run_dir, to)
    for name, raw in files.items():
        (to / name).write_bytes(raw)
    return to


@FEW
@given(draws=st.randoms(use_true_random=False))
def test_a_damaged_manifest_or_ledger_is_one_line(draws, social, economy, copy, server):
    readers = ("replay", "why an agent", "why a nation", "interview", "distill", "ledger stats", "ledger export")
    for run_dir in (social, economy):
        manifest = damaged_json((run_dir / MANIFEST).read_bytes(), draws)
        assert_each_works_or_says_why_not(copied(run_dir, copy, **{MANIFEST: manifest}), server, readers)
        ledger = damaged_sqlite((run_dir / LEDGER).read_bytes(), draws)
        assert_each_works_or_says_why_not(copied(run_dir, copy, **{LEDGER: ledger}), server, readers)


@FEW
@given(draws=st.randoms(use_true_random=False))
def test_a_damaged_table_is_one_line(draws, social, economy, copy, server):
    readers = (
        *READ,
        "replay",
        "why an agent",
        "why a nation",
        "interview",
        "survey",
        "pictures",
        "pictures of nations",
    )
    for run_dir in (social, economy):
        file = draws.choice(sorted(run_dir.glob("*.parquet")))
        damaged = copied(run_dir, copy, **{file.name: damaged_parquet(file.read_bytes(), draws)})
        assert_each_works_or_says_why_not(damaged, server, readers)


def test_an_economy_that_ran_away_is_read_and_drawn(economy, copy):
    ran_away = copied(economy, copy)
    for table in ("indicators", "baselines"):
        rows = read_table(ran_away, table)
        rows.assign(debt=float("inf"), output_gap=float("nan")).to_parquet(ran_away / f"{table}.parquet")
        assert len(read_table(ran_away, table)) == len(rows)
    assert len(draw_economy(ran_away)) == 3


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", r"cannot be read"),
        (b"[]", r"cannot be read: it holds a list"),
        (b"{}", r"does not say which LLM was asked"),
        (b"\xff\xfe", r"cannot be read"),
        (b"[" * 100_000, r"cannot be read"),
        (b'{"llm": 3}', r"manifest\.json: llm: "),
        (b'{"llm": {"name": []}}', r"manifest\.json: llm\.name: "),
        (b'{"summary": {"rounds": 1' + b"0" * 400 + b"}}", r"manifest\.json: summary\.rounds: "),
        (b'{"config": {"rounds": 2}, "summary": {"rounds": 3}}', r"3 of 2 rounds"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(raw, said, social, copy):
    with pytest.raises(DataError, match=said):
        replay(copied(social, copy, **{MANIFEST: raw}))


def test_a_manifest_of_gigabytes_is_not_read(copy, social):
    damaged = copied(social, copy, **{MANIFEST: b"{}"})
    os.truncate(damaged / "manifest.json", 2**40)  # a hole in it; it takes no room
    with pytest.raises(DataError, match=r"manifest\.json has more than 64 MB"):
        read_manifest(damaged)
