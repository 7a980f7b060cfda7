"""Topic vectors of texts."""

import logging
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ConfigError
from prism_mesa.extras import install_hint
from prism_mesa.social.params import PostsParams
from prism_mesa.social.world.corpus import Corpus

type Embedder = Callable[[Sequence[str]], npt.NDArray[np.float64]]
"""A function from texts to vectors, shape (n texts, number of dimensions)."""

UNIT = 127
"""Length of a topic vector. Vectors are int8, so every similarity is an exact integer."""
UNIT_LENGTH = float(UNIT * UNIT)
"""Similarity of two equal topic vectors."""

_MAX_WORDLLAMA = 256
_WORD = re.compile(r"[^\W\d_]{2,}")
STOP_WORDS = frozenset(
    "the and for that with this from are was not have has had but you your all can its it's our out one get got "
    "will who how what when where why into about more than then they them their there been were would could should "
    "just like over after before some any own off too very her his him she let's don't i'm it is in on of to at by "
    "be as an or if we my me so do no up us he vs via am did does only still every again back new now".split()
)


@dataclass(frozen=True)
class Topics:
    """The topic vectors of a corpus, and names for directions.

    Attributes:
        vectors: Shape (n texts, n_topics), int8, of length about `UNIT` (or 0 for a text without words).
        names: Names of directions: the labels, or the most common words along each dimension.
        name_vectors: The directions, shape (n names, n_topics), int8.
        embed_texts: Returns the vectors of texts written during a run. The optional second argument is, for each text,
            the id of the text of the corpus whose labels it shares, or -1.
    """

    vectors: npt.NDArray[np.int8]
    names: list[str]
    name_vectors: npt.NDArray[np.int8]
    embed_texts: Callable[..., npt.NDArray[np.int8]]

    def interest_names(self, interests: npt.NDArray[np.int8], max_names: int = 3) -> list[tuple[str, ...]]:
        """Return the names nearest to each row of `interests`, nearest first; ties are in the order of `names`."""
        nearest = self.nearest_names(interests, max_names).tolist()
        return [tuple(self.names[i] for i in row if i >= 0) for row in nearest]

    def nearest_names(self, interests: npt.NDArray[np.int8], max_names: int = 3) -> npt.NDArray[np.int16]:
        """Return `interest_names` as indices into `names`, or -1; shape (n, min(`max_names`, number of names))."""
        max_names, axes = min(max_names, len(self.names)), self.name_vectors.astype(np.float32).T
        nearest = np.full((len(interests), max_names), -1, np.int16)
        for start in range(0, len(interests), _BLOCK_ROWS):
            nearness = interests[start : start + _BLOCK_ROWS].astype(np.float32) @ axes  # exact: far below 2**24
            rows = np.arange(len(nearness))
            for column in nearest[start : start + _BLOCK_ROWS].T:
                best = nearness.argmax(axis=1)
                np.copyto(column, best, where=nearness[rows, best] > 0, casting="same_kind")
                nearness[rows, best] = -np.inf
        return nearest

    def nearest_name(self, vectors: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """Return the index of the nearest name for each row, or -1 without a near name."""
        return self.nearest_names(vectors, 1)[:, 0] if self.names else np.full(len(vectors), -1, np.int16)


_BLOCK_ROWS = 1 << 16
"""Number of rows that are compared with all names at a time."""


def build_topics(corpus: Corpus, params: PostsParams) -> Topics:
    """Return the topics of a corpus.

    A text's vector starts as its embedding in `n_topics` dimensions. If the file has labels, the axes of the text's
    labels are mixed in. Then the mean of the corpus is subtracted, and the vector is scaled to length `UNIT`.

    Raises:
        ConfigError: If there are more labels than topics, or the embedder is not installed.
    """
    if params.embedder == "hashing" and len(corpus.texts) <= _MAX_CACHED_TEXTS:
        return _cached_topics(tuple(corpus.texts), tuple(corpus.labels), params.n_topics, params.label_weight)
    return _build_topics(corpus, params)


_MAX_CACHED_TEXTS = 10_000
"""Number of texts up to which topics are cached for later runs in the same process."""


@lru_cache(maxsize=8)
def _cached_topics(texts: tuple[str, ...], labels: tuple[tuple[str, ...], ...], n_topics: int, weight: float) -> Topics:
    corpus = Corpus(list(texts), labels=list(labels))
    return _build_topics(corpus, PostsParams(n_topics=n_topics, label_weight=weight, embedder="hashing"))


def _build_topics(corpus: Corpus, params: PostsParams) -> Topics:
    n_topics = params.n_topics
    make_embedder = _HashingEmbedder if params.embedder == "hashing" else _wordllama
    embed = make_embedder(corpus.texts, n_topics)
    unscaled = _to_unit_length(embed(corpus.texts))
    labels = sorted({label for labels in corpus.labels for label in labels})
    if len(labels) > n_topics:
        raise ConfigError(f"posts.n_topics: {n_topics} is fewer than the {len(labels)} topic labels in posts.file")
    word_weight = 1 - params.label_weight if labels else 1.0
    label_vectors = np.zeros((0, n_topics))
    if labels:
        label_vectors = params.label_weight * _label_axes(corpus, labels, n_topics)
        unscaled = label_vectors + word_weight * unscaled
    centre = unscaled.mean(axis=0)
    vectors = quantised(unscaled - centre)
    embed_texts = _TextEmbedder(embed, word_weight, label_vectors, centre)
    if labels:
        means = [vectors[[label in text_labels for text_labels in corpus.labels]].mean(axis=0) for label in labels]
        return Topics(vectors, labels, quantised(np.array(means)), embed_texts)
    names, axes = _word_axes(corpus.texts, embed, n_topics)
    return Topics(vectors, names, axes, embed_texts)


@dataclass(frozen=True)
class _TextEmbedder:
    """Embeds texts among the topics of a corpus (`Topics.embed_texts`).

    Attributes:
        word_weight: Weight of a text's words relative to its labels.
        label_vectors: Weighted label axes of the corpus's texts, shape (n texts, n_topics); no rows without labels.
        centre: The mean of the corpus.
    """

    embed: Embedder
    word_weight: float
    label_vectors: npt.NDArray[np.float64]
    centre: npt.NDArray[np.float64]

    def __call__(self, texts: Sequence[str], label_texts: Sequence[int] = ()) -> npt.NDArray[np.int8]:
        vectors = self.word_weight * _to_unit_length(self.embed(texts))
        if len(self.label_vectors) and len(label_texts):
            text_ids = np.asarray(label_texts)
            vectors += np.where(text_ids[:, None] < 0, 0.0, self.label_vectors[text_ids])
        return quantised(vectors - self.centre)


def quantised(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Return vectors scaled to length `UNIT` and rounded; a zero vector stays zero."""
    return np.rint(_to_unit_length(vectors) * UNIT).astype(np.int8)


def _to_unit_length(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return vectors / np.where(length > 1e-12, length, 1.0)


def _label_axes(corpus: Corpus, labels: list[str], n_topics: int) -> npt.NDArray[np.float64]:
    axes = np.zeros((len(corpus.texts), n_topics))
    index = {label: i for i, label in enumerate(labels)}
    for row, text_labels in enumerate(corpus.labels):
        axes[row, [index[label] for label in text_labels]] = 1.0
    return _to_unit_length(axes)


def _word_axes(texts: Sequence[str], embed: Embedder, n_topics: int) -> tuple[list[str], npt.NDArray[np.int8]]:
    """Return names for both directions along each axis: the most common words in that direction."""
    words = (word for text in texts for word in set(split_words(text)))
    counts = Counter(word for word in words if word not in STOP_WORDS and len(word) > 2)
    common_words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:2000]]
    vectors = _to_unit_length(embed(common_words))
    names, axes = [], []
    for axis in range(n_topics):
        for sign in (1.0, -1.0):
            nearest = [word for word, v in zip(common_words, vectors[:, axis] * sign, strict=True) if v > 0.5][:2]
            if nearest:
                names.append(" and ".join(nearest))
                axes.append(sign * np.eye(n_topics)[axis])
    return names, quantised(np.array(axes).reshape(-1, n_topics))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


class _HashingEmbedder:
    """Signed feature hashing of words, weighted by inverse document frequency.

    Weinberger et al. 2009, doi:10.1145/1553374.1553516.
    """

    def __init__(self, texts: Sequence[str], n_topics: int) -> None:
        self._n_topics = n_topics
        self._n_texts = len(texts)
        self._documents = Counter(word for text in texts for word in set(split_words(text)))
        self._axes_by_word: dict[str, tuple[int, float]] = {}

    def __call__(self, batch: Sequence[str]) -> npt.NDArray[np.float64]:
        vectors = np.zeros((len(batch), self._n_topics))
        for row, text in enumerate(batch):
            for word in split_words(text):
                axis, weight = self._axes_by_word.get(word) or self._assign_axis(word)
                vectors[row, axis] += weight
        return vectors

    def _assign_axis(self, word: str) -> tuple[int, float]:
        word_hash = zlib.crc32(word.encode())
        weight = float(np.log((1 + self._n_texts) / (1 + self._documents[word])))
        self._axes_by_word[word] = (word_hash >> 1) % self._n_topics, weight if word_hash & 1 else -weight
        return self._axes_by_word[word]


def _wordllama(texts: Sequence[str], n_topics: int) -> Embedder:
    """Return an embedder that projects WordLlama's 256 dimensions onto the `n_topics` principal axes of `texts`."""
    if n_topics > _MAX_WORDLLAMA:
        raise ConfigError(f"posts.n_topics: {n_topics} is more than the {_MAX_WORDLLAMA} dimensions of wordllama")
    corpus_vectors = cached_vectors("wordllama", texts, _wordllama_vectors)
    mean = corpus_vectors.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(corpus_vectors.T))
    axes = axes[:, ::-1][:, :n_topics]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return _AxisProjector(texts, corpus_vectors, mean, axes)


@dataclass(frozen=True)
class _AxisProjector:
    """Projects WordLlama's vectors onto axes; `corpus_vectors` are the vectors of `texts`."""

    texts: Sequence[str]
    corpus_vectors: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64]

    def __call__(self, batch: Sequence[str]) -> npt.NDArray[np.float64]:
        vectors = self.corpus_vectors if batch is self.texts else _wordllama_vectors(batch)
        return np.asarray((vectors - self.mean) @ self.axes)


