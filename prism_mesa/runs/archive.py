"""Agents as a run left them, or as they were after a round: profile, activities, notes, all of it read from its tables.

The run's folder is only read.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.deliberation.conversation import quoted
from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.params import whole_number
from prism_mesa.reasoner.prompt import profile_text
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import columns_of, count_rows, has_table, read_table
from prism_mesa.social.content.activity import Activity, ActivityKind, activity_line
from prism_mesa.social.world.profiles import personality

NOTE_CAP: Final = 200
"""Characters of a note in what is remembered."""
_NOTES: Final = 5
"""Notes that are told with the activities: the last ones."""
_COUNTED: Final[dict[ActivityKind, tuple[str, str]]] = {
    "post": ("wrote 1 post", "wrote {} posts"),
    "like": ("liked 1 post", "liked {} posts"),
    "reply": ("replied 1 time", "replied {} times"),
    "reshare": ("reshared 1 post", "reshared {} posts"),
}
_OF_ACTIVITIES: Final = ("round", "tick", "post", "action")


def counted(activities: Sequence[Activity]) -> str:
    """Return how many there are, by kind: ``liked 14 posts, replied 2 times``; empty if there are none."""
    counts = Counter(activity.action for activity in activities)
    return ", ".join((one if n == 1 else many).format(n) for did, (one, many) in _COUNTED.items() if (n := counts[did]))


@dataclass(frozen=True)
class AgentSnapshot:
    """An agent as it was after a round.

    Attributes:
        at: The last round that counts; -1 before the run.
        who: The profile as prompts tell it.
        activities: Oldest first; in a round own posts come first.
        notes: What it noted down itself, oldest first.
        likes_recorded: Whether the run recorded what it liked.
        interests: What of the profile it is interested in, what it likes best first.
        character: What of the profile it is like, in words.
        llm: Its LLM if there were several; else empty.
    """

    run_dir: Path
    row: int
    name: str
    at: int
    who: str
    activities: tuple[Activity, ...] = ()
    notes: tuple[str, ...] = ()
    likes_recorded: bool = True
    interests: tuple[str, ...] = ()
    character: str = ""
    llm: str = ""

    def memory(self, most: int = 12) -> str:
        """Return what it remembers, a line each: how much there was, the last `most` activities, the last notes.

        Its length is bounded by `most` alone. It is empty before the run.
        """
        if self.at < 0:
            return ""
        told = self.activities[-most:] if most > 0 else ()
        before = self.activities[: len(self.activities) - len(told)]
        lines = [f"Before that you {counted(before)}."] if before else []
        lines += [activity_line(activity) for activity in told]
        if not self.activities:
            lines.append("You have not posted, replied or reshared anything so far.")
        if not self.likes_recorded:
            lines.append("What you liked is not recorded.")
        lines += [f"You noted: {quoted(note, NOTE_CAP)}" for note in self.notes[-_NOTES:]]
        return "\n".join(lines)


class RunRecords:
    """The tables of a run of the platform, read when they are needed, each once, and only the columns that are.

    Args:
        run_dir: The run's folder.

    Attributes:
        run: The folder with its manifest; `analysis.llm.config_to_ask` makes a configuration of it.

    Raises:
        DataError: If there is no run, it is one of nations, or no round of it was completed.
    """

    def __init__(self, run_dir: str | Path) -> None:
        self.run_dir = Path(run_dir)
        self.run = read_run(self.run_dir)
        manifest = self.run.manifest
        if manifest.of_nations:
            raise DataError(f"{run_dir}: is a run of nations: interviews and surveys are with agents of a platform")
        for table in ("agents", "posts"):
            if not has_table(self.run_dir, table):
                why = "it was removed" if manifest.status == "done" else "it has not come to an end"
                raise DataError(
                    f"{run_dir}: no table {table!r} there: {why} (status {self.run.state}){self.run.way_on}"
                )
        self.rounds = self._completed()
        if self.rounds == 0:
            told = f"no round of it was completed (status {self.run.state})"
            raise DataError(f"{run_dir}: {told}{self.run.way_on}")

    def _completed(self) -> int:
        rounds = self.run.manifest.summary.rounds
        if rounds is not None:
            return rounds
        return count_rows(self.run_dir, "rounds") if has_table(self.run_dir, "rounds") else 0

    @property
    def n_agents(self) -> int:
        """How many agents there are."""
        return len(self.names)

    @cached_property
    def names(self) -> list[str]:
        """What the agents are called, by row."""
        return [str(name) for name in self._agents["name"]]

    @cached_property
    def users(self) -> npt.NDArray[np.bool_]:
        """Which agents are or were on the platform: all, but those who waited to join to the end (`agents.churn`)."""
        if not has_table(self.run_dir, "churn"):
            return np.ones(self.n_agents, np.bool_)
        users = np.array(read_table(self.run_dir, "agents", ["present"])["present"], np.bool_)
        came = read_table(self.run_dir, "churn", ["agent"])["agent"].to_numpy()
        self._must_be_below("churn", "agent", came, self.n_agents)
        users[came] = True
        return users

    @cached_property
    def posts(self) -> "RecordedPosts":
        """The posts.

        Raises:
            DataError: If one is by nobody who is there, or the table cannot be read.
        """
        posts = RecordedPosts(self.run_dir)
        self._must_be_below("posts", "author", posts.author, self.n_agents)
        return posts

    def _must_be_below(self, table: str, column: str, values: npt.NDArray[Any], most: int) -> None:
        odd = np.flatnonzero((values < 0) | (values >= most))
        if len(odd):
            raise DataError(
                f"{self.run_dir}: table {table!r} is damaged: row {odd[0]}, column {column!r}: there is no "
                f"{values[odd[0]]} (0 .. {most - 1})"
            )

    @cached_property
    def _agents(self) -> pd.DataFrame:
        known = columns_of(self.run_dir, "agents")
        more = [name for name in ("recorded_engagements", "llm") if name in known]
        return read_table(self.run_dir, "agents", ["id", "name", "interests", *BIG_FIVE, *more])

    @cached_property
    def _engagements(self) -> pd.DataFrame:
        if not has_table(self.run_dir, "engagements"):
            return pd.DataFrame({name: [] for name in ("agent", *_OF_ACTIVITIES)})
        done = read_table(self.run_dir, "engagements", ["agent", *_OF_ACTIVITIES])
        self._must_be_below("engagements", "post", done["post"].to_numpy(), len(self.posts))
        return done

    @cached_property
    def _notes(self) -> pd.DataFrame:
        if not has_table(self.run_dir, "notes"):
            return pd.DataFrame({"round": [], "agent": [], "text": []})
        return read_table(self.run_dir, "notes", ["round", "agent", "text"])

    def row_of(self, agent: str) -> int:
        """Return the row of an agent that is named by its id, its row, or its name.

        Raises:
            DataError: If there is none, or several are called so.
        """
        return row_of(agent, self._agents["id"].tolist(), self.names, self.run_dir)

    def profile(self, row: int) -> str:
        """Return who an agent is, as prompts tell it."""
        return profile_text(self.names[row], self.interests(row), self.character(row))

    def interests(self, row: int) -> tuple[str, ...]:
        """Return what an agent is interested in, in words, what it likes best first."""
        return tuple(filter(None, str(self._agents["interests"].iloc[row] or "").split(";")))

    def character(self, row: int) -> str:
        """Return what an agent is like, in words."""
        return personality(self._agents[list(BIG_FIVE)].iloc[row].to_numpy(np.float64))

    def snapshot(self, row: int, at: int | None = None) -> AgentSnapshot:
        """Return an agent as it was after round `at`: None is the last that was completed, -1 before the run.

        Raises:
            DataError: If there is no such row or round.
        """
        at = self.rounds - 1 if at is None else at
        if not 0 <= row < self.n_agents:
            raise DataError(f"{self.run_dir}: no agent {row} there (rows: 0 .. {self.n_agents - 1})")
        if not -1 <= at < self.rounds:
            raise DataError(f"{self.run_dir}: no round {at} there (rounds: 0 .. {self.rounds - 1}; -1: before the run)")
        notes = self._notes[(self._notes["agent"] == row) & (self._notes["round"] <= at)]
        return AgentSnapshot(
            run_dir=self.run_dir,
            row=row,
            name=self.names[row],
            at=at,
            who=self.profile(row),
            activities=tuple(activity for activity in self._activities(row) if activity.round <= at),
            notes=tuple(str(note) for note in notes["text"]),
            likes_recorded=bool(self._agents.get("recorded_engagements", pd.Series([True] * self.n_agents)).iloc[row]),
            interests=self.interests(row),
            character=self.character(row),
            llm=str(self._agents["llm"].iloc[row]) if "llm" in self._agents else "",
        )

    def _activities(self, row: int) -> list[Activity]:
        """Return what an agent did: what it wrote stands among the posts, what it liked among the engagements.

        A reply or a reshare has what it is about as its parent.
        """
        posts, done = self.posts, self._engagements[self._engagements["agent"] == row]
        ticks: dict[tuple[int, str, int], deque[int]] = {}
        activities = []
        for round_, tick, post, action in zip(*(done[c].tolist() for c in _OF_ACTIVITIES), strict=True):
            if action == "like":
                activities.append(self._activity(round_, tick, "like", post))
            ticks.setdefault((round_, action, post), deque()).append(tick)
        for post in np.flatnonzero(posts.author == row).tolist():
            kind, round_, parent = posts.kind[post], int(posts.written[post]), int(posts.parent[post])
            if kind == "post":
                activities.append(Activity(round_, "post", post, text=posts.says(post)))
            else:
                known = ticks.get((round_, kind, parent))
                activities.append(
                    self._activity(round_, known.popleft() if known else -1, kind, parent, posts.words(post))
                )
        return sorted(activities, key=lambda activity: (activity.round, activity.tick))

    def _activity(self, round_: int, tick: int, action: ActivityKind, post: int, words: str = "") -> Activity:
        origin = self.posts.origin(post)
        author, writer = (self.names[self.posts.author[one]] for one in (post, origin))
        quotes = "" if origin == post else writer
        return Activity(round_, action, post, author, self.posts.says(post), words, tick, quotes)


def row_of(agent: str, ids: Sequence[str], names: Sequence[str], where: Path) -> int:
    """Return the row of an agent that is named by its id, its row, or its name; `where` is for errors.

    Raises:
        DataError: If there is none, or several are called so.
    """
    if agent in ids:
        return ids.index(agent)
    given = whole_number(agent)
    if given is not None and given < len(ids):
        return given
    found = [row for row, name in enumerate(names) if name.lower() == agent.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        rows = ", ".join(map(str, found[:10]))
        raise DataError(f"{where}: {len(found)} agents are called {agent!r}: give a row ({rows})")
    alike = [f"{name} ({row})" for row, name in enumerate(names) if agent.lower() in name.lower().split()]
    hint = f" There are: {', '.join(alike[:5])}." if alike else did_you_mean(agent, names)
    raise DataError(f"{where}: no agent {agent!r} there (rows: 0 .. {len(ids) - 1}, or an id, or a name).{hint}")


class RecordedPosts:
    """The posts of a run, by id; `round` is when one appears, `written` when it was written.

    Raises:
        DataError: If the table is damaged: a post has no author, or what it is about does not stand before it.
    """

    def __init__(self, run_dir: Path) -> None:
        columns = ["round", "author", "kind", "parent", "text"]
        columns += sorted({"comment", "written"} & set(columns_of(run_dir, "posts")))
        table = read_table(run_dir, "posts", columns)
        self.round = table["round"].to_numpy()
        self.author = table["author"].to_numpy()
        self.kind = table["kind"].astype(object).to_numpy()
        self.parent = table["parent"].fillna(-1).to_numpy(np.int64)  # a blank in a run of version 0.1
        ids = np.arange(len(table))
        own = self.kind == "post"
        odd = np.flatnonzero((self.author < 0) | (self.parent < -1) | (self.parent >= ids) | (own != (self.parent < 0)))
        if len(odd):
            told = f"a {self.kind[odd[0]]} by agent {self.author[odd[0]]} about post {self.parent[odd[0]]}"
            raise DataError(f"{run_dir}: table 'posts' is damaged: row {odd[0]} is {told}")
        late = self.kind != "post"  # what an older run knows: these appear in the round after
        self.written = table["written"].to_numpy() if "written" in table else self.round - late
        self._text = _coded(table["text"])
        self._comment = _coded(table["comment"]) if "comment" in table else None

    def __len__(self) -> int:
        return len(self.round)

    def words(self, post: int) -> str:
        """Return what the author of a reply or a reshare says itself; empty if nothing, or if it is neither."""
        column = self._text if self.kind[post] == "reply" else self._comment
        return "" if column is None or self.kind[post] == "post" else _text_at(column, post)

    def origin(self, post: int) -> int:
        """Return the post whose text a post shows: itself, what it passes on, or what it answers without words."""
        while self.kind[post] == "reshare" or (self.kind[post] == "reply" and not self.words(post)):
            post = int(self.parent[post])
        return post

    def says(self, post: int) -> str:
        """Return the text that a post shows, which is by the author of its `origin`."""
        return _text_at(self._text, self.origin(post))


type _Coded = tuple[npt.NDArray[np.intp], "pd.Index[Any]"]


def _coded(column: "pd.Series[Any]") -> _Coded:
    codes, distinct = pd.factorize(column)
    return codes, pd.Index(distinct)


def _text_at(column: _Coded, place: int) -> str:
    codes, distinct = column
    return "" if codes[place] < 0 else str(distinct[codes[place]])
