"""How interviews and surveys end: an interrupt keeps what was said, and nothing of them goes into the run."""

import io
import json
import os
import signal

import pytest
from worlds import plain

from prism_mesa.analysis.interview import interview
from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.survey.questionnaire import make_questionnaire
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.llm import LLMClient
from prism_mesa.runs.social import run

ASKED = make_questionnaire({"questions": [{"id": "why", "ask": "Why?"}]})


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    config = plain({"rounds": 3, "content": "template", "agents": {"n": 40}, "network": {"mean_degree": 12}})
    return run(config, out=tmp_path_factory.mktemp("run")).run_dir


def llm(prompt):
    return '{"understanding": "They ask."}' if prompt.endswith("as JSON:") else "Because."


def files_in(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# -- interrupts --------------------------------------------------------------------------------------


@pytest.fixture
def talk(prism, monkeypatch, run_dir):
    """Call `prism interview` on the run, with a function as the LLM, and lines on standard input."""

    def call(lines, player=llm):
        monkeypatch.setattr(
            "prism_mesa.analysis.interview.interview.make_llm", lambda config, given, **how: LLMClient(player)
        )
        monkeypatch.setattr("prism_mesa.view.interview_terminal.piped_lines", lines)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        return prism("interview", run_dir, "3")

    return call


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def kept(tmp_path):
    [folder] = (tmp_path / "results").iterdir()
    return json.loads((folder / "transcript.json").read_text())["answers"]


def check_interrupted(told):
    code, _, err = told
    assert code == 130
    assert err.splitlines()[-1].startswith("prism: interrupted (kept: results/interview-")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_the_talk_is_being_kept_does_not_lose_it(talk, tmp_path, monkeypatch):
    def new_folder(*arguments, make=interview.new_folder):
        interrupt()
        return make(*arguments)

    monkeypatch.setattr(interview, "new_folder", new_folder)
    check_interrupted(talk(lambda: iter(["A?"])))
    assert [answer["text"] for answer in kept(tmp_path)] == ["Because."]


def test_an_interrupt_during_an_answer_keeps_the_question(talk, tmp_path):
    def player(prompt):
        interrupt()
        return llm(prompt)

    check_interrupted(talk(lambda: iter(["A?"]), player))
    [answer] = kept(tmp_path)
    assert (answer["question"], answer["text"]) == ("A?", "")
    assert answer["events"][-1] == {"type": "error", "text": "interrupted"}


# -- the run stays as it is --------------------------------------------------------------------------


def test_a_ledger_in_a_run_is_not_written(run_dir, tmp_path):
    link = tmp_path / "link.sqlite"
    link.symlink_to(run_dir / "decisions.sqlite")
    before = files_in(run_dir)
    for ledger in (run_dir / "decisions.sqlite", run_dir / "deep" / "new.sqlite", link):
        given = ["reasoner.kind=ollama", "reasoner.ledger=cache", f"reasoner.ledger_path={ledger}"]
        for ask in (lambda: Interview(run_dir, "3", overrides=given), lambda: survey(run_dir, ASKED, given)):  # noqa: B023
            with pytest.raises(ConfigError, match=r"reasoner\.ledger_path: .* lies in the folder of a run") as caught:
                ask()
            assert "\n" not in str(caught.value)
    assert files_in(run_dir) == before


def test_nothing_is_kept_in_a_run(run_dir):
    before = files_in(run_dir)
    for out in (run_dir, run_dir / "deep" / "er"):
        with pytest.raises(DataError, match=r"--out: .* lies in the folder of a run"):
            Interview(run_dir, "3", llm=llm, out=out)
        with pytest.raises(DataError, match=r"--out: .* lies in the folder of a run"):
            survey(run_dir, ASKED, llm=llm, out=out)
    assert files_in(run_dir) == before
    assert not (run_dir / "deep").exists()


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["iterations", "notes"])
def test_a_survey_refuses_what_has_no_effect_in_it(run_dir, key):
    with pytest.raises(ConfigError, match=rf"deliberation\.{key} has no effect in a survey"):
        survey(run_dir, ASKED, [f"deliberation.{key}=5"], llm=llm)


def test_an_interview_can_be_limited_in_time(run_dir):
    given = ["deliberation.iterations=5", "deliberation.max_seconds=1e-9"]
    with Interview(run_dir, "3", llm=llm, overrides=given) as talk:
        events = list(talk.chat_stream("Why?"))
        assert talk.facts()["limits"]["seconds"] == 1e-9
    assert [event.text for event in events][1:] == ["Because.", "the limit of this turn is used up"]
