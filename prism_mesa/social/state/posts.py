"""The posts of a run as columns, with their counters and velocity. A post is added once and never moves."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Mask, Rows, UInt64
from prism_mesa.domain import POST_KINDS, Post
from prism_mesa.kernels.commit.posts import add
from prism_mesa.kernels.walking import arrays
from prism_mesa.kernels.walking.arrays import PostTable
from prism_mesa.snapshot import Plain, Restorable, from_plain, to_plain
from prism_mesa.social.state.chunks import zeroed_columns
from prism_mesa.social.state.texts import NO_TEXT, Texts
from prism_mesa.social.state.topics import UNIT, Topics
from prism_mesa.social.world.corpus import Corpus

POST: Final = arrays.POST
REPLY: Final = arrays.REPLY
RESHARE: Final = arrays.RESHARE
NO_PARENT: Final = -1
WORDS_CAP: Final = 280
"""Maximum number of characters of a reply, a comment, or a post by an LLM; longer texts are truncated."""

_INT_COLUMNS: Final = (
    "author text_id wording words round kind parent root likes replies reshares impressions velocity".split()
)
_COLUMNS: Final[dict[str, type[np.generic]]] = {
    **dict.fromkeys(_INT_COLUMNS, np.int32),
    "kind": np.uint8,
    "delay": np.uint8,
    "key": np.uint64,
    "appeal": np.float32,
    "attributes": np.float64,
}
_VIEW_COLUMNS: Final = ("kind", "parent", "text_id", "wording", "words")
POST_COUNTERS: Final = ("likes", "replies", "reshares", "impressions", "velocity")
_VERBS: Final = {REPLY: "in reply to", RESHARE: "resharing"}


def to_relevance(match: Rows | int) -> Any:
    """Convert integer similarities of int8 vectors to relevance, 0..1: (1 + cosine) / 2."""
    return np.clip((np.asarray(match, np.float64) / (UNIT * UNIT) + 1.0) / 2.0, 0.0, 1.0)


def similarities(a: npt.NDArray[np.int8], b: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return the similarity of each pair of rows: their dot product, an exact integer.

    Sums of products of int8 fit the 24 bits of float32, so the order of addition does not matter.
    """
    return np.asarray(np.einsum("ij,ij->i", a.astype(np.float32), b.astype(np.float32)), np.int16)


