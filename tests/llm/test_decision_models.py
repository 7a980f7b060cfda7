"""Decision models as each server speaks: what is recorded is what it meant, or the run ends and says what to do."""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import ROWS, Decisions, StandIn

from prism_mesa.errors import ConfigError, LLMFailureException
from prism_mesa.llm import Ledger, OllamaChatClient, OpenAIChatClient
from prism_mesa.llm.decision import Decision
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.ledger import answer_key
from prism_mesa.params import validate_params
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, ReasonerParams, make_reasoner
from prism_mesa.statechart import AgentState

C, S, REST = AgentState.COMPOSING, AgentState.SCROLLING, AgentState.RESTING
MODEL = "d1-omni:600m"
DIALECTS = ("ollama", "llama.cpp", "sparrow", "openai")
KINDS = [("ollama", "ollama"), *[("openai", dialect) for dialect in DIALECTS]]
LET_THROUGH = [(row, dialect) for row, said in ROWS.items() for dialect, one in said.items() if one is None]
REFUSED = [(row, dialect) for row, said in ROWS.items() for dialect, one in said.items() if one is not None]
NO_DECISION = {
    "missing option": "wrong-options",
    "extra option": "wrong-options",
    "sum": "wrong-numbers",
    "nan": "wrong-numbers",
    "strings": "wrong-numbers",
    "negative": "wrong-numbers",
    "twice": "no-answer",
    "no answer": "no-answer",
    "another name": "no-answer",
    "refusal": "refusal",
    "contradiction": "contradiction",
    "html": "no-answer",
    "error with status 200": "no-answer",
}


def asks(n, options=(C, S)):
    questions = [Question(Persona(f"a{at}"), AgentState.EVALUATING, "decides", options) for at in range(n)]
    return [PlacedQuestion(one, agent=at, tick=at) for at, one in enumerate(questions)]


def params(server, kind="ollama", **options):
    own = {"kind": kind, "host": server.url + ("/v1" if kind == "openai" else ""), "model": MODEL, "answer": "decision"}
    return ReasonerParams(**own | {"backoff_s": 0, "max_concurrency": 1} | options)


def serves(*args, **options):
    return StandIn(models=(MODEL,), decisions=Decisions(*args, **options))


def by_hand(server, kind):
    """Return a client that has not looked what the LLM can."""
    return OllamaChatClient(MODEL, server.url) if kind == "ollama" else OpenAIChatClient(MODEL, f"{server.url}/v1")


# -- what is recorded is what the server meant -----------------------------------------------------------------


@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize(("kind", "dialect"), KINDS)
def test_each_answer_in_the_ledger_is_what_the_server_meant(kind, dialect, orders, tmp_path):
    with serves(dialect) as server, Ledger(tmp_path / "l.sqlite") as ledger:
        with make_reasoner(params(server, kind, decision_orders=orders, max_concurrency=8)) as reasoner:
            reasoner.record(ledger, "run")
            answers = reasoner.answer(asks(12))
            again = reasoner.answer(asks(12))
        stored = {one.key: one for one in ledger.answers()}
        meant, n_asked = server.decisions.meant, len(server.decisions.asked)
    assert [answer.source for answer in [*answers, *again]] == ["llm"] * 12 + ["cache"] * 12
    assert [answer.choice for answer in answers] == [answer.choice for answer in again]
    firsts = set()
    for answer in answers:
        one = stored[answer.key]
        asked = json.loads(one.raw)["asked"]
        firsts.add(asked[0][0])
        assert [sorted(order) for order in asked] == [["composing", "scrolling"]] * orders
        rows = [meant[one.prompt, tuple(order)] for order in asked]
        mean = [sum(row[name] for row in rows) / orders for name in ("composing", "scrolling")]
        assert answer.probabilities == pytest.approx(mean, abs=1e-3)
        assert json.loads(one.probabilities) == pytest.approx(mean, abs=1e-3)
    assert firsts == {"composing", "scrolling"}  # the order depends on the question
    assert (reasoner.usage["calls"], len(stored)) == (12 * orders, 12)
    assert n_asked >= 12 * orders
    assert n_asked <= 20 * orders  # those that were out before the first was refused


def test_what_is_sent_holds_the_state_without_the_options_and_their_order_is_kept(tmp_path):
    with serves("ollama") as server, make_reasoner(params(server, keep_alive="10m", decision_orders=2)) as reasoner:
        reasoner.answer(asks(1, (S, C, REST)))
    (path, first), (_, second) = server.decisions.asked
    assert (path, first["model"], first["keep_alive"]) == ("/v1/systemone", MODEL, "10m")
    assert first.keys() == {"model", "state", "questions", "keep_alive"}
    question = first["questions"]["answer"]
    assert question["type"] == "choice"
    assert all(question["criteria"].values())
    assert [*question["criteria"]] == [*second["questions"]["answer"]["criteria"]][::-1]
    assert "scrolling" not in first["state"]
    assert "Respond" not in first["state"] + question["instructions"]


