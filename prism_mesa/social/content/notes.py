"""What agents write down for themselves, and which notes come to mind."""

from typing import Final

import numpy as np

from prism_mesa.deliberation import Note
from prism_mesa.social.platform import Platform

NOTE_CAP: Final = 200
"""Characters of a note."""


def recalled(platform: Platform, row: int, about: str) -> list[str]:
    """Return the notes of an agent that come to mind of a text, best first."""
    most = platform.params.deliberation.notes_told
    if not most or not platform.notebook.of(row):
        return []
    towards = platform.topics.place([about])[0].astype(np.float64) if about.strip() else None
    return [note.text for note in platform.notebook.recalled(row, towards, platform.hours, most)]


def keep_notes(platform: Platform) -> None:
    """Let what agents wrote down in this round become notes, by tick and agent, which they have from now on."""
    noted = sorted(platform.events.notes, key=lambda note: note[:2])  # stable: each agent's in its own order
    if not noted:
        return
    vectors = platform.topics.place([text for _, _, text, _ in noted])
    for (_, row, text, importance), vector in zip(noted, vectors, strict=True):
        platform.notebook.add(row, Note(text, platform.hours, importance, tuple(vector.tolist())))
    if platform.recorder is not None:
        kinds = {"tick": np.int32, "agent": np.int32, "text": object, "importance": np.int32}
        columns = zip(kinds.items(), zip(*noted, strict=True), strict=True)
        told = {name: np.array(values, kind) for (name, kind), values in columns}
        platform.recorder.write("notes", {"round": np.full(len(noted), platform.round, np.int32)} | told)
