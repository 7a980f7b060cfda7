"""What a run's folder from elsewhere may not do."""

import json
import shutil
import stat
import sys
import warnings

import pytest
from foreign_runs import WORLD, from_elsewhere
from worlds import plain

from prism_mesa.analysis.distill.distill import distill
from prism_mesa.analysis.explain.why import why
from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.llm import read_llm_config
from prism_mesa.analysis.survey.questionnaire import Questionnaire
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run
from prism_mesa.runs.trust import key_file, sign

QUESTIONS = Questionnaire.model_validate(
    {"questions": [{"id": "q", "ask": "How are you?", "options": ["well", "ill"]}]}
)


ELSEWHERE = "http://evil.example:1234"


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported; returns that file."""
    left = tmp_path / "was-imported"
    (tmp_path / "evil_chart.py").write_text(
        f"open({str(left)!r}, 'w').close()\nfrom prism_mesa.social.behavior import build_chart\nchart = build_chart()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield left
    sys.modules.pop("evil_chart", None)


def asked_by_interview(run_dir, *overrides, out, trust=False):
    with Interview(run_dir, "3", overrides=overrides, out=out, trust=trust) as talk:
        list(talk.chat_stream("What did you do?"))
    return talk.transcript


# -- a server that the folder names ------------------------------------------------------------------


def test_an_interview_asks_no_server_that_only_the_folder_names(asked, server, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "foreign")
    before = server.n_requests
    with pytest.raises(DataError, match=r"not signed.*reasoner\.host=http://127.*give reasoner\.host=\.\.\. .*--trust"):
        asked_by_interview(foreign, out=tmp_path)
    assert server.n_requests == before
    assert asked_by_interview(foreign, out=tmp_path, trust=True)


def test_a_survey_asks_no_server_that_only_the_folder_names(asked, server, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "foreign")
    before = server.n_requests
    with pytest.raises(DataError, match=r"reasoner\.host=http://127.*--trust"):
        survey(foreign, QUESTIONS, agents=2, out=tmp_path / "out")
    assert server.n_requests == before
    assert not (tmp_path / "out").exists()
    assert survey(foreign, QUESTIONS, agents=2, out=tmp_path / "out", trust=True).summary["calls"]


def test_a_server_that_the_user_names_is_asked_whatever_the_folder_says(asked, server, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "foreign", config__reasoner__host=ELSEWHERE)
    assert asked_by_interview(foreign, f"reasoner.host={server.url}", out=tmp_path)
    given = read_llm_config(RunRecords(foreign).run, ["reasoner.kind=embedded"])
    assert given.reasoner.host is None  # it is not even there


# -- a module, and files, that the folder names ------------------------------------------------------


@pytest.mark.parametrize(
    "repeat",
    [replay, lambda run_dir, **how: why(run_dir, "3", **how), lambda run_dir, **how: distill([run_dir], **how)],
    ids=["replay", "why", "distill"],
)
def test_no_module_is_imported_that_only_the_folder_names(repeat, asked, tmp_path, marker, monkeypatch):
    monkeypatch.chdir(tmp_path)
    foreign = from_elsewhere(asked, tmp_path / "f", config__statechart__chart="evil_chart:chart")
    with pytest.raises(DataError, match=r"statechart\.chart=evil_chart:chart \(a module, .*allow it with --trust"):
        repeat(foreign)
    assert not marker.exists()
    repeat(foreign, trust=True)
    assert marker.exists()


@pytest.mark.parametrize(
    ("group", "key"), [("network", "edges"), ("posts", "file"), ("agents", "profiles")], ids=lambda part: part
)
def test_no_file_outside_of_the_folder_is_read(group, key, asked, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("text\nmy own business\n")
    foreign = from_elsewhere(asked, tmp_path / "f", **{f"config__{group}__{key}": str(secret)})
    with pytest.raises(DataError, match=rf"{group}\.{key}=.*secret\.csv \(a file outside of its folder\)"):
        replay(foreign)
    relative = from_elsewhere(
        asked, tmp_path / "g", **{f"config__{group}__{key}": "secret.csv", "working_directory": str(tmp_path)}
    )
    with pytest.raises(DataError, match=rf"{group}\.{key}=.*secret\.csv \(a file outside of its folder\)"):
        recorded_config(relative)


def test_a_replay_reads_no_ledger_and_no_model_that_the_folder_names_elsewhere(tmp_path):
    decided = run(WORLD, out=tmp_path).run_dir
    own = {"config__reasoner__ledger_path": "/etc/shadow", "config__reasoner__ledger": "replay"}
    config = recorded_config(from_elsewhere(decided, tmp_path / "f", **own, config__reasoner__distilled="/etc/passwd"))
    assert (config.reasoner.ledger_path, config.reasoner.distilled, config.reasoner.host) == (None, None, None)


# -- whose a folder is -------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_made_here_need_no_trust_wherever_they_lie(server, tmp_path, marker):
    posts = tmp_path / "texts.csv"
    posts.write_text("text\n" + "\n".join(f"About the weather number {i}." for i in range(30)))
    own = WORLD | {"statechart": {"chart": "evil_chart:chart"}, "posts": {"file": str(posts)}}
    made = run(own | {"reasoner": {"kind": "ollama", "host": server.url}}, out=tmp_path / "first").run_dir
    moved = tmp_path / "second" / "renamed"
    moved.parent.mkdir()
    shutil.move(made, moved)
    assert replay(moved).equal
    assert asked_by_interview(moved, out=tmp_path)


def test_one_changed_word_in_a_manifest_and_it_is_not_trusted(asked, server, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(asked, copy)
    text = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(text.replace(server.url, ELSEWHERE))
    with pytest.raises(DataError, match=r"signature .* does not match.*evil\.example"):
        asked_by_interview(copy, out=tmp_path)
    (copy / "manifest.json").write_text(json.dumps(json.loads(text)))  # other spaces: the same content
    assert asked_by_interview(copy, out=tmp_path)


def test_with_the_key_of_another_user_nothing_is_ones_own(asked, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
    with pytest.raises(DataError, match=r"signature .* does not match.*reasoner\.host"):
        asked_by_interview(asked, out=tmp_path)
    assert not (tmp_path / "other").exists()  # reading makes no key
    assert replay(asked).equal  # which names nothing, and asks nobody


def test_the_repetition_of_a_run_from_elsewhere_is_from_elsewhere(asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    kept = replay(foreign, out=tmp_path / "kept").run_dir
    assert read_run(kept).origin == "unsigned"
    for trusted in (asked, foreign):
        again = replay(trusted, out=tmp_path / "trusted", trust=trusted is foreign)
        assert read_run(again.run_dir).origin == "own"


@pytest.mark.parametrize("held", [b"", b"short"])
def test_a_file_that_is_no_key_is_said_to_be_none(held, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    key_file().parent.mkdir()
    key_file().write_bytes(held)
    unsigned, why_not = sign({"seed": 1})
    assert unsigned == {"seed": 1}
    assert "is not a key of 32 bytes (delete it, and PRISM makes a new key)" in why_not


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    run(plain({"agents": {"n": 5}, "rounds": 1}), out=tmp_path)
    key = tmp_path / "data" / "prism-mesa" / "key"
    before = key.read_bytes()
    assert (len(before), stat.S_IMODE(key.stat().st_mode)) == (32, 0o600)
    run(plain({"agents": {"n": 5}, "rounds": 1}), out=tmp_path)
    assert key.read_bytes() == before
    assert [file.name for file in key.parent.iterdir()] == ["key"]


def test_without_a_place_for_a_key_runs_go_on_unsigned_and_say_so(tmp_path, monkeypatch):
    (tmp_path / "data").write_text("a file is in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.warns(PrismWarning, match="the run is not signed"):
        result = run(plain({"agents": {"n": 5}, "rounds": 1}), out=tmp_path)
    assert result.status == "done"
    assert any("not signed" in note for note in result.summary["notes"])
    assert "signature" not in json.loads((result.run_dir / "manifest.json").read_text())
    assert replay_warned(result.run_dir).equal


def replay_warned(run_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        return replay(run_dir)


# -- on the command line -----------------------------------------------------------------------------
