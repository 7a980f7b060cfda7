"""The texts of posts: those of the corpus, in several wordings, and those written during the run."""

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import DataError
from prism_mesa.snapshot import Plain, Restorable, plain, restored
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus

type Ids = npt.NDArray[np.integer[Any]]

NO_TEXT: Final = -1
_STEPS: Final = (397, 443, 509, 569, 613, 673, 733, 787, 853, 907, 971, 1039)  # primes, so that steps reach all places


class Texts(Restorable):
    """All texts of a run. The id is the index, and no text moves.

    Attributes:
        texts: All of them, those of the corpus first.
        with_media: Whether each text shows media, shape (texts,).
    """

    def __init__(self, corpus: Corpus, topics: Topics) -> None:
        self.corpus, self.topics, self.texts = corpus, topics, list(corpus.texts)
        self._n, self._vectors, self._has_labels = len(corpus.texts), topics.vectors, any(corpus.labels)
        self._ids: dict[tuple[str, int, int], int] = {}
        self._about: list[int] = []
        self._shows: list[int] = []
        self.with_media = self._have_media(0)

    def snapshot(self) -> dict[str, Plain]:
        """Return the texts written in the run, and the texts that these are about."""
        written = {"texts": self.texts[self._n :], "about": plain(self._about), "shows": plain(self._shows)}
        return written | {"vectors": self.vectors[self._n :], "corpus": self._checksum()}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot over the same corpus; raise DataError if it is another corpus."""
        if kept["corpus"] != self._checksum():
            raise DataError("the texts differ from the run's: has posts.file, or the embedder, changed since?")
        new, self._about, self._shows = kept["texts"], restored(kept["about"]), restored(kept["shows"])
        self.texts = [*self.corpus.texts, *new]
        self._ids = {key: self._n + i for i, key in enumerate(zip(new, self._about, self._shows, strict=True))}
        self.with_media = np.concatenate([self.with_media[: self._n], self._have_media(self._n)])
        self._store_vectors(self._n, kept["vectors"])

    def _checksum(self) -> int:
        texts = "\x1e".join(self.corpus.texts).encode("utf-8", "replace")
        return crc32(texts, crc32(self.vectors[: self._n].tobytes()))

    def add(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Ids:
        """Store texts written during the run and return their ids.

        `about` is the text that each text is about, `NO_TEXT` for none. The new text gets its topic labels, and its
        media if `with_media`. Equal texts with equal labels and media are stored once.
        """
        about = [NO_TEXT] * len(texts) if about is None else about
        labels = [self._origin(i) if self._has_labels else NO_TEXT for i in about]
        shows = [i if with_media and i < self._n else NO_TEXT for i in about]
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
            self._store_vectors(first, self.topics.place(self.texts[first:], *shared))
        return np.array([self._ids[key] for key in keys], np.int64)

    def text(self, text_id: int, wording: int) -> str:
        """Return a text, with the text of the corpus that it contains in the given wording; 0: the original."""
        text, origin = self.texts[text_id], self._origin(text_id) if wording else NO_TEXT
        if origin == NO_TEXT or not self.corpus.subjects:
            return text
        [topic, *_] = self.corpus.labels[origin]
        return text.replace(self.corpus.texts[origin], reworded(self.corpus.subjects[origin], topic, wording))

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media; empty without media."""
        shows = text_id if text_id < self._n else self._shows[text_id - self._n]
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
        """Return the text of the corpus that a text is about, directly or indirectly; `NO_TEXT` for none."""
        return text_id if text_id < self._n else self._about[text_id - self._n]

    def _store_vectors(self, first: int, vectors: npt.NDArray[np.int8]) -> None:
        """Write the vectors of the texts from `first` on; full arrays double."""
        needed = first + len(vectors)
        if needed > len(self._vectors):
            before = self._vectors
            self._vectors = np.zeros((max(needed, 2 * len(before)), before.shape[1]), np.int8)
            self._vectors[:first] = before[:first]
        self._vectors[first:needed] = vectors


@lru_cache(maxsize=1 << 16)
def reworded(subject: str, topic: str, number: int) -> str:
    """Return a text about a subject, different for each number until all pairs are used."""
    openings, remarks = wordings()
    n = len(openings) * len(remarks[topic])
    begin = crc32(subject.encode())
    place = (begin + number * _STEPS[begin // n % len(_STEPS)]) % n
    words = f"{openings[place % len(openings)].format(subject)} {remarks[topic][place // len(openings)]}".rstrip()
    return words[0].upper() + words[1:]


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a place for a subject, and remarks by topic."""
    parts = json.loads((resources.files("prism_mesa.social.world") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
