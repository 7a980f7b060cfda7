"""What asking an LLM costs: how full its slots are kept, what PRISM itself adds to a question, how rarely it asks.

The stand-in server (`stand_in`, a process of its own) answers with `--slots` at a time after
`--latency-ms`; the client is the real one. Measured, in this order:

1. wall time of different questions, against questions x latency / slots;
2. CPU of a question besides the client library's call, and of one whose answer is known;
3. wall time of a whole run, against its questions x latency / slots;
4. LLM calls and tokens per 1,000 agent-rounds of the default scenario, against asking every agent in every round;
5. calls, tokens and seconds per 1,000 agent-rounds of configs/calibrated.yaml (with fewer agents and rounds), for each
   form of answer (`FORMS`); the stand-in is a thread here and counts four characters as a token.

It asserts results: every question is asked once, nothing falls back, and a second run asks nothing. Targets are
printed as met or not.

    uv run python benchmarks/oracle.py
    uv run python benchmarks/oracle.py --questions 200 --agents 50 --rounds 3
    uv run python benchmarks/oracle.py --only forms
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any, Final

from measuring import ROOT, machine, verdict
from stand_in import Body, Said, StandIn, choose_by_hash
from stand_in.decisions import Decisions
from worlds import PLAIN

from prism_mesa import load_config
from prism_mesa.domain import Post
from prism_mesa.llm import OllamaChatClient
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.params import explicit_values
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, answer_schema, question_prompt
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import AgentState

OPTIONS: Final = (AgentState.COMPOSING, AgentState.SCROLLING)
PUBLISHED_TOKENS: Final = 3_524
"""Per agent-step, 3,356 read and 168 said: OASIS, Yang et al. 2024, arXiv:2411.11581."""

FULL, FULL_RUN, OWN_MS, KNOWN_MS = 1.08, 1.5, 1.0, 0.1
MOST_INDIVIDUAL, MOST_ARCHETYPE = 200, 20

INDIVIDUAL: Final = {"kind": "ollama", "persona": "individual", "answer": "choice"}
ARCHETYPE: Final = INDIVIDUAL | {"persona": "archetype"}
FORMS: Final[dict[str, dict[str, Any]]] = {
    "rule": {"kind": "rule"},
    "choice, individual": INDIVIDUAL,
    "choice with reason, individual": INDIVIDUAL | {"reason": True},
    "probabilities, individual": INDIVIDUAL | {"answer": "probabilities"},
    "choice, archetype": ARCHETYPE,
    "probabilities, archetype": ARCHETYPE | {"answer": "probabilities"},
    "decision, individual": INDIVIDUAL | {"answer": "decision"},
    "decision, archetype": ARCHETYPE | {"answer": "decision"},
    "decision in two orders, archetype": ARCHETYPE | {"answer": "decision", "decision_orders": 2},
    "embedded scores, archetype": {"kind": "embedded", "persona": "archetype"},
}
"""Forms of answer and their `reasoner` parameters. The stand-in plays Ollama, and decides without delay."""
REASON: Final = "The post is about something that I care about, and I would like to say what I think of it."


def asks(n: int, first: int = 0) -> list[PlacedQuestion]:
    """Return `n` questions that differ in what the post says."""
    posts = (
        Post(text=f"Post number {first + i}: the library stays open on Saturdays, says the council") for i in range(n)
    )
    who = Persona("Ada Kaya", ("politics", "cooking"), "curious and calm")
    questions = (Question(who, AgentState.EVALUATING, "decides", OPTIONS, post) for post in posts)
    return [PlacedQuestion(question, agent=i, tick=1) for i, question in enumerate(questions)]


@contextmanager
def stand_in(slots: int, latency_ms: float) -> Iterator[str]:
    """Serve in another process, so that its CPU is not counted; yields its address."""
    command = [sys.executable, "-m", "stand_in", "--port", "0"]
    command += ["--slots", str(slots), "--latency-ms", str(latency_ms)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split(" serves at ")[1].split(" ")[0]
    finally:
        server.terminate()
        server.wait()


async def bare_calls(client: OllamaChatClient, asked: list[PlacedQuestion], n_parallel: int) -> None:
    """Ask with nothing of ours but the client, and no more at once than it does with us."""
    slots = asyncio.Semaphore(n_parallel)

    async def call(ask: PlacedQuestion) -> None:
        async with slots:
            await client.chat(question_prompt(ask.question), answer_schema(OPTIONS))

    await asyncio.gather(*map(call, asked))


def questions_by_themselves(n: int, slots: int, latency_ms: float) -> None:
    """Print how full the slots are kept, and what a question costs."""
    with (
        stand_in(slots, latency_ms) as url,
        Reasoner(OllamaChatClient(host=url), max_concurrency=2 * slots) as reasoner,
    ):
        reasoner.answer(asks(2 * slots, first=10**6))  # connections, imports
        asked = asks(n)
        wall, cpu = perf_counter(), process_time()
        answers = reasoner.answer(asked)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        assert all(answer.source == "llm" for answer in answers)
        ratio = wall / (n * latency_ms / 1000 / slots)
        print(f"{n:,} different questions: {wall:.2f} s, {ratio:.3f} times questions x latency / slots", end="")
        print(f" (target {FULL}: {verdict(ratio <= FULL)})")
        known = process_time()
        again = reasoner.answer(asked)
        known = (process_time() - known) / n * 1000
        assert [answer.choice for answer in again] == [answer.choice for answer in answers]
        assert {answer.source for answer in again} == {"cache"}
        bare = process_time()
        asyncio.run(bare_calls(OllamaChatClient(host=url), asks(n, first=n), 2 * slots))
        bare = process_time() - bare
    own = (cpu - bare) / n * 1000
    print(
        f"CPU of a question: {cpu / n * 1000:.2f} ms, of which the client's call {bare / n * 1000:.2f} ms and ", end=""
    )
    print(f"{own:.2f} ms ours (target {OWN_MS}: {verdict(own <= OWN_MS)})")
    print(f"CPU of a question whose answer is known: {known:.3f} ms (target {KNOWN_MS}: {verdict(known <= KNOWN_MS)})")


def whole_run(n: int, rounds: int, slots: int, latency_ms: float) -> None:
    """Print how full the slots are kept in a run."""
    with stand_in(slots, latency_ms) as url:
        params = {"kind": "ollama", "host": url, "max_concurrency": 2 * slots}
        model = SocialModel(PLAIN | {"agents.n": n, "rounds": rounds, "reasoner": params})
        assert isinstance(model.reasoner, Reasoner)
        with model.reasoner:
            wall, cpu = perf_counter(), process_time()
            model.run_for(rounds)
            wall, cpu = perf_counter() - wall, process_time() - cpu
            calls = model.reasoner.usage["calls"]
    assert model.totals["fallback"] == 0
    ratio = wall / (calls * latency_ms / 1000 / slots)
    print(f"run of {n} agents x {rounds} rounds, {calls:,} questions: {wall:.2f} s, {ratio:.3f} times ", end="")
    print(f"(target {FULL_RUN}: {verdict(ratio <= FULL_RUN)}); {cpu / max(calls, 1) * 1000:.2f} ms CPU a question")


def how_rarely() -> None:
    """Print calls and tokens of the default scenario; a function plays the LLM, tokens are taken as 4 bytes."""
    for persona, answer, most in (
        ("individual", "choice", MOST_INDIVIDUAL),
        ("archetype", "probabilities", MOST_ARCHETYPE),
    ):
        tokens = 0

        def llm(prompt: str, answer: str = answer) -> str:
            nonlocal tokens
            tokens += len(prompt.encode()) // 4
            if answer == "probabilities":
                return '{"composing": 0.4, "scrolling": 0.6}'
            schema = answer_schema(OPTIONS)
            return choose_by_hash({"messages": [{"role": "user", "content": prompt}], "format": schema}).text

        params = {"answer": answer, "persona": persona}
        with Reasoner(llm, **params) as reasoner:
            model = SocialModel(PLAIN, reasoner=reasoner)
            rounds = model.params.rounds
            model.run_for(rounds)
        thousands = len(model.population) * rounds / 1000
        calls = reasoner.usage["calls"] / thousands
        print(
            f"default scenario, {persona}, {answer}: {model.totals['open'] / thousands:.0f} open choices, "
            f"{calls:.1f} calls (target {most}: {verdict(calls <= most)}) and {tokens / thousands:,.0f} tokens per "
            f"1,000 agent-rounds; every agent in every round: 1,000 calls and {1000 * PUBLISHED_TOKENS:,} tokens"
        )


def with_reason(body: Body) -> Said:
    """Answer as `choose_by_hash`, with a sentence if the request asks for a reason."""
    answer = choose_by_hash(body)
    if "reason" not in (body.get("format") or {}).get("properties", {}):
        return answer
    return Said(json.dumps(json.loads(answer.text) | {"reason": REASON}))


def by_form(n: int, rounds: int, slots: int, latency_ms: float) -> None:
    """Print a table: the cost of 1,000 agent-rounds of the calibrated world for each form of answer."""
    calibrated = explicit_values(load_config(ROOT / "configs" / "calibrated.yaml"))
    world = {key: calibrated[key] for key in calibrated if not key.startswith(("name", "reasoner"))}
    world |= {"agents.n": n, "rounds": rounds}
    print(f"\nconfigs/calibrated.yaml, agents.n={n} rounds={rounds}; {slots} answers at a time after {latency_ms:g} ms")
    print("\n| form of answer | open choices | calls | tokens | seconds |\n|---|--:|--:|--:|--:|")
    thousands, calls_of, rule_s = n * rounds / 1000, {}, 0.0
    for name, params in FORMS.items():
        decides = params.get("answer") == "decision"
        deciding = {"models": (DECISION_MODEL,), "decisions": Decisions()} if decides else {}
        with StandIn(with_reason, slots=slots, latency=latency_ms / 1000, **deciding) as server:
            own = {"host": server.url, "max_concurrency": 2 * slots} if params["kind"] == "ollama" else {}
            model = SocialModel(world | {"reasoner": params | own})
            wall = perf_counter()
            model.run_for(rounds)
            wall = perf_counter() - wall
            usage = getattr(model.reasoner, "usage", {})
            model.close()
        assert sum(model.sources.values()) == model.totals["open"] > 0
        assert model.sources.keys() <= ({"rule"} if params["kind"] == "rule" else {"llm", "cache"})
        calls_of[name] = usage.get("calls", 0)
        assert calls_of[name] <= model.totals["open"] * params.get("decision_orders", 1)
        rule_s = rule_s or wall  # the first: what the world takes without an LLM
        tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
        figures = (model.totals["open"], calls_of[name], tokens, wall - rule_s)
        opened, calls, tokens, seconds = (figure / thousands for figure in figures)
        print(f"| {name} | {opened:.1f} | {calls:.2f} | {tokens:,.0f} | {'' if decides else f'{seconds:.2f}'} |")
    assert calls_of["rule"] == 0
    assert calls_of["probabilities, archetype"] <= calls_of["probabilities, individual"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--agents", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--latency-ms", type=float, default=100.0)
    parser.add_argument("--only", choices=("forms",), help="measure the forms of answer only")
    parser.add_argument("--world-agents", type=int, default=1000)
    parser.add_argument("--world-rounds", type=int, default=24)
    given = parser.parse_args()
    print(machine("ollama", "httpx", "numpy"))
    if given.only == "forms":
        by_form(given.world_agents, given.world_rounds, given.slots, given.latency_ms)
        return
    questions_by_themselves(given.questions, given.slots, given.latency_ms)
    whole_run(given.agents, given.rounds, given.slots, given.latency_ms)
    how_rarely()
    by_form(given.world_agents, given.world_rounds, given.slots, given.latency_ms)


if __name__ == "__main__":
    main()
