"""The ledger of a run that goes on: nothing is asked twice, and all is counted as if the run had never been stopped."""

import hashlib
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from advisors import LLM, advisor
from killed_runs import all_bytes
from minds import Mind, busy, words_of
from minds import asked as asked_mind
from small_runs import small
from stand_in import StandIn
from worlds import plain

from prism_mesa import Ledger, Reasoner, replay, run_economy
from prism_mesa.api.runs import resume, run
from prism_mesa.errors import ConfigError
from prism_mesa.runs.run_files import LEDGER

QUIET = {"pictures": False}
CONFIG = small(rounds=5, checkpoint_every=2, **{"agents.band": 0.4, "agents.activity": 0.9})


class Asked:
    """An LLM that depends on the prompt, remembers what it was asked, and looks at the folder at some calls."""

    def __init__(self, look=lambda n: None, useless=0):
        self.prompts, self.look, self.useless = [], look, useless

    def __call__(self, prompt):
        self.prompts.append(prompt)
        self.look(len(self.prompts))
        number = hashlib.sha256(prompt.encode()).digest()[0]
        if self.useless and number % self.useless == 0 and self.prompts.count(prompt) == 1:
            return "I cannot say."
        return "composing" if number % 2 else "scrolling"


def reasoner(asked, **more):
    return Reasoner(asked, max_concurrency=8, backoff_s=0.0, **more)


def killed_at(calls, tmp_path, config=CONFIG, **more):
    """Return a whole run, and the folder as it was at each of these calls, all in the midst of rounds."""
    out = tmp_path / "out"

    def look(n):
        if n in calls:
            [folder] = out.iterdir()
            shutil.copytree(folder, tmp_path / f"killed-{n}")

    asked = Asked(look, useless=more.pop("useless", 0))
    whole = run(config, out=out, reasoner=reasoner(asked, **more), **QUIET)
    return whole, len(asked.prompts), [tmp_path / f"killed-{n}" for n in calls]


def answers(folder):
    with Ledger(Path(folder) / LEDGER, read_only=True) as ledger:
        return {answer.prompt for answer in ledger.answers()}


def asked_rows(folder):
    with Ledger(Path(folder) / LEDGER, read_only=True) as ledger:
        assert len(ledger.runs()) == 1
        return sorted(tuple(v for k, v in asdict(row).items() if k != "run") for row in ledger.asked())


@pytest.mark.slow
@pytest.mark.parametrize("useless", [0, 5])
def test_nothing_is_asked_twice_and_all_is_counted_as_if_it_had_never_been_stopped(useless, tmp_path):
    whole, n, folders = killed_at([20, 60, 100], tmp_path, useless=useless, attempts=3)
    assert n > 120
    for folder in folders:
        known, asked = answers(folder), Asked(useless=useless)
        assert known
        result = resume(folder, reasoner=reasoner(asked, attempts=3), **QUIET)
        assert not known & set(asked.prompts)
        assert all_bytes(result) == all_bytes(whole)
        assert answers(folder) == answers(whole)
        assert asked_rows(folder) == asked_rows(whole)
        assert result.summary["decisions"] == whole.summary["decisions"]


def test_a_limit_is_spent_as_if_the_run_had_never_been_stopped(tmp_path):
    whole, n, [folder] = killed_at([30], tmp_path, max_calls=50, max_calls_per_round=20)
    assert n == 50
    assert whole.summary["decisions"]["by_source"]["budget"] > 0
    asked = Asked()
    result = resume(folder, reasoner=reasoner(asked, max_calls=50, max_calls_per_round=20), **QUIET)
    assert len(asked.prompts) <= 50 - len(answers(folder) - set(asked.prompts))
    assert all_bytes(result) == all_bytes(whole)
    assert result.summary["decisions"] == whole.summary["decisions"]