class Posts(Restorable):
    """All posts so far; the id is the row, and ids grow with time.

    Column `text_id` is the text that readers see; the post has the topics of this text. Column `wording` is the number
    of the wording in which they see it (`visible_texts`); 0 is the original. Column `words` is the text that the author
    of a reply or reshare adds, or `NO_TEXT`. `text_id` and `words` are indices into `texts`. A post appears in `round`,
    `delay` rounds after it was `written`.

    Args:
        corpus: The texts at the start.
        topics: The topics of these texts.
        window: Number of rounds whose engagements count as velocity.
        room: Number of posts to reserve space for.
    """

    def __init__(self, corpus: Corpus, topics: Topics, window: int, room: int = 0) -> None:
        self.corpus, self.topics, self.window, self.n = corpus, topics, window, 0
        self.draw_appeal: Callable[[UInt64], npt.NDArray[np.float32]] | None = None
        """Draws the appeal of posts, in log-odds, by their keys; only roots use it."""
        self.draw_attributes: Callable[[Rows], Floats] | None = None
        """Draws the attributes of new posts, shape (n, attributes); reshares get the attributes of their roots."""
        self._has_words = False
        self._columns = self._zeroed_columns(max(room, 1024), 0)
        self._recent: deque[Rows] = deque()
        self._all_texts = Texts(corpus, topics)
        self._wordings = np.zeros(len(corpus.subjects), np.int32)

    def declare(self, n_attributes: int, draw: Callable[[Rows], Floats]) -> None:
        """Declare the attributes of posts; call this before the first post."""
        self._columns = self._zeroed_columns(len(self._columns["author"]), n_attributes)
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
        """Return a copy whose spare space does not use memory yet."""
        branch = memo[id(self)] = type(self).__new__(type(self))
        vars(branch).update((name, deepcopy(value, memo)) for name, value in vars(self).items() if name != "_columns")
        branch._columns = self._zeroed_columns(*self._columns["attributes"].shape)
        branch._write(slice(self.n), {name: getattr(self, name) for name in _COLUMNS})
        return branch

    def snapshot(self) -> dict[str, Plain]:
        """Return the posts, and the texts written during the run."""
        columns = {name: self._columns[name][: self.n] for name in _COLUMNS}
        rest: dict[str, Plain] = {"recent": to_plain(self._recent), "wordings": to_plain(self._wordings)}
        return {"columns": columns} | rest | {"texts": self._all_texts.snapshot()}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot over the same corpus."""
        columns = data["columns"]
        self.n = len(columns["author"])
        self._grow_columns(self.n, 0)
        self._write(slice(self.n), {name: columns[name] for name in _COLUMNS})
        self._recent, self._wordings = from_plain(data["recent"]), from_plain(data["wordings"])
        self._all_texts.restore(data["texts"])

    def add(
        self,
        author: Rows,
        text_id: Rows,
        round_: int,
        kind: Rows | int,
        parent: Rows | int,
        root: Rows | None,
        key: UInt64 | int = 0,
        words: Rows | int = NO_TEXT,
        wording: Rows | int = 0,
        *,
        written: int | None = None,
    ) -> Rows:
        """Append posts and return their ids.

        A `root` of None or -1 means the post itself. `key` identifies a post by its content, so that draws for the post
        do not depend on the number of posts. Posts appear in `round_`; by default, they are also `written` in it.
        """
        first, self.n = self.n, self.n + len(author)
        ids = np.arange(first, self.n)
        self._grow_columns(self.n, first)
        rows = slice(first, self.n)
        roots = ids if root is None else np.where(np.asarray(root) < 0, ids, root)
        names = ("author", "text_id", "wording", "words", "round", "kind", "parent", "root", "key", "delay")
        values = author, text_id, wording, words, round_, kind, parent, roots, key
        self._write(rows, dict(zip(names, (*values, 0 if written is None else round_ - written), strict=True)))
        if self.draw_appeal is not None:
            self._columns["appeal"][rows] = self.draw_appeal(self._columns["key"][rows])
        if self.draw_attributes is not None:
            self._columns["attributes"][rows] = self.draw_attributes(ids)
        return ids

    def make_room(self, n_added: int) -> list[Callable[[], None]]:
        """Make room for `n_added` posts, so that columns do not move while posts are added.

        Returns:
            Steps that write to this memory for the first time. This is slow, so several threads can run the steps.
        """
        self._grow_columns(self.n + n_added, self.n)
        cuts = [self.n + n_added * part // 4 for part in range(5)]
        is_empty = {"appeal": self.draw_appeal is None, "words": not self._has_words}
        columns = [column for name, column in self._columns.items() if not is_empty.get(name)]
        return [partial(column[a:b].fill, 0) for column in columns for a, b in pairwise(cuts) if a < b]

    def _zeroed_columns(self, n: int, n_attributes: int) -> dict[str, npt.NDArray[Any]]:
        columns = zeroed_columns(_COLUMNS, n, {"attributes": n_attributes})
        return columns if self._has_words else columns | {"words": np.broadcast_to(np.int32(NO_TEXT), n)}

    def _write(self, rows: slice, columns: Mapping[str, Any]) -> None:
        """Write rows of columns. Column `words` takes no memory before the first post with words."""
        if not self._has_words and np.not_equal(columns.get("words", NO_TEXT), NO_TEXT).any():
            self._has_words, self._columns["words"] = True, np.zeros(len(self._columns["words"]), np.int32)
            self._columns["words"][: self.n] = NO_TEXT
        for name, values in columns.items():
            if name != "words" or self._has_words:
                self._columns[name][rows] = values

    def _grow_columns(self, n: int, n_old: int) -> None:
        """Grow columns that are too short for `n` posts to four times their length, or more."""
        size = len(self._columns["author"])
        while size < n:
            size *= 4
        if size > len(self._columns["author"]):
            old_columns, self._columns = self._columns, self._zeroed_columns(size, self._columns["attributes"].shape[1])
            for name in _COLUMNS:  # one column at a time
                self._write(slice(n_old), {name: old_columns.pop(name)[:n_old]})

    @property
    def written(self) -> Rows:
        """The round in which each post was written."""
        return np.asarray(self.round - self.delay)

    @property
    def texts(self) -> list[str]:
        """All texts, including texts written during the run."""
        return self._all_texts.texts

    def add_texts(self, texts: Sequence[str], about: Sequence[int] | None = None, *, with_media: bool = False) -> Rows:
        """Store texts written during the run and return their ids (see `Texts.add`)."""
        return self._all_texts.add(texts, about, with_media=with_media)

    def media(self, text_id: int) -> tuple[str, str]:
        """Return type and description of a text's media; both are empty without media."""
        return self._all_texts.media(text_id)

    def reserve(self, texts: Rows) -> None:
        """Reserve the original wording of `texts` (from the corpus) for scheduled posts."""
        self._wordings[texts[texts < len(self._wordings)]] = 1

    def new_wordings(self, texts: Rows) -> Rows:
        """Return the number of earlier posts with each new post's text; 0 for texts outside PRISM's corpus."""
        wordings = np.zeros(len(texts), np.int32)
        order = np.argsort(texts, kind="stable")[: np.count_nonzero(texts < len(self._wordings))]
        ids = texts[order]
        wordings[order] = self._wordings[ids] + np.arange(len(ids)) - np.searchsorted(ids, ids)
        self._wordings += np.bincount(ids, minlength=len(self._wordings)).astype(np.int32)
        return wordings

    def text(self, text_id: int, wording: int) -> str:
        """Return a text in a wording (see `Texts.text`)."""
        return self._all_texts.text(text_id, wording)

    def visible_texts(self, ids: Rows | Sequence[int]) -> list[str]:
        """Return the texts of posts as readers see them."""
        return list(map(self.text, self.text_id[ids].tolist(), self.wording[ids].tolist()))

    def added_text(self, post: int) -> str:
        """Return the text that a post adds, as a string (see `added_texts`)."""
        return self.text(int(self.added_texts(np.array([post]))[0]), int(self.wording[post]))

    def origin(self, post: int) -> int:
        """Return the post whose text a post shows: itself, its root, or the post that a reply without words answers."""
        origin = int(self.root[post])
        while self.kind[origin] == REPLY and self.words[origin] == NO_TEXT:
            origin = int(self.root[self.parent[origin]])
        return origin

    def added_texts(self, ids: Rows) -> Rows:
        """Return the ids of the texts that posts add: a post's text, a reply's words, or the text of a reshare's root.

        A reply without words adds the text that readers see.
        """
        root = self.root[ids]
        words = self.words[root]
        return np.asarray(np.where(words == NO_TEXT, self.text_id[root], words))

    def compose_texts(self, parent: Rows, kind: Rows, phrases: Sequence[str], phrase_ids: Rows) -> tuple[Rows, Rows]:
        """Compose the texts of new replies and reshares, and return their columns `text_id` and `words`.

        Readers see the words, ``phrases[phrase_id]``, and in brackets the text that the parent adds, without nesting.
        If a phrase id is `NO_TEXT`, they see only the parent's text (reply) or the root's text (reshare).
        """
        root = self.root[parent]
        text_id, shown_words = self.text_id[root], self.words[root]
        np.copyto(text_id, shown_words, where=(kind != RESHARE) & (shown_words != NO_TEXT))
        words = np.full(len(parent), NO_TEXT, np.int32)
        rows = np.flatnonzero(phrase_ids != NO_TEXT) if phrases else ()
        if len(rows):
            columns = np.stack([phrase_ids[rows], self.added_texts(parent)[rows], kind[rows]])
            parts, inverse = np.unique(columns, axis=1, return_inverse=True)
            texts, quoted_ids = [phrases[i] for i in parts[0].tolist()], parts[1].tolist()
            parts_seen = zip(texts, [_VERBS[code] for code in parts[2].tolist()], quoted_ids, strict=True)
            seen_texts = [f"{text} ({verb}: {self.texts[i]})" for text, verb, i in parts_seen]
            words[rows] = self.add_texts(texts, quoted_ids)[inverse]
            text_id[rows] = self.add_texts(seen_texts, quoted_ids, with_media=True)[inverse]
        return text_id, words

    def has_media(self, ids: Rows) -> Mask:
        """Return which posts have media."""
        return np.asarray(self._all_texts.with_media[self.text_id[ids]])

    def n_visible(self, now: int) -> int:
        """Return the number of posts that have appeared up to and including round `now`."""
        return int(np.searchsorted(self.round, np.int32(now), side="right"))

    def first_visible(self, now: int, window: int) -> int:
        """Return the id of the first post of the last `window` rounds up to and including `now`."""
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

    def vectors(self, ids: Rows) -> npt.NDArray[np.int8]:
        """Return the topic vectors of posts, shape (len(ids), n_topics)."""
        return np.asarray(self.text_vectors[self.text_id[ids]])

    def count(self, column: str, roots: Rows, step: int = 1) -> None:
        """Add `step` to a counter for each entry of `roots`; repeated roots count repeatedly."""
        add(self._columns[column], np.asarray(roots, np.int32), step)

    def count_velocity(self, roots: Rows) -> None:
        """Add this round's engagements to velocity, and subtract the engagements that left the window."""
        self.count("velocity", roots)
        self._recent.append(roots)
        if len(self._recent) > self.window:
            self.count("velocity", self._recent.popleft(), -1)

    def views(
        self, ids: Rows, author_names: Sequence[str], relevances: Sequence[float], utilities: Sequence[float]
    ) -> list[Post]:
        """Return posts as readers see them; all arguments have the same length."""
        columns = {"post_id": ids.tolist(), "author_name": author_names, "relevance": relevances, "utility": utilities}
        columns |= {name: self._columns[name][ids].tolist() for name in ("author", "round", "root", *_VIEW_COLUMNS)}
        columns |= {name: self._columns[name][self.root[ids]].tolist() for name in POST_COUNTERS}
        return [self._view(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _view(self, fields: dict[str, Any]) -> Post:
        kind, parent, text_id, wording, words = map(fields.pop, _VIEW_COLUMNS)
        text, (media_type, media_description) = self.text(text_id, wording), self.media(text_id)
        view: Post = object.__new__(Post)
        vars(view).update(  # the constructor of a frozen class is several times slower
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
