"""How much likelier a prompt makes each of several texts."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import AnswerStore, Ledger, LLMClient, LLMParams, LLMRequest, StoredAnswer, UselessAnswerError
from prism_mesa.llm.association import AssociationScore
from prism_mesa.llm.clients.recorded import recorded_client
from prism_mesa.llm.multiple_choice import MultipleChoice
from prism_mesa.reasoner.asking import recorded_oracle
from prism_mesa.reasoner.params import ReasonerParams

# -- how much likelier a text makes them ---------------------------------------------------------------

TEA = ("tea", "coffee", "water")


class Weighing:
    """An LLM that is not talked with, and finds a text the likelier the more often it was named, and the shorter."""

    name, digest, label = "weighing", "d1", "weighing"

    def __init__(self, decoding=None):
        self.decoding, self.asked = decoding or {"temperature": 0.0}, []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        raise OracleError("refused-request", "it does not talk")

    async def text_logprobs(self, prompt, texts):
        self.asked.append(prompt)
        return tuple(prompt.count(text.strip()) - 2.5 * len(text) for text in texts), 7


SAYS = AssociationScore(TEA, "Someone says:")


def softmax(*scores):
    return pytest.approx([math.exp(score) / sum(map(math.exp, scores)) for score in scores])


def test_the_score_is_what_the_prompt_adds_to_what_is_likely_without_it():
    with LLMClient(Weighing()) as client:
        assert client.answer([LLMRequest("tea, tea, water. Someone says:", SAYS)]) == [softmax(2, 0, 1)]
        assert client.answer([LLMRequest("Nothing at all.", SAYS)]) == [softmax(0, 0, 0)]


def test_the_lines_of_a_prompt_are_read_apart_and_their_scores_add_up():
    llm = Weighing()
    with LLMClient(llm) as client:
        [found] = client.answer([LLMRequest("tea, tea\ncoffee, tea", AssociationScore(TEA, "I like water:"))])
    assert llm.asked == ["I like water:", "tea, tea", "coffee, tea"]
    assert found == softmax(3, 1, -2)


@given(
    st.lists(st.tuples(st.floats(-50, 0), st.floats(-50, 0)), min_size=3, max_size=3),
    st.permutations(range(3)),
    st.floats(-20, 20),
)
def test_neither_the_order_of_texts_nor_what_all_have_in_common_counts(numbers, order, common):
    raw = json.dumps({"logprob": dict(zip(TEA, numbers, strict=True))})
    shares = AssociationScore(TEA, "").read(raw)
    assert sum(shares) == pytest.approx(1)
    assert AssociationScore(tuple(TEA[at] for at in order), "").read(raw) == pytest.approx([shares[at] for at in order])
    shifted = {text: [without, with_ + common] for text, (without, with_) in zip(TEA, numbers, strict=True)}
    assert AssociationScore(TEA, "").read(json.dumps({"logprob": shifted})) == pytest.approx(shares)


@pytest.mark.parametrize(
    "told",
    [
        "tea",
        "{}",
        '{"logprob": {"tea": [-1, -2], "coffee": [-1, -2]}}',
        '{"logprob": {"tea": [], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": [-1, true], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": [-1, NaN], "coffee": [-1, -2], "water": [-1, -2]}}',
        "[" * 9999,
    ],
)
def test_what_does_not_hold_numbers_for_each_text_is_useless(told):
    with pytest.raises(UselessAnswerError, match=r"the answer .* is not an object") as caught:
        SAYS.read(told)
    assert caught.value.reason == "unparsable"


@pytest.mark.parametrize("texts", [(), ("tea",), ("tea", "tea")])
def test_too_few_texts_or_equal_ones_cannot_be_told_apart(texts):
    with pytest.raises(ConfigError, match="needs at least 2 different texts"):
        AssociationScore(texts, "")


def test_a_client_that_cannot_weigh_texts_is_named():
    with LLMClient(lambda prompt: "tea") as client:
        [failed] = client.answer([LLMRequest("tea", SAYS)])
    assert failed.reason == "no-weights"


def test_texts_and_what_is_read_without_the_prompt_have_keys_of_their_own():
    forms = [
        SAYS,
        AssociationScore(TEA[:2], "Someone says:"),
        AssociationScore(TEA, "Nobody says:"),
        MultipleChoice(TEA),
    ]
    assert len({LLMRequest("Which?", form).options for form in forms}) == len(forms)
    name, key = LLMRequest("Which?", SAYS).options
    assert (name, json.loads(key)["method"]) == ("likelier", "pmi")


def test_weights_are_replayed_from_what_was_recorded_and_nobody_is_asked(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, LLMClient(Weighing()) as client:
        client.record(ledger, "scope/run")
        [first] = client.answer([LLMRequest("tea", SAYS)])
        [row] = ledger.answers()
    assert json.loads(row.raw) == {"logprob": {"tea": [-10, -9], "coffee": [-17.5, -17.5], "water": [-15, -15]}}
    assert (row.prompt, row.prompt_tokens, json.loads(row.options)[0]) == ("tea", 7, "likelier")
    silent = Weighing()
    with LLMClient(silent, store=AnswerStore("replay", Ledger(tmp_path / "d.sqlite", read_only=True))) as client:
        assert client.answer([LLMRequest("tea", SAYS)]) == [first]
    assert silent.asked == []


def test_in_a_replay_weights_are_taken_neither_for_an_oracles_nor_for_a_writers(tmp_path):
    own = {"seed": 0, "build": "xllamacpp 2"}
    oracle = {"method": "pmi", "top": 200, "build": "xllamacpp 2"}
    closed, writer = {"temperature": 0.0, "max_tokens": 16, **own}, {"temperature": 0.8, "max_tokens": 64, **own}
    with Ledger(tmp_path / "d.sqlite") as ledger:
        for key, decoding in (("1", oracle), ("2", writer)):
            ledger.put(StoredAnswer(key, "?", "[]", "weighing", "d1", json.dumps(decoding), "{}"))
        with LLMClient(Weighing(closed)) as client:
            client.record(ledger, "scope/run")
            client.answer([LLMRequest("tea", SAYS)])
        asks = LLMParams(kind="embedded", temperature=0.0, max_answer_tokens=16)
        assert recorded_client(ledger, asks).decoding == closed
        writes = LLMParams(kind="embedded", temperature=0.8, max_answer_tokens=64)
        assert recorded_client(ledger, writes).decoding == writer
        assert recorded_oracle(ledger, ReasonerParams(kind="embedded")).decoding == oracle
