"""Surveys of an LLM by association."""

import re

import numpy as np
import pandas as pd
import pytest
from asked_surveys import OPEN, bytes_of, of

from prism_mesa.analysis.survey.survey import survey
from prism_mesa.llm import Completion
from prism_mesa.llm.clients.embedded import SMOLLM2_NAME, embedded_fault

# -- by association ------------------------------------------------------------------------------------


class Associates:
    """SmolLM2 as a function of what it reads: an option is the likelier the more of its first letters are there."""

    name, digest, label = SMOLLM2_NAME, "d1", "associates"

    def __init__(self):
        self.decoding, self.read = {"temperature": 0.0, "max_tokens": 16, "seed": 0, "build": "toy"}, []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        return Completion("Because.")

    async def text_logprobs(self, prompt, texts):
        self.read.append(prompt)
        return tuple(prompt.lower().count(text.strip()[:4]) - len(text) for text in texts), 5


TOPICS = {"id": "topic", "ask": "Which topic?", "options": ["gardening", "cooking", "sport", "music"]}


def test_an_llm_that_names_letters_blindly_is_asked_without_letters(run_dir, tmp_path):
    llm = Associates()
    result = survey(run_dir, of(TOPICS, intro="Be honest."), out=tmp_path, llm=llm)
    assert result.summary["questions"][0]["by_letter"] == {}
    without = 'Asked "Be honest. Which topic?", someone answered:'
    assert without in llm.read
    names = pd.read_parquet(run_dir / "agents.parquet")["name"]
    for read in set(llm.read) - {without}:
        assert re.fullmatch(r'Someone .*\. Asked "Be honest\. Which topic\?", they answered:', read)
        assert not any(name in read for name in names)


def test_own_interests_are_likelier_and_only_deeds_change_an_answer(run_dir, tmp_path):
    result = survey(run_dir, of(TOPICS), out=tmp_path, llm=Associates())
    answers = pd.read_parquet(result.folder / "answers.parquet")
    table = answers.pivot_table(index="agent", columns=["wave", "option"], values="probability")
    agents = pd.read_parquet(run_dir / "agents.parquet")
    posts, done = (pd.read_parquet(run_dir / f"{name}.parquet") for name in ("posts", "engagements"))
    acted = {*posts["author"].tolist(), *done["agent"].tolist()}
    for row, interests in enumerate(agents["interests"]):
        before = table.loc[row, "before"][TOPICS["options"]]
        own = [option for option in TOPICS["options"] if option in interests.split(";")]
        if own:
            assert before[own].min() > before.drop(own).max()
        if row not in acted:
            assert table.loc[row, "after"][TOPICS["options"]].to_numpy() == pytest.approx(before.to_numpy())
    assert 0 < len(acted) < 40
    assert (result.table[result.table["wave"] == "change"]["mean"].abs() > 0).any()


def test_an_association_is_repeated_from_the_ledger_alone(run_dir, tmp_path):
    asked = of(TOPICS, OPEN)
    first = survey(run_dir, asked, agents=9, out=tmp_path, llm=Associates())
    replay = (
        *("reasoner.kind=embedded", "reasoner.ledger=replay"),
        f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}",
        *("deliberation.temperature=0", "deliberation.max_answer_tokens=16"),
    )
    again = survey(run_dir, asked, replay, agents=9, out=tmp_path)
    assert (again.status, again.summary["calls"], again.summary["failures"]) == ("done", 0, {})
    assert bytes_of(again.folder) == bytes_of(first.folder)


@pytest.mark.slow
@pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}")
def test_the_embedded_llm_finds_the_interests_of_agents_among_topics(run_dir, tmp_path):
    result = survey(run_dir, of(TOPICS), ("reasoner.kind=embedded",), agents=4, at=0, out=tmp_path)
    answers = pd.read_parquet(result.folder / "answers.parquet")
    table = answers[answers["wave"] == "before"].pivot_table(index="agent", columns="option", values="probability")
    agents = pd.read_parquet(run_dir / "agents.parquet")["interests"].str.split(";")
    pairs = [
        shares[own] > shares[other]
        for row, shares in table.iterrows()
        for own in agents[row]
        for other in TOPICS["options"]
        if own in TOPICS["options"] and other not in agents[row]
    ]
    assert len(pairs) >= 8
    assert np.mean(pairs) > 0.9