WRITING = plain(
    {
        "agents": {
            "n": 25,
            "activity": 1.0,
            "activity_sigma": 0.5,
            "band": 0.1,
            "threshold_mean": 0.5,
            "post_rate": 0.2,
        },
        "network": {"mean_degree": 8},
        "rounds": 4,
        "content": "llm",
        "checkpoint_every": 1,
    }
)


@pytest.mark.slow
def test_what_an_llm_thinks_writes_and_notes_goes_on(tmp_path):
    out, calls = tmp_path / "out", (40, 90, 140)

    def looking(prompt):
        if len(whole_mind.prompts) in calls:
            [folder] = out.iterdir()
            shutil.copytree(folder, tmp_path / f"killed-{len(whole_mind.prompts)}", dirs_exist_ok=True)
        return words_of(prompt)

    whole_mind = Mind(speaks=looking, thinks=busy)
    whole = run(WRITING, out=out, reasoner=asked_mind(whole_mind, max_fallback_share=1), **QUIET)
    found = sorted(tmp_path.glob("killed-*"))
    assert found
    for folder in found:
        known, mind = answers(folder), Mind(thinks=busy)
        result = resume(folder, reasoner=asked_mind(mind, max_fallback_share=1), **QUIET)
        assert not known & set(mind.prompts)
        assert all_bytes(result) == all_bytes(whole)
        assert result.summary["writing"] == whole.summary["writing"]
        assert result.summary["decisions"] == whole.summary["decisions"]


def test_a_run_that_went_on_can_be_repeated(server, tmp_path):
    out, once = tmp_path / "out", []
    config = small(rounds=4, checkpoint_every=1, **{"agents.band": 0.3})
    asks = {**config, "reasoner": {"kind": "ollama", "host": server.url, "timeout_s": 30}}

    def look(done):
        if done == 3:
            [folder] = out.iterdir()
            once.append(shutil.copytree(folder, tmp_path / "killed"))

    whole = run(asks, out=out, on_round=look, **QUIET)
    before = server.n_requests
    result = resume(once[0], **QUIET)
    assert 0 < server.n_requests - before < before
    assert all_bytes(result) == all_bytes(whole)
    assert replay(result).equal


def test_nations_ask_nothing_twice(tmp_path):
    out, once, prompts = tmp_path / "out", [], []

    def advise(prompt):
        prompts.append(prompt)
        if len(prompts) == 10:
            [folder] = out.iterdir()
            once.append(shutil.copytree(folder, tmp_path / "killed"))
        return advisor(prompt)

    whole = run_economy({**LLM, "rounds": 4}, out=out, llm=advise, pictures=False)
    known, before = answers(once[0]), len(prompts)
    assert known
    with pytest.raises(ConfigError, match=r"was given llm in Python, .*resume\('.*', llm=\.\.\.\)"):
        resume(once[0])
    result = resume(once[0], llm=advise, pictures=False)
    assert not known & set(prompts[before:])
    assert all_bytes(result) == all_bytes(whole)
    assert result.summary["decisions"] == whole.summary["decisions"]


def test_a_server_that_has_moved_is_named_and_nothing_else_can_be_changed(server, tmp_path):
    out, once = tmp_path / "out", []
    asks = {**small(rounds=3, checkpoint_every=1, **{"agents.band": 0.3})}
    asks |= {"reasoner": {"kind": "ollama", "host": server.url, "timeout_s": 30}}

    def look(done):
        if done == 2:
            [folder] = out.iterdir()
            once.append(shutil.copytree(folder, tmp_path / "killed"))

    whole = run(asks, out=out, on_round=look, **QUIET)
    with pytest.raises(ConfigError, match=r"^override: feed\.size: a resumed run can change only reason"):
        resume(once[0], ["feed.size=3"])
    with StandIn(slots=8) as moved:
        result = resume(once[0], [f"reasoner.host={moved.url}", "reasoner.max_concurrency=2"], **QUIET)
        assert moved.n_requests > 0
    assert all_bytes(result) == all_bytes(whole)
