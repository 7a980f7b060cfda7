"""The profile, activities and notes of agents after a round, read from a run's tables."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.deliberation.conversation import quote_data
from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.params import parse_whole_number
from prism_mesa.reasoner.prompt import profile_text
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import count_rows, has_table, read_column_names, read_table
from prism_mesa.social.content.activity import Activity, ActivityKind, activity_line
from prism_mesa.social.world.profiles import personality

NOTE_CAP: Final = 200
"""Longest note in an agent's memory, in characters."""
_MAX_NOTES: Final = 5
"""The number of notes that an agent remembers."""
_COUNT_PHRASES: Final[dict[ActivityKind, tuple[str, str]]] = {
    "post": ("wrote 1 post", "wrote {} posts"),
    "like": ("liked 1 post", "liked {} posts"),
    "reply": ("replied 1 time", "replied {} times"),
    "reshare": ("reshared 1 post", "reshared {} posts"),
}
_ACTIVITY_COLUMNS: Final = ("round", "tick", "post", "action")


def count_text(activities: Sequence[Activity]) -> str:
    """Return the number of activities of each kind, such as ``liked 14 posts, replied 2 times``."""
    counts = Counter(activity.action for activity in activities)
    return ", ".join(forms[n > 1].format(n) for action, forms in _COUNT_PHRASES.items() if (n := counts[action]))


@dataclass(frozen=True)
class AgentSnapshot:
    """An agent after a round.

    Attributes:
        last_round: The last round included; -1 for before the run.
        profile: The profile in the words of prompts.
        activities, notes: Oldest first; within a round, posts come first.
        interests: Strongest first.
        llm: The agent's LLM if the run has several; else empty.
    """

    run_dir: Path
    row: int
    name: str
    last_round: int
    profile: str
    activities: tuple[Activity, ...] = ()
    notes: tuple[str, ...] = ()
    likes_recorded: bool = True
    interests: tuple[str, ...] = ()
    character: str = ""
    llm: str = ""

    def memory(self, max_activities: int = 12) -> str:
        """Return the agent's memory: counts of older activities, the last `max_activities`, and the last notes.

        The memory is empty before the run.
        """
        if self.last_round < 0:
            return ""
        last = self.activities[-max_activities:] if max_activities > 0 else ()
        older = self.activities[: len(self.activities) - len(last)]
        lines = [f"Before that you {count_text(older)}."] if older else []
        lines += [activity_line(activity) for activity in last]
        if not self.activities:
            lines.append("You have not posted, replied or reshared anything so far.")
        if not self.likes_recorded:
            lines.append("What you liked is not recorded.")
        lines += [f"You noted: {quote_data(note, NOTE_CAP)}" for note in self.notes[-_MAX_NOTES:]]
        return "\n".join(lines)


