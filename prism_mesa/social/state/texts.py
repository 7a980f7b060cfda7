"""The texts that posts point into: those of the corpus, and those that are written during the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import DataError
from prism_mesa.snapshot import Plain, Restorable, plain, restored
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus
from prism_mesa.social.world.wording import reworded

type Ids = npt.NDArray[np.integer[Any]]

NO_TEXT: Final = -1


@dataclass(repr=False)
class Texts(Restorable):
    """All texts of a run; the id is the place, and no text moves.

    Attributes:
        corpus: Where the first texts come from; `topics` what they are about.
        texts: All of them.
        with_media: Which show media, shape (texts,).
    """

    corpus: Corpus
    topics: Topics
    texts: list[str] = field(init=False)
    with_media: npt.NDArray[np.bool_] = field(init=False)
    _vectors: npt.NDArray[np.int8] = field(init=False)
    _ids: dict[tuple[str, int, int], int] = field(init=False)
    _about: list[int] = field(init=False)
    _shows: list[int] = field(init=False)
    _has_labels: bool = field(init=False)

    def __post_init__(self) -> None:
        self.texts = list(self.corpus.texts)
        self._vectors = self.topics.vectors
        self._ids, self._about, self._shows = {}, [], []
        self.with_media = self._have_media(0)
        self._has_labels = any(self.corpus.labels)

    def snapshot(self) -> dict[str, Plain]:
        """Return the texts that were written in the run, with what they are about."""
        own = len(self.corpus.texts)
        written = {"texts": self.texts[own:], "about": plain(self._about), "shows": plain(self._shows)}
        return written | {"vectors": self.vectors[own:], "corpus": self._checksum()}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned, after the same corpus.

        Raises:
            DataError: If it is another corpus.
        """
        if kept["corpus"] != self._checksum():
            raise DataError("the texts are not those of the run: has posts.file, or the embedder, changed since?")
        new, first, vectors = kept["texts"], len(self.corpus.texts), kept["vectors"]
        about, shows = restored(kept["about"]), restored(kept["shows"])
        self.texts, self._about, self._shows = [*self.corpus.texts, *new], about, shows
        self._ids = {key: first + i for i, key in enumerate(zip(new, about, shows, strict=True))}
        self.with_media = np.concatenate([self.with_media[:first], self._have_media(first)])
        self._keep_vectors(first, vectors)

    def _checksum(self) -> int:
        """Return a number that the texts of two corpora, and their vectors, hardly share."""
        own = len(self.corpus.texts)
        return crc32("\x1e".join(self.corpus.texts).encode("utf-8", "replace"), crc32(self.vectors[:own].tobytes()))

    def add(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Ids:
        """Keep texts written during the run and return their ids; equal texts about the same are kept once.

        Args:
            texts: What was written.
            about: For each of them the text that it is about, `NO_TEXT` for none: where the corpus has topic labels,
                it has that one's.
            with_media: Whether each shows the media of what it is about.
        """
        about = [NO_TEXT] * len(texts) if about is None else about
        labels = [self._origin(i) if self._has_labels else NO_TEXT for i in about]
        shows = [i if with_media and i < len(self.corpus.texts) else NO_TEXT for i in about]
        keys = list(zip(texts, labels, shows, strict=True))
        new = [key for key in dict.fromkeys(keys) if key not in self._ids]
        if new:
            first = len(self.texts)
            self._ids.update((key, first + i) for i, key in enumerate(new))
            self.texts += [text for text, _, _ in new]
            self._about += [origin for _, origin, _ in new]
            self._shows += [shown for _, _, shown in new]
            self.with_media = np.concatenate([self.with_media, self._have_media(first)])
            shared = (self._about[-len(new) :],) if self._has_labels else ()
            self._keep_vectors(first, self.topics.place(self.texts[first:], *shared))
        return np.array([self._ids[key] for key in keys], np.int64)

    def text(self, text_id: int, wording: int) -> str:
        """Return a text in which that of the corpus that it says, or quotes, is put in other words; 0: in its own."""
        text, origin = self.texts[text_id], self._origin(text_id) if wording else NO_TEXT
        if origin == NO_TEXT or not self.corpus.subjects:
            return text
        [topic, *_] = self.corpus.labels[origin]
        return text.replace(self.corpus.texts[origin], reworded(self.corpus.subjects[origin], topic, wording))

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media, empty if it has none."""
        own = len(self.corpus.texts)
        shows = text_id if text_id < own else self._shows[text_id - own]
        if not 0 <= shows < len(self.corpus.media_types):
            return "", ""
        return self.corpus.media_types[shows], self.corpus.media_descriptions[shows]

    @property
    def vectors(self) -> npt.NDArray[np.int8]:
        """Topic vectors of all texts, shape (texts, n_topics)."""
        return self._vectors[: len(self.texts)]

    def _have_media(self, first: int) -> npt.NDArray[np.bool_]:
        if not self.corpus.media_types:
            return np.zeros(len(self.texts) - first, np.bool_)
        return np.array([bool(self.media(i)[0]) for i in range(first, len(self.texts))], np.bool_)

    def _origin(self, text_id: int) -> int:
        """Return the text of the corpus that a text is about, by way of others; `NO_TEXT` for none."""
        own = len(self.corpus.texts)
        return text_id if text_id < own else self._about[text_id - own]

    def _keep_vectors(self, first: int, vectors: npt.NDArray[np.int8]) -> None:
        """Write the vectors of the texts from `first` on; the room for them doubles when it is full."""
        needed = first + len(vectors)
        if needed > len(self._vectors):
            before = self._vectors
            self._vectors = np.zeros((max(needed, 2 * len(before)), before.shape[1]), np.int8)
            self._vectors[:first] = before[:first]
        self._vectors[first:needed] = vectors
