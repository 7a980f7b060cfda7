"""The answers that a run knows, from its own ledger and from a ledger shared with other runs.

A run's own ledger receives every answer that the run uses, so the run's folder suffices to repeat it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prism_mesa.errors import ConfigError
from prism_mesa.llm.ledger import AskedRow, Ledger, StoredAnswer, decoding_text
from prism_mesa.llm.params import LedgerMode
from prism_mesa.snapshot import Plain, Restorable, plain, restored

_AT_HAND = 1 << 16
"""Number of answers kept in memory while the run's own ledger has all of them."""


class AnswerStore(Restorable):
    """Known answers by key, and the ledgers to which new ones are written.

    Args:
        mode: `live` knows the answers of this run; `cache` also knows the shared ledger's; `replay` reads all answers
            from the shared ledger and writes nothing to it.
        shared: The shared ledger; `close` closes it.

    Attributes:
        own: The run's own ledger, or None.
        run: The run's name in `asked`: ``scope/name``. Runs of one scope have the same tables.

    Raises:
        ConfigError: If the mode needs a shared ledger but there is none.
    """

    def __init__(self, mode: LedgerMode = "live", shared: Ledger | None = None) -> None:
        if mode != "live" and shared is None:
            raise ConfigError(f"reasoner.ledger: {mode} needs reasoner.ledger_path, the ledger to read")
        self.mode, self.shared, self.run = mode, shared, ""
        self.own: Ledger | None = None
        self._known: dict[str, str] = {}
        self._forgot = False
        self._again: dict[str, tuple[int, int, int]] = {}
        self._past: dict[tuple[int, int, int], deque[AskedRow]] | None = None
        self._llms: set[tuple[str, str, str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which has no own ledger."""
        return vars(self) | {"own": None}

    def begin(self, own: Ledger | None, run: str) -> None:
        """Begin a run and forget earlier runs; `own` is the run's own ledger, if it has one."""
        self.own, self.run = own, run
        self._known.clear()
        self._again.clear()
        self._forgot = False
        self._past = None

    def go_on(self, own: Ledger, run: str, round_: int) -> None:
        """Continue a run of another process, from a round on.

        Questions from that round on are asked again and answered with the earlier answers (`answer_before_stop`), so no
        call is repeated, and counts equal those of an uninterrupted run.
        """
        self.begin(own, run)
        self._forgot = True
        if self.mode != "replay":
            self._again = own.unsettled(run, round_)
        if self.mode == "cache":
            for key in own.taken_since(run, round_):
                self._again.pop(key, None)
        own.forget_asked(run, round_)
        if self.shared is not None and self.mode != "replay":
            self.shared.forget_asked(run, round_)
            if run not in self.shared.runs():  # a branch begins with the questions of its run
                self.shared.write([], own.asked(run))

    def answer_before_stop(self, key: str) -> tuple[StoredAnswer, int] | None:
        """Return the answer from before the stop, once, with its number of attempts; tokens include all attempts."""
        cost = self._again.pop(key, None)
        stored = None if cost is None or self.own is None else self.own.get(key)
        if stored is None or cost is None:
            return None
        read, written = max(cost[1], stored.prompt_tokens), max(cost[2], stored.completion_tokens)
        return replace(stored, prompt_tokens=read, completion_tokens=written), max(cost[0], 1)

    def snapshot(self) -> dict[str, Plain]:
        """Return the known answers, or None if the run's own ledger has all of them."""
        return {"known": None if self.own is not None else plain(self._known)}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot, after `begin`."""
        known = restored(kept["known"])
        self._known, self._forgot = known or {}, known is None

    def knows(self, llm: str, digest: str, decoding: Mapping[str, Any]) -> bool:
        """Return whether the shared ledger has answers from an LLM with these options."""
        if self._llms is None:
            self._llms = set(self.shared.llms()) if self.shared is not None else set()
        return (llm, digest, decoding_text(decoding)) in self._llms

    def find_raw(self, key: str) -> str | None:
        """Return the LLM's answer for a key, or None."""
        if key in self._again:
            return None
        raw = self._known.get(key)
        if raw is None and self._forgot and self.own is not None:
            stored = self.own.get(key)
            raw = None if stored is None else self._keep_known(key, stored.raw)
        if raw is None and self.shared is not None and self.mode != "live":
            stored = self.shared.get(key)
            if stored is not None:
                raw = self._keep_known(key, stored.raw)
                if self.own is not None:
                    self.own.put(stored)
        return raw

    def _keep_known(self, key: str, raw: str) -> str:
        """Keep an answer in memory; drop the oldest one if the run's own ledger has it and there are too many."""
        self._known[key] = raw
        if self.own is not None and len(self._known) > _AT_HAND:
            del self._known[next(iter(self._known))]
            self._forgot = True
        return raw

    def past(self, round_: int, tick: int, agent: int) -> AskedRow | None:
        """Return the outcome of the next question at a place in the replayed run, or None if there is none."""
        if self._past is None:  # replay the latest run of this scope, or the ledger's only run
            self._past = {}
            runs, scope = self.shared.runs() if self.shared else [], self.run.partition("/")[0]
            candidates = [run for run in runs if run.partition("/")[0] == scope] or (runs if len(runs) == 1 else [])
            for row in self.shared.asked(candidates[0]) if self.shared and candidates else ():
                self._past.setdefault((row.round, row.tick, row.agent), deque()).append(row)
        rows = self._past.get((round_, tick, agent))
        return rows.popleft() if rows else None

    def keep(self, answer: StoredAnswer) -> str:
        """Store a new answer and return the text to use: with `cache` another process may have stored one earlier."""
        if self.shared is not None and self.mode != "replay":
            self.shared.put(answer)
            if self.mode == "cache":
                answer = self.shared.get(answer.key) or answer
        if self.own is not None:
            self.own.put(answer)
        return self._keep_known(answer.key, answer.raw)

    def note(self, rows: list[AskedRow]) -> None:
        """Record questions with their outcomes."""
        if not rows:
            return
        if self.own is not None:
            self.own.write([], rows)
        if self.shared is not None and self.mode != "replay":
            self.shared.write([], rows)

    def close(self) -> None:
        """Close the shared ledger."""
        if self.shared is not None:
            self.shared.close()
