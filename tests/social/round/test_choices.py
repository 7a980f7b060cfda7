"""Choices left to an LLM in whole runs: late answers, archetypes, a real LLM."""

import asyncio
import json

import pytest
from asking_worlds import WORLD, a_delay, asking
from stand_in import StandIn, embedded_brain, prompt_text
from worlds import plain

from prism_mesa import SocialAgent, SocialModel
from prism_mesa.llm import Ledger
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run


@pytest.mark.slow
def test_the_order_of_answers_does_not_change_who_counts_for_what_in_the_summary(tmp_path):
    counts = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = a_delay(seed, 0.05)
            counts.append(run(asking(server, max_concurrency=8), out=tmp_path).summary["decisions"]["by_source"])
    assert counts[0] == counts[1]


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_model_can_be_stepped_where_a_loop_already_runs_as_in_jupyter(scheduler):
    async def cell(server):
        model = SocialModel(asking(server), scheduler=scheduler)
        model.run_for(2)
        model.reasoner.close()
        return model.sources["llm"]

    with StandIn() as server:
        assert asyncio.run(cell(server)) == server.n_requests > 0


# -- archetypes --------------------------------------------------------------------------------------


def test_one_call_serves_every_agent_of_a_kind_and_each_draws_for_itself(tmp_path):
    shared = {"persona": "archetype", "answer": "probabilities", "archetypes": 2}
    with StandIn() as server:
        result = run(asking(server, **shared), out=tmp_path)
        prompts = {prompt_text(body) for body in server.requests}
    by_source = result.summary["decisions"]["by_source"]
    assert by_source["llm"] == len(prompts) < by_source["cache"]
    assert not any("Your last changes of state" in prompt or "Author" in prompt for prompt in prompts)
    assert replay(result.run_dir).equal


# -- a real LLM --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_llm_behind_the_real_protocol_decides_a_run_that_is_replayed_equal(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra 'embedded' is not installed")
    tiny = WORLD | {"agents": {"n": 12, "activity": 1, "band": 0.2}, "rounds": 1}
    with StandIn(brain=embedded_brain(), models=("smollm2:135m",), slots=1) as server:
        limits = {"model": "smollm2:135m", "timeout_s": 120, "max_calls": 1}
        result = run(asking(server, tiny, **limits), out=tmp_path)
        assert server.n_requests == 1
    with Ledger(result.run_dir / "decisions.sqlite") as ledger:
        answers = ledger.answers()
    assert {json.loads(answer.raw)["next_state"] for answer in answers} <= {"composing", "scrolling"}
    assert replay(result.run_dir).equal


def test_the_same_answers_make_the_same_run_wherever_they_come_from():
    def llm(prompt):
        return json.dumps({"next_state": "scrolling" if len(prompt) % 2 else "composing"})

    with Reasoner(llm) as one, Reasoner(llm, max_concurrency=1) as other:
        totals = []
        for reasoner in (one, other):
            model = SocialModel(plain(WORLD), reasoner=reasoner)
            model.run_for(3)
            totals.append(model.totals)
    assert totals[0] == totals[1]


def test_a_reasoner_that_was_interrupted_serves_the_next_model():
    class Impatient(SocialAgent):
        def step(self):
            if (self.model.round, self.model.tick) == (0, 5):
                raise KeyboardInterrupt

    async def slow(prompt):
        await asyncio.sleep(0.02)
        return '{"next_state": "scrolling"}'

    with Reasoner(slow, max_concurrency=2) as reasoner:
        interrupted = SocialModel(plain(WORLD), reasoner=reasoner)
        Impatient(interrupted, 0)
        with pytest.raises(KeyboardInterrupt):
            interrupted.step()
        model = SocialModel(plain(WORLD), reasoner=reasoner)
        model.run_for(1)
    assert model.totals["open"] == sum(model.sources.values()) > 0


def test_every_model_on_one_reasoner_has_the_whole_of_its_limits():
    with Reasoner(lambda prompt: '{"next_state": "scrolling"}', max_calls=5) as reasoner:
        asked = []
        for seed in (1, 2):
            model = SocialModel(plain(WORLD), reasoner=reasoner, seed=seed)
            model.run_for(1)
            asked.append(model.sources["llm"])
    assert asked == [5, 5]
