"""The page's source for a running model."""

# ruff: noqa: D102 - `Source` documents the methods

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from threading import Timer
from typing import Any, Concatenate, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import POST_KINDS
from prism_mesa.errors import printable
from prism_mesa.reasoner import asks_llm
from prism_mesa.runs.archive import row_of
from prism_mesa.social.content.activity import author_and_text
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.round.collect import ROUND_FIELDS, SHARE_FIELDS
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.statechart import AgentState, Statechart
from prism_mesa.view.page import source as on_show
from prism_mesa.view.page.live_model import PageModel, ToldRound, tell_round, why_untold

MOST_OF_FEED: Final = 100
"""Posts of a feed that are shown."""
_TOLD_LATER: Final = "Why it did so is told as soon as no new round comes."
_NOBODY: Final = np.zeros(0, np.int64)


def _while_no_round_runs[**P, R](
    read: Callable[Concatenate["LiveSource", P], R],
) -> Callable[Concatenate["LiveSource", P], R]:
    """Make a method wait until no round runs in another thread, and delay the next round until it returns."""

    @wraps(read)
    def locked(self: "LiveSource", /, *values: P.args, **named: P.kwargs) -> R:
        with self.model.lock:
            return read(self, *values, **named)

    return locked


class LiveSource(on_show.Source):
    """A running model at its last round (see `source.Source`)."""

    title = "Live model"

    def __init__(self, model: PageModel) -> None:
        self.model = model
        self._follows: tuple[FollowNetwork, on_show.Follows] | None = None
        self._told: tuple[int, int, ToldRound] | None = None

    @property
    def run(self) -> object:
        return self.model

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        p = self.model.params
        return (
            ("agents", f"{len(self.model.population):,}"),
            ("feed", p.feed.ranking),
            ("threshold", f"{p.agents.threshold_mean:g} (sd {p.agents.threshold_sd:g})"),
            ("band", f"{p.agents.band:g}"),
            ("network", f"{p.network.kind}, {p.network.dynamics}"),
            ("content", p.content),
            ("oracle", self.model.reasoner.label if p.statechart.oracle_enabled else "off"),
            ("seed", str(p.seed)),
        )

    @property
    def rounds(self) -> int:
        return self.model.params.rounds

    @property
    def at(self) -> int:
        return self.model.round

    @property
    def n_agents(self) -> int:
        return len(self.model.population)

    @property
    def chart(self) -> Statechart:
        return self.model.chart

    @_while_no_round_runs
    def round_columns(self) -> Mapping[str, on_show.Floats]:
        collected = self.model.prism_datacollector.model_vars
        names = [*ROUND_FIELDS, *SHARE_FIELDS]
        n = min(len(collected[name]) for name in names)  # of a round that failed some may be missing
        columns = {name: np.array(collected[name][:n], np.float64) for name in names}
        return {"round": np.arange(n, dtype=np.float64), **columns}

    @_while_no_round_runs
    def states(self) -> npt.NDArray[np.uint8]:
        people = self.model.population
        most = on_show.most_done(people.state, _NOBODY, _NOBODY)
        moved = self.model.kept.rows.get("transitions")
        if moved is not None and len(moved["agent"]):
            codes = np.array([AgentState(name).code for name in moved["to_state"].categories], np.uint8)
            most = on_show.most_done(people.state, moved["agent"], codes[moved["to_state"].codes])
        return np.where(people.present, most, np.uint8(on_show.NOT_THERE)).astype(np.uint8)

    @_while_no_round_runs
    def follows(self) -> on_show.Follows:
        network = self.model.network
        if self._follows is None or self._follows[0] is not network:
            src, dst = network.edges()
            followers = np.bincount(src, minlength=len(self.model.population))
            self._follows = network, on_show.Follows(src.copy(), dst.copy(), followers)
        return self._follows[1]

    @_while_no_round_runs
    def attributes(self) -> Mapping[str, on_show.AgentAttribute]:
        people = self.model.population
        columns = {}
        for place, (name, attribute) in enumerate(self.model.attributes.known.agents.items()):
            names = attribute.texts or (("false", "true") if attribute.is_truth else ())
            columns[name] = on_show.AgentAttribute(people.attributes[:, place].copy(), names)
        return columns | {
            "engagement threshold": on_show.AgentAttribute(people.engagement_threshold.copy(), unit="relevance"),
            "activity": on_show.AgentAttribute(people.activity.copy(), unit="probability per round"),
        }

    @_while_no_round_runs
    def posts(self) -> on_show.PostColumns:
        posts = self.model.posts
        columns = (posts.author, posts.kind, posts.parent, posts.root, posts.written)
        return on_show.PostColumns(*(column.copy() for column in columns))

    @_while_no_round_runs
    def post_text(self, post: int) -> str:
        posts = self.model.posts
        if not 0 <= post < len(posts):
            return ""
        kind, words = POST_KINDS[int(posts.kind[post])], int(posts.words[post])
        if kind == "post":
            return printable(posts.added_text(post))
        writer, text = author_and_text(self.model.platform, int(posts.parent[post]))
        return printable(on_show.with_quote("" if words == NO_TEXT else posts.texts[words], kind, writer, text))

    def agent_name(self, row: int) -> str:
        return printable(self.model.population.names[row])

    def find_agent(self, text: str) -> int:
        people = self.model.population
        return row_of(text.strip(), [*people.ids], [*people.names], Path("this model"))

    @_while_no_round_runs
    def agent(self, row: int) -> on_show.AgentOnShow:
        agent = PlatformAgent(self.model.platform, row)
        moves = self._moves(row)
        told_round = self._explained(row, moves)
        last = [move for move in moves if move.trigger != "round_ends"]
        feed, note = self._feed(row, told_round, moves)
        return on_show.AgentOnShow(
            row=row,
            name=self.agent_name(row),
            agent_id=printable(agent.agent_id),
            profile=self._profile(agent),
            state=last[-1].target if last else agent.state,
            feed=feed,
            feed_note=note,
            moves=moves,
            why=told_round.lines,
            why_note=told_round.note,
        )

    def _explained(self, row: int, moves: Sequence[on_show.AgentMove]) -> ToldRound:
        """Return the explanation of an agent's last round, or only its actions if it has not been explained yet."""
        if self._told is not None and self._told[:2] == (self.at, row):
            return self._told[2]
        if why_not := why_untold(self.model):
            return ToldRound(note=why_not)
        return ToldRound(tuple(on_show.moves_lines(moves, self.post_text)), note=_TOLD_LATER)

    @_while_no_round_runs
    def tell(self, row: int) -> None:
        """Explain what an agent did in the last round, for `agent` to show."""
        if self._told is None or self._told[:2] != (self.at, row):
            self._told = self.at, row, tell_round(self.model, row)

    def tell_soon(self, row: int, on_told: Callable[[], None]) -> Callable[[], None]:
        """Explain an agent in another thread, once no new round comes; return a function that cancels this."""
        if why_untold(self.model):
            return lambda: None
        at = self.at

        def tell() -> None:
            with self.model.lock:  # while it waits another round may come, or another agent be chosen
                if timer.finished.is_set() or self.at != at:
                    return
                self.tell(row)
            if not timer.finished.is_set():
                on_told()

        timer = Timer(self.model.rest_s, tell)
        timer.daemon = True
        timer.start()
        return timer.cancel

    def _profile(self, agent: PlatformAgent) -> tuple[tuple[str, str], ...]:
        row, network, posts = agent.row, self.model.network, self.model.posts
        written = int(((posts.author == row) & (posts.kind == 0) & (posts.round <= self.at)).sum())
        declared = self.model.attributes.known.agents
        kept = self.model.population.attributes[row].tolist()
        declared_values = self.model.attributes.known.values(declared, kept).items()
        acts = ", ".join(f"{name} {share:.0%}" for name, share in agent.propensities.items())
        return (
            ("interests", printable(", ".join(agent.interests)) or "none in particular"),
            ("character", printable(agent.personality)),
            ("followers", f"{int(network.n_followers[row]):,}"),
            ("follows", f"{len(network.followees(row)):,}"),
            ("posts written", f"{written:,}"),
            ("activity", f"{agent.activity:.3f} per round"),
            ("post rate", f"{agent.post_rate:.3f} per round"),
            ("band", f"{agent.low_threshold:.3f} to {agent.high_threshold:.3f}"),
            ("habits", acts),
            *((name, f"{value:.3g}" if isinstance(value, float) else str(value)) for name, value in declared_values),
        )

    def _moves(self, row: int) -> tuple[on_show.AgentMove, ...]:
        rows = self.model.kept.rows.get("transitions")
        if rows is None:
            return ()
        places = np.flatnonzero(rows["agent"] == row)
        names = ("trigger", "from_state", "to_state")
        texts = {name: [str(rows[name].categories[code]) for code in rows[name].codes[places]] for name in names}
        numbers = {name: rows[name][places].tolist() for name in ("tick", "post", "open")}
        return tuple(
            on_show.AgentMove(tick, trigger, AgentState(source), AgentState(target), post, bool(is_open))
            for tick, trigger, source, target, post, is_open in zip(
                numbers["tick"], *(texts[name] for name in names), numbers["post"], numbers["open"], strict=True
            )
        )

    def _feed(
        self, row: int, explained: ToldRound, moves: Sequence[on_show.AgentMove]
    ) -> tuple[tuple[on_show.FeedPost, ...], str]:
        """Return the posts of an agent's feed in the last round, and a note on what is missing."""
        people, posts, shown = self.model.population, self.model.posts, explained.shown
        n, n_read = int(people.n_feed[row]), int(people.n_read[row])
        ids = people.feed[row, : min(n, MOST_OF_FEED)].tolist() if self.at >= 0 else []
        did: dict[int, list[str]] = {}
        for move in moves:
            if move.post >= 0 and move.target.value.startswith("engaging_"):
                did.setdefault(move.post, []).append(move.target.value.removeprefix("engaging_"))
        why = {} if shown is None or shown.reasons is None else shown.reasons.posts
        feed = tuple(
            on_show.FeedPost(
                place=place,
                post=post,
                author=self.agent_name(int(posts.author[post])),
                text=self.post_text(post),
                kind=POST_KINDS[int(posts.kind[post])],
                told=why.get(post, "").partition(", ")[2],
                was_read=place <= n_read,
                did=", ".join(dict.fromkeys(did.get(post, []))),
            )
            for place, post in enumerate(ids, 1)
        )
        if not n:
            none = "No feed in this round: it did not come online, or there was nothing new for it."
            return feed, "The round failed: what it was shown is not known." if self.model.fault else none
        return feed, f"{n_read:,} of {n:,} posts were read." + (f" The first {len(feed)} are shown." * (n > len(feed)))

    @_while_no_round_runs
    def oracle(self) -> on_show.OracleOnShow:
        return oracle_on_show(self.model)


