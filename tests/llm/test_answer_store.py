"""What is known, and written down: live, cache and replay, alone and with other runs and processes."""

import json

import pytest

from prism_mesa.domain import Post
from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import AnswerStore, AskedRow, FunctionClient, Ledger, StoredAnswer
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING


def says(state):
    return json.dumps({"next_state": state.value})


def ask(name="Ann", **place):
    question = Question(Persona(name), AgentState.EVALUATING, "decides", (C, S), Post(text="Rain again"))
    return PlacedQuestion(question, **({"agent": 1} | place))


def nobody(prompt):
    raise AssertionError("nobody is to be asked")


def toy(function):
    """Return a function as an LLM; all of them have one name, so that their keys are equal."""
    return FunctionClient(function, "toy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shared.sqlite"


@pytest.fixture
def own(tmp_path):
    with Ledger(tmp_path / "decisions.sqlite") as ledger:
        yield ledger


def answered(function, mode, path, asks, *, own=None, run="scope/run", **options):
    """Ask some questions as a run of its own, one after the other, and return the answers and the reasoner."""
    store = AnswerStore(mode, None if path is None else Ledger(path))
    with Reasoner(toy(function), store=store, **options) as reasoner:
        if own is not None:
            reasoner.record(own, run)
        else:
            reasoner.store.run = run
        answers = [reasoner.answer([one])[0] for one in asks]
    return answers, reasoner


def sources(answers):
    return [answer.source for answer in answers]


def rows_of(path):
    with Ledger(path) as ledger:
        return ledger.answers(), ledger.asked()


# -- live ----------------------------------------------------------------------------------------------


def test_live_asks_what_another_run_knows_and_records_in_both_ledgers(path, own):
    answered(lambda prompt: says(C), "live", path, [ask()], run="scope/first")
    [answer], _ = answered(lambda prompt: says(S), "live", path, [ask()], own=own, run="scope/second")
    assert (answer.choice, answer.source) == (S, "llm")
    assert [row.choice for row in own.answers()] == ["scrolling"]
    assert own.asked() == [AskedRow(0, 0, 1, answer.key, "llm", "", 1, "scope/second")]
    answers, asked = rows_of(path)
    assert [row.choice for row in answers] == ["composing"]  # the first answer of a key stands
    assert [row.run for row in asked] == ["scope/first", "scope/second"]


# -- cache ----------------------------------------------------------------------------------------------


def test_cache_asks_only_what_no_run_knows(path, own):
    answered(lambda prompt: says(C), "live", path, [ask("a")])
    asked = []
    answers, reasoner = answered(
        lambda prompt: asked.append(prompt) or says(S), "cache", path, [ask("a"), ask("b"), ask("b", tick=1)], own=own
    )
    assert [(a.choice, a.source) for a in answers] == [(C, "cache"), (S, "llm"), (S, "cache")]
    assert len(asked) == reasoner.usage["calls"] == 1


def test_a_runs_own_ledger_gets_every_answer_that_it_used_once(path, own):
    answered(lambda prompt: says(C), "live", path, [ask("a"), ask("not used")])
    answers, _ = answered(lambda prompt: says(S), "cache", path, [ask("a"), ask("a", tick=1), ask("b")], own=own)
    assert [(row.key, row.choice) for row in own.answers()] == [
        (answers[0].key, "composing"),
        (answers[2].key, "scrolling"),
    ]
    assert [row.source for row in own.asked()] == ["cache", "cache", "llm"]


def test_whoever_is_second_with_an_answer_takes_the_first_one(path, own):
    def slow(prompt):
        answered(lambda _: says(C), "cache", path, [ask()], run="other/quick")  # meanwhile, elsewhere
        return says(S)

    [answer], _ = answered(slow, "cache", path, [ask()], own=own)
    assert (answer.choice, answer.source) == (C, "llm")
    assert [row.choice for row in own.answers()] == [row.choice for row in rows_of(path)[0]] == ["composing"]


def test_a_fallback_is_never_an_answer_for_others(path):
    [first], _ = answered(lambda prompt: "useless", "cache", path, [ask()], attempts=1)
    [second], _ = answered(lambda prompt: says(S), "cache", path, [ask()])
    assert (first.source, second.source, second.choice) == ("fallback", "llm", S)


# -- replay ---------------------------------------------------------------------------------------------


def a_run(path, *, attempts=1, **options):
    """Make a run with good answers, fallbacks, equal questions and leftovers of the budget."""

    def llm(prompt):
        return "useless" if "bad" in prompt else says(S if "a" in prompt.split("You are <<< ")[1][:3] else C)

    places = [
        ("a", 0, 1),
        ("bad", 0, 2),
        ("c", 1, 3),
        ("a", 1, 4),
        ("bad", 1, 5),
        ("d", 2, 6),
        ("e", 2, 7),
        ("a", 2, 8),
    ]
    asks = [ask(name, round=1, tick=tick, agent=agent, draw=0.1 * agent) for name, tick, agent in places]
    answers, _ = answered(llm, "live", path, asks, attempts=attempts, max_calls=4, **options)
    return asks, answers


@pytest.mark.parametrize("fallback", ["first", "rule", "stay"])
def test_a_replay_repeats_answers_fallbacks_and_leftovers_and_asks_nobody(fallback, path, own):
    asks, before = a_run(path, fallback=fallback)
    assert sources(before) == ["llm", "fallback", "llm", "cache", "fallback", "llm", "budget", "cache"]
    after, reasoner = answered(nobody, "replay", path, asks, own=own, fallback=fallback)
    assert [(a.choice, a.reason, a.attempts if a.reason else 0) for a in after] == [
        (b.choice, b.reason, b.attempts if b.reason else 0) for b in before
    ]
    assert sources(after) == ["cache", "fallback", "cache", "cache", "fallback", "cache", "budget", "cache"]
    assert reasoner.usage["calls"] == 0
    assert len(own.answers()) == 3
    assert [(row.source, row.reason) for row in own.asked()] == [(a.source, a.reason) for a in after]


def test_what_failed_once_and_was_answered_later_is_repeated_place_by_place(path):
    llm = iter(["useless", says(S)])
    asks = [ask(round=1), ask(round=2)]
    before, _ = answered(lambda prompt: next(llm), "live", path, asks, attempts=1)
    after, _ = answered(nobody, "replay", path, asks)
    assert [a.choice for a in before] == [a.choice for a in after] == [C, S]
    assert sources(after) == ["fallback", "cache"]


def test_a_replay_can_itself_be_replayed_from_its_own_ledger(path, tmp_path):
    asks, before = a_run(path)
    with Ledger(tmp_path / "again.sqlite") as again:
        answered(nobody, "replay", path, asks, own=again, run="scope/again")
    after, _ = answered(nobody, "replay", tmp_path / "again.sqlite", asks, run="scope/third")
    assert [(a.choice, a.reason) for a in after] == [(b.choice, b.reason) for b in before]


def test_a_missing_answer_is_an_error_that_names_the_question(path):
    a_run(path)
    stranger = ask("Bo\n\x1b[31m", round=7, tick=3, agent=42)
    said = (
        r"^the ledger .*shared.sqlite holds no answer for round 7, tick 3, agent 42 \(Bo \[31m\): decides in "
        r"evaluating, composing or scrolling$"
    )
    with pytest.raises(OracleError, match=said) as caught:
        answered(nobody, "replay", path, [stranger])
    assert caught.value.reason == "not-recorded"


def test_another_question_at_a_place_that_the_ledger_knows_is_said_so(path):
    a_run(path)
    with pytest.raises(
        OracleError, match=r"another question is recorded there: has the configuration or a file changed\?"
    ):
        answered(nobody, "replay", path, [ask("other", round=1, tick=0, agent=1)])


def test_of_several_runs_in_a_ledger_the_latest_of_the_same_scope_is_repeated(path):
    for run, reply in (("one/a", "useless"), ("one/b", says(S)), ("two/c", "useless")):
        answered(lambda prompt, reply=reply: reply, "live", path, [ask()], run=run, attempts=1)
    assert [sources(answered(nobody, "replay", path, [ask()], run=run)[0]) for run in ("one/z", "two/z")] == [
        ["cache"],
        ["fallback"],
    ]


@pytest.mark.parametrize("mode", ["cache", "replay"])
def test_a_mode_that_reads_needs_a_ledger_to_read(mode):
    with pytest.raises(ConfigError, match=f"reasoner.ledger: {mode} needs reasoner.ledger_path"):
        AnswerStore(mode)


# -- several processes -------------------------------------------------------------------------------------


def test_answers_that_are_no_longer_at_hand_are_read_from_the_runs_own_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("prism_mesa.llm.answer_store._MAX_IN_MEMORY", 3)
    with Ledger(tmp_path / "own.sqlite") as own:
        store = AnswerStore()
        store.begin(own, "scope/run")
        for number in range(10):
            store.add_answer(StoredAnswer(f"k{number}", "prompt", "[]", "llm", "", "{}", f"said {number}"))
        assert len(store._known) == 3
        assert [store.find_raw(f"k{number}") for number in range(10)] == [f"said {number}" for number in range(10)]
        assert len(store._known) == 3
        assert store.find_raw("k10") is None


# -- a run that was stopped goes on ------------------------------------------------------------------


def stopped(own, *rounds):
    """Write down what a run asked before it was stopped: (round, name)."""
    asks = [ask(name, round=round_) for round_, name in rounds]
    found, _ = answered(lambda prompt: says(C), "live", None, asks, own=own)
    assert sources(found) == ["llm"] * len(rounds)


def test_an_answer_of_a_later_round_is_handed_out_once_as_if_it_was_asked(own):
    stopped(own, (0, "Ann"), (1, "Ben"), (2, "Cid"))
    with Reasoner(toy(nobody)) as reasoner:
        reasoner.store.resume(own, "scope/run", 1)
        assert [row.round for row in own.asked()] == [0]
        asks = [ask("Ann", round=1), ask("Ben", round=1), ask("Ben", round=2), ask("Cid", round=2)]
        found = [reasoner.answer([one])[0] for one in asks]
        assert sources(found) == ["cache", "llm", "cache", "llm"]
        assert [answer.choice for answer in found] == [C] * 4
        assert reasoner.usage["calls"] == 2
    assert [(row.round, row.source) for row in own.asked()] == [
        (0, "llm"),
        *zip((1, 1, 2, 2), sources(found), strict=True),
    ]


def test_as_many_attempts_count_as_it_took(own):
    said = iter(["no idea", "none", says(C)])
    answered(lambda prompt: next(said), "live", None, [ask("Ann", round=3)], own=own, attempts=3)
    with Reasoner(toy(nobody), attempts=3) as reasoner:
        reasoner.store.resume(own, "scope/run", 3)
        [answer] = reasoner.answer([ask("Ann", round=3)])
        assert (answer.attempts, reasoner.usage["calls"]) == (3, 3)
    assert [row.attempts for row in own.asked()] == [3]


def test_what_came_from_a_shared_ledger_still_counts_as_known_and_its_rows_go_too(path, own):
    answered(lambda prompt: says(C), "live", path, [ask("Ann")], run="other/run")
    answered(lambda prompt: says(S), "cache", path, [ask("Ann", round=1), ask("Ben", round=1)], own=own)
    with Ledger(path) as shared, Reasoner(toy(nobody), store=AnswerStore("cache", Ledger(path))) as reasoner:
        assert len(shared.asked("scope/run")) == 2
        reasoner.store.resume(own, "scope/run", 1)
        assert shared.asked("scope/run") == []
        assert len(shared.asked("other/run")) == 1
        assert sources(reasoner.answer([ask("Ann", round=1), ask("Ben", round=1)])) == ["cache", "llm"]
        assert len(shared.asked("scope/run")) == 2


def test_other_runs_in_a_ledger_are_left_alone(own):
    answered(lambda prompt: says(C), "live", None, [ask("Ann", round=5)], own=own, run="scope/first")
    own.forget_asked("scope/second", 0)
    assert own.count_rows("scope/first", 6) == (1, 1)
    assert own.count_rows("scope/first", 5) == (1, 0)
    own.sync()
    assert len(own.asked("scope/first")) == 1
