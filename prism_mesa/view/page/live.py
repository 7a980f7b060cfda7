"""The page's source for a running model."""

# ruff: noqa: D102 - `Source` documents the methods

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats, UInt8
from prism_mesa.domain import POST_KINDS, SHARE
from prism_mesa.errors import printable
from prism_mesa.reasoner import asks_llm
from prism_mesa.runs.archive import find_row
from prism_mesa.social.content.activity import author_and_text
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.round.collect import ROUND_FIELDS
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.view.page import source as page_source
from prism_mesa.view.page.live_model import PageModel, RoundExplanation, explain_round

MAX_FEED_POSTS: Final = 100  # posts to show of a feed
_LATER_NOTE: Final = "The reasons appear once no new round starts."
_NO_AGENTS: Final = np.zeros(0, np.int64)


class LiveSource(page_source.Source):
    """A running model at its last round. Methods wait while a round runs in another thread, and delay the next."""

    def __init__(self, model: PageModel) -> None:
        self.run = self.model = model
        self.title, self.rounds, self.chart = "Live model", model.params.rounds, model.platform.chart_of
        self._follows: tuple[FollowNetwork, page_source.Follows] | None = None
        self._explained: tuple[int, int, RoundExplanation] | None = None  # (round, agent, explanation)

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        p = self.model.params
        return (
            ("agents", f"{self.n_agents:,}"),
            ("feed", p.feed.ranking),
            ("threshold", f"{p.agents.threshold_mean:g} (sd {p.agents.threshold_sd:g})"),
            ("band", f"{p.agents.band:g}"),
            ("network", f"{p.network.kind}, {p.network.dynamics}"),
            ("content", p.content),
            ("oracle", self.model.reasoner.label if p.statechart.oracle_enabled else "off"),
            ("seed", str(p.seed)),
        )

    @property
    def round(self) -> int:
        return self.model.round

    @property
    def n_agents(self) -> int:
        return len(self.model.population)

    def round_columns(self) -> Mapping[str, Floats]:
        with self.model.lock:
            collected_columns = self.model.prism_datacollector.model_vars
            names = [*ROUND_FIELDS, *(SHARE + state.value for state in self.model.platform.states)]
            n = min(len(collected_columns[name]) for name in names)  # a failed round may be missing in some columns
            columns = {name: np.array(collected_columns[name][:n], np.float64) for name in names}
            return {"round": np.arange(n, dtype=np.float64), **columns}

    def states(self) -> UInt8:
        with self.model.lock:
            people, agents, codes = self.model.population, _NO_AGENTS, _NO_AGENTS
            transitions = self.model.last_round.rows.get("transitions")
            if transitions is not None and len(transitions["agent"]):
                agents, codes = transitions["agent"], transitions["to_state"].codes.astype(np.uint8)
            states = page_source.most_active_states(people.state, agents, codes)
            return np.where(people.present, states, np.uint8(page_source.ABSENT)).astype(np.uint8)

    def follows(self) -> page_source.Follows:
        with self.model.lock:
            network = self.model.network
            if self._follows is None or self._follows[0] is not network:
                src, dst = network.edges()
                followers = np.bincount(src, minlength=self.n_agents)
                self._follows = network, page_source.Follows(src.copy(), dst.copy(), followers)
            return self._follows[1]

    def attributes(self) -> Mapping[str, page_source.AgentAttribute]:
        with self.model.lock:
            people = self.model.population
            columns = {}
            for index, (name, attribute) in enumerate(self.model.attributes.schema.agents.items()):
                names = attribute.texts or (("false", "true") if attribute.is_boolean else ())
                columns[name] = page_source.AgentAttribute(people.attributes[:, index].copy(), names)
            threshold, activity = people.engagement_threshold.copy(), people.activity.copy()
            columns["engagement threshold"] = page_source.AgentAttribute(threshold, unit="relevance")
            columns["activity"] = page_source.AgentAttribute(activity, unit="probability per round")
            return columns

    def posts(self) -> page_source.PostColumns:
        with self.model.lock:
            posts = self.model.posts
            columns = (posts.author, posts.kind, posts.parent, posts.root, posts.written)
            return page_source.PostColumns(*(column.copy() for column in columns))

    def post_text(self, post: int) -> str:
        with self.model.lock:
            posts = self.model.posts
            if not 0 <= post < len(posts):
                return ""
            kind, words = POST_KINDS[int(posts.kind[post])], int(posts.words[post])
            if kind == "post":
                return printable(posts.added_text(post))
            writer, text = author_and_text(self.model.platform, int(posts.parent[post]))
            return printable(page_source.with_quote("" if words == NO_TEXT else posts.texts[words], kind, writer, text))

    def agent_name(self, row: int) -> str:
        return printable(self.model.population.names[row])

    def find_agent(self, text: str) -> int:
        people = self.model.population
        return find_row(text.strip(), [*people.ids], [*people.names], Path("this model"))

    def agent(self, row: int) -> page_source.AgentDetails:
        with self.model.lock:
            agent = PlatformAgent(self.model.platform, row)
            moves = self._moves(row)
            if self._explained is not None and self._explained[:2] == (self.round, row):
                explanation = self._explained[2]
            elif note := self.model.why_not_explained():
                explanation = RoundExplanation(note=note)
            else:
                explanation = RoundExplanation(tuple(page_source.move_lines(moves, self.post_text)), note=_LATER_NOTE)
            moves_before_end = [move for move in moves if move.trigger != "round_ends"]
            feed, note = self._feed(row, explanation, moves)
            return page_source.AgentDetails(
                row=row,
                name=self.agent_name(row),
                agent_id=printable(agent.agent_id),
                profile=self._profile(agent),
                state=moves_before_end[-1].target if moves_before_end else agent.state,
                feed=feed,
                feed_note=note,
                moves=moves,
                why=explanation.lines,
                why_note=explanation.note,
            )

    def explain(self, row: int) -> None:
        """Explain what an agent did in the last round, for `agent` to show."""
        with self.model.lock:
            if self._explained is None or self._explained[:2] != (self.round, row):
                self._explained = self.round, row, explain_round(self.model, row)

    def explain_soon(self, row: int, on_change: Callable[[], None]) -> Callable[[], None]:
        """Explain an agent in another thread once no new round starts; return a function that cancels it."""
        if self.model.why_not_explained():
            return lambda: None
        round_ = self.round

        def explain() -> None:
            with self.model.lock:  # meanwhile, another round may start, or the user may choose another agent
                if timer.finished.is_set() or self.round != round_:
                    return
                self.explain(row)
            if not timer.finished.is_set():
                on_change()

        timer = Timer(self.model.rest_s, explain)
        timer.daemon = True
        timer.start()
        return timer.cancel

    def _profile(self, agent: PlatformAgent) -> tuple[tuple[str, str], ...]:
        row, network, posts = agent.row, self.model.network, self.model.posts
        written = int(((posts.author == row) & (posts.kind == 0) & (posts.round <= self.round)).sum())
        schema = self.model.attributes.schema
        values = schema.values(schema.agents, self.model.population.attributes[row].tolist()).items()
        return (
            ("interests", printable(", ".join(agent.interests)) or "none in particular"),
            ("character", printable(agent.personality)),
            ("followers", f"{int(network.n_followers[row]):,}"),
            ("follows", f"{len(network.followees(row)):,}"),
            ("posts written", f"{written:,}"),
            ("activity", f"{agent.activity:.3f} per round"),
            ("post rate", f"{agent.post_rate:.3f} per round"),
            ("band", f"{agent.low_threshold:.3f} to {agent.high_threshold:.3f}"),
            ("habits", ", ".join(f"{name} {share:.0%}" for name, share in agent.propensities.items())),
            *((name, f"{value:.3g}" if isinstance(value, float) else str(value)) for name, value in values),
        )

    def _moves(self, row: int) -> tuple[page_source.AgentMove, ...]:
        rows = self.model.last_round.rows.get("transitions")
        if rows is None:
            return ()
        moves = []
        for index in np.flatnonzero(rows["agent"] == row).tolist():
            codes = (int(rows[name].codes[index]) for name in ("from_state", "to_state"))
            source, target = (self.model.platform.states[code] for code in codes)
            trigger = str(rows["trigger"].categories[rows["trigger"].codes[index]])
            tick, post, is_open = int(rows["tick"][index]), int(rows["post"][index]), bool(rows["open"][index])
            moves.append(page_source.AgentMove(tick, trigger, source, target, post, is_open))
        return tuple(moves)

    def _feed(
        self, row: int, explanation: RoundExplanation, moves: Sequence[page_source.AgentMove]
    ) -> tuple[tuple[page_source.FeedPost, ...], str]:
        """Return the posts of an agent's feed in the last round, and a note on what is missing."""
        people, posts, agent_round = self.model.population, self.model.posts, explanation.agent_round
        n, n_read = int(people.n_feed[row]), int(people.n_read[row])
        ids = people.feed[row, : min(n, MAX_FEED_POSTS)].tolist() if self.round >= 0 else []
        engagements: dict[int, dict[str, None]] = {}  # without duplicates, in order
        for move in moves:
            if move.post >= 0 and move.target.value.startswith("engaging_"):
                engagements.setdefault(move.post, {})[move.target.value.removeprefix("engaging_")] = None
        reasons = {} if agent_round is None or agent_round.reasons is None else agent_round.reasons.texts
        feed = tuple(
            page_source.FeedPost(
                rank=index,
                post=post,
                author=self.agent_name(int(posts.author[post])),
                text=self.post_text(post),
                kind=POST_KINDS[int(posts.kind[post])],
                reason=reasons.get(post, "").partition(", ")[2],
                was_read=index <= n_read,
                engagements=", ".join(engagements.get(post, ())),
            )
            for index, post in enumerate(ids, 1)
        )
        note = f"{n_read:,} of {n:,} posts were read." + (f" The first {len(feed)} are shown." * (n > len(feed)))
        if not n:
            note = "No feed in this round: the agent did not come online, or there was nothing new for it."
            note = "The round failed, so its feed is unknown." if self.model.fault else note
        return feed, note

    def oracle(self) -> page_source.OracleDetails:
        with self.model.lock:
            return oracle_details(self.model)


