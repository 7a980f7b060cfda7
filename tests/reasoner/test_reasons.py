"""A sentence that says why, after the choice: asked for, kept and shown; an answer without one is an answer."""

import json

import pytest
from oracle_questions import C, S, question
from stand_in import StandIn, prompt_text
from worlds import plain

from prism_mesa import replay
from prism_mesa.api.runs import why
from prism_mesa.errors import ConfigError
from prism_mesa.llm.clients.base import FunctionClient
from prism_mesa.params import validate_params
from prism_mesa.reasoner import ReasonerParams, answer_schema, question_prompt
from prism_mesa.reasoner.oracle import ChatOracle, read_reason
from prism_mesa.runs.social import run

LIVELY = {"agents.n": 60, "agents.band": 0.4, "agents.activity": 1.0, "rounds": 2}
WHY = "Music is what I\u001b[2J live for <<<."


def musical(prompt):
    return json.dumps({"next_state": "composing", "reason": WHY})


def test_the_prompt_and_the_form_ask_for_the_choice_first_and_then_for_the_reason():
    prompt, form = question_prompt(question(), reason=True), answer_schema((C, S), reason=True)
    assert prompt.index('"next_state"') < prompt.index('"reason"')
    assert list(form["properties"]) == form["required"] == ["next_state", "reason"]


def test_without_it_prompt_form_and_decoding_are_those_of_existing_ledgers():
    plain_oracle, asking = ChatOracle(FunctionClient(str)), ChatOracle(FunctionClient(str), reason=True)
    assert '"reason"' not in plain_oracle.write(question()) + json.dumps(answer_schema((C, S)))
    assert plain_oracle.decoding == asking.decoding
    assert plain_oracle.write(question()) != asking.write(question())
    assert ReasonerParams().decoding == ReasonerParams(reason=True).decoding


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (musical(""), "Music is what I[2J live for <<."),
        ('{"next_state": "composing"}', ""),
        ("composing", ""),
        ('{"next_state": "composing", "reason": ["a"]}', ""),
        ('{"next_state": "composing", "reason": ""}', ""),
        ('```json\n{"next_state": "composing", "reason": "Rain."}\n```', "Rain."),
        (json.dumps({"next_state": "composing", "reason": "x" * 500}), "x" * 299 + "…"),
    ],
)
def test_an_answer_is_read_with_and_without_a_reason(said, reason):
    assert ChatOracle(FunctionClient(str), reason=True).read(question(), said) == (1.0, 0.0)
    assert read_reason(said) == reason


def test_letters_have_no_reason_and_that_is_an_error_before_the_run():
    with pytest.raises(ConfigError, match="reasoner: reason: answer=probabilities cannot include"):
        validate_params(ReasonerParams, {"reason": True, "answer": "probabilities"}, "reasoner")


def test_the_reason_is_kept_why_shows_it_and_the_run_replays(tmp_path):
    with StandIn(lambda body: musical(prompt_text(body))) as server:
        own = {"reasoner.kind": "ollama", "reasoner.host": server.url, "reasoner.reason": True}
        result = run(plain(LIVELY | own), out=tmp_path)
    assert result.status == "done"
    assert all("reason" in body["format"]["properties"] for body in server.requests)
    assert replay(result.run_dir, out=tmp_path / "again").equal
    rows = (why(result.run_dir, row) for row in range(60))
    told = next(one for one in rows if any(move.reason for move in one.explanation.reported_round.moves))
    assert {move.reason for move in told.explanation.reported_round.moves} - {""} == {"Music is what I[2J live for <<."}
    assert any(line.endswith('and gave this reason: "Music is what I[2J live for <<.".') for line in told.brief)
    assert "      Its reason: Music is what I[2J live for <<." in told.lines
