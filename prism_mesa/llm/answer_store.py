"""The answers that a run knows and writes down: its own ledger, and one that it shares with other runs.

The run's own ledger ends up with every answer that the run used, wherever it came from, so that a run can be
repeated from its folder alone.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prism_mesa.errors import ConfigError
from prism_mesa.llm.ledger import AskedRow, Ledger, StoredAnswer, decoding_text
from prism_mesa.llm.params import LedgerMode
from prism_mesa.snapshot import Plain, Restorable, plain, restored

_WHERE = "reasoner.ledger"
_AT_HAND = 1 << 16
"""Answers that are kept in memory, where the run's own ledger holds them all."""


class AnswerStore(Restorable):
    """Answers that are known, by key, and where new ones are written.

    Args:
        mode: `live` knows what this run was answered; `cache` also what the shared ledger holds; `replay`
            reads everything from it and writes nothing to it.
        shared: The ledger beside the run's own; `close` closes it.

    Attributes:
        own: The run's own ledger, or None.
        run: What rows of `asked` call this run: ``scope/name``. Runs of one scope have the same tables.

    Raises:
        ConfigError: If the mode needs a shared ledger and there is none.
    """

    def __init__(self, mode: LedgerMode = "live", shared: Ledger | None = None) -> None:
        if mode != "live" and shared is None:
            raise ConfigError(f"{_WHERE}: {mode} needs reasoner.ledger_path, the ledger to read")
        self.mode = mode
        self.shared = shared
        self.own: Ledger | None = None
        self.run = ""
        self._known: dict[str, str] = {}
        self._forgot = False
        self._again: dict[str, tuple[int, int, int]] = {}
        self._past: dict[tuple[int, int, int], deque[AskedRow]] | None = None
        self._llms: set[tuple[str, str, str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has, which writes nothing into the ledger of the run."""
        return vars(self) | {"own": None}

    def begin(self, own: Ledger | None, run: str) -> None:
        """Begin a run, with or without a ledger of its own.

        It knows nothing of the answers of an earlier one but what a shared ledger holds.
        """
        self.own, self.run = own, run
        self._known.clear()
        self._again.clear()
        self._forgot = False
        self._past = None

    def go_on(self, own: Ledger, run: str, round_: int) -> None:
        """Go on with a run of this name from a round on, after `begin` in another process.

        What it was answered in that round or later counts as not asked: it is handed out when it is asked again (see
        `said_before`), so that nobody is asked twice, and all is counted as if the run had never been stopped. What it
        asked before is in a shared ledger, too.

        Raises:
            DataError: If a ledger cannot be read or written.
        """
        self.begin(own, run)
        self._forgot = True
        if self.mode != "replay":
            self._again = own.unsettled(run, round_)
        if self.mode == "cache":
            for key in own.found_since(run, round_):
                self._again.pop(key, None)
        own.forget_asked(run, round_)
        if self.shared is not None and self.mode != "replay":
            self.shared.forget_asked(run, round_)
            if run not in self.shared.runs():  # that of a branch: it begins with what its run asked
                self.shared.write([], own.asked(run))

    def said_before(self, key: str) -> tuple[StoredAnswer, int] | None:
        """Return, once, what the LLM said before the run was stopped, and in how many attempts; else None.

        Its tokens are those of all attempts.
        """
        took = self._again.pop(key, None)
        stored = None if took is None or self.own is None else self.own.get(key)
        if stored is None or took is None:
            return None
        attempts, read, said = took
        tokens = max(read, stored.prompt_tokens), max(said, stored.completion_tokens)
        return replace(stored, prompt_tokens=tokens[0], completion_tokens=tokens[1]), max(attempts, 1)

    def snapshot(self) -> dict[str, Plain]:
        """Return the answers that are known; None if the run's own ledger holds them all."""
        return {"known": None if self.own is not None else plain(self._known)}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned, after `begin`."""
        known = restored(kept["known"])
        self._known, self._forgot = known or {}, known is None

    def knows(self, llm: str, digest: str, decoding: Mapping[str, Any]) -> bool:
        """Return whether the shared ledger holds answers of an LLM, asked like that: then its keys are known."""
        if self._llms is None:
            self._llms = set(self.shared.llms()) if self.shared is not None else set()
        return (llm, digest, decoding_text(decoding)) in self._llms

    def raw_of(self, key: str) -> str | None:
        """Return what the LLM said to the question of a key, or None if nobody knows."""
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
        """Keep an answer at hand; of many the oldest go, which the run's own ledger holds all the same."""
        self._known[key] = raw
        if self.own is not None and len(self._known) > _AT_HAND:
            del self._known[next(iter(self._known))]
            self._forgot = True
        return raw

    def past(self, round_: int, tick: int, agent: int) -> AskedRow | None:
        """Return what came of a place's next question in the run that is replayed, or None if there was none."""
        if self._past is None:
            self._past = self._read_past()
        rows = self._past.get((round_, tick, agent))
        return rows.popleft() if rows else None

    def _read_past(self) -> dict[tuple[int, int, int], deque[AskedRow]]:
        """Return the rows of the latest run of this scope, or of the only run that the ledger knows."""
        past: dict[tuple[int, int, int], deque[AskedRow]] = {}
        if self.shared is not None:
            runs, scope = self.shared.runs(), self.run.partition("/")[0]
            same = [run for run in runs if run.partition("/")[0] == scope] or (runs if len(runs) == 1 else [])
            for row in self.shared.asked(same[0]) if same else ():
                past.setdefault((row.round, row.tick, row.agent), deque()).append(row)
        return past

    def keep(self, answer: StoredAnswer) -> str:
        """Store a new answer and return the raw text that stands: with `cache` another process may have been first."""
        if self.shared is not None and self.mode != "replay":
            self.shared.put(answer)
            if self.mode == "cache":
                answer = self.shared.get(answer.key) or answer
        if self.own is not None:
            self.own.put(answer)
        return self._keep_known(answer.key, answer.raw)

    def note(self, rows: list[AskedRow]) -> None:
        """Write down who asked what and what came of it."""
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
