"""So many at a time, the rest in order of arrival: the queue of the stand-in for Ollama.

Not safe across threads; it belongs to one event loop.
"""

from collections import deque
from typing import Protocol


class Work(Protocol):
    """What needs a slot."""

    def begin(self, at: float) -> None:
        """Start, as if it were the moment `at`, which may be past."""
        ...


class AnswerSlots:
    """Slots and the queue for them.

    Attributes:
        busy: Slots in use.
        max_busy: The most that ever were.
    """

    def __init__(self, n: int, queue: int) -> None:
        self.n = n
        self.queue = queue
        self.busy = 0
        self.max_busy = 0
        self._waiting: deque[tuple[Work, float]] = deque()

    @property
    def n_waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def admit(self, work: Work, now: float) -> bool:
        """Begin the work or let it wait; return False if there is no room for it."""
        if self.busy < self.n:
            self._begin(work, now)
        elif len(self._waiting) < self.queue:
            self._waiting.append((work, now))
        else:
            return False
        return True

    def finish(self, at: float) -> None:
        """Give back a slot that was free from `at` on; who takes it begins then, or when it came if that was later."""
        self.busy -= 1
        if self._waiting and self.busy < self.n:
            work, came = self._waiting.popleft()
            self._begin(work, max(at, came))

    def withdraw(self, work: Work) -> None:
        """Forget work that waits."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not work)

    def _begin(self, work: Work, at: float) -> None:
        self.busy += 1
        self.max_busy = max(self.max_busy, self.busy)
        work.begin(at)