class RunRecords:
    """The tables of a platform's run, each read once, on first use; `run` is its folder with the manifest.

    Raises DataError if there is no run, it is a run of nations, or no round was completed.
    """

    def __init__(self, run_dir: str | Path) -> None:
        self.run_dir = Path(run_dir)
        self.run = read_run(self.run_dir)
        manifest = self.run.manifest
        if manifest.is_economy:
            raise DataError(f"{run_dir} is a run of nations: only agents of a platform can be interviewed or surveyed")
        for table in ("agents", "posts"):
            if not has_table(self.run_dir, table):
                why = "it was removed" if manifest.status == "done" else "the run has not ended"
                fault = f"no table {table!r} there: {why} (status {self.run.state})"
                raise DataError(f"{run_dir}: {fault}{self.run.advice}")
        rounds = manifest.summary.rounds
        if rounds is None:
            rounds = count_rows(self.run_dir, "rounds") if has_table(self.run_dir, "rounds") else 0
        self.rounds = rounds
        if rounds == 0:
            raise DataError(f"{run_dir}: no round was completed (status {self.run.state}){self.run.advice}")

    @property
    def n_agents(self) -> int:
        """The number of agents."""
        return len(self.names)

    @cached_property
    def names(self) -> list[str]:
        """The agents' names, by row."""
        return [str(name) for name in self._agents["name"]]

    @cached_property
    def users(self) -> npt.NDArray[np.bool_]:
        """Whether each agent ever joined the platform; always True without churn (`agents.churn`)."""
        if not has_table(self.run_dir, "churn"):
            return np.ones(self.n_agents, np.bool_)
        users = np.array(read_table(self.run_dir, "agents", ["present"])["present"], np.bool_)
        joined = read_table(self.run_dir, "churn", ["agent"])["agent"].to_numpy()
        self._check_rows("churn", "agent", joined, self.n_agents)
        users[joined] = True
        return users

    @cached_property
    def posts(self) -> "RecordedPosts":
        """The posts. Raises DataError if the table is damaged."""
        posts = RecordedPosts(self.run_dir)
        self._check_rows("posts", "author", posts.author, self.n_agents)
        return posts

    def _check_rows(self, table: str, column: str, rows: npt.NDArray[Any], n: int) -> None:
        """Raise DataError if a column refers to a row outside a table of `n` rows."""
        invalid = np.flatnonzero((rows < 0) | (rows >= n))
        if len(invalid):
            where = f"table {table!r} is damaged: row {invalid[0]}, column {column!r}"
            raise DataError(f"{self.run_dir}: {where}: there is no {rows[invalid[0]]} (0 .. {n - 1})")

    @cached_property
    def _agents(self) -> pd.DataFrame:
        llm = {"llm"} & {*read_column_names(self.run_dir, "agents")}  # only runs with several LLMs have it
        return read_table(self.run_dir, "agents", ["id", "name", "interests", *BIG_FIVE, "recorded_engagements", *llm])

    @cached_property
    def _engagements(self) -> pd.DataFrame:
        if not has_table(self.run_dir, "engagements"):
            return pd.DataFrame({name: [] for name in ("agent", *_ACTIVITY_COLUMNS)})
        engagements = read_table(self.run_dir, "engagements", ["agent", *_ACTIVITY_COLUMNS])
        self._check_rows("engagements", "post", engagements["post"].to_numpy(), len(self.posts))
        return engagements

    @cached_property
    def _notes(self) -> pd.DataFrame:
        if not has_table(self.run_dir, "notes"):
            return pd.DataFrame({"round": [], "agent": [], "text": []})
        return read_table(self.run_dir, "notes", ["round", "agent", "text"])

    def find_row(self, agent: str) -> int:
        """Return the row of the agent with an id, row or name; raises DataError unless there is exactly one."""
        return find_row(agent, self._agents["id"].tolist(), self.names, self.run_dir)

    def profile(self, row: int) -> str:
        """Return an agent's profile in the words of prompts."""
        return profile_text(self.names[row], self.interests(row), self.character(row))

    def interests(self, row: int) -> tuple[str, ...]:
        """Return an agent's interests, strongest first."""
        return tuple(filter(None, str(self._agents["interests"].iloc[row] or "").split(";")))

    def character(self, row: int) -> str:
        """Return a description of an agent's personality."""
        return personality(self._agents[list(BIG_FIVE)].iloc[row].to_numpy(np.float64))

    def snapshot(self, row: int, at: int | None = None) -> AgentSnapshot:
        """Return an agent after round `at` (None: the last, -1: before the run); raises DataError if there is none."""
        at = self.rounds - 1 if at is None else at
        if not 0 <= row < self.n_agents:
            raise DataError(f"{self.run_dir}: no agent {row} there (rows: 0 .. {self.n_agents - 1})")
        if not -1 <= at < self.rounds:
            raise DataError(f"{self.run_dir} has no round {at} (rounds: 0 .. {self.rounds - 1}; -1: before the run)")
        notes = self._notes[(self._notes["agent"] == row) & (self._notes["round"] <= at)]
        return AgentSnapshot(
            run_dir=self.run_dir,
            row=row,
            name=self.names[row],
            last_round=at,
            profile=self.profile(row),
            activities=tuple(activity for activity in self._activities(row) if activity.round <= at),
            notes=tuple(str(note) for note in notes["text"]),
            likes_recorded=bool(self._agents["recorded_engagements"].iloc[row]),
            interests=self.interests(row),
            character=self.character(row),
            llm=str(self._agents["llm"].iloc[row]) if "llm" in self._agents else "",
        )

    def _activities(self, row: int) -> list[Activity]:
        posts, engagements = self.posts, self._engagements[self._engagements["agent"] == row]
        ticks: dict[tuple[int, str, int], deque[int]] = {}
        activities = []
        for round_, tick, post, action in zip(*(engagements[c].tolist() for c in _ACTIVITY_COLUMNS), strict=True):
            if action == "like":
                activities.append(self._activity(round_, tick, "like", post))
            ticks.setdefault((round_, action, post), deque()).append(tick)
        for post in np.flatnonzero(posts.author == row).tolist():
            kind, round_, parent = posts.kind[post], int(posts.written[post]), int(posts.parent[post])
            if kind == "post":
                activities.append(Activity(round_, "post", post, text=posts.shown_text(post)))
            else:
                tick_queue = ticks.get((round_, kind, parent))
                tick = tick_queue.popleft() if tick_queue else -1
                activities.append(self._activity(round_, tick, kind, parent, posts.words(post)))
        return sorted(activities, key=lambda activity: (activity.round, activity.tick))

    def _activity(self, round_: int, tick: int, action: ActivityKind, post: int, words: str = "") -> Activity:
        origin = self.posts.origin(post)
        author, writer = (self.names[self.posts.author[i]] for i in (post, origin))
        quotes = "" if origin == post else writer
        return Activity(round_, action, post, author, self.posts.shown_text(post), words, tick, quotes)