@pytest.mark.parametrize(("kind", "dialect"), KINDS)
def test_the_levels_of_a_scale_are_a_score(kind, dialect):
    form = Decision(("never", "now and then", "always"), "How often?", is_scale=True, n_orders=2)
    with serves(dialect) as server:
        reply = asyncio.run(form.ask(by_hand(server, kind), "Ann likes rain."))
        meant = server.decisions.meant
    rows = [meant["Ann likes rain.", order] for order in (form.options, form.options[::-1])]
    assert form.read(reply.text) == pytest.approx(
        [sum(row[name] for row in rows) / 2 for name in form.options], abs=1e-3
    )
    assert reply.calls == 2


def test_what_does_not_count_for_a_decision_is_not_in_the_key():
    other = {"temperature": 1, "seed": 5, "max_tokens": 9, "think": True, "num_ctx": 99, "keep_alive": "1h"}
    client = OllamaChatClient(MODEL, **other)
    once, twice = (Reasoner(client, answer="decision", decision_orders=orders).oracle.decoding for orders in (1, 2))
    assert (once, twice) == ({"answer": "decision"}, {"answer": "decision", "decision_orders": 2})
    assert answer_key("p", ["a"], "m", "d", twice) != answer_key("p", ["a"], "m", "d", once)
    with pytest.raises(ConfigError, match="decision_orders"):
        validate_params(ReasonerParams, {"decision_orders": 3}, "reasoner")


@given(st.lists(st.integers(1, 999), min_size=2, max_size=9), st.data(), st.sampled_from([1, 2]), st.integers(2, 17))
def test_probabilities_are_those_of_the_option_whatever_the_order_and_the_rounding(weights, data, orders, digits):
    options = tuple(f"o{at}" for at in range(len(weights)))
    form = Decision(options, "?", n_orders=orders)
    asked = [data.draw(st.permutations(options)) for _ in range(orders)]
    share = {name: round(weight / sum(weights), digits) for name, weight in zip(options, weights, strict=True)}
    if abs(sum(share.values()) - 1) > 0.02:
        return
    said = [{"answer": {"type": "choice", "probabilities": {name: share[name] for name in order}}} for order in asked]
    read = form.read(json.dumps({"asked": asked, "said": said}))
    assert read == pytest.approx([weight / sum(weights) for weight in weights], abs=0.03)
    assert math.fsum(read) == pytest.approx(1)


@pytest.mark.parametrize("raw", ["{}", "[]", '{"asked": [], "said": []}', '{"asked": [["a"]], "said": [{}]}', "a", ""])
def test_what_a_ledger_holds_that_is_no_decision_is_none(raw):
    with pytest.raises(UselessAnswerError):
        Decision(("a", "b"), "?").read(raw)


def test_a_function_plays_a_decision_model():
    with Reasoner(lambda prompt: '{"composing": 0.25, "scrolling": 0.75}', answer="decision") as reasoner:
        [answer] = reasoner.answer(asks(1))
    assert answer.probabilities == (0.25, 0.75)
    with Reasoner(lambda prompt: "composing", answer="decision", attempts=1) as reasoner:
        [answer] = reasoner.answer(asks(1))
    assert answer.source == "fallback"


# -- rows of LLM_FACTS 1.2 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("row", "dialect"), LET_THROUGH)
def test_what_a_server_lets_through_is_recorded_as_it_meant(row, dialect, checked, tmp_path):
    kind = "ollama" if dialect == "ollama" and not checked else "openai"
    with serves(dialect, row) as server, Ledger(tmp_path / "l.sqlite") as ledger:
        own = params(server, kind)
        with make_reasoner(own) if checked else Reasoner(by_hand(server, kind), params=own) as reasoner:
            reasoner.record(ledger, "run")
            answers = reasoner.answer(asks(3))
        meant = server.decisions.meant
        stored = {one.key: one for one in ledger.answers()}
    for answer in answers:
        one = stored[answer.key]
        share = meant[one.prompt, tuple(json.loads(one.raw)["asked"][0])]
        assert answer.probabilities == pytest.approx([share["composing"], share["scrolling"]], abs=1e-3)
    read = {"ollama": 174, "llama.cpp": 174, "sparrow": 0, "openai": 174}[dialect]
    assert reasoner.usage["prompt_tokens"] == 3 * read


