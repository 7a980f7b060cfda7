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
_STEPS: Final = (397, 443, 509, 569, 613, 673, 733, 787, 853, 907, 971, 1039)  # primes, so that steps reach all texts


class Texts(Restorable):
    """All texts of a run. The id is the index, and no text moves.

    Attributes:
        texts: All texts, with those of the corpus first.
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
        new_texts, self._about, self._shows = kept["texts"], restored(kept["about"]), restored(kept["shows"])
        self.texts = [*self.corpus.texts, *new_texts]
        self._ids = {key: self._n + i for i, key in enumerate(zip(new_texts, self._about, self._shows, strict=True))}
        self.with_media = np.concatenate([self.with_media[: self._n], self._have_media(self._n)])
        self._store_vectors(self._n, kept["vectors"])

    def _checksum(self) -> int:
        texts = "\x1e".join(self.corpus.texts).encode("utf-8", "replace")
        return crc32(texts, crc32(self.vectors[: self._n].tobytes()))

    def add(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Ids:
        """Store texts written during the run and return their ids.

        `about` is the text that each text is about, `NO_TEXT` for none. The new text gets the labels of that text,
        and its media if `with_media`. Equal texts with equal labels and media are stored once.
        """
        about = [NO_TEXT] * len(texts) if about is None else about
        labels = [self._origin(i) if self._has_labels else NO_TEXT for i in about]
        media_texts = [i if with_media and i < self._n else NO_TEXT for i in about]
        keys = list(zip(texts, labels, media_texts, strict=True))
        new_keys = [key for key in dict.fromkeys(keys) if key not in self._ids]
        if new_keys:
            first_id = len(self.texts)
            self._ids.update((key, first_id + i) for i, key in enumerate(new_keys))
            self.texts += [text for text, _, _ in new_keys]
            self._about += [origin for _, origin, _ in new_keys]
            self._shows += [shown for _, _, shown in new_keys]
            self.with_media = np.concatenate([self.with_media, self._have_media(first_id)])
            label_texts = (self._about[-len(new_keys) :],) if self._has_labels else ()
            self._store_vectors(first_id, self.topics.place(self.texts[first_id:], *label_texts))
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
        media_text = text_id if text_id < self._n else self._shows[text_id - self._n]
        if not 0 <= media_text < len(self.corpus.media_types):
            return "", ""
        return self.corpus.media_types[media_text], self.corpus.media_descriptions[media_text]

    @property
    def vectors(self) -> npt.NDArray[np.int8]:
        """Topic vectors of all texts, shape (texts, n_topics)."""
        return self._vectors[: len(self.texts)]

    def _have_media(self, first: int) -> npt.NDArray[np.bool_]:
        if not self.corpus.media_types:
            return np.zeros(len(self.texts) - first, np.bool_)
        return np.array([bool(self.media(i)[0]) for i in range(first, len(self.texts))], np.bool_)

    def _origin(self, text_id: int) -> int:
        """Return the text of the corpus that a text is about, directly or indirectly, or `NO_TEXT`."""
        return text_id if text_id < self._n else self._about[text_id - self._n]

    def _store_vectors(self, first: int, vectors: npt.NDArray[np.int8]) -> None:
        """Write the vectors of the texts from `first` on; a full array doubles its size."""
        needed = first + len(vectors)
        if needed > len(self._vectors):
            old = self._vectors
            self._vectors = np.zeros((max(needed, 2 * len(old)), old.shape[1]), np.int8)
            self._vectors[:first] = old[:first]
        self._vectors[first:needed] = vectors


@lru_cache(maxsize=1 << 16)
def reworded(subject: str, topic: str, number: int) -> str:
    """Return a text about a subject, different for each number until all pairs are used."""
    openings, remarks = wordings()
    n = len(openings) * len(remarks[topic])
    start = crc32(subject.encode())
    position = (start + number * _STEPS[start // n % len(_STEPS)]) % n
    text = f"{openings[position % len(openings)].format(subject)} {remarks[topic][position // len(openings)]}".rstrip()
    return text[0].upper() + text[1:]


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a placeholder for a subject, and remarks by topic."""
    parts = json.loads((resources.files("prism_mesa.social.world") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
