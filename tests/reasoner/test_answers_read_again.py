"""What an LLM said is read again as it was read first: by whoever asks, from memory, and from a ledger."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.domain import Post
from prism_mesa.llm import AnswerStore, Completion, Ledger, UselessAnswerError
from prism_mesa.llm.multiple_choice import make_recordable, read_probabilities
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
NAMES = ["composing", "scrolling"]


def asks(n):
    persona = Persona("Ann", ("tea",))
    return [
        PlacedQuestion(Question(persona, AgentState.EVALUATING, "decides", (C, S), Post(text=f"t{i}")), agent=i)
        for i in range(n)
    ]


tokens = st.sampled_from(["A", "B", " A", "b", "Sure", "C"])
logprobs = st.floats(-60, 0) | st.sampled_from([-float("inf"), float("nan"), float("inf"), 0.7, "-1", True])
places = st.lists(st.lists(st.tuples(tokens, logprobs), max_size=4).map(tuple), min_size=1, max_size=3).map(tuple)


@given(places)
def test_log_probabilities_are_recorded_as_json_that_any_reader_knows(tops):
    kept = make_recordable(Completion("A", top_logprobs=tops), NAMES).text
    try:
        shares = read_probabilities(kept, NAMES, "invalid-state")
    except UselessAnswerError:
        return
    json.loads(kept, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert sum(shares) == pytest.approx(1)
    letters = [{token.strip() for token, _ in place} & {"A", "B"} for place in tops]
    assert any(letters)


@pytest.mark.parametrize("unknown", [float("nan"), float("inf"), "-1", True, 0.7])
def test_an_option_of_which_nobody_knows_how_likely_it_is_leaves_nothing_to_the_others(unknown):
    tops = ((("A", unknown), ("B", math.log(0.4))), (("B", math.log(0.9)),))
    with pytest.raises(UselessAnswerError, match="'A'"):
        read_probabilities(make_recordable(Completion("A", top_logprobs=tops), NAMES).text, NAMES, "invalid-state")


@given(st.text(max_size=30), st.sampled_from(["choice", "probabilities"]))
def test_whatever_a_function_says_is_read_from_the_ledger_as_it_was_read_first(tmp_path_factory, said, form):
    file = tmp_path_factory.mktemp("ledger") / "d.sqlite"
    answers = {"choice": '{"next_state": "scrolling"}', "probabilities": '{"composing": 1, "scrolling": 3}'}
    raw = answers[form][:-1] + f', "why": {json.dumps(said, ensure_ascii=False)}}}'

    def function(prompt):
        return raw

    with Ledger(file) as ledger:
        with Reasoner(function, answer=form, ledger=ledger) as reasoner:
            [first] = reasoner.answer(asks(1))
        assert first.source == "llm"
        [stored] = ledger.answers()
    told = (
        json.loads(stored.probabilities) if stored.probabilities else [float(name == stored.choice) for name in NAMES]
    )
    assert list(first.probabilities) == pytest.approx(told)
    with Reasoner(function, answer=form, store=AnswerStore("replay", Ledger(file, read_only=True))) as again:
        [replayed] = again.answer(asks(1))
    assert (replayed.choice, replayed.probabilities) == (first.choice, first.probabilities)


def test_what_another_version_recorded_and_nobody_can_read_is_a_fallback_not_a_crash(tmp_path, caplog):
    def good(prompt):
        return '{"composing": 1, "scrolling": 3}'

    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(good, answer="probabilities", ledger=ledger) as reasoner:
        reasoner.answer(asks(1))
        [row] = ledger.answers()
    with Ledger(tmp_path / "old.sqlite") as ledger:
        values = {**vars(row), "raw": '{"composing": true, "scrolling": 3}'}
        ledger.put(type(row)(**values))
    store = AnswerStore("cache", Ledger(tmp_path / "old.sqlite"))
    with Reasoner(good, answer="probabilities", store=store) as reasoner:
        [answer] = reasoner.answer(asks(1))
    assert (answer.choice, answer.source, answer.reason) == (C, "fallback", "invalid-state")
    assert "an answer in the ledger cannot be used" in caplog.text
