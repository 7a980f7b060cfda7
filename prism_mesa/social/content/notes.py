"""What agents write down for themselves, and which notes come to mind."""

from typing import TYPE_CHECKING, Final

import numpy as np

from prism_mesa.deliberation import Note

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel


NOTE_CAP: Final = 200
"""Characters of a note."""


def recalled(model: "SocialModel", row: int, about: str) -> list[str]:
    """Return the notes of an agent that come to mind of a text, best first."""
    most = model.params.deliberation.notes_told
    if not most or not model.notebook.of(row):
        return []
    towards = model.topics.place([about])[0].astype(np.float64) if about.strip() else None
    return [note.text for note in model.notebook.recalled(row, towards, model.hours, most)]


def keep_notes(model: "SocialModel") -> None:
    """Let what agents wrote down in this round become notes, by tick and agent, which they have from now on."""
    noted = sorted(model.events.notes, key=lambda note: note[:2])  # stable: each agent's in its own order
    if not noted:
        return
    vectors = model.topics.place([text for _, _, text, _ in noted])
    for (_, row, text, importance), vector in zip(noted, vectors, strict=True):
        model.notebook.add(row, Note(text, model.hours, importance, tuple(vector.tolist())))
    if model.recorder is not None:
        kinds = {"tick": np.int32, "agent": np.int32, "text": object, "importance": np.int32}
        columns = zip(kinds.items(), zip(*noted, strict=True), strict=True)
        told = {name: np.array(values, kind) for (name, kind), values in columns}
        model.recorder.write("notes", {"round": np.full(len(noted), model.round, np.int32)} | told)
