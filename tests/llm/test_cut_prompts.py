"""Prompts that a server cuts without a word: known by what it says it read."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama_server import as_json, chat_answer, serving
from stand_in import Said, StandIn

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import OllamaChatClient
from prism_mesa.llm.clients.completions import min_tokens, was_cut
from prism_mesa.llm.ledger import answer_key
from prism_mesa.params import validate_params
from prism_mesa.reasoner import ReasonerParams

ENGLISH = "The council decided that the library stays open on Saturdays, and all are happy. "
"""Some 5 characters a token; the others as counted with the tokenizers of 2024 to 2026 (o200k_base)."""
FINNISH = "Kaupunginvaltuusto päätti tiistaina että kirjasto pysyy avoinna lauantaisin. "
CHINESE = "市议会星期二决定图书馆星期六继续开放,住在附近的每个人都很高兴。"
PER_TOKEN = {ENGLISH: 5.3, FINNISH: 3.4, CHINESE: 1.4}


def text_of(words, n_tokens):
    return (words * 5000)[: round(n_tokens * PER_TOKEN[words])]


@pytest.mark.parametrize("words", PER_TOKEN, ids=["English", "Finnish", "Chinese"])
@pytest.mark.parametrize("n", [200, 1000, 2040, 2060, 3000, 4000])
def test_a_prompt_that_was_read_is_not_called_cut(words, n):
    for context in (0, 4096, 32768):
        assert not was_cut(text_of(words, n), n, context)


@pytest.mark.parametrize("words", PER_TOKEN, ids=["English", "Finnish", "Chinese"])
@pytest.mark.parametrize("times", [1.02, 1.5, 4])
@pytest.mark.parametrize("context", [2048, 4096, 32768])
def test_a_prompt_that_was_cut_is_known_by_its_context(words, times, context):
    half = context // 2 + 2
    for kept in (half - 3, half, half + 3, context - 1, context + 1):
        assert was_cut(text_of(words, times * context), kept, context)


@pytest.mark.parametrize("times", [1.02, 1.5, 4])
def test_english_that_was_cut_is_known_without_its_context(times):
    assert was_cut(text_of(ENGLISH, times * 4096), 2050, 0)


@pytest.mark.parametrize(
    ("text", "n_tokens"),  # as o200k_base has them
    [
        ("international organizations understand responsibility regarding environmental sustainability " * 20, 160),
        ("-" * 2000, 32), ("=-" * 1000, 125), (" " * 2000, 17), ("haha" * 500, 501), ("的" * 2000, 2000),
        ("______ " * 270, 271), ("...\n" * 500, 500), ("😂" * 500, 500),
        ("人工智能中华人民共和国中国共产党社会主义现代化建设有限公司" * 68, 680),
    ],
)  # fmt: skip
def test_texts_of_which_a_token_holds_much_are_not_called_cut(text, n_tokens):
    assert min_tokens(text) <= n_tokens
    assert not was_cut(text, n_tokens, 0)


@given(st.text(), st.integers(0, 10))
def test_a_server_that_does_not_count_is_believed(text, context):
    assert not was_cut(text, 0, context)
    assert not was_cut(text, len(text.encode("utf-8", "replace")) + 20, 0)


def test_the_context_is_the_one_that_the_server_has_loaded():
    prompt = text_of(FINNISH, 700)
    with StandIn(lambda body: Said("Hm.", prompt_tokens=258), context=512) as server:
        with pytest.raises(OracleError, match=r"to its last 258 tokens \(2380 characters\): reasoner.num_ctx=4096"):
            asyncio.run(OllamaChatClient(host=server.url).chat(prompt))
        assert asyncio.run(OllamaChatClient(host=server.url).chat(prompt[:1000])).text == "Hm."


@pytest.mark.parametrize("ps", [as_json(404, {"error": "none"}), as_json(200, {"models": []}), as_json(200, [1])])
def test_where_the_server_does_not_tell_it_is_the_one_that_was_asked_for(ps):
    with serving(always=chat_answer("Hm.", prompt_eval_count=258)) as server:
        server.gets["/api/ps"] = ps
        assert asyncio.run(OllamaChatClient(host=server.url).chat(text_of(FINNISH, 700))).text == "Hm."
        with pytest.raises(OracleError, match=r"reasoner.num_ctx=4096") as caught:
            asyncio.run(OllamaChatClient(host=server.url, num_ctx=512).chat(text_of(FINNISH, 700)))
    assert (caught.value.reason, caught.value.tokens) == ("cut-prompt", (258, 8))


@pytest.mark.parametrize("n_tokens", [300, 3000, 9000])
def test_the_context_that_is_recommended_suffices(n_tokens):
    prompt = text_of(ENGLISH, n_tokens)
    with StandIn(lambda body: "Hm.", context=256) as server:
        with pytest.raises(OracleError) as caught:
            asyncio.run(OllamaChatClient(host=server.url).chat(prompt))
        more = int(str(caught.value).rpartition("=")[2])
        assert asyncio.run(OllamaChatClient(host=server.url, num_ctx=more).chat(prompt)).text == "Hm."
    assert len(prompt) // 4 + 256 < more


def test_cut_prompts_that_are_accepted_are_reported_once(caplog):
    caplog.set_level(logging.WARNING)
    with StandIn(lambda body: "Hm.", context=256) as server:
        client = OllamaChatClient(host=server.url, cut_prompts="accept")

        async def thrice():
            return [(await client.chat(text_of(ENGLISH, 500 + n))).text for n in range(3)]

        assert asyncio.run(thrice()) == ["Hm."] * 3
    [line] = [record.getMessage() for record in caplog.records if "cut the prompt" in record.getMessage()]
    assert "reasoner.num_ctx=4096" in line


def test_only_accepting_is_in_the_key():
    """Its ledger has answers to parts of prompts, which a run that refuses them must not take for its own."""
    own = ReasonerParams().decoding
    assert ReasonerParams(cut_prompts="useless").decoding == own == OllamaChatClient().decoding
    accepting = ReasonerParams(cut_prompts="accept").decoding
    assert accepting == own | {"cut_prompts": "accept"} == OllamaChatClient(cut_prompts="accept").decoding
    assert answer_key("p", ["a"], "m", "d", own) != answer_key("p", ["a"], "m", "d", accepting)
    with pytest.raises(ConfigError, match="reasoner: cut_prompts"):
        validate_params(ReasonerParams, {"cut_prompts": "perhaps"}, "reasoner")