_LIMITS: Final = {"calls": "max_calls", "tokens": "max_tokens", "seconds": "max_seconds"}


def oracle_on_show(model: PageModel) -> on_show.OracleOnShow:
    """Return who has decided the open choices so far."""
    reasoner = model.reasoner
    note = [reasoner.note] if reasoner.note else []
    if not asks_llm(reasoner):
        return on_show.OracleOnShow(reasoner.label, dict(model.sources), notes=note)
    usage = reasoner.usage + (model.writer.usage if model.writer is not None else Counter())
    limits = {what: getattr(reasoner.params, key) for what, key in _LIMITS.items()}
    counts: dict[str, float] = {"calls": usage["calls"], "tokens": usage["prompt_tokens"] + usage["completion_tokens"]}
    left: Any = reasoner.budget.snapshot()["run"]
    if limits["seconds"] is not None:
        counts["seconds"] = limits["seconds"] - float(left[2])
    spent = [on_show.Spent(what, n, limits[what]) for what, n in counts.items()]
    notes = [
        f"{usage['prompt_tokens']:,} tokens of prompts, {usage['completion_tokens']:,} of answers.",
        f"If no answer comes: {reasoner.params.fallback}.",
        *note,
    ]
    for llm, n in sorted(reasoner.by_llm.items()):
        if llm:
            answers = f"{n['llm'] + n['cache']:,} answers, {n['fallback']:,} fallbacks"
            notes.append(f"{llm}: {n['calls']:,} calls, {answers}.")
    if model.written:
        notes.append("Texts: " + ", ".join(f"{n:,} {what}" for what, n in model.written.items()) + ".")
    return on_show.OracleOnShow(reasoner.label, dict(model.sources), spent, dict(reasoner.reasons), notes)
