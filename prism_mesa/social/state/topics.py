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
from prism_mesa.extras import how_to_install
from prism_mesa.social.params import PostsParams
from prism_mesa.social.world.corpus import Corpus

type Embedder = Callable[[Sequence[str]], npt.NDArray[np.float64]]
"""Texts to vectors: shape (n texts, any number of dimensions)."""

UNIT = 127
"""Length of a topic vector: vectors are int8, so every similarity is an exact integer."""
UNIT_LENGTH = float(UNIT * UNIT)
"""Similarity of two equal topic vectors."""

_WORDLLAMA_DIMENSIONS = 256
_WORD = re.compile(r"[^\W\d_]{2,}")
STOP_WORDS = frozenset(
    "the and for that with this from are was not have has had but you your all can its it's our out one get got "
    "will who how what when where why into about more than then they them their there been were would could should "
    "just like over after before some any own off too very her his him she let's don't i'm it is in on of to at by "
    "be as an or if we my me so do no up us he vs via am did does only still every again back new now".split()
)


@dataclass(frozen=True)
class Topics:
    """Topic vectors of a corpus and names for directions among them.

    Attributes:
        vectors: Shape (n texts, n_topics), int8, of length about `UNIT` (or 0 for a text without words).
        names: Names of directions: the labels, or the most common words along each dimension.
        name_vectors: These directions, shape (n names, n_topics), int8.
        place: Returns the vectors of texts written during a run. An optional second argument is the text of the corpus
            whose labels each text shares, -1 for none.
    """

    vectors: npt.NDArray[np.int8]
    names: list[str]
    name_vectors: npt.NDArray[np.int8]
    place: Callable[..., npt.NDArray[np.int8]]

    def words_of(self, interests: npt.NDArray[np.int8], max_names: int = 3) -> list[tuple[str, ...]]:
        """Return the nearest names for each row of `interests`, nearest first; ties in order of names."""
        nearest = self.nearest_names(interests, max_names).tolist()
        return [tuple(self.names[i] for i in row if i >= 0) for row in nearest]

    def nearest_names(self, interests: npt.NDArray[np.int8], max_names: int = 3) -> npt.NDArray[np.int16]:
        """Return `words_of` as indices into `names`, -1 for none; shape (n, min(`max_names`, number of names))."""
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
        """Return the index of the nearest of `names` for each row, -1 for none."""
        no_names = np.full(len(vectors), -1, np.int16)
        return self.nearest_names(vectors, 1)[:, 0] if self.names else no_names


_BLOCK_ROWS = 1 << 16
"""Rows that are compared with all names at a time."""


def build_topics(corpus: Corpus, params: PostsParams) -> Topics:
    """Return the topics of a corpus.

    A text's vector is its embedding in `n_topics` dimensions, mixed with the axes of its labels, if the file has any,
    minus the mean of the corpus, scaled to length `UNIT`.

    Raises:
        ConfigError: If there are more labels than topics, or the embedder is not installed.
    """
    if params.embedder == "hashing" and len(corpus.texts) <= _MAX_CACHED_TEXTS:
        return _known_topics(tuple(corpus.texts), tuple(corpus.labels), params.n_topics, params.label_weight)
    return _build_topics(corpus, params)


_MAX_CACHED_TEXTS = 10_000
"""Number of texts up to which topics are cached for later runs in the process."""


@lru_cache(maxsize=8)
def _known_topics(texts: tuple[str, ...], labels: tuple[tuple[str, ...], ...], n_topics: int, weight: float) -> Topics:
    corpus = Corpus(list(texts), labels=list(labels))
    return _build_topics(corpus, PostsParams(n_topics=n_topics, label_weight=weight, embedder="hashing"))


def _build_topics(corpus: Corpus, params: PostsParams) -> Topics:
    k = params.n_topics
    embed = _Hashing(corpus.texts, k) if params.embedder == "hashing" else _wordllama(corpus.texts, k)
    raw = _unit(embed(corpus.texts))
    labels = sorted({label for labels in corpus.labels for label in labels})
    if len(labels) > k:
        raise ConfigError(f"posts.n_topics: {k} is fewer than the {len(labels)} topic labels in posts.file")
    word_weight = 1 - params.label_weight if labels else 1.0
    label_vectors = np.zeros((0, k))
    if labels:
        label_vectors = params.label_weight * _label_axes(corpus, labels, k)
        raw = label_vectors + word_weight * raw
    centre = raw.mean(axis=0)
    vectors = quantised(raw - centre)
    place = _Places(embed, word_weight, label_vectors, centre)
    if labels:
        means = [vectors[[label in text_labels for text_labels in corpus.labels]].mean(axis=0) for label in labels]
        return Topics(vectors, labels, quantised(np.array(means)), place)
    names, axes = _word_axes(corpus.texts, embed, k)
    return Topics(vectors, names, axes, place)


