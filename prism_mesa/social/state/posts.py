"""The posts of a run as columns, with their counters and velocity. A post is added once and never moves."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import POST_KINDS, Post
from prism_mesa.kernels.commit.posts import add, shown_texts
from prism_mesa.kernels.walking import arrays
from prism_mesa.kernels.walking.arrays import PostTable
from prism_mesa.snapshot import Plain, Restorable, plain, restored
from prism_mesa.social.state.chunks import zeroed_columns
from prism_mesa.social.state.texts import NO_TEXT, Texts
from prism_mesa.social.state.topics import UNIT, Topics
from prism_mesa.social.world.corpus import Corpus

type Ids = npt.NDArray[np.integer[Any]]

POST: Final = arrays.POST
REPLY: Final = arrays.REPLY
RESHARE: Final = arrays.RESHARE
NO_PARENT: Final = -1
WORDS_CAP: Final = 280
"""Maximum characters of a reply, a comment, or a post by an LLM; longer ones are truncated."""

_COLUMNS: Final[dict[str, type[np.generic]]] = {
    "author": np.int32,
    "text_id": np.int32,
    "wording": np.int32,
    "words": np.int32,
    "round": np.int32,
    "written": np.int32,
    "kind": np.uint8,
    "parent": np.int32,
    "root": np.int32,
    "likes": np.int32,
    "replies": np.int32,
    "reshares": np.int32,
    "impressions": np.int32,
    "velocity": np.int32,
    "key": np.uint64,
    "appeal": np.float32,
    "attributes": np.float64,
}
_VIEW_COLUMNS: Final = ("kind", "parent", "text_id", "wording", "words")
COUNTED: Final = ("likes", "replies", "reshares", "impressions", "velocity")
_VERBS: Final = {REPLY: "in reply to", RESHARE: "resharing"}


def relevance_of(match: npt.NDArray[np.integer[Any]] | int) -> Any:
    """Return the relevance, 0..1, of an integer similarity of two int8 vectors: (1 + cosine) / 2."""
    return np.clip((np.asarray(match, np.float64) / (UNIT * UNIT) + 1.0) / 2.0, 0.0, 1.0)


def matches(a: npt.NDArray[np.int8], b: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return the similarity of each pair of rows: their exact integer product.

    Sums of products of int8 fit float32's 24 bits, so any order of adding gives the same number.
    """
    return np.asarray(np.einsum("ij,ij->i", a.astype(np.float32), b.astype(np.float32)), np.int16)


