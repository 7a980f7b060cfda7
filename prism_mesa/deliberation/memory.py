"""The memory of agents: notes, and recall of the most relevant notes.

>>> notebook = Notebook()
>>> notebook.add(7, Note("Bo likes chess", hour=0, importance=5))
>>> notebook.add(7, Note("It rains", hour=24, importance=2))
>>> [note.text for note in notebook.recall(7, None, hour=24, max_notes=1)]
['Bo likes chess']
"""

import math
from bisect import insort_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import AgentError, ConfigError, NotRestorableError
from prism_mesa.snapshot import Plain, Restorable, from_plain, to_plain

type Vector = npt.NDArray[np.floating[Any]] | Sequence[float]

MAX_NOTES: Final = 50
DECAY: Final = 0.995
TOP_IMPORTANCE: Final = 10
_UNKNOWN_RELEVANCE: Final = 0.5


@dataclass(frozen=True)
class Note:
    """A note of an agent; equality ignores its vector.

    Attributes:
        hour: The simulated hour in which the note was written.
        importance: 1..10.
        vector: The text's embedding, of any length above 0, or None.

    Raises:
        AgentError: If the importance is not in 1..10, or the hour is not finite.
    """

    text: str
    hour: float
    importance: int
    vector: Vector | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.importance, Integral) or not 1 <= self.importance <= TOP_IMPORTANCE:
            raise AgentError(f"note: importance: must be a whole number from 1 to 10, not {self.importance!r}")
        if not math.isfinite(self.hour):
            raise AgentError(f"note: hour: must be a finite number, not {self.hour!r}")


def _unit_vector(vector: Vector | None) -> npt.NDArray[np.float64] | None:
    """Scale a vector to length 1; return None if the vector is None, empty, zero, or not finite."""
    if vector is None or len(vector) == 0:
        return None
    values = np.asarray(vector, np.float64)
    largest = np.abs(values).max()
    if not 0 < largest < math.inf:
        return None
    values = values / largest  # avoids overflow and underflow of squares
    return np.asarray(values / math.sqrt(values @ values), np.float64)


def _relevance(first: npt.NDArray[np.float64] | None, second: npt.NDArray[np.float64] | None) -> float:
    """Return ``(1 + cosine) / 2`` of two vectors of length 1; 0.5 if one is missing."""
    if first is None or second is None:
        return _UNKNOWN_RELEVANCE
    if first.shape != second.shape:
        raise AgentError(f"note: vector: has {first.size} numbers, not {second.size}; use one embedding")
    return (1 + min(max(float(first @ second), -1.0), 1.0)) / 2


class Notebook(Restorable):
    """The notes of all agents of a model.

    The score of a note is recency x relevance x importance. Recency is ``decay ** hours`` for the hours since the note
    was written. Relevance is ``(1 + cosine) / 2`` of the vectors of note and query (0.5 if one is missing or zero).
    Importance is divided by 10. Park et al. (2023, doi:10.1145/3586183.3606763) add up the three factors, scaled over
    the available notes, and measure recency from the last retrieval. Here, a score does not depend on other notes, and
    recall changes nothing.

    Args:
        max_notes: Maximum number of notes per agent, at least 1. The note with the lowest recency x importance is
            dropped first; of equal notes, the oldest.
        decay: The share of a note's recency that remains after an hour, above 0 and at most 1.

    Raises:
        ConfigError: If a number is out of range.
    """

    def __init__(self, max_notes: int = MAX_NOTES, decay: float = DECAY) -> None:
        if max_notes < 1:
            raise ConfigError(f"notebook: max_notes: must be at least 1, not {max_notes!r}")
        if not 0 < decay <= 1:
            raise ConfigError(f"notebook: decay: must be above 0 and at most 1, not {decay!r}")
        self.max_notes = max_notes
        self.decay = decay
        self._notes: dict[int, list[Note]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._notes.values()))

    def add(self, agent: int, note: Note) -> None:
        """Add a note; notes with the same text merge, with the later hour and the higher importance."""
        notes = self._notes.setdefault(agent, [])
        for i, known_note in enumerate(notes):
            if known_note.text == note.text:
                old = notes.pop(i)
                hour, importance = max(old.hour, note.hour), max(old.importance, note.importance)
                vector = old.vector if note.vector is None else note.vector
                note = replace(note, hour=hour, importance=importance, vector=vector)
                break
        insort_right(notes, note, key=lambda other: other.hour)
        if len(notes) > self.max_notes:
            now = notes[-1].hour
            lowest = min(range(len(notes)), key=lambda i: self._recency(notes[i], now) * notes[i].importance)
            del notes[lowest]

    def agent_notes(self, agent: int) -> tuple[Note, ...]:
        """Return an agent's notes, oldest first; notes of the same hour are in the order of their last change."""
        return tuple(self._notes.get(agent, ()))

    def score(self, note: Note, query: Vector | None, hour: float) -> float:
        """Return the score of a note, 0..1, for a query vector at a simulated hour."""
        return self._score(note, _unit_vector(query), hour)

    def recall(self, agent: int, query: Vector | None, hour: float, max_notes: int = 3) -> list[Note]:
        """Return an agent's notes with the highest `score`, best first; ties go to the newer note."""
        query = _unit_vector(query)
        notes = self._notes.get(agent, [])[::-1]
        return sorted(notes, key=lambda note: self._score(note, query, hour), reverse=True)[: max(0, max_notes)]

    def snapshot(self) -> dict[str, Plain]:
        """Return all notes as columns and an array of vectors; NotRestorableError if vectors differ in length."""
        rows = [(agent, note) for agent, notes in self._notes.items() for note in notes]
        vectors = [tuple(note.vector) for _, note in rows if note.vector is not None]
        if len(set(map(len, vectors))) > 1:
            raise NotRestorableError("Notebook: the notes' vectors differ in length")
        return {
            "agent": to_plain([agent for agent, _ in rows]),
            "text": [note.text for _, note in rows],
            "hour": to_plain([note.hour for _, note in rows]),
            "importance": to_plain([int(note.importance) for _, note in rows]),
            "has_vector": np.array([note.vector is not None for _, note in rows], np.bool_),
            "vectors": np.array(vectors) if vectors else np.zeros((0, 0)),
        }

    def restore(self, snapshot: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        columns = [from_plain(snapshot[name]) for name in ("agent", "text", "hour", "importance")]
        self._notes, vectors = {}, iter(snapshot["vectors"].tolist())
        for agent, text, hour, importance, has_vector in zip(*columns, snapshot["has_vector"].tolist(), strict=True):
            note = Note(text, hour, importance, tuple(next(vectors)) if has_vector else None)
            self._notes.setdefault(agent, []).append(note)

    def as_columns(self) -> dict[str, list[Any]]:
        """Return all notes as columns of a table, by agent, oldest first."""
        rows = [(agent, note) for agent in sorted(self._notes) for note in self._notes[agent]]
        return {
            "agent": [agent for agent, _ in rows],
            "hour": [float(note.hour) for _, note in rows],
            "importance": [int(note.importance) for _, note in rows],
            "text": [note.text for _, note in rows],
        }

    def _score(self, note: Note, query: npt.NDArray[np.float64] | None, hour: float) -> float:
        weight = note.importance / TOP_IMPORTANCE
        return float(self._recency(note, hour) * _relevance(_unit_vector(note.vector), query) * weight)

    def _recency(self, note: Note, hour: float) -> float:
        return float(self.decay ** max(0.0, hour - note.hour))
