"""The posts of a run in columns, their counters and velocity. A post is added once and never moves."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.records import POST_KINDS, Post
from prism_mesa.social.texts import UNIT, Corpus, Topics

type Ids = npt.NDArray[np.integer[Any]]

POST, REPLY, RESHARE = range(3)
NO_PARENT: Final = -1

_COLUMNS: Final[dict[str, type[np.generic]]] = {
    "author": np.int32,
    "text_id": np.int32,
    "round": np.int32,
    "kind": np.uint8,
    "parent": np.int32,
    "root": np.int32,
    "likes": np.int32,
    "replies": np.int32,
    "reshares": np.int32,
    "impressions": np.int32,
    "velocity": np.int32,
    "key": np.uint64,
}


_SHOWN: Final = ("author", "round", "kind", "parent", "root", "text_id")
COUNTED: Final = ("likes", "replies", "reshares", "impressions", "velocity")


def relevance_of(match: npt.NDArray[np.integer[Any]] | int) -> Any:
    """Return the relevance, 0..1, of an integer similarity of two int8 vectors: (1 + cosine) / 2."""
    return np.clip((np.asarray(match, np.float64) / (UNIT * UNIT) + 1.0) / 2.0, 0.0, 1.0)


def matches(a: npt.NDArray[np.int8], b: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return the similarity of each pair of rows: their exact integer product.

    Sums of products of int8 fit float32's 24 bits, so any order of adding gives the same number.
    """
    return np.asarray(np.einsum("ij,ij->i", a.astype(np.float32), b.astype(np.float32)), np.int16)


@dataclass(repr=False)
class Posts:
    """All posts so far; the id is the row, and ids grow with time.

    Attributes:
        corpus: Where the first texts come from; `topics` what they are about.
        window: Rounds over which engagements make velocity.
        texts: All texts, those written during the run too: what `text_id` points into.
    """

    corpus: Corpus
    topics: Topics
    window: int
    texts: list[str] = field(init=False)
    n: int = 0
    _columns: dict[str, npt.NDArray[Any]] = field(init=False)
    _recent: deque[Ids] = field(init=False)
    _vectors: npt.NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        self._columns = {name: np.zeros(1024, kind) for name, kind in _COLUMNS.items()}
        self._recent = deque()
        self.texts = list(self.corpus.texts)
        self._vectors = self.topics.vectors

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"<Posts: {self.n}>"

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name not in _COLUMNS:
            raise AttributeError(f"posts have no column {name!r}")
        return self._columns[name][: self.n]

    def add(
        self,
        author: Ids,
        text_id: Ids,
        round_: int,
        kind: Ids | int,
        parent: Ids | int,
        root: Ids | None,
        key: npt.NDArray[np.uint64] | int = 0,
    ) -> Ids:
        """Append posts and return their ids.

        A `root` of None or -1 means the post is its own root. `key` names a post by what it is, so that
        draws about it do not depend on how many posts there are.
        """
        first, self.n = self.n, self.n + len(author)
        ids = np.arange(first, self.n)
        self._make_room(first)
        rows = slice(first, self.n)
        own_root = ids if root is None else np.where(np.asarray(root) < 0, ids, root)
        given = {
            "author": author,
            "text_id": text_id,
            "round": round_,
            "kind": kind,
            "parent": parent,
            "root": own_root,
            "key": key,
        }
        for name, values in given.items():
            self._columns[name][rows] = values
        return ids

    def _make_room(self, used: int) -> None:
        """Double the columns where they are too short; memory that nobody has written to is not taken yet."""
        size = len(self._columns["author"])
        while size < self.n:
            size *= 2
        if size > len(self._columns["author"]):
            for name, column in self._columns.items():
                self._columns[name] = np.zeros(size, column.dtype)
                self._columns[name][:used] = column[:used]

    def add_texts(self, texts: Sequence[str]) -> Ids:
        """Keep texts written during the run and return their ids."""
        self.texts.extend(texts)
        self._vectors = np.concatenate([self._vectors, self.topics.place(texts)])
        return np.arange(len(self.texts) - len(texts), len(self.texts))

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media, empty if it has none."""
        if text_id >= len(self.corpus.media_types):
            return "", ""
        return self.corpus.media_types[text_id], self.corpus.media_descriptions[text_id]

    def first_visible(self, now: int, window: int) -> int:
        """Return the first id that appeared in the last `window` rounds, this one included."""
        return int(np.searchsorted(self.round, np.int32(max(now - window + 1, 0))))

    @property
    def text_vectors(self) -> npt.NDArray[np.int8]:
        """Topic vectors of all texts, shape (len(texts), n_topics)."""
        return self._vectors

    def vectors(self, ids: Ids) -> npt.NDArray[np.int8]:
        """Return the topic vectors of posts, shape (len(ids), n_topics)."""
        return np.asarray(self._vectors[self.text_id[ids]])

    def count(self, column: str, roots: Ids, step: int = 1) -> None:
        """Add `step` to a counter for each entry of `roots` (repetitions count)."""
        if len(roots):
            first = int(roots.min())
            added = np.bincount(roots - first).astype(np.int32)
            self._columns[column][first : first + len(added)] += step * added

    def count_velocity(self, roots: Ids) -> None:
        """Add this round's engagements to the velocity, and let go of those that left its window."""
        self.count("velocity", roots)
        self._recent.append(roots)
        if len(self._recent) > self.window:
            self.count("velocity", self._recent.popleft(), -1)

    def views(self, ids: Ids, author_names: Sequence[str], relevances: Sequence[float]) -> list[Post]:
        """Return posts as readers see them to whom they have these relevances; all arguments have one length."""
        return [
            self._view(post, name, relevance, counts)
            for post, name, relevance, counts in zip(
                zip(*(self._columns[name][ids].tolist() for name in _SHOWN), ids.tolist(), strict=True),
                author_names,
                relevances,
                zip(*(self._columns[name][self.root[ids]].tolist() for name in COUNTED), strict=True),
                strict=True,
            )
        ]

    def _view(self, post: tuple[int, ...], author_name: str, relevance: float, counts: tuple[int, ...]) -> Post:
        author, round_, code, parent, root, text_id, post_id = post
        likes, replies, reshares, impressions, velocity = counts
        kind, text = POST_KINDS[code], self.texts[text_id]
        media_type, media_description = self.media(text_id)
        return Post(
            post_id=post_id,
            text=f"(in reply to: {text})" if kind == "reply" else text,
            author=author,
            author_name=author_name,
            relevance=relevance,
            round=round_,
            kind=kind,
            parent=None if parent == NO_PARENT else parent,
            root=root,
            likes=likes,
            replies=replies,
            reshares=reshares,
            impressions=impressions,
            velocity=velocity,
            media_type=media_type,
            media_description=media_description,
        )