def find_row(agent: str, ids: Sequence[str], names: Sequence[str], where: Path) -> int:
    """Return the row of the agent with an id, row or name; raises DataError, naming `where`, unless there is one."""
    if agent in ids:
        return ids.index(agent)
    number = parse_whole_number(agent)
    if number is not None and number < len(ids):
        return number
    rows = [row for row, name in enumerate(names) if name.lower() == agent.lower()]
    if len(rows) == 1:
        return rows[0]
    if rows:
        row_list = ", ".join(map(str, rows[:10]))
        raise DataError(f"{where}: {len(rows)} agents are called {agent!r}: give a row ({row_list})")
    similar = [f"{name} ({row})" for row, name in enumerate(names) if agent.lower() in name.lower().split()]
    hint = f" There are: {', '.join(similar[:5])}." if similar else did_you_mean(agent, names)
    raise DataError(f"{where}: no agent {agent!r} there (rows: 0 .. {len(ids) - 1}, or an id, or a name).{hint}")


class RecordedPosts:
    """The posts of a run by id, with the rounds in which they were `written` and appeared (`round`)."""

    def __init__(self, run_dir: Path) -> None:
        table = read_table(run_dir, "posts", ["round", "written", "author", "kind", "parent", "text", "comment"])
        self.round = table["round"].to_numpy()
        self.author = table["author"].to_numpy()
        self.kind = table["kind"].astype(object).to_numpy()
        self.parent = table["parent"].fillna(-1).to_numpy(np.int64)  # blank in runs of version 0.1
        ids = np.arange(len(table))
        is_response, parent = self.kind != "post", self.parent
        invalid = np.flatnonzero((self.author < 0) | (parent < -1) | (parent >= ids) | (is_response == (parent < 0)))
        if len(invalid):
            content = f"a {self.kind[invalid[0]]} by agent {self.author[invalid[0]]} about post {parent[invalid[0]]}"
            raise DataError(f"{run_dir}: table 'posts' is damaged: row {invalid[0]} is {content}")
        self.written = table["written"].to_numpy()
        self._text = _encode(table["text"])
        self._comment = _encode(table["comment"])

    def __len__(self) -> int:
        return len(self.round)

    def words(self, post: int) -> str:
        """Return the words that the author added in a reply or a reshare; empty without words."""
        column = self._text if self.kind[post] == "reply" else self._comment
        return "" if self.kind[post] == "post" else _text_at(column, post)

    def origin(self, post: int) -> int:
        """Return the post whose text is shown: the post, or the one that it reshares or answers without words."""
        while self.kind[post] == "reshare" or (self.kind[post] == "reply" and not self.words(post)):
            post = int(self.parent[post])
        return post

    def shown_text(self, post: int) -> str:
        """Return the text that a post shows: the text of its `origin`."""
        return _text_at(self._text, self.origin(post))


type _EncodedTexts = tuple[npt.NDArray[np.intp], "pd.Index[Any]"]


def _encode(column: "pd.Series[Any]") -> _EncodedTexts:
    codes, distinct = pd.factorize(column)
    return codes, pd.Index(distinct)


def _text_at(column: _EncodedTexts, row: int) -> str:
    codes, distinct = column
    return "" if codes[row] < 0 else str(distinct[codes[row]])