class Posts(Restorable):
    """All posts so far; the id is the row, and ids grow with time.

    Column `text_id` is the text that readers see; its topics are those of the post. Column `wording` is the number of
    the wording in which readers see that text, 0 for the original (`shown`). Column `words` is the text that the
    author of a reply or reshare adds, or `NO_TEXT`. Both point into `texts`. A post is written in round `written`, and
    appears in `round`.

    Args:
        corpus: The first texts.
        topics: Their topics.
        window: Rounds over which engagements count as velocity.
        room: Number of posts to reserve space for.
    """

    def __init__(self, corpus: Corpus, topics: Topics, window: int, room: int = 0) -> None:
        self.corpus, self.topics, self.window, self.n = corpus, topics, window, 0
        self.draw_appeal: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.float32]] | None = None
        """Draws the appeal of posts, in log-odds, by their keys; only roots use it."""
        self.draw_attributes: Callable[[Ids], npt.NDArray[np.float64]] | None = None
        """Draws the attributes of new posts, shape (n, attributes); reshares have those of their roots."""
        self._columns = zeroed_columns(_COLUMNS, max(room, 1024), {"attributes": 0})
        self._recent: deque[Ids] = deque()
        self._all_texts = Texts(corpus, topics)
        self._wordings = np.zeros(len(corpus.subjects), np.int32)

    def declare(self, n_attributes: int, draw: Callable[[Ids], npt.NDArray[np.float64]]) -> None:
        """Declare the attributes of posts, before there is any post."""
        self._columns = zeroed_columns(_COLUMNS, len(self._columns["author"]), {"attributes": n_attributes})
        self.draw_attributes = draw

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"<Posts: {self.n}>"

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name not in _COLUMNS:
            raise AttributeError(f"posts have no column {name!r}")
        return self._columns[name][: self.n]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy whose free space takes no memory yet."""
        other = memo[id(self)] = type(self).__new__(type(self))
        vars(other).update((name, deepcopy(value, memo)) for name, value in vars(self).items() if name != "_columns")
        other._columns = self._zeroed(len(self._columns["author"]))
        for name, column in other._columns.items():
            column[: self.n] = self._columns[name][: self.n]
        return other

    def snapshot(self) -> dict[str, Plain]:
        """Return the posts, and the texts written in the run."""
        columns = {name: self._columns[name][: self.n] for name in _COLUMNS}
        kept: dict[str, Plain] = {"columns": columns, "recent": plain(self._recent), "wordings": plain(self._wordings)}
        return kept | {"texts": self._all_texts.snapshot()}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot over the same corpus."""
        columns = kept["columns"]
        self.n = len(columns["author"])
        self._columns_for(self.n, 0)
        for name in _COLUMNS:
            self._columns[name][: self.n] = columns[name]
        self._recent, self._wordings = restored(kept["recent"]), restored(kept["wordings"])
        self._all_texts.restore(kept["texts"])

    def add(
        self,
        author: Ids,
        text_id: Ids,
        round_: int,
        kind: Ids | int,
        parent: Ids | int,
        root: Ids | None,
        key: npt.NDArray[np.uint64] | int = 0,
        words: Ids | int = NO_TEXT,
        wording: Ids | int = 0,
        *,
        written: int | None = None,
    ) -> Ids:
        """Append posts and return their ids.

        A `root` of None or -1 means the post itself. `key` identifies a post by its content, so that draws about it do
        not depend on the number of posts. Posts appear in `round_`, and by default are `written` then.
        """
        first, self.n = self.n, self.n + len(author)
        ids = np.arange(first, self.n)
        self._columns_for(self.n, first)
        rows = slice(first, self.n)
        roots = ids if root is None else np.where(np.asarray(root) < 0, ids, root)
        names = ("author", "text_id", "wording", "words", "round", "kind", "parent", "root", "key", "written")
        values = author, text_id, wording, words, round_, kind, parent, roots, key
        for name, column in zip(names, (*values, round_ if written is None else written), strict=True):
            self._columns[name][rows] = column
        if self.draw_appeal is not None:
            self._columns["appeal"][rows] = self.draw_appeal(self._columns["key"][rows])
        if self.draw_attributes is not None:
            self._columns["attributes"][rows] = self.draw_attributes(ids)
        return ids

    def make_room(self, n_added: int) -> list[Callable[[], None]]:
        """Make room for `n_added` posts, so that columns do not move while these are added.

        Returns:
            Steps that write to this memory for the first time, which is slow. Threads may share them.
        """
        self._columns_for(self.n + n_added, self.n)
        cuts = [self.n + n_added * part // 4 for part in range(5)]
        return [partial(column[a:b].fill, 0) for column in self._columns.values() for a, b in pairwise(cuts) if a < b]

    def _zeroed(self, n: int) -> dict[str, npt.NDArray[Any]]:
        return zeroed_columns(_COLUMNS, n, {"attributes": self._columns["attributes"].shape[1]})

    def _columns_for(self, n: int, n_used: int) -> None:
        """Grow columns that are too short for `n` posts, fourfold."""
        size = len(self._columns["author"])
        while size < n:
            size *= 4
        if size > len(self._columns["author"]):
            old, self._columns = self._columns, self._zeroed(size)
            for name in _COLUMNS:
                self._columns[name][:n_used] = old.pop(name)[:n_used]  # one column at a time

    @property
    def texts(self) -> list[str]:
        """All texts, also those written during the run."""
        return self._all_texts.texts

    def add_texts(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Ids:
        """Store texts written during the run and return their ids (see `Texts.add`)."""
        return self._all_texts.add(texts, about, with_media=with_media)

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media; empty without media."""
        return self._all_texts.media(text_id)

    def reserve(self, texts: Ids) -> None:
        """Reserve the original wording of these texts of the corpus for scheduled posts."""
        self._wordings[texts[texts < len(self._wordings)]] = 1

    def new_wordings(self, texts: Ids) -> Ids:
        """Return for each new post the number of earlier posts of its text; 0 for texts of your file or of the run."""
        wordings = np.zeros(len(texts), np.int32)
        order = np.argsort(texts, kind="stable")[: np.count_nonzero(texts < len(self._wordings))]
        ids = texts[order]
        wordings[order] = self._wordings[ids] + np.arange(len(ids)) - np.searchsorted(ids, ids)
        self._wordings += np.bincount(ids, minlength=len(self._wordings)).astype(np.int32)
        return wordings

    def text(self, text_id: int, wording: int) -> str:
        """Return a text in a wording (see `Texts.text`)."""
        return self._all_texts.text(text_id, wording)

    def shown(self, ids: Ids | Sequence[int]) -> list[str]:
        """Return the texts of posts as readers see them."""
        return list(map(self.text, self.text_id[ids].tolist(), self.wording[ids].tolist()))

    def added_text(self, post: int) -> str:
        """Return the text that a post adds (see `added_texts`)."""
        return self.text(int(self.added_texts(np.array([post]))[0]), int(self.wording[post]))

    def origin(self, post: int) -> int:
        """Return the post whose text a post shows: itself, its root, or the post that it answers without words."""
        origin = int(self.root[post])
        while self.kind[origin] == REPLY and self.words[origin] == NO_TEXT:
            origin = int(self.root[self.parent[origin]])
        return origin

    def added_texts(self, ids: Ids) -> Ids:
        """Return the texts that posts add: a reply's words or its parent's text; for a reshare, its root's text."""
        root = self.root[ids]
        words = self.words[root]
        return np.asarray(np.where(words == NO_TEXT, self.text_id[root], words))

    def worded(self, parent: Ids, kind: Ids, phrases: Sequence[str], phrase_ids: Ids) -> tuple[Ids, Ids]:
        """Return the columns `text_id` and `words` of replies and reshares to be added.

        Readers see the words, ``phrases[place]``, and in brackets the text that the parent adds, without nesting. If
        `phrase_ids` is `NO_TEXT`, they see that text of a reply, and the root of a reshare.
        """
        text_id = shown_texts(
            np.asarray(parent, np.int32), np.asarray(kind, np.int64), RESHARE, self.root, self.text_id, self.words
        )
        words = np.full(len(parent), NO_TEXT, np.int32)
        rows = np.flatnonzero(phrase_ids != NO_TEXT) if phrases else ()
        if len(rows):
            cores = self.added_texts(parent)
            parts, which = np.unique(np.stack([phrase_ids[rows], cores[rows], kind[rows]]), axis=1, return_inverse=True)
            texts, quoted = [phrases[i] for i in parts[0].tolist()], parts[1].tolist()
            verbs = [_VERBS[code] for code in parts[2].tolist()]
            seen = [f"{text} ({verb}: {self.texts[c]})" for text, verb, c in zip(texts, verbs, quoted, strict=True)]
            words[rows] = self.add_texts(texts, quoted)[which]
            text_id[rows] = self.add_texts(seen, quoted, with_media=True)[which]
        return text_id, words

    def has_media(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which posts have media."""
        return np.asarray(self._all_texts.with_media[self.text_id[ids]])

    def n_there(self, now: int) -> int:
        """Return the number of posts that have appeared up to round `now`, inclusive."""
        return int(np.searchsorted(self.round, np.int32(now), side="right"))

    def first_visible(self, now: int, window: int) -> int:
        """Return the first id that appeared in the last `window` rounds up to `now`, inclusive."""
        return int(self.round.searchsorted(np.int32(max(now - window + 1, 0))))

    @property
    def table(self) -> PostTable:
        """The columns that kernels read."""
        columns = {name: getattr(self, name) for name in PostTable._fields if name in _COLUMNS}
        return PostTable(**columns, vectors=self.text_vectors, with_media=self._all_texts.with_media)

    @property
    def text_vectors(self) -> npt.NDArray[np.int8]:
        """Topic vectors of all texts, shape (len(texts), n_topics)."""
        return self._all_texts.vectors

    def vectors(self, ids: Ids) -> npt.NDArray[np.int8]:
        """Return the topic vectors of posts, shape (len(ids), n_topics)."""
        return np.asarray(self.text_vectors[self.text_id[ids]])

    def count(self, column: str, roots: Ids, step: int = 1) -> None:
        """Add `step` to a counter for each entry of `roots`, repetitions included."""
        add(self._columns[column], np.asarray(roots, np.int32), step)

    def count_velocity(self, roots: Ids) -> None:
        """Add this round's engagements to the velocity, and subtract those that left its window."""
        self.count("velocity", roots)
        self._recent.append(roots)
        if len(self._recent) > self.window:
            self.count("velocity", self._recent.popleft(), -1)

    def views(
        self, ids: Ids, author_names: Sequence[str], relevances: Sequence[float], utilities: Sequence[float]
    ) -> list[Post]:
        """Return posts as readers see them; all arguments have the same length."""
        columns = {"post_id": ids.tolist(), "author_name": author_names, "relevance": relevances, "utility": utilities}
        columns |= {name: self._columns[name][ids].tolist() for name in ("author", "round", "root", *_VIEW_COLUMNS)}
        columns |= {name: self._columns[name][self.root[ids]].tolist() for name in COUNTED}
        return [self._view(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _view(self, fields: dict[str, Any]) -> Post:
        kind, parent, text_id, wording, words = map(fields.pop, _VIEW_COLUMNS)
        text, (media_type, media_description) = self.text(text_id, wording), self.media(text_id)
        view: Post = object.__new__(Post)
        vars(view).update(  # the constructor of a frozen class takes several times as long
            fields,
            text=f"({_VERBS[REPLY]}: {text})" if kind == REPLY and words == NO_TEXT else text,
            kind=POST_KINDS[kind],
            parent=None if parent == NO_PARENT else parent,
            media_type=media_type,
            media_description=media_description,
            words="" if words == NO_TEXT else self.texts[words],
            about="",
        )
        return view