@pytest.mark.parametrize(("row", "dialect"), REFUSED)
def test_what_a_server_refuses_ends_within_twenty_answers_with_the_next_step(row, dialect):
    kind = "ollama" if dialect == "ollama" else "openai"
    with serves(dialect, row) as server, Reasoner(by_hand(server, kind), params=params(server, kind)) as reasoner:
        with pytest.raises(LLMFailureException, match=r"reasoner\.") as caught:
            reasoner.answer(asks(30))
        n = len(server.decisions.asked)
    assert caught.value.reason == "useless"
    assert n <= (40 if row == "not there" or dialect == "openai" else 20)
    told = {"not a decision model": "reasoner.answer=choice", "not there": "reasoner.answer=choice"}
    assert told.get(row, "") in str(caught.value)


@pytest.mark.parametrize("fault", NO_DECISION)
@pytest.mark.parametrize("dialect", ["ollama", "openai"])
def test_an_answer_that_is_no_decision_is_not_asked_again_and_ends_the_run_early(fault, dialect, tmp_path):
    kind = dialect
    with serves(dialect, fault=fault) as server, Ledger(tmp_path / "l.sqlite") as ledger:
        with make_reasoner(params(server, kind)) as reasoner:
            reasoner.record(ledger, "run")
            [answer] = reasoner.answer(asks(1))
            assert (answer.source, answer.reason, answer.attempts) == ("fallback", NO_DECISION[fault], 1)
            with pytest.raises(LLMFailureException, match=r"its first 20 answers .*reasoner\."):
                reasoner.answer(asks(30)[1:])
        assert ledger.answers() == []
    assert len(server.decisions.asked) == 20 + (dialect == "openai")


# -- before the run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dialect"), [("ollama", "ollama"), ("openai", "ollama"), ("openai", "llama.cpp")])
def test_a_model_that_does_not_decide_is_refused_before_the_run(kind, dialect):
    with serves(dialect, "not a decision model") as server:
        with pytest.raises(ConfigError, match=r"not a decision model.*Ollama.*reasoner.answer=choice"):
            make_reasoner(params(server, kind))
        assert server.decisions.asked == []


@pytest.mark.parametrize(("kind", "dialect"), [("ollama", "ollama"), ("openai", "ollama"), ("openai", "llama.cpp")])
def test_a_model_that_only_decides_is_not_asked_in_words(kind, dialect):
    with serves(dialect) as server, pytest.raises(ConfigError, match=r"only decides: .*reasoner.answer=decision"):
        make_reasoner(params(server, kind, answer="choice"))


def test_a_client_that_cannot_decide_is_a_clear_error():
    class Chats:
        name, decoding = "chats", {}

        async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
            raise AssertionError

    with Reasoner(Chats(), answer="decision") as reasoner, pytest.raises(ConfigError, match=r"chats has no decide\(\)"):
        reasoner.answer(asks(1))


# -- guards, limits, several servers, replay -------------------------------------------------------------------


@pytest.mark.parametrize(("most", "answered"), [(4, 2), (5, 2), (1, 0)])
def test_two_orders_take_two_calls_of_a_limit(most, answered):
    with serves() as server, make_reasoner(params(server, decision_orders=2, max_calls=most)) as reasoner:
        sources = [one.source for one in reasoner.answer(asks(4))]
    assert sources == ["llm"] * answered + ["budget"] * (4 - answered)
    assert (reasoner.usage["calls"], len(server.decisions.asked)) == (2 * answered, 2 * answered)


@pytest.mark.parametrize("orders", [1, 2])
def test_a_ledger_of_decisions_is_replayed_and_with_other_orders_it_is_not(orders, tmp_path):
    path = tmp_path / "l.sqlite"
    with serves() as server, Ledger(path) as ledger, make_reasoner(params(server, decision_orders=orders)) as reasoner:
        reasoner.record(ledger, "run")
        answers = reasoner.answer(asks(3))
    again = {"kind": "ollama", "answer": "decision", "ledger": "replay", "ledger_path": str(path)}
    with make_reasoner(ReasonerParams(**again, decision_orders=orders)) as reasoner:
        assert [one.choice for one in reasoner.answer(asks(3))] == [one.choice for one in answers]
    for other in ({"decision_orders": 3 - orders}, {"answer": "choice", "decision_orders": orders}):
        with pytest.raises(ConfigError, match="has no answers of the configured LLM with these options"):
            make_reasoner(ReasonerParams(**again | other))