@dataclass(frozen=True)
class _Places:
    """Places texts among the topics of a corpus (`Topics.place`).

    Attributes:
        word_weight: Weight of a text's words against shared labels.
        label_vectors: Weighted axes of labels, shape (texts of the corpus, n_topics); no rows without labels.
        centre: The mean of the corpus.
    """

    embed: Embedder
    word_weight: float
    label_vectors: npt.NDArray[np.float64]
    centre: npt.NDArray[np.float64]

    def __call__(self, texts: Sequence[str], about: Sequence[int] = ()) -> npt.NDArray[np.int8]:
        placed = self.word_weight * _unit(self.embed(texts))
        if len(self.label_vectors) and len(about):
            shared = np.asarray(about)
            placed += np.where(shared[:, None] < 0, 0.0, self.label_vectors[shared])
        return quantised(placed - self.centre)


def quantised(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Return vectors scaled to length `UNIT` and rounded; a zero vector stays zero."""
    return np.rint(_unit(vectors) * UNIT).astype(np.int8)


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return vectors / np.where(length > 1e-12, length, 1.0)


def _label_axes(corpus: Corpus, labels: list[str], k: int) -> npt.NDArray[np.float64]:
    axes = np.zeros((len(corpus.texts), k))
    index = {label: i for i, label in enumerate(labels)}
    for row, text_labels in enumerate(corpus.labels):
        axes[row, [index[label] for label in text_labels]] = 1.0
    return _unit(axes)


def _word_axes(texts: Sequence[str], embed: Embedder, k: int) -> tuple[list[str], npt.NDArray[np.int8]]:
    """Return names of the 2 k directions along the axes: the most common words in each direction."""
    counts = Counter(word for text in texts for word in set(words_of(text)) if word not in STOP_WORDS and len(word) > 2)
    common = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:2000]]
    vectors = _unit(embed(common))
    names, axes = [], []
    for axis in range(k):
        for sign in (1.0, -1.0):
            nearest = [word for word, v in zip(common, vectors[:, axis] * sign, strict=True) if v > 0.5][:2]
            if nearest:
                names.append(" and ".join(nearest))
                axes.append(sign * np.eye(k)[axis])
    return names, quantised(np.array(axes).reshape(-1, k))


def words_of(text: str) -> list[str]:
    """Return the words of a text, lowercase."""
    return _WORD.findall(text.lower())


class _Hashing:
    """Signed feature hashing of words, weighted by inverse document frequency.

    Weinberger et al. 2009, doi:10.1145/1553374.1553516.
    """

    def __init__(self, texts: Sequence[str], k: int) -> None:
        self._k = k
        self._n_texts = len(texts)
        self._documents = Counter(word for text in texts for word in set(words_of(text)))
        self._known: dict[str, tuple[int, float]] = {}

    def __call__(self, batch: Sequence[str]) -> npt.NDArray[np.float64]:
        vectors = np.zeros((len(batch), self._k))
        for row, text in enumerate(batch):
            for word in words_of(text):
                axis, weight = self._known.get(word) or self._place(word)
                vectors[row, axis] += weight
        return vectors

    def _place(self, word: str) -> tuple[int, float]:
        bits = zlib.crc32(word.encode())
        weight = float(np.log((1 + self._n_texts) / (1 + self._documents[word])))
        self._known[word] = (bits >> 1) % self._k, weight if bits & 1 else -weight
        return self._known[word]


def _wordllama(texts: Sequence[str], k: int) -> Embedder:
    """Return an embedder to the `k` principal axes of `texts` among WordLlama's 256 dimensions."""
    if k > _WORDLLAMA_DIMENSIONS:
        raise ConfigError(f"posts.n_topics: {k} is more than the {_WORDLLAMA_DIMENSIONS} dimensions of wordllama")
    corpus_vectors = cached_vectors("wordllama", texts, _wordllama_vectors)
    mean = corpus_vectors.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(corpus_vectors.T))
    axes = axes[:, ::-1][:, :k]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return _Axes(texts, corpus_vectors, mean, axes)


@dataclass(frozen=True)
class _Axes:
    """WordLlama's vectors on axes; `known` has the vectors of a corpus's texts."""

    texts: Sequence[str]
    known: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64]

    def __call__(self, batch: Sequence[str]) -> npt.NDArray[np.float64]:
        vectors = self.known if batch is self.texts else _wordllama_vectors(batch)
        return np.asarray((vectors - self.mean) @ self.axes)


def _wordllama_vectors(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.asarray(_wordllama_model().embed(list(texts)), np.float64)


@cache
def _wordllama_model() -> Any:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    try:
        import wordllama
    except ImportError:
        raise ConfigError(
            f"posts.embedder: wordllama is not installed: {how_to_install('embeddings', 'wordllama')}; or use hashing"
        ) from None
    root.setLevel(before[0])  # importing it sends all logging to the terminal
    root.handlers[:] = before[1]
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def cached_vectors(name: str, texts: Sequence[str], embed: Embedder) -> npt.NDArray[np.float64]:
    """Return ``embed(texts)``, from the user's cache folder if it was computed before."""
    digest = blake2b("\x1e".join([name, *texts]).encode(), digest_size=16).hexdigest()
    folder = Path(environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "prism-mesa" / "embeddings"
    file = folder / f"{name}-{digest}.npy"
    if file.is_file():
        return np.asarray(np.load(file, allow_pickle=False), np.float64)
    vectors = embed(texts)
    folder.mkdir(parents=True, exist_ok=True)
    partial_file = file.with_name(f".{file.name}")
    with partial_file.open("wb") as handle:
        np.save(handle, vectors, allow_pickle=False)
    partial_file.replace(file)
    return vectors