def _wordllama_vectors(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.asarray(_wordllama_model().embed(list(texts)), np.float64)


@cache
def _wordllama_model() -> Any:
    root = logging.getLogger()
    old_logging = root.level, root.handlers[:]
    try:
        import wordllama
    except ImportError:
        raise ConfigError(
            f"posts.embedder: wordllama is not installed: {install_hint('embeddings', 'wordllama')}; or use hashing"
        ) from None
    root.setLevel(old_logging[0])  # importing it sends all logging to the terminal
    root.handlers[:] = old_logging[1]
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def cached_vectors(method: str, texts: Sequence[str], embed: Embedder) -> npt.NDArray[np.float64]:
    """Return ``embed(texts)``; vectors that were computed before come from the user's cache folder."""
    digest = blake2b("\x1e".join([method, *texts]).encode(), digest_size=16).hexdigest()
    folder = Path(environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "prism-mesa" / "embeddings"
    file = folder / f"{method}-{digest}.npy"
    if file.is_file():
        return np.asarray(np.load(file, allow_pickle=False), np.float64)
    vectors = embed(texts)
    folder.mkdir(parents=True, exist_ok=True)
    partial_file = file.with_name(f".{file.name}")
    with partial_file.open("wb") as handle:
        np.save(handle, vectors, allow_pickle=False)
    partial_file.replace(file)
    return vectors
