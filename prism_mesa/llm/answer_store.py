"""The known answers of a run, from its own ledger and from a ledger that it shares with other runs.

A run's own ledger gets every answer that the run uses, so the run can be repeated from its folder alone.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prism_mesa.errors import ConfigError
from prism_mesa.llm.ledger import AskedRow, Ledger, StoredAnswer, decoding_text
from prism_mesa.llm.params import LedgerMode
from prism_mesa.snapshot import Plain, Restorable, from_plain, to_plain

_MAX_IN_MEMORY = 1 << 16
"""Maximum number of answers in memory while the run's own ledger has all of them."""


class AnswerStore(Restorable):
    """Known answers by key, and the ledgers that record new answers.

    Args:
        mode: `live` uses the answers of this run; `cache` also uses answers in the shared ledger; `replay` takes all
            answers from the shared ledger, which does not change.
        shared_ledger: The shared ledger, which `close` closes.

    Attributes:
        run_ledger: The run's own ledger, or None.
        run: The run's name in `asked`: ``scope/name``. Runs with equal scopes have equal tables.

    Raises:
        ConfigError: If the mode needs a shared ledger but there is none.
    """

    def __init__(self, mode: LedgerMode = "live", shared_ledger: Ledger | None = None) -> None:
        if mode != "live" and shared_ledger is None:
            raise ConfigError(f"reasoner.ledger: {mode} needs reasoner.ledger_path, the ledger to read")
        self.mode, self.shared_ledger, self.run = mode, shared_ledger, ""
        self.run_ledger: Ledger | None = None
        self._known: dict[str, str] = {}
        self._is_partial = False
        self._costs_before_stop: dict[str, tuple[int, int, int]] = {}
        self._past_rows: dict[tuple[int, int, int], deque[AskedRow]] | None = None
        self._llms: set[tuple[str, str, str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"run_ledger": None}

    def begin(self, run_ledger: Ledger | None, run: str) -> None:
        """Begin a run and forget earlier runs; `run_ledger` is None if the run has no ledger."""
        self.run_ledger, self.run = run_ledger, run
        self._known.clear()
        self._costs_before_stop.clear()
        self._is_partial = False
        self._past_rows = None

    def resume(self, run_ledger: Ledger, run: str, round_: int) -> None:
        """Resume a run at the start of a round, after it was stopped.

        The run repeats its questions from this round on and gets its earlier answers (`answer_before_stop`). So no call
        is repeated, and the counts are the same as in an uninterrupted run.
        """
        self.begin(run_ledger, run)
        self._is_partial = True
        if self.mode != "replay":
            self._costs_before_stop = run_ledger.costs_since(run, round_)
        if self.mode == "cache":
            for key in run_ledger.cached_since(run, round_):
                self._costs_before_stop.pop(key, None)
        run_ledger.forget_asked(run, round_)
        if self.shared_ledger is not None and self.mode != "replay":
            self.shared_ledger.forget_asked(run, round_)
            if run not in self.shared_ledger.runs():  # a branch begins with the questions of its run
                self.shared_ledger.write([], run_ledger.asked(run))

    def answer_before_stop(self, key: str) -> tuple[StoredAnswer, int] | None:
        """Return an answer from before the stop with the tokens of all attempts, and the attempts; None after that."""
        cost = self._costs_before_stop.pop(key, None)
        stored_answer = None if cost is None or self.run_ledger is None else self.run_ledger.get(key)
        if stored_answer is None or cost is None:
            return None
        n_read, n_written = max(cost[1], stored_answer.prompt_tokens), max(cost[2], stored_answer.completion_tokens)
        return replace(stored_answer, prompt_tokens=n_read, completion_tokens=n_written), max(cost[0], 1)

    def snapshot(self) -> dict[str, Plain]:
        """Return a dictionary with the known answers, or with None if the run's own ledger has all of them."""
        return {"known": None if self.run_ledger is not None else to_plain(self._known)}

    def restore(self, snapshot: Mapping[str, Plain]) -> None:
        """Restore a snapshot. Call `begin` first."""
        known = from_plain(snapshot["known"])
        self._known, self._is_partial = known or {}, known is None

    def has_llm(self, llm: str, digest: str, decoding: Mapping[str, Any]) -> bool:
        """Return whether the shared ledger has answers of an LLM with these decoding options."""
        if self._llms is None:
            self._llms = set(self.shared_ledger.llms()) if self.shared_ledger is not None else set()
        return (llm, digest, decoding_text(decoding)) in self._llms

    def find_raw(self, key: str) -> str | None:
        """Return the LLM's raw answer for a key, or None."""
        if key in self._costs_before_stop:
            return None
        raw = self._known.get(key)
        if raw is None and self._is_partial and self.run_ledger is not None:
            stored_answer = self.run_ledger.get(key)
            raw = None if stored_answer is None else self._remember(key, stored_answer.raw)
        if raw is None and self.shared_ledger is not None and self.mode != "live":
            stored_answer = self.shared_ledger.get(key)
            if stored_answer is not None:
                raw = self._remember(key, stored_answer.raw)
                if self.run_ledger is not None:
                    self.run_ledger.put(stored_answer)
        return raw

    def _remember(self, key: str, raw: str) -> str:
        """Keep an answer in memory. With too many answers, drop the oldest if the run's own ledger has it."""
        self._known[key] = raw
        if self.run_ledger is not None and len(self._known) > _MAX_IN_MEMORY:
            del self._known[next(iter(self._known))]
            self._is_partial = True
        return raw

    def next_outcome(self, round_: int, tick: int, agent: int) -> AskedRow | None:
        """Return the recorded outcome of an agent's next question in this tick of a replayed run, or None."""
        if self._past_rows is None:  # replay the latest run of this scope, or the ledger's only run
            self._past_rows = {}
            runs, scope = self.shared_ledger.runs() if self.shared_ledger else [], self.run.partition("/")[0]
            candidates = [run for run in runs if run.partition("/")[0] == scope] or (runs if len(runs) == 1 else [])
            for row in self.shared_ledger.asked(candidates[0]) if self.shared_ledger and candidates else ():
                self._past_rows.setdefault((row.round, row.tick, row.agent), deque()).append(row)
        rows = self._past_rows.get((round_, tick, agent))
        return rows.popleft() if rows else None

    def add_answer(self, answer: StoredAnswer) -> str:
        """Store a new answer and return the text to use, with `cache` perhaps an earlier one by another process."""
        if self.shared_ledger is not None and self.mode != "replay":
            self.shared_ledger.put(answer)
            if self.mode == "cache":
                answer = self.shared_ledger.get(answer.key) or answer
        if self.run_ledger is not None:
            self.run_ledger.put(answer)
        return self._remember(answer.key, answer.raw)

    def record_asked(self, rows: list[AskedRow]) -> None:
        """Record questions with their outcomes."""
        for ledger in (self.run_ledger, None if self.mode == "replay" else self.shared_ledger):
            if rows and ledger is not None:
                ledger.write([], rows)

    def close(self) -> None:
        """Close the shared ledger."""
        if self.shared_ledger is not None:
            self.shared_ledger.close()
