"""The texts of posts: texts of the corpus in several wordings, and texts written during the run."""

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Mask, Rows
from prism_mesa.errors import DataError
from prism_mesa.snapshot import Plain, Restorable, from_plain, to_plain
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus

NO_TEXT: Final = -1
_STEPS: Final = (397, 443, 509, 569, 613, 673, 733, 787, 853, 907, 971, 1039)  # primes, so that steps reach all texts


class Texts(Restorable):
    """All texts of a run; the id of a text is its index, which never changes.

    Attributes:
        texts: All texts; the texts of the corpus come first.
        with_media: Whether each text has media, shape (texts,).
    """

    def __init__(self, corpus: Corpus, topics: Topics) -> None:
        self.corpus, self.topics, self.texts = corpus, topics, list(corpus.texts)
        self._n_corpus, self._vectors, self._has_labels = len(corpus.texts), topics.vectors, any(corpus.labels)
        self._ids: dict[tuple[str, int, int], int] = {}
        self._subject_texts: list[int] = []
        self._media_texts: list[int] = []
        self.with_media = self._media_mask(0)

    def snapshot(self) -> dict[str, Plain]:
        """Return the texts written during the run, and the texts that they are about."""
        new_texts, vectors = self.texts[self._n_corpus :], self.vectors[self._n_corpus :]
        written = {"texts": new_texts, "about": to_plain(self._subject_texts), "shows": to_plain(self._media_texts)}
        return written | {"vectors": vectors, "corpus": self._checksum()}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot with the same corpus; raise DataError if the corpus differs."""
        if data["corpus"] != self._checksum():
            raise DataError("the texts differ from the run's: has posts.file, or the embedder, changed since?")
        new_texts, self._subject_texts = data["texts"], from_plain(data["about"])
        self._media_texts = from_plain(data["shows"])
        self.texts = [*self.corpus.texts, *new_texts]
        keys = zip(new_texts, self._subject_texts, self._media_texts, strict=True)
        self._ids = {key: i for i, key in enumerate(keys, self._n_corpus)}
        self.with_media = np.concatenate([self.with_media[: self._n_corpus], self._media_mask(self._n_corpus)])
        self._store_vectors(self._n_corpus, data["vectors"])

    def _checksum(self) -> int:
        texts = "\x1e".join(self.corpus.texts).encode("utf-8", "replace")
        return crc32(texts, crc32(self.vectors[: self._n_corpus].tobytes()))

    def add(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Rows:
        """Store texts written during the run and return their ids.

        `about` has the id of the text that each new text is about, or `NO_TEXT`. The new text gets that text's labels,
        and its media if `with_media`. Equal texts with equal labels and media are stored once.
        """
        about = [NO_TEXT] * len(texts) if about is None else about
        labels = [self._origin(i) if self._has_labels else NO_TEXT for i in about]
        media_texts = [i if with_media and i < self._n_corpus else NO_TEXT for i in about]
        keys = list(zip(texts, labels, media_texts, strict=True))
        new_keys = [key for key in dict.fromkeys(keys) if key not in self._ids]
        if new_keys:
            first_id = len(self.texts)
            self._ids.update((key, first_id + i) for i, key in enumerate(new_keys))
            self.texts += [text for text, _, _ in new_keys]
            self._subject_texts += [origin for _, origin, _ in new_keys]
            self._media_texts += [shown for _, _, shown in new_keys]
            self.with_media = np.concatenate([self.with_media, self._media_mask(first_id)])
            label_texts = (self._subject_texts[-len(new_keys) :],) if self._has_labels else ()
            self._store_vectors(first_id, self.topics.embed_texts(self.texts[first_id:], *label_texts))
        return np.array([self._ids[key] for key in keys], np.int64)

    def text(self, text_id: int, wording: int) -> str:
        """Return a text in a wording: the text of the corpus that it contains is reworded, unless `wording` is 0."""
        text, origin = self.texts[text_id], self._origin(text_id) if wording else NO_TEXT
        if origin == NO_TEXT or not self.corpus.subjects:
            return text
        [topic, *_] = self.corpus.labels[origin]
        return text.replace(self.corpus.texts[origin], reword(self.corpus.subjects[origin], topic, wording))

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media; both are empty without media."""
        media_text = text_id if text_id < self._n_corpus else self._media_texts[text_id - self._n_corpus]
        if not 0 <= media_text < len(self.corpus.media_types):
            return "", ""
        return self.corpus.media_types[media_text], self.corpus.media_descriptions[media_text]

    @property
    def vectors(self) -> npt.NDArray[np.int8]:
        """Topic vectors of all texts, shape (texts, n_topics)."""
        return self._vectors[: len(self.texts)]

    def _media_mask(self, first: int) -> Mask:
        if not self.corpus.media_types:
            return np.zeros(len(self.texts) - first, np.bool_)
        return np.array([bool(self.media(i)[0]) for i in range(first, len(self.texts))], np.bool_)

    def _origin(self, text_id: int) -> int:
        """Return the text of the corpus that a text is about, directly or indirectly, or `NO_TEXT`."""
        return text_id if text_id < self._n_corpus else self._subject_texts[text_id - self._n_corpus]

    def _store_vectors(self, first: int, vectors: npt.NDArray[np.int8]) -> None:
        """Write the vectors of texts, beginning with the text `first`; a full array doubles its size."""
        needed = first + len(vectors)
        if needed > len(self._vectors):
            old = self._vectors
            self._vectors = np.zeros((max(needed, 2 * len(old)), old.shape[1]), np.int8)
            self._vectors[:first] = old[:first]
        self._vectors[first:needed] = vectors


@lru_cache(maxsize=1 << 16)
def reword(subject: str, topic: str, number: int) -> str:
    """Return a text about a subject: an opening and a remark that depend on `number`.

    Texts differ until all pairs of an opening and a remark are used.
    """
    openings, remarks = load_wordings()
    n = len(openings) * len(remarks[topic])
    start = crc32(subject.encode())
    position = (start + number * _STEPS[start // n % len(_STEPS)]) % n
    text = f"{openings[position % len(openings)].format(subject)} {remarks[topic][position // len(openings)]}".rstrip()
    return text[0].upper() + text[1:]


@cache
def load_wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a placeholder for the subject, and remarks by topic."""
    parts = json.loads((resources.files("prism_mesa.social.world") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