def oracle_details(model: PageModel) -> page_source.OracleDetails:
    """Return who decided the open choices so far."""
    reasoner = model.reasoner
    note = [reasoner.note] if reasoner.note else []
    if not asks_llm(reasoner):
        return page_source.OracleDetails(reasoner.label, dict(model.sources), notes=note)
    usage = reasoner.usage + (model.writer.usage if model.writer is not None else Counter())
    p, n_tokens = reasoner.params, usage["prompt_tokens"] + usage["completion_tokens"]
    spent: dict[str, tuple[float, float | None]] = {
        "calls": (usage["calls"], p.max_calls),
        "tokens": (n_tokens, p.max_tokens),
    }
    if p.max_seconds is not None:
        remaining: Any = reasoner.budget.snapshot()["run"]
        spent["seconds"] = p.max_seconds - float(remaining[2]), p.max_seconds
    notes = [
        f"{usage['prompt_tokens']:,} tokens of prompts, {usage['completion_tokens']:,} of answers.",
        f"If no answer comes: {p.fallback}.",
        *note,
    ]
    for llm, n in sorted(reasoner.by_llm.items()):
        if llm:
            answers = f"{n['llm'] + n['cache']:,} answers, {n['fallback']:,} fallbacks"
            notes.append(f"{llm}: {n['calls']:,} calls, {answers}.")
    if model.written:
        notes.append("Texts: " + ", ".join(f"{n:,} {kind}" for kind, n in model.written.items()) + ".")
    return page_source.OracleDetails(reasoner.label, dict(model.sources), spent, dict(reasoner.reasons), notes)
